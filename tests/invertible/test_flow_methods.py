"""The benchmark of ways to train a flow: data, training and what it stores."""

import csv
import dataclasses
import json

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from benchmarks import flow_methods
from benchmarks.flow_methods import METHODS, SETTINGS, gaussian, train, train_and_test

SMALL = dataclasses.replace(SETTINGS["toys"], data=("moons", "pinwheel"), seeds=2, steps=60, blocks=2)


@pytest.mark.parametrize("method", METHODS)
def test_trained_flows_are_better_than_untrained_ones(method):
    found = {(name, seed): (flow, nll) for name, seed, flow, nll in train(SMALL, method)}
    assert [*found] == [(name, seed) for name in SMALL.data for seed in range(2)]
    before = {(name, seed): nll for name, seed, _, nll in train(dataclasses.replace(SMALL, steps=1), method)}
    for case, (flow, nll) in found.items():
        test = train_and_test(*case)[1]
        assert nll == pytest.approx(-flow.log_prob(test).mean().item())
        assert nll == before[case] if method == "gaussian" else nll < before[case] - 0.02


@pytest.mark.parametrize("name", SMALL.data)
def test_the_gaussian_is_the_normal_of_the_datas_moments(name):
    draw, test = train_and_test(name, 1)
    points = draw(100_000)
    normal = MultivariateNormal(points.mean(0), points.T.cov())
    torch.testing.assert_close(gaussian(points).log_prob(test), normal.log_prob(test), rtol=1e-3, atol=1e-3)


def test_methods_see_the_same_data():
    ours, theirs = (train_and_test("moons", 3) for _ in range(2))
    assert torch.equal(ours[0](10), theirs[0](10))
    assert torch.equal(ours[1], theirs[1])
    assert not torch.equal(ours[0](10), ours[0](10))
    assert not torch.equal(train_and_test("moons", 3)[0](10), ours[1][:10])


def test_a_table_is_split_and_scaled_by_its_training_rows():
    draw, test = train_and_test("wine", 0)
    assert test.shape == (35, 13)
    many = draw(20_000)
    torch.testing.assert_close(many.mean(0), torch.zeros(13), atol=0.05, rtol=0)
    torch.testing.assert_close(many.std(0), torch.ones(13), atol=0.05, rtol=0)
    assert test.mean(0).abs().max() < 1
    assert not torch.equal(test, train_and_test("wine", 1)[1])
    known = {tuple(row.tolist()) for row in many.round(decimals=3)}
    assert not known & {tuple(row.tolist()) for row in test.round(decimals=3)}


def test_the_command_prints_and_stores_what_it_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(SETTINGS, "toys", SMALL)
    flow_methods.main(["--full", "--store", str(tmp_path)])
    said = capsys.readouterr().out
    assert all(title in said for title in METHODS.values())
    with (tmp_path / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["data"], row["seed"]) for row in rows} == {
        (method, name, str(seed)) for method in METHODS for name in SMALL.data for seed in range(2)
    }
    smooth = [float(row["nll"]) for row in rows if row["method"] == "smooth" and row["data"] == "moons"]
    assert f"{np.mean(smooth):.3f}" in said
    kept = json.loads((tmp_path / "flows.json").read_text())
    assert {method: len(flows) for method, flows in kept.items()} == dict.fromkeys([*METHODS][1:], 2)


def test_the_settings_of_tables_have_an_interval(monkeypatch, capsys):
    monkeypatch.setitem(SETTINGS, "wine", dataclasses.replace(SETTINGS["wine"], steps=3))
    flow_methods.main(["--data", "wine"])
    lines = capsys.readouterr().out.splitlines()[3:]
    assert len(lines) == 5
    assert all("minus the Gaussian's" in line and "nan" not in line for line in lines)
