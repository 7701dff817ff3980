"""Claims, finding, rows and figure: each from this run or from the stored record that says more."""

import csv
import dataclasses

import numpy as np
import pytest

from plunit.lab.claims import interval, median
from plunit.lab.publishing import write_tables
from plunit.lab.read import cifar10 as read
from plunit.lab.read.cifar10 import EXPERIMENTS, Evidence, LossCurves, _best, crossing

USUAL, MATCHED = EXPERIMENTS
FITS = ("sine", "parametric", "surface")
FIT = {name: {"final_loss": np.full(8, value)} for name, value in (("relu", 3.0), ("plu", 1.0))}
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


def test_claims_are_ratios_of_losses(cifar10, runs):
    windows = {f"loss after {step:,} steps": slice(step - 50, step) for step in (100, 500, 1000)}
    windows["area under the curve of 1,000 steps"] = slice(0, 1000)
    expected = {}
    for title, name in (("tanh", "tanh"), ("PLU", "plu")):
        for what, window in windows.items():
            sentence = f"On CIFAR-10, {title} trains faster than ReLU: {what}."
            expected[sentence] = "cifar-faster", ratio(runs, "relu", name, window), ">= 1"
    for step in (100, 500):
        sentence = f"On CIFAR-10, the identity does well in the first steps: no worse than ReLU after {step}."
        expected[sentence] = "cifar-identity", ratio(runs, "identity", "relu", slice(step - 50, step)), "<= 1"
    ahead = np.median(runs["plu"]["test_accuracy"][-1] - runs["relu"]["test_accuracy"][-1])
    sentence = "PLU's test accuracy on CIFAR-10 is at least that of ReLU after 1,000 steps."
    expected[sentence] = "", 100 * ahead, ">= 0"
    claims = list(cifar10.claims(runs, {}))
    found = {claim.sentence: (claim.statement, pytest.approx(claim.value), str(claim.claimed)) for claim in claims}
    assert found == expected
    assert all(claim.statistic.endswith(", this run of 1,000 steps, 2 seeds") for claim in claims)
    assert {(claim.n, claim.verdict) for claim in claims} == {(2, "cannot be decided")}


def favourable(claims):
    return [claim for claim in claims if claim.statement == "cifar-favourable"]


def test_more_favourable_than_the_fits_is_judged_against_the_interval_of_their_smallest_ratio(cifar10, longer, put):
    put("seeds", longer)
    spread = np.linspace(2, 4, 41)
    ones = {"final_loss": np.ones(41)}
    fits = {name: {"relu": {"final_loss": 2 * spread}, "plu": ones} for name in ("sine", "surface")}
    for seeds, n in ((41, 5), (4, 4)):
        few = {"relu": {"final_loss": spread[:seeds]}, "plu": {"final_loss": np.ones(seeds)}}
        (claim,) = favourable(cifar10.claims({}, fits | {"parametric": few}))
        assert claim.value == pytest.approx(ratio(longer, "relu", "plu", slice(-50, None)), rel=1e-4)
        assert (claim.n, claim.verdict == "cannot be decided") == (n, seeds == 4)
        assert claim.weaker.high == np.median(spread[:seeds])
        low, _ = interval(median, spread[:seeds])
        assert claim.claimed.high == (low if n == 5 else claim.weaker.high)
        assert "final losses on parametric, measured too: " in claim.statistic
    assert favourable(cifar10.claims({}, fits | {"parametric": {"relu": ones}})) == []


def test_what_the_paper_says_of_the_whole_run_is_decided_at_its_number_of_steps(cifar10, runs, longer, longest, put):
    put("seeds", longer)
    short = list(cifar10.claims(runs, {}))
    assert {claim.statement for claim in short if claim.primary} == {"cifar-identity"}
    put("full", longest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "_FULL", 12_000)
        claims = list(dataclasses.replace(USUAL).claims(runs, dict.fromkeys(FITS, FIT)))
    found = {claim.statement: claim for claim in claims if claim.primary}
    assert found.keys() == {"cifar-faster", "cifar-identity", "cifar-favourable"}
    assert found["cifar-faster"].value == pytest.approx(ratio(longest, "relu", "plu", slice(0, 12_000)), rel=1e-4)
    assert found["cifar-favourable"].value == pytest.approx(ratio(longest, "relu", "plu", slice(-50, None)), rel=1e-4)
    assert found["cifar-identity"].sentence.endswith("no worse than ReLU after 100.")
    matched = dataclasses.replace(MATCHED).claims(longer, {})
    assert {claim.setting.endswith("from gain-matched weights") for claim in matched if claim.statement} == {True}


