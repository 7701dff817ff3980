"""Curves of a run, and records of them."""

import json

import numpy as np
import pytest

from plunit.lab import plan, store
from plunit.lab.read import records
from plunit.lab.read.cifar10 import EXPERIMENTS
from plunit.lab.read.records import curve

ACTIVATIONS = EXPERIMENTS[0].activations


def test_area_and_loss_at_a_step(made):
    loss = made("relu")["loss"]
    found = curve(made("relu"))
    np.testing.assert_allclose(found.at(500), loss[450:500].mean(0))
    np.testing.assert_allclose(found.area(500), loss[:500].mean(0))
    np.testing.assert_allclose(found.at(1000), loss[950:].mean(0))


@pytest.mark.parametrize(("steps", "window", "kept"), [(1000, 50, 1000), (1049, 50, 1000), (24, 24, 24), (50, 50, 50)])
def test_steps_beyond_the_last_window_are_left_out(made, steps, window, kept):
    arrays = made("plu", steps, 3)
    found = curve(arrays)
    assert (found.window, found.steps, found.seeds) == (window, kept, 3)
    np.testing.assert_allclose(found.loss[-1], arrays["loss"][kept - window : kept].mean(0))


def test_smoothed_curves_are_means_of_whole_groups(made):
    loss = made("plu", 1250)["loss"]
    groups = [loss[first : first + 200].mean(0) for first in range(0, 1200, 200)]
    np.testing.assert_allclose(curve(made("plu", 1250)).smoothed(200), groups)
    np.testing.assert_allclose(curve(made("plu", 1250)).smoothed(1), curve(made("plu", 1250)).loss)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_record_comes_back_as_it_was(made, tmp_path, activation):
    curves = {name: curve(made(name, 400, 3)) for name in ACTIVATIONS}
    records.write(tmp_path / "some", curves, {"command": "plunit run"})
    found = records.read("some", tmp_path)
    assert list(found) == list(ACTIVATIONS)
    ours, theirs = (vars(one[activation]) for one in (found, curves))
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(ours["loss"], theirs["loss"], atol=1e-5)
    np.testing.assert_allclose(ours["test_loss"], theirs["test_loss"], atol=1e-6)
    np.testing.assert_allclose(ours["test_accuracy"], theirs["test_accuracy"], atol=1e-4)
    np.testing.assert_array_equal(ours["test_step"], [100, 400], strict=True)
    assert ours["window"] == 50


def test_a_record_says_what_was_run(made, tmp_path):
    records.write(tmp_path, {"relu": curve(made("relu", 100, 1)), "plu": curve(made("plu", 100, 3))}, {"command": "do"})
    about = json.loads((tmp_path / "record.json").read_text())
    assert about == {"command": "do", "window": 50, "seeds": {"relu": 1, "plu": 3}}


def test_what_is_not_stored_has_no_curves(tmp_path):
    assert records.read("none", tmp_path) == {}


def test_the_full_run_is_a_record_of_the_package():
    found = records.read("full")
    assert set(found) == set(ACTIVATIONS)
    assert {(one.steps, one.seeds, one.window) for one in found.values()} == {(100_000, 1, 50)}
    assert np.isfinite(np.stack([one.loss for one in found.values()])).all()
    assert {one.test_step[-1] for one in found.values()} == {100_000}


def test_a_finished_folder_becomes_a_record(made, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    part = plan.Part("cifar10", 2, ("relu", "plu"), changes={"steps": 100})
    plan.save(tmp_path / "runs", {"cifar10": part})
    for cell in part.cells():
        arrays = made(cell.activation, 100)
        chosen = {key: array[..., cell.first : cell.last] for key, array in arrays.items()}
        store.write(tmp_path / "runs", cell, chosen)
    records.main(tmp_path / "runs", "mine")
    found = records.read("mine", tmp_path / "records")
    np.testing.assert_allclose(found["plu"].loss, curve(made("plu", 100)).loss, atol=1e-5)
    about = json.loads((tmp_path / "records" / "mine" / "record.json").read_text())
    assert (about["spec"]["steps"], about["seeds"]) == (100, {"relu": 2, "plu": 2})
    assert about["command"] == "plunit run cifar10 --seeds 2 --activations relu,plu --set steps=100"
