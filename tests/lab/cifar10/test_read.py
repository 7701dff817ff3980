"""Statistics, finding, rows and figure: each from this run or from the stored record that says more."""

import csv
import dataclasses

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.lab.claims import answers, judge
from plunit.lab.intervals import Estimate
from plunit.lab.publishing import write_tables
from plunit.lab.read.cifar10 import EXPERIMENTS, Evidence, _best
from plunit.lab.read.cifar10_curves import LossCurves, crossing

USUAL, MATCHED = EXPERIMENTS
ACTIVATIONS = USUAL.activations


@pytest.fixture(autouse=True)
def put(put_record):
    """No test reads the records of the package."""
    return put_record


@pytest.fixture
def cifar10():
    """The experiment, before it has looked for records."""
    return dataclasses.replace(USUAL)


@pytest.fixture(scope="module")
def runs(made):
    return {activation: made(activation) for activation in ACTIVATIONS}


@pytest.fixture(scope="module")
def longer(made):
    return {activation: made(activation, 2000, 5) for activation in ACTIVATIONS}


@pytest.fixture(scope="module")
def longest(made):
    return {activation: made(activation, 12_000, 1) for activation in ACTIVATIONS}


def ratio(runs, above, below, window):
    return np.median(runs[above]["loss"][window].mean(0) / runs[below]["loss"][window].mean(0))


def statistics(experiment, runs):
    return {one.name: one for one in experiment.statistics(runs)}


def test_statistics_are_ratios_of_losses(cifar10, runs):
    expected = {
        f"loss {above}/{below} {step}": ratio(runs, above, below, slice(step - 50, step))
        for step in (100, 500, 1000)
        for above, below in (("relu", "plu"), ("relu", "tanh"), ("identity", "relu"))
    }
    found = statistics(cifar10, runs)
    assert {name: one.estimate.value for name, one in found.items()} == pytest.approx(expected)
    assert all(one.words.endswith(", this run of 1,000 steps, 2 seeds") for one in found.values())
    assert {(one.estimate.n, np.isnan(one.estimate.low)) for one in found.values()} == {(2, True)}


