"""Width, depth and frequency: each fit of a series is the fit of its own spec, and statistics compare them."""

import dataclasses

import numpy as np
import pytest

from plunit.ensemble import engine
from plunit.lab.cell import Cell
from plunit.lab.read.capacity_frequency import EXPERIMENTS
from plunit.lab.read.sine_parametric_surface import SINE, with_tensorflow
from plunit.lab.train import capacity_frequency as run
from plunit.lab.train import sine_parametric_surface as fits
from plunit.lab.train.capacity_frequency import CapacitySpec, FrequencySpec

CAPACITY, CURVE, FREQUENCY = EXPERIMENTS
SEEDS = 8


def cell_of(spec, activation):
    return Cell("some", spec, activation, 0, SEEDS, engine(), "")


def short(spec, **changes):
    return dataclasses.replace(spec, steps=20, **changes)


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        (
            short(CAPACITY.spec, units=(3, 6), layers=(1, 2, 4)),
            {
                "3x3": {"widths": (1, 3, 3, 1)},
                "6x6": {"widths": (1, 6, 6, 1)},
                "3": {"widths": (1, 3, 1)},
                "3x3x3x3": {"widths": (1, 3, 3, 3, 3, 1)},
            },
        ),
        (short(CURVE.spec, units=(3,), layers=(2,)), {"3x3": {"widths": (1, 3, 3, 2)}}),
        (short(FREQUENCY.spec, frequencies=(0.25, 4.0)), {"1/4": {"frequency": 0.25}, "4": {"frequency": 4.0}}),
        (short(FREQUENCY.spec, frequencies=(1.0,), batch=10, adam="tensorflow"), {"1": {}}),
    ],
    ids=["capacity", "curve", "frequency", "batches"],
)
@pytest.mark.parametrize("activation", ["tanh", "relu", "plu"])
def test_every_fit_has_the_loss_of_its_own_experiment(spec, changes, activation, tmp_path):
    own = {field.name: getattr(spec, field.name) for field in dataclasses.fields(fits.FitSpec)}
    expected = {name: fits.FitSpec(**{**own, **change}) for name, change in changes.items()}
    assert spec.fits() == expected
    found = run.compute(cell_of(spec, activation), tmp_path)
    assert found["seed"].tolist() == [*range(SEEDS)]
    losses = [fits.compute(cell_of(one, activation), tmp_path)["final_loss"] for one in expected.values()]
    np.testing.assert_array_equal(found["final_loss"], losses)


@pytest.mark.parametrize("k", [0.25, 1.0, 4.0])
def test_a_frequency_stretches_the_target(k):
    x = np.linspace(-3, 3, 7)[None]
    spec = dataclasses.replace(FREQUENCY.spec, frequency=k)
    np.testing.assert_array_equal(spec.value(x), np.sin(k * x))


def runs_of(experiment, losses):
    """Return runs with these losses of each fit, times a factor of each seed that is the same for all."""
    factors, fits = np.linspace(1, 1.5, SEEDS), experiment.spec.fits()
    return {
        name: {"seed": np.arange(SEEDS), "final_loss": np.outer([given[fit] for fit in fits], factors)}
        for name, given in losses.items()
    }


def values(experiment, runs):
    return {one.name: pytest.approx(one.estimate.value) for one in experiment.statistics(runs)}


@pytest.fixture
def capacity():
    spec = CapacitySpec("sine", (1, 3, 3, 1), 20, units=(3, 6, 8), layers=(2, 4, 8))
    experiment = dataclasses.replace(CAPACITY, spec=spec)
    relu = {"3x3": 6.0, "6x6": 4.0, "8x8": 2.0, "3x3x3x3": 5.0, "3x3x3x3x3x3x3x3": 3.0}
    plu = {"3x3": 2.0, "6x6": 1.0, "8x8": 1.0, "3x3x3x3": 1.0, "3x3x3x3x3x3x3x3": 0.5}
    return experiment, runs_of(experiment, {"relu": relu, "plu": plu})


def test_capacity_compares_larger_relu_networks_with_the_small_plu_network(capacity):
    assert values(*capacity) == {
        "relu 6x6 / plu 3x3": 4 / 2,
        "relu 4 layers / plu 2 layers": 5 / 2,
        "ratio 2 layers / ratio 4 layers": (6 / 2) / (5 / 1),
        "ratio 2 layers / ratio 8 layers": (6 / 2) / (3 / 0.5),
    }
    experiment, runs = capacity
    words = {one.name: one.words for one in experiment.statistics(runs)}
    assert words["relu 6x6 / plu 3x3"] == "median of final loss ReLU (6x6) / PLU (3x3)"
    assert experiment.finding(runs) == (
        "PLU with 3x3 units has the median loss 2.5 on the sine, ReLU reaches it with 8 units in each of 2 layers and "
        "does not reach it with up to 8 layers of 3 units (lowest 3.75); with 3x3 units ReLU's is 7.5."
    )


def test_a_diverged_seed_counts_as_the_worst(capacity):
    experiment, runs = capacity
    runs["relu"]["final_loss"][:, :5] = np.nan
    found = {one.name: one.estimate for one in experiment.statistics(runs)}
    assert found["relu 6x6 / plu 3x3"].value == np.inf


def test_frequency_compares_each_advantage_with_that_of_the_lowest_frequency():
    spec = FrequencySpec("sine", (1, 3, 3, 1), 20, frequencies=(0.25, 1.0, 4.0))
    experiment = dataclasses.replace(FREQUENCY, spec=spec)
    losses = {"relu": {"1/4": 8.0, "1": 12.0, "4": 3.0}, "plu": {"1/4": 2.0, "1": 1.0, "4": 3.0}}
    runs = runs_of(experiment, losses)
    assert values(experiment, runs) == {"ratio k=1 / ratio k=1/4": 12 / 4, "ratio k=4 / ratio k=1/4": 1 / 4}
    expected = "Median of final loss ReLU / PLU on sin(k x): 4 at k = 1/4, 12 at k = 1, 1 at k = 4."
    assert experiment.finding(runs) == expected
    (picture,) = experiment.figures(runs)
    left, right = picture.figure.axes
    np.testing.assert_allclose(right.lines[0].get_ydata(), [4, 12, 1])
    np.testing.assert_allclose(left.lines[1].get_ydata(), np.multiply([2, 1, 3], 1.25))


def test_without_relu_or_plu_nothing_is_compared(capacity):
    experiment, runs = capacity
    assert list(experiment.statistics({"plu": runs["plu"]})) == []
    assert experiment.finding({"plu": runs["plu"]}) == ""


def test_tensorflow_s_form_of_adam_is_the_same_fit_with_another_rule(tmp_path):
    one = with_tensorflow(SINE)
    assert dataclasses.replace(one.spec, adam="pytorch") == SINE.spec
    ours, theirs = (fits.compute(cell_of(short(spec), "tanh"), tmp_path) for spec in (one.spec, SINE.spec))
    np.testing.assert_array_equal(ours["history"][0], theirs["history"][0])
    assert not np.array_equal(ours["theta"], theirs["theta"])