def test_a_loss_at_the_end_of_a_long_run_is_judged_too(cifar10, made):
    runs = {activation: made(activation, 6000, 5) for activation in ACTIVATIONS}
    ends = [claim for claim in cifar10.claims(runs, {}) if claim.setting.endswith("in the loss after 6,000 steps")]
    assert [claim.statement for claim in ends] == ["cifar-faster"] * 2
    assert ends[1].value == pytest.approx(ratio(runs, "relu", "plu", slice(5950, 6000)))


def test_claims_are_judged_on_the_record_of_most_seeds_that_is_long_enough(runs, longer, longest, put):
    put("seeds", longer)
    claims = {claim.sentence: claim for claim in dataclasses.replace(USUAL).claims(runs, {})}
    assert {claim.n for claim in claims.values()} == {5}
    assert all(claim.statistic.endswith(", the stored run of 2,000 steps, 5 seeds") for claim in claims.values())
    assert all(claim.low <= claim.value <= claim.high for claim in claims.values())
    after = claims["On CIFAR-10, PLU trains faster than ReLU: loss after 500 steps."]
    assert after.value == pytest.approx(ratio(longer, "relu", "plu", slice(450, 500)), rel=1e-4)
    area = claims["On CIFAR-10, tanh trains faster than ReLU: area under the curve of 2,000 steps."]
    assert area.value == pytest.approx(ratio(longer, "relu", "tanh", slice(0, 2000)), rel=1e-4)
    put("full", longest)
    claims = {claim.sentence: claim for claim in dataclasses.replace(USUAL).claims(runs, {})}
    faster = "On CIFAR-10, {} trains faster than ReLU: {}."
    late = ("loss after 5,000 steps", *(f"area under the curve of {steps} steps" for steps in ("5,000", "12,000")))
    assert {sentence for sentence, claim in claims.items() if claim.n == 1} == {
        *(faster.format(name, what) for name in ("tanh", "PLU") for what in late),
        "On CIFAR-10, ReLU overtakes PLU in training loss after the first 5,000 steps.",
        "PLU's test accuracy on CIFAR-10 is at least that of ReLU after 12,000 steps.",
    }
    assert {claim.n for claim in claims.values()} == {1, 5}
    settings = [claims[faster.format(name, late[2])].setting for name in ("tanh", "PLU")]
    assert settings == ["for tanh, over 12,000 steps", "over 12,000 steps"]
    area = claims[faster.format("PLU", late[1])]
    assert area.value == pytest.approx(ratio(longest, "relu", "plu", slice(0, 5000)), rel=1e-4)


def test_relu_overtakes_at_the_thousand_from_which_it_stays_below(cifar10, made):
    runs = {activation: made(activation, 12_000, 5) for activation in ACTIVATIONS}
    starts = np.array([7000, 7000, 9000, 11_000, 12_000])  # the last one is never ahead
    step = np.arange(12_000)[:, None]
    runs["plu"]["loss"] = np.ones((12_000, 5))
    runs["relu"]["loss"] = np.where((step >= starts) | (step // 1000 == 3), 0.5, 2.0)
    (claim,) = [claim for claim in cifar10.claims(runs, {}) if "overtakes" in claim.sentence]
    assert (claim.n, claim.value) == (5, 9)
    assert str(claim.claimed) == "5 to 12"


def test_only_runs_with_all_activations_of_the_paper_are_judged(cifar10, runs):
    assert list(cifar10.claims({}, {})) == []
    assert list(cifar10.claims({"plu": runs["plu"], "relu": runs["relu"]}, {})) == []
    assert cifar10.finding({"plu": runs["plu"]}) == ""
    more = {**runs, "gelu": runs["tanh"]}
    assert list(cifar10.claims(more, {})) == list(cifar10.claims(runs, {}))


def test_records_are_those_of_the_usual_spec(runs, longer, put):
    put("seeds", longer)
    varied = USUAL.varied({"lr": 0.01})
    assert {claim.n for claim in varied.claims(runs, {})} == {2}
    assert {claim.n for claim in dataclasses.replace(MATCHED).claims(runs, {})} == {2}


@pytest.mark.parametrize(("step", "best"), [(1, (20, 5)), (20, (20, 5)), (21, (40, 2)), (40, (40, 2)), (41, (60, 1))])
def test_the_run_of_most_seeds_that_reaches_the_step_is_the_best(step, best):
    sizes = (50, 1), (10, 5), (30, 2), (60, 1), (20, 5), (40, 2), (19, 4)
    curves = [LossCurves(1, np.ones(size), *[np.ones((1, size[1]))] * 3) for size in sizes]
    found = _best([Evidence("", {"relu": one, "plu": one}) for one in curves], step)
    assert (found.steps, found.seeds) == best
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
    write_tables(tmp_path, {"cifar10": cifar10}, {"cifar10": runs}, [])
    with (tmp_path / "timings.csv").open() as file:
        times = list(csv.DictReader(file))
    assert times[5] == {"experiment": "cifar10", "activation": "plu", "seed": "1", "seconds": "2.0"}
    assert len(times) == 8