def test_a_long_run_has_areas_accuracies_and_the_step_at_which_relu_overtakes(cifar10, made):
    runs = {activation: made(activation, 20_000, 6) for activation in ACTIVATIONS}
    found = {name: one.estimate.value for name, one in statistics(cifar10, runs).items()}
    ahead = 100 * np.median(runs["plu"]["test_accuracy"][-1] - runs["relu"]["test_accuracy"][-1])
    expected = {
        "area relu/plu 5000": ratio(runs, "relu", "plu", slice(0, 5000)),
        "area relu/tanh 20000": ratio(runs, "relu", "tanh", slice(0, 20_000)),
        "loss relu/plu 20000": ratio(runs, "relu", "plu", slice(19_950, 20_000)),
        "accuracy plu - relu 20000": ahead,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    starts = np.array([7000, 7000, 9000, 9000, 11_000, 20_000])  # the last one is never ahead
    step = np.arange(20_000)[:, None]
    runs["plu"]["loss"] = np.ones((20_000, 6))
    runs["relu"]["loss"] = np.where((step >= starts) | (step // 1000 == 3), 0.5, 2.0)
    overtakes = statistics(cifar10, runs)["thousands of steps until relu is below plu"].estimate
    assert overtakes == Estimate(9, 7, np.inf, 6)


def test_statistics_come_from_the_record_of_most_seeds_that_is_long_enough(runs, longer, longest, put):
    put("seeds", longer)
    found = statistics(dataclasses.replace(USUAL), runs)
    assert {one.estimate.n for one in found.values()} == {5}
    assert all(one.words.endswith(", the stored run of 2,000 steps, 5 seeds") for one in found.values())
    expected = ratio(longer, "relu", "plu", slice(450, 500))
    assert found["loss relu/plu 500"].estimate.value == pytest.approx(expected, rel=1e-4)
    put("full", longest)
    found = statistics(dataclasses.replace(USUAL), runs)
    assert {name.rpartition(" ")[2] for name, one in found.items() if one.estimate.n == 1} == {"5000"}
    expected = ratio(longest, "relu", "plu", slice(0, 5000))
    assert found["area relu/plu 5000"].estimate.value == pytest.approx(expected, rel=1e-4)


def test_only_seeds_that_both_activations_have_are_paired(cifar10, made):
    runs = {activation: made(activation, 1000, 8) for activation in ACTIVATIONS}
    fewer = {**runs, "plu": {key: array[..., 2:] for key, array in runs["plu"].items()}}
    both = {name: {key: array[..., 2:] for key, array in arrays.items()} for name, arrays in runs.items()}
    found = statistics(cifar10, fewer)["loss relu/plu 100"].estimate
    assert (found.value, found.n) == (ratio(both, "relu", "plu", slice(50, 100)), 6)


def test_only_runs_with_all_activations_of_the_paper_are_compared(cifar10, runs):
    assert statistics(cifar10, {}) == {}
    assert statistics(cifar10, {"plu": runs["plu"], "relu": runs["relu"]}) == {}
    assert cifar10.finding({"plu": runs["plu"]}) == ""
    assert statistics(cifar10, {**runs, "gelu": runs["tanh"]}) == statistics(cifar10, runs)


@pytest.mark.parametrize("change", [{"lr": 0.01}, {"init": "gain"}, {"early": (7,)}], ids=str)
def test_a_record_with_another_spec_is_refused(cifar10, runs, longer, put, change):
    put("seeds", longer, **change)
    (field,) = change
    with pytest.raises(UserError, match=f"the record 'seeds' of cifar10 was made with {field} = "):
        cifar10.finding(runs)


def test_a_record_may_have_other_steps_and_counts_once_it_has_all_activations(runs, longer, put):
    unfinished = {name: arrays for name, arrays in longer.items() if name != "identity"}
    put("seeds", unfinished, steps=2000)
    assert {one.estimate.n for one in statistics(dataclasses.replace(USUAL), runs).values()} == {2}
    put("seeds", longer, steps=2000)
    assert {one.estimate.n for one in statistics(dataclasses.replace(USUAL), runs).values()} == {5}


def test_only_seeds_that_all_activations_of_a_record_have_are_compared(runs, longer, put):
    fewer = {key: array[..., [0, 3, 4]] for key, array in longer["tanh"].items()}
    put("seeds", {**longer, "tanh": fewer})
    found = statistics(dataclasses.replace(USUAL), runs)
    assert {one.estimate.n for one in found.values()} == {3}
    assert all(one.words.endswith(", the stored run of 2,000 steps, 3 seeds") for one in found.values())
    both = {name: {key: array[..., [0, 3, 4]] for key, array in arrays.items()} for name, arrays in longer.items()}
    expected = ratio(both, "relu", "plu", slice(450, 500))
    assert found["loss relu/plu 500"].estimate.value == pytest.approx(expected, rel=1e-4)


def test_records_are_those_of_the_usual_spec(runs, longer, put):
    put("seeds", longer)
    for other in (USUAL.varied({"lr": 0.01}), dataclasses.replace(MATCHED)):
        assert {one.estimate.n for one in statistics(other, runs).values()} == {2}


@pytest.mark.parametrize(
    ("factor", "verdicts"),
    [
        (1.5, {"cifar-faster": "holds", "cifar-favourable": "holds", "cifar-identity": "refuted"}),
        (0.5, {"cifar-faster": "refuted", "cifar-favourable": "holds", "cifar-identity": "refuted"}),
        (3.0, {"cifar-faster": "holds", "cifar-favourable": "refuted", "cifar-identity": "holds"}),
    ],
)
def test_section_5_is_decided_by_both_activations_at_the_paper_s_number_of_steps(cifar10, factor, verdicts):
    """ReLU's loss is this many times that of tanh and PLU, and the identity's twice; if tanh ties, PLU decides."""
    seeds = np.linspace(1, 1.1, 6)
    tests = {"test_step": np.full((1, 6), 100_000), "test_loss": np.ones((1, 6)), "test_accuracy": np.ones((1, 6))}
    factors = {"tanh": 1.0, "relu": factor, "plu": 1.0, "identity": 2.0}
    runs = {
        name: {"seed": np.arange(6), "loss": np.full((100_000, 1), scale) * seeds, **tests}
        for name, scale in factors.items()
    }
    found = {one.key: one.verdict for one in answers(judge({"cifar10": cifar10}, {"cifar10": runs}))}
    assert found.items() >= verdicts.items()
    slow = {**runs, "tanh": {**runs["tanh"], "loss": 2 * runs["relu"]["loss"]}}
    found = {one.key: one.verdict for one in answers(judge({"cifar10": cifar10}, {"cifar10": slow}))}
    assert found["cifar-faster"] == "refuted"


def test_the_longest_of_the_runs_with_most_seeds_is_the_best():
    sizes = (50, 1), (10, 5), (30, 2), (60, 1), (20, 5), (40, 2), (19, 4)
    curves = [LossCurves(np.arange(size[1]), 1, np.ones(size), *[np.ones((1, size[1]))] * 3) for size in sizes]
    found = _best([Evidence("", {"relu": one, "plu": one}) for one in curves])
    assert (found.steps, found.seeds) == (20, 5)
    both = Evidence("", {"relu": curves[1], "plu": curves[2]})  # as long and wide as its least activation
    assert (both.steps, both.seeds) == (10, 2)


def first_that_lasts(ours, theirs):
    """Try every group in turn."""
    ahead = [k for k in range(len(ours)) if all(a < b for a, b in zip(ours[k:], theirs[k:], strict=True))]
    return ahead[0] if ahead else np.inf


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_the_crossing_is_the_first_group_from_which_one_stays_below(groups):
    rng = np.random.default_rng(groups)
    ours, theirs = rng.integers(0, 3, (2, groups, 300)).astype(float)  # ties among them
    expected = [first_that_lasts(a, b) for a, b in zip(ours.T, theirs.T, strict=True)]
    assert crossing(ours, theirs).tolist() == expected
    assert len(set(expected)) == groups + 1


def listed(runs, window):
    medians = {name: np.median(runs[name]["loss"][window].mean(0)) for name in ACTIVATIONS}
    labels = {"tanh": "tanh", "relu": "ReLU", "plu": "PLU", "identity": "identity"}
    accuracy = {name: 100 * np.median(runs[name]["test_accuracy"][-1]) for name in ACTIVATIONS}
    losses = ", ".join(f"{labels[name]} {value:.3g}" for name, value in medians.items())
    return losses, ", ".join(f"{labels[name]} {value:.1f} %" for name, value in accuracy.items())


def test_the_finding_gives_losses_and_accuracies_of_the_run_of_most_seeds(runs, longer, longest, put):
    def said(what, runs):
        losses, accuracies = listed(runs, slice(950, 1000))
        return f"{what}: training loss after 1,000 steps {losses}; test accuracy at the end {accuracies}."

    assert dataclasses.replace(USUAL).finding(runs) == said("This run of 1,000 steps, 2 seeds", runs)
    put("full", longest)
    put("seeds", longer)
    assert dataclasses.replace(USUAL).finding(runs) == said("The stored run of 2,000 steps, 5 seeds", longer)


def test_the_figure_shows_run_and_records(runs, longer, longest, put, tmp_path):
    (alone,) = dataclasses.replace(USUAL).figures(runs)
    assert len(alone.figure.axes) == 2
    put("seeds", longer)
    put("full", longest)
    (picture,) = dataclasses.replace(USUAL).figures(runs)
    titles = [axes.get_title() for axes in picture.figure.axes[:3]]
    assert titles == [
        "this run of 1,000 steps, 2 seeds",
        "the stored run of 2,000 steps, 5 seeds",
        "the stored run of 12,000 steps, 1 seed",
    ]
    (_, ours), (_, theirs) = listed(runs, slice(0, 50)), listed(longer, slice(0, 50))
    assert f"{titles[0]}: {ours}; {titles[1]}: {theirs}; " in picture.caption
    line = picture.figure.axes[4].lines[2]  # PLU's accuracy in the record of five seeds
    np.testing.assert_allclose(line.get_xdata(), [100, 2000])
    np.testing.assert_allclose(line.get_ydata(), 100 * np.median(longer["plu"]["test_accuracy"], axis=1), atol=0.01)
    assert [axes.lines[0].get_xdata()[-1] for axes in picture.figure.axes[:3]] == [1000, 2000, 12_000]
    picture.figure.savefig(tmp_path / "figure.png")
    (other,) = dataclasses.replace(USUAL).figures({"gelu": runs["tanh"]})
    assert other.alt.endswith("for GELU.")


def test_rows_state_losses_and_accuracy_and_a_table_the_time(cifar10, runs, tmp_path):
    assert list(cifar10.rows(runs))[5] == {
        "experiment": "cifar10",
        "activation": "plu",
        "seed": 1,
        "final_loss": pytest.approx(runs["plu"]["loss"][950:, 1].mean()),
        "steps": 1000,
        "test_loss": runs["plu"]["test_loss"][-1, 1],
        "test_accuracy": runs["plu"]["test_accuracy"][-1, 1],
    }
    write_tables(tmp_path, {"cifar10": cifar10}, {"cifar10": runs}, [], {})
    with (tmp_path / "timings.csv").open() as file:
        times = list(csv.DictReader(file))
    assert times[5] == {"experiment": "cifar10", "activation": "plu", "seed": "1", "seconds": "2.0"}
    assert len(times) == 8
