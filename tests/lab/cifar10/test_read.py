"""Curves, record, claims and figure."""

import dataclasses

import numpy as np
import pytest

from plunit.lab.cifar10 import ACTIVATIONS, SPECS, claims, curves, figures, record, rows
from plunit.lab.cifar10.figures import of_record
from plunit.lab.results import Results

SPEC = dataclasses.replace(SPECS["cifar10"], steps=1000)
FINAL = {"tanh": 0.9, "relu": 1.0, "plu": 0.8, "identity": 1.4}


def arrays(activation, steps=1000, seeds=2):
    """A loss that falls as a power of the step, to FINAL at the last one."""
    loss = FINAL[activation] * (np.arange(1, steps + 1) / steps) ** -0.2
    column = np.ones((1, seeds))
    return {
        "seed": np.arange(seeds),
        "loss": loss[:, None] * (1 + 0.01 * np.arange(seeds)),
        "test_step": np.array([[100], [steps]]) * column.astype(int),
        "test_loss": np.array([[2.0], [FINAL[activation] + 0.1]]) * column,
        "test_accuracy": np.array([[0.3], [0.5]]) * column,
        "seconds": np.arange(1.0, seeds + 1),
    }


@pytest.fixture
def results():
    return Results({("cifar10", activation): arrays(activation) for activation in ACTIVATIONS})


@pytest.fixture(autouse=True)
def own_record(tmp_path, monkeypatch):
    """No test reads the record of the repository."""
    monkeypatch.setattr(record.read, "__defaults__", (tmp_path / "record",))
    return tmp_path / "record"


def test_area_and_loss_at_a_step():
    found = curves.curve(arrays("relu"))
    loss = arrays("relu")["loss"]
    np.testing.assert_allclose(found.at(500), loss[450:500].mean(0))
    np.testing.assert_allclose(found.area(500), loss[:500].mean(0))
    np.testing.assert_allclose(found.at(1000), loss[950:].mean(0))


def test_a_record_comes_back_as_it_was(results, tmp_path):
    record.write("cifar10", results, SPEC, {"processor": "some"}, tmp_path)
    found = record.read("cifar10", tmp_path)
    assert found is not None
    assert record.read("cifar10-gain", tmp_path) is None
    assert list(found.curves) == list(ACTIVATIONS)
    assert found.about["spec"]["steps"] == 1000
    assert found.about["images_per_second"]["plu"] == [100_000, 50_000]
    for activation, ours in found.curves.items():
        theirs = curves.curve(arrays(activation))
        for field in dataclasses.fields(curves.Curve):
            np.testing.assert_allclose(getattr(ours, field.name), getattr(theirs, field.name), atol=1e-4)


def test_claims_are_ratios_of_losses(results):
    found = {claim.sentence: claim for claim in claims(results)}
    faster = found["On CIFAR-10, PLU trains faster than ReLU: loss after 500 steps."]
    assert faster.value == pytest.approx(1 / 0.8)
    assert faster.verdict == "holds weakly"
    area = found["On CIFAR-10, tanh trains faster than ReLU: area under the curve of 1,000 steps."]
    assert area.value == pytest.approx(1 / 0.9)
    slow = found["On CIFAR-10, the identity does well in the first steps: no worse than ReLU after 100."]
    assert slow.value == pytest.approx(1.4)
    assert slow.verdict == "does not hold"
    assert all("this run of 1,000 steps" in claim.statistic for claim in found.values())
    assert not any("5,000" in sentence for sentence in found)


def test_more_favourable_than_the_fits_is_judged_against_their_smallest_ratio(results):
    fits = {
        (name, activation): {"final_loss": np.full(8, value)}
        for name, ratio in {"sine": 9.0, "parametric": 3.0, "surface": 5.0}.items()
        for activation, value in {"relu": ratio, "plu": 1.0}.items()
    }
    both = Results({(name, activation): found for name, activation, found in results.items()} | fits)
    (claim,) = [claim for claim in claims(both) if "favourable" in claim.sentence]
    assert claim.value == pytest.approx(1.25, rel=1e-3)
    assert claim.claimed.high == pytest.approx(3)


def test_the_longer_of_run_and_record_is_judged(results, own_record):
    longer = Results({("cifar10", activation): arrays(activation, 2000, 5) for activation in ACTIVATIONS})
    record.write("cifar10", longer, SPEC, {}, own_record)
    found = claims(results)
    assert all("the stored run of 2,000 steps" in claim.statistic for claim in found)
    assert {claim.n for claim in found} == {5}
    assert any(claim.verdict == "holds" for claim in found)


def test_nothing_is_claimed_without_a_run(own_record):
    assert claims(Results({})) == []


def test_the_figure_shows_run_and_record(results, own_record):
    (alone,) = figures(results)
    assert len(alone.figure.axes) == 2
    record.write("cifar10", results, SPEC, {}, own_record)
    (picture,) = figures(results)
    assert [axes.get_title() for axes in picture.figure.axes[:2]] == [
        "this run: 1,000 steps, 2 seeds",
        "stored record of a full run: 1,000 steps, 2 seeds",
    ]
    assert "PLU 50.0 %" in picture.caption
    picture.figure.savefig(own_record / "figure.png")


def test_rows_state_accuracy_and_time(results):
    (row, *_) = [row for row in rows(results) if row["activation"] == "plu" and row["seed"] == 1]
    assert row["test_accuracy"] == 0.5
    assert row["seconds"] == 2.0
    assert row["final_loss"] == pytest.approx(arrays("plu")["loss"][950:, 1].mean())


def test_the_figure_of_a_record_stands_alone(results, own_record):
    record.write("cifar10", results, SPEC, {}, own_record)
    found = record.read("cifar10")
    picture = of_record(found)
    assert len(picture.figure.axes) == 2
    assert "ReLU 50.0 %" in picture.caption
    picture.figure.savefig(own_record / "curves.png")
