"""What holds for every experiment: its arrays, cells, rows, statistics and finding."""

import csv
import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from plunit.lab.cell import program_of
from plunit.lab.claims import CLAIMS
from plunit.lab.experiment import catalogue

CIFAR10 = ("cifar10", "cifar10-gain")
COMPUTED = [name for name in catalogue() if name not in (*CIFAR10, "compare")]
SEEDS = 5
CLAIMS_FILE = Path(__file__).parents[2] / "results" / "fit" / "claims.csv"
AXES = {"depth": ["depth"], "inverse": ["linear", "dtype", "depth"], "capacity": ["hidden"], "frequency": ["k"]}


def convolutional():
    """Arrays of CIFAR-10 as a run of 100,000 steps would give them."""
    falling = np.linspace(2, 1, 100_000)[:, None] * np.linspace(1, 1.1, SEEDS)
    test = np.ones((1, SEEDS))
    tests = {"test_step": (500 * test).astype(int), "test_loss": test, "test_accuracy": test / 2}
    return {"seed": np.arange(SEEDS), "loss": falling, "seconds": np.ones(SEEDS), **tests}


def compared(shift):
    losses = {name: shift + np.linspace(0.1, 0.2, SEEDS) for name in ("test_loss", "train_loss", "baseline")}
    return {"seed": np.arange(SEEDS), **losses}


@pytest.fixture(scope="module")
def experiments(quick_lab):
    return dict(catalogue())


@pytest.fixture(scope="module")
def results(experiments, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scratch")
    found = {name: {} for name in experiments}
    for name in COMPUTED:
        one = experiments[name]
        for activation in one.activations:
            cell, *_ = one.cells((activation,), SEEDS, "numpy" if one.engines else "")
            cell = dataclasses.replace(cell, last=SEEDS)
            found[name][activation] = one.compute(cell, folder / f"{name}-{activation}")
    for name in CIFAR10:
        found[name] = {activation: convolutional() for activation in experiments[name].activations}
    found["compare"] = {activation: compared(i) for i, activation in enumerate(experiments["compare"].activations)}
    return found


@pytest.mark.parametrize("name", COMPUTED)
def test_arrays_have_the_seeds_on_their_last_axis(results, name):
    members = {activation: arrays["seed"].size for activation, arrays in results[name].items()}
    axes = {activation: {array.shape[-1] for array in arrays.values()} for activation, arrays in results[name].items()}
    assert axes == {activation: {size} for activation, size in members.items()}
    assert {tuple(np.unique(arrays["seed"])) for arrays in results[name].values()} == {tuple(range(SEEDS))}


@pytest.mark.parametrize("name", catalogue())
def test_cells_cover_every_seed_once_for_every_activation(experiments, name):
    one = experiments[name]
    seeds = 2 * one.chunk + 1
    cells = one.cells(one.activations, seeds, "numpy")
    covered = {a: [seed for cell in cells if cell.activation == a for seed in cell.seeds] for a in one.activations}
    assert covered == {a: [*range(seeds)] for a in one.activations}
    assert max(len(cell.seeds) for cell in cells) <= one.chunk
    assert {cell.program for cell in cells} == {program_of(one.compute)}
    assert {(cell.experiment, cell.spec) for cell in cells} == {(name, one.spec)}
    assert all(0 < one.cost(cell) < np.inf for cell in cells)


@pytest.mark.parametrize("name", catalogue())
def test_rows_name_experiment_activation_and_seed_and_hold_what_was_measured(experiments, results, name):
    one = experiments[name]
    rows = list(one.rows(results[name]))
    assert {row["experiment"] for row in rows} == {name}
    assert {(row["activation"], row["seed"]) for row in rows} == {
        (activation, seed) for activation in results[name] for seed in range(SEEDS)
    }
    axes = one.axes()
    assert [*axes] == AXES.get(name.partition("-")[0], [])
    for key in one.columns:
        places = [len(values) for values in axes.values()]
        columns = [np.broadcast_to(one[key], (*places, one["seed"].size)).ravel() for one in results[name].values()]
        np.testing.assert_array_equal([row[key] for row in rows], np.concatenate(columns))
    if axes:
        found = [tuple(row[key] for key in axes) for row in rows[::SEEDS]]
        assert found == [*itertools.product(*axes.values())] * len(results[name])


@pytest.mark.parametrize("name", catalogue())
def test_statistics_have_names_of_their_own_and_words(experiments, results, name):
    found = list(experiments[name].statistics(results[name]))
    assert len({one.name for one in found}) == len(found)
    assert all(one.words for one in found)


def test_every_claim_is_on_a_statistic_that_its_experiment_computes(experiments, results):
    computed = {(name, one.name) for name, runs in results.items() for one in experiments[name].statistics(runs)}
    assert {(claim.experiment, claim.statistic) for claim in CLAIMS} - computed == set()


def test_the_stored_claims_have_the_words_that_are_written_now(experiments, results):
    """Apart from numbers, which depend on the spec; `tests/docs/test_readme.py` compares those of the records."""
    number = re.compile(r"\d[\d,]*")
    now = {(name, one.name): one.words for name, runs in results.items() for one in experiments[name].statistics(runs)}
    with CLAIMS_FILE.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] != "cifar10"]
    stored = {(row["experiment"], row["statistic"]): row["words"] for row in rows}
    assert len(stored) > 60
    words = {key: (number.sub("#", text), number.sub("#", now[key])) for key, text in stored.items()}
    assert {key: both for key, both in words.items() if both[0] != both[1]} == {}


@pytest.mark.parametrize("name", catalogue())
def test_the_finding_is_one_sentence_with_numbers(experiments, results, name):
    finding = experiments[name].finding(results[name])
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", finding)
    assert ". " not in finding
    assert len(re.findall(r"\d", finding)) >= 3
    assert "nan" not in finding


def test_figures_have_names_of_their_own(experiments, results):
    shown = [name for name in COMPUTED if name.startswith(("depth", "inverse", "capacity", "frequency", "cost"))]
    pictures = [picture for name in shown for picture in experiments[name].figures(results[name])]
    assert len({picture.name for picture in pictures}) == len(pictures) == len(shown)
    assert all(picture.caption.endswith(".") and picture.alt.endswith(".") for picture in pictures)
