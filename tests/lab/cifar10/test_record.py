"""Curves of a run, and records of them."""

import csv
import dataclasses
import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.lab import store
from plunit.lab.cell import Cell, program_of
from plunit.lab.read.cifar10 import EXPERIMENTS, curve, join, keep_seeds, read
from plunit.lab.train import cifar10
from plunit.lab.train.cifar10 import Cifar10Spec

ACTIVATIONS = EXPERIMENTS[0].activations
SPEC = Cifar10Spec(steps=400)
ROOT = Path(__file__).parents[3]
RECORD = runpy.run_path(str(ROOT / "tools" / "record.py"))


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


@pytest.fixture
def finish(made, tmp_path):
    """Return a function that stores a cell as if it had been trained."""

    def write(activation, seed, *, program="old", spec=SPEC, experiment="cifar10"):
        chosen = {key: array[..., [seed]] for key, array in made(activation, spec.steps, 8).items()}
        store.write(tmp_path / "runs", Cell(experiment, spec, activation, seed, seed + 1, "", program), chosen)

    return write


def add(folder, name="mine", tree=ROOT):
    return RECORD["add"](folder / "runs", name, tree, folder / "records")


def seeds_of(curves):
    return {activation: found.seed.tolist() for activation, found in curves.items()}


def test_a_record_comes_back_as_it_was_and_says_what_was_run(made, tmp_path):
    some = curve(made("plu", 400, 8)).of([2, 5, 7])
    curves = {"relu": curve(made("relu", 400, 1)), "plu": some}
    RECORD["write"](tmp_path / "some", curves, {"note": "some words"})
    about, found = read("some", tmp_path)
    assert about == {"note": "some words", "window": 50}
    assert seeds_of(found) == {"relu": [0], "plu": [2, 5, 7]}
    for activation, theirs in curves.items():
        ours, theirs = vars(found[activation]), vars(theirs)
        for key, digits in {"loss": 1e-5, "test_loss": 1e-6, "test_accuracy": 1e-4}.items():
            np.testing.assert_allclose(ours[key], theirs[key], atol=digits)
        np.testing.assert_array_equal(ours["test_step"], [100, 400], strict=True)
        assert ours["window"] == 50
    assert read("none", tmp_path) == ({}, {})


def test_finished_cells_are_added_one_by_one_whatever_program_made_them(made, finish, tmp_path):
    finish("plu", 1)
    finish("relu", 3, program="older")
    assert add(tmp_path) == 2
    assert seeds_of(read("mine", tmp_path / "records")[1]) == {"plu": [1], "relu": [3]}
    finish("plu", 0)
    finish("plu", 4, experiment="cifar10-gain")  # another experiment
    assert add(tmp_path) == 3
    about, curves = read("mine", tmp_path / "records")
    assert seeds_of(curves) == {"plu": [0, 1], "relu": [3]}
    np.testing.assert_allclose(curves["plu"].loss, curve(made("plu", 400, 8)).of([0, 1]).loss, atol=1e-5)
    assert about["spec"] == json.loads(json.dumps(dataclasses.asdict(SPEC)))
    runs = {(one["activation"], one["seed"]): one for one in about["runs"]}
    assert {key: one["program"] for key, one in runs.items()} == {
        ("plu", 0): "old",
        ("plu", 1): "old",
        ("relu", 3): "older",
    }
    assert runs["relu", 3]["seconds"] == 4.0
    assert {one["plunit"] for one in runs.values()} == {"0.2.0"}
    before = [
        (tmp_path / "records" / "mine" / file).read_bytes() for file in ("losses.csv", "tests.csv", "record.json")
    ]
    add(tmp_path)
    after = [(tmp_path / "records" / "mine" / file).read_bytes() for file in ("losses.csv", "tests.csv", "record.json")]
    assert before == after


def test_the_same_activation_and_seed_replaces_the_older_run(made, finish, tmp_path):
    finish("plu", 0)
    finish("plu", 1)
    add(tmp_path)
    for path in (tmp_path / "runs" / "cells").iterdir():
        path.unlink()
    again = {
        key: 2 * array[..., [1]] if "loss" in key else array[..., [1]] for key, array in made("plu", 400, 8).items()
    }
    store.write(tmp_path / "runs", Cell("cifar10", SPEC, "plu", 1, 2, "", "new"), again)
    add(tmp_path)
    about, curves = read("mine", tmp_path / "records")
    assert [(one["seed"], one["program"]) for one in about["runs"]] == [(0, "old"), (1, "new")]
    expected = curve(made("plu", 400, 8)).of([0, 1]).loss * [1, 2]
    np.testing.assert_allclose(curves["plu"].loss, expected, atol=1e-5)


