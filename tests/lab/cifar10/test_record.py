"""Curves of a run, and records of them."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from plunit.lab import plan, store
from plunit.lab.read.cifar10 import EXPERIMENTS
from plunit.lab.read.cifar10_curves import curve, read

ACTIVATIONS = EXPERIMENTS[0].activations
RECORD = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "record.py"))


@pytest.mark.parametrize(("steps", "window", "kept"), [(1000, 50, 1000), (1049, 50, 1000), (24, 24, 24), (50, 50, 50)])
def test_a_curve_has_the_means_of_whole_windows(made, steps, window, kept):
    loss, found = made("plu", steps, 3)["loss"], curve(made("plu", steps, 3))
    assert (found.window, found.steps, found.seeds) == (window, kept, 3)
    np.testing.assert_allclose(found.at(kept), loss[kept - window : kept].mean(0))
    np.testing.assert_allclose(found.at(window), loss[:window].mean(0))
    np.testing.assert_allclose(found.area(kept), loss[:kept].mean(0))
    np.testing.assert_allclose(found.smoothed(1), found.loss)


def test_smoothed_curves_are_means_of_whole_groups(made):
    loss = made("plu", 1250)["loss"]
    groups = [loss[first : first + 200].mean(0) for first in range(0, 1200, 200)]
    np.testing.assert_allclose(curve(made("plu", 1250)).smoothed(200), groups)


def test_a_record_comes_back_as_it_was_and_says_what_was_run(made, tmp_path):
    curves = {"relu": curve(made("relu", 400, 1)), "plu": curve(made("plu", 400, 3))}
    RECORD["write"](tmp_path / "some", curves, {"command": "plunit run"})
    about = json.loads((tmp_path / "some" / "record.json").read_text())
    assert about == {"command": "plunit run", "window": 50, "seeds": {"relu": 1, "plu": 3}}
    found = read("some", tmp_path)
    assert list(found) == ["relu", "plu"]
    for activation, theirs in curves.items():
        ours, theirs = vars(found[activation]), vars(theirs)
        for key, digits in {"loss": 1e-5, "test_loss": 1e-6, "test_accuracy": 1e-4}.items():
            np.testing.assert_allclose(ours[key], theirs[key], atol=digits)
        np.testing.assert_array_equal(ours["test_step"], [100, 400], strict=True)
        assert ours["window"] == 50
    assert read("none", tmp_path) == {}


def test_the_full_run_is_a_record_of_the_package():
    found = read("full")
    assert set(found) == set(ACTIVATIONS)
    assert {(one.steps, one.seeds, one.window) for one in found.values()} == {(100_000, 1, 50)}
    assert np.isfinite(np.stack([one.loss for one in found.values()])).all()
    assert {one.test_step[-1] for one in found.values()} == {100_000}


def test_a_finished_folder_becomes_a_record(made, tmp_path, monkeypatch):
    monkeypatch.setitem(RECORD["main"].__globals__, "RECORDS", tmp_path / "records")
    part = plan.Part("cifar10", 2, ("relu", "plu"), changes={"steps": 100})
    plan.save(tmp_path / "runs", {"cifar10": part})
    for cell in part.cells():
        arrays = made(cell.activation, 100)
        chosen = {key: array[..., cell.first : cell.last] for key, array in arrays.items()}
        store.write(tmp_path / "runs", cell, chosen)
    RECORD["main"](tmp_path / "runs", "mine")
    found = read("mine", tmp_path / "records")
    np.testing.assert_allclose(found["plu"].loss, curve(made("plu", 100)).loss, atol=1e-5)
    about = json.loads((tmp_path / "records" / "mine" / "record.json").read_text())
    assert (about["spec"]["steps"], about["seeds"]) == (100, {"relu": 2, "plu": 2})
    assert about["command"] == "plunit run cifar10 --set steps=100 --seeds 2 --activations relu,plu"
