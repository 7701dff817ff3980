"""Statistics, finding, rows and figure: each from this run or from the stored records, whichever has more seeds."""

import dataclasses

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.lab.claims import answers, judge
from plunit.lab.intervals import Estimate
from plunit.lab.read.cifar10 import EXPERIMENTS, crossing

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
    assert all(one.words.endswith(", this run") for one in found.values())
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


def test_statistics_come_from_the_records_once_they_have_more_seeds(runs, longer, put):
    put("seeds", longer)
    found = statistics(dataclasses.replace(USUAL), runs)
    assert {one.estimate.n for one in found.values()} == {5}
    assert all(one.words.endswith(", the stored runs") for one in found.values())
    expected = ratio(longer, "relu", "plu", slice(450, 500))
    assert found["loss relu/plu 500"].estimate.value == pytest.approx(expected, rel=1e-4)


def some(runs, seeds):
    return {name: {key: array[..., seeds] for key, array in arrays.items()} for name, arrays in runs.items()}


def test_records_are_joined_at_every_step_that_they_have_and_a_seed_counts_once_from_the_longest(made, put):
    lengths = {"first": (1000, [3, 4, 5]), "seeds": (5000, [0, 1, 3]), "full": (20_000, [0, 2])}
    whole = {name: {one: made(one, steps, 6) for one in ACTIVATIONS} for name, (steps, _) in lengths.items()}
    for arrays in (arrays for runs in whole.values() for arrays in runs.values()):  # all are tested at the same steps
        arrays |= {key: arrays[key][:1] for key in ("test_step", "test_loss", "test_accuracy")}
    for name, (steps, seeds) in lengths.items():
        put(name, some(whole[name], seeds), steps=steps)
    sources = {100: ["full", "seeds", "full", "seeds", "first", "first"], 5000: ["full", "seeds", "full", "seeds"]}
    found = statistics(dataclasses.replace(USUAL), {})
    for step, names in sources.items():
        window = slice(step - 50, step)
        for above, below in (("relu", "plu"), ("identity", "relu")):
            means = (
                [whole[name][one]["loss"][window, seed].mean() for seed, name in enumerate(names)]
                for one in (above, below)
            )
            expected = np.median(np.divide(*means))
            estimate = found[f"loss {above}/{below} {step}"].estimate
            assert (estimate.value, estimate.n) == (pytest.approx(expected, rel=1e-4), len(names))
    assert found["area relu/plu 20000"].estimate.n == 2


def test_a_record_gives_the_seeds_that_both_activations_of_a_claim_have(longer, put):
    fewer = {**longer, **some({"tanh": longer["tanh"]}, [0, 3])}
    del fewer["identity"]
    put("seeds", fewer, steps=2000)
    one = dataclasses.replace(USUAL)
    found = {name: measured.estimate.n for name, measured in statistics(one, {}).items()}
    assert found == {
        f"loss relu/{name} {step}": n for name, n in (("plu", 5), ("tanh", 2)) for step in (100, 500, 1000)
    }
    assert one.finding({}) == ""


def test_six_long_seeds_decide_every_statement_on_cifar10(made, put):
    """With the paper's number of steps: as the records grow, verdicts follow by themselves."""
    tests = {"test_step": np.full((1, 6), 100_000), "test_loss": np.ones((1, 6)), "test_accuracy": np.ones((1, 6))}
    scales = {"tanh": 1.0, "relu": 1.2, "plu": 0.9, "identity": 1.1}
    seeds = np.linspace(1, 1.1, 6)
    long = {
        name: {"seed": np.arange(6), "loss": np.full((100_000, 1), scale) * seeds, **tests}
        for name, scale in scales.items()
    }
    for count, verdicts in ((5, {"undecided"}), (6, {"holds"})):
        put("full", some(long, slice(count)), steps=100_000)
        one = dataclasses.replace(USUAL)
        found = answers(judge({"cifar10": one}, {"cifar10": {}}))
        assert {answer.verdict for answer in found if not answer.theorem} == verdicts
        needed = {claim.needed for answer in found for claim in answer.primary}
        assert needed == ({6} if count == 5 else {0})