def test_the_tree_that_made_a_run_is_known_by_its_program_hash(finish, tmp_path):
    finish("plu", 0)
    finish("plu", 1, program=program_of(cifar10.compute))
    add(tmp_path)
    (unknown, known) = read("mine", tmp_path / "records")[0]["runs"]
    assert "commit" not in unknown
    assert "torch" not in unknown
    assert known["torch"] == pytest.importorskip("torch").__version__
    assert known["commit"]


@pytest.mark.parametrize("change", [{"lr": 0.01}, {"steps": 500}, {"early": (7,)}], ids=str)
def test_a_cell_with_another_spec_is_refused_and_the_record_stays(finish, tmp_path, change):
    finish("plu", 0)
    add(tmp_path)
    before = (tmp_path / "records" / "mine" / "record.json").read_bytes()
    finish("relu", 0, spec=dataclasses.replace(SPEC, **change))
    (field,) = change
    with pytest.raises(UserError, match=rf"cifar10-relu-0-.* was made with {field} = .* rather than"):
        add(tmp_path)
    assert (tmp_path / "records" / "mine" / "record.json").read_bytes() == before


def test_a_damaged_cell_is_one_line_of_the_command(finish, tmp_path):
    finish("plu", 0)
    (path,) = (tmp_path / "runs" / "cells").iterdir()
    path.write_bytes(path.read_bytes()[:-100])
    command = [sys.executable, str(ROOT / "tools" / "record.py"), str(tmp_path / "runs"), "no-such-record"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (ROOT / "src" / "plunit" / "lab" / "records" / "no-such-record").exists()


def test_curves_are_joined_and_paired_by_their_seeds(made):
    whole = {name: curve(made(name, 400, 8)) for name in ("relu", "plu")}
    joined = join(whole["plu"].of([1, 5, 6]), whole["plu"].of([0, 5]))
    np.testing.assert_array_equal(joined.loss, whole["plu"].of([0, 1, 5, 6]).loss)
    assert joined.seed.tolist() == [0, 1, 5, 6]
    common = keep_seeds({"relu": whole["relu"].of([6, 2, 0]), "plu": joined}, ("relu", "plu"), 100)
    assert seeds_of(common) == {"relu": [0, 6], "plu": [0, 6]}
    np.testing.assert_array_equal(common["relu"].loss, whole["relu"].of([0, 6]).loss[:2])
    assert common["relu"].test_step.tolist() == [100]
    assert keep_seeds({"relu": whole["relu"].of([2]), "plu": joined}, ("relu", "plu"), 100) == {}
    assert keep_seeds(common, ("relu", "plu"), 150) == keep_seeds({}, ("relu",), 1) == {}


def test_claims_on_cifar10_are_judged_again_and_the_other_rows_stay(made, put_record, tmp_path):
    path = tmp_path / "claims.csv"
    before = (ROOT / "results" / "fit" / "claims.csv").read_bytes()
    path.write_bytes(before)
    put_record("full", {name: made(name, 1000, 7) for name in ACTIVATIONS}, steps=1000)
    RECORD["judge_again"](path)
    old, new = (list(csv.DictReader(text.decode().splitlines())) for text in (before, path.read_bytes()))
    ours = [row for row in new if row["experiment"] == "cifar10"]
    assert {(row["n"], row["statistic"].split()[-1]) for row in ours} == {
        ("7", step) for step in ("100", "500", "1000")
    }
    others = [row for row in old if row["experiment"] != "cifar10"]
    assert [row for row in new if row["experiment"] != "cifar10"] == others
    assert new.index(ours[0]) == [row["experiment"] for row in old].index("cifar10")


@pytest.mark.parametrize(("name", "steps", "seeds"), [("full", 100_000, 1), ("seeds", 20_000, 5), ("first", 1000, 1)])
def test_the_records_of_the_package_are_whole(name, steps, seeds):
    about, found = read(name)
    assert set(found) == set(ACTIVATIONS)
    assert {(one.steps, one.window, one.test_step[-1]) for one in found.values()} == {(steps, 50, steps)}
    assert min(one.seeds for one in found.values()) >= seeds
    assert all(np.isfinite(one.loss).all() for one in found.values())
    assert {(one["activation"], one["seed"]) for one in about["runs"]} == {
        (activation, seed) for activation, curves in found.items() for seed in curves.seed.tolist()
    }