def test_only_seeds_that_both_activations_have_are_paired(cifar10, made):
    runs = {activation: made(activation, 1000, 8) for activation in ACTIVATIONS}
    fewer = {**runs, "plu": {key: array[..., 2:] for key, array in runs["plu"].items()}}
    both = {name: {key: array[..., 2:] for key, array in arrays.items()} for name, arrays in runs.items()}
    found = statistics(cifar10, fewer)["loss relu/plu 100"].estimate
    assert (found.value, found.n) == (ratio(both, "relu", "plu", slice(50, 100)), 6)


def test_a_claim_needs_both_of_its_activations_and_the_finding_all(cifar10, runs):
    assert statistics(cifar10, {}) == {}
    assert {*statistics(cifar10, {name: runs[name] for name in ("plu", "relu")})} == {
        f"loss relu/plu {step}" for step in (100, 500, 1000)
    }
    assert cifar10.finding({"plu": runs["plu"]}) == ""
    assert statistics(cifar10, {**runs, "gelu": runs["tanh"]}) == statistics(cifar10, runs)


@pytest.mark.parametrize("change", [{"lr": 0.01}, {"init": "gain"}, {"early": (7,)}], ids=str)
def test_a_record_with_another_spec_is_refused(cifar10, runs, longer, put, change):
    put("seeds", longer, **change)
    (field,) = change
    with pytest.raises(UserError, match=f"the record 'seeds' of cifar10 was made with {field} = "):
        cifar10.finding(runs)


def test_records_are_those_of_the_usual_spec(runs, longer, put):
    put("seeds", longer)
    for other in (USUAL.vary({"lr": 0.01}), dataclasses.replace(MATCHED)):
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


def test_the_finding_gives_early_losses_and_the_accuracies_of_the_longest_run(runs, longer, longest, put):
    short = USUAL.vary({"steps": 1000})

    def text(ours, early, theirs, late):
        losses, accuracies = listed(ours, slice(950, 1000))[0], listed(theirs, slice(0, 1000))[1]
        return f"Training loss after 1,000 steps ({early}): {losses}; test accuracy after {late}: {accuracies}."

    assert short.finding(runs) == text(runs, "this run, 2 seeds", runs, "1,000 steps (this run, 2 seeds)")
    put("seeds", longer, steps=2000)
    expected = text(longer, "the stored runs, 5 seeds", longer, "2,000 steps (the stored runs, 5 seeds)")
    assert dataclasses.replace(short).finding(runs) == expected
    put("full", longest, steps=12_000)
    assert "after 12,000 steps (the stored runs, 1 seed): " in dataclasses.replace(short).finding(runs)


def test_the_figure_shows_the_run_and_the_longest_record(runs, longer, longest, put):
    (picture,) = dataclasses.replace(USUAL).figures(runs)
    assert len(picture.figure.axes) == 2
    put("seeds", longer)
    put("full", longest)
    (picture,) = dataclasses.replace(USUAL).figures(runs)
    titles = [axes.get_title() for axes in picture.figure.axes[::2]]
    assert titles == ["this run, 2 seeds", "the longest record, 1 seed"]
    assert f"{titles[0]}: {listed(runs, slice(0, 50))[1]}; {titles[1]}: tanh 4" in picture.caption
    line = picture.figure.axes[3].lines[2]  # PLU's accuracy in the record
    np.testing.assert_allclose(line.get_xdata(), [100, 12_000])
    np.testing.assert_allclose(line.get_ydata(), 100 * np.median(longest["plu"]["test_accuracy"], axis=1), atol=0.01)
    assert [axes.lines[0].get_xdata()[-1] for axes in picture.figure.axes[::2]] == [1000, 12_000]
    (other,) = dataclasses.replace(USUAL).figures({"gelu": runs["tanh"]})
    assert other.alt.endswith("for GELU.")


def test_rows_state_losses_and_accuracy(cifar10, runs):
    assert list(cifar10.rows(runs))[5] == {
        "experiment": "cifar10",
        "activation": "plu",
        "seed": 1,
        "final_loss": pytest.approx(runs["plu"]["loss"][950:, 1].mean()),
        "steps": 1000,
        "test_loss": runs["plu"]["test_loss"][-1, 1],
        "test_accuracy": runs["plu"]["test_accuracy"][-1, 1],
    }
