"""What the report says, from judged claims and results."""

import math

import numpy as np
import pytest

from plunit.base.ranges import Range
from plunit.lab.claims import Claim, Judged, answers, judge
from plunit.lab.intervals import Estimate
from plunit.lab.read.depth import EXPERIMENTS as DEPTHS
from plunit.lab.read.sine_parametric_surface import REACH, SINE
from plunit.lab.report import final_losses, opening, plain, with_interval

DEPTH = DEPTHS[0]


def losses(**factors):
    counts = {
        f"{stage}_{kind}": np.ones(6) for stage in ("initial", "random", "trained") for kind in ("pieces", "patterns")
    }
    column = np.linspace(0.5, 1.5, 6)
    more = counts | {"seed": np.arange(6), "dead": np.zeros(6), "history": np.ones((1, 6))}
    return {name: more | {"final_loss": factor * column} for name, factor in factors.items()}


RUNS = losses(tanh=1, relu=10, plu=2)


def found_in(experiments, results):
    return answers(judge(experiments, results))


def test_the_opening_counts_verdicts_compares_losses_of_sections_2_to_4_and_names_what_was_refuted():
    varied = SINE.vary({"lr": 0.1})
    reached = {name: {**arrays, "adam_loss": arrays["final_loss"]} for name, arrays in RUNS.items()}
    experiments = {"sine": SINE, varied.name: varied, "reach": REACH}
    results = {"sine": RUNS, varied.name: RUNS, "reach": reached}  # ratios of the variant and of reach are left out
    first, compared, refuted = opening(experiments, results, found_in(experiments, results))
    assert first.startswith("Of 6 statements of the paper, judged on up to 6 seeds, 1 holds, 2 are refuted, ")
    assert compared == "ReLU's final loss divided by PLU's, median over seeds: 5 (5 to 5) on the sine."
    assert refuted == (
        "Refuted: “On the sine, ReLU networks have fewer line segments than PLU networks”; "
        "“On the sine, PLU's and tanh's losses are two orders of magnitude lower than ReLU's”."
    )


@pytest.mark.parametrize("runs", [losses(tanh=1, plu=2)])
def test_losses_are_compared_only_where_both_are_there(runs):
    assert len(opening({"sine": SINE}, {"sine": runs}, found_in({"sine": SINE}, {"sine": runs}))) == 1


def test_without_statements_the_opening_is_the_findings():
    runs = {"relu": {"seed": np.arange(5), "gradient_norm": np.linspace(0.1, 0.3, 30).reshape(6, 5)}}
    varied = SINE.vary({"lr": 0.1})
    experiments = {"depth": DEPTH, "sine": SINE, varied.name: varied}
    depth, sine = DEPTH.finding(runs), SINE.finding(RUNS)
    title = SINE.title
    assert opening(experiments, {"depth": runs, "sine": RUNS}, []) == [f"{DEPTH.title}: {depth}", f"{title}: {sine}"]
    assert opening(experiments, {"sine": RUNS}, []) == [sine]
    assert opening(experiments, {varied.name: RUNS}, []) == [f"{title}, lr = 0.1: {sine}"]


def test_claims_without_statements_are_printed_with_interval_and_verdict():
    claim = Claim("", "sine", "x", Range(low=1), sentence="It is large.")
    judged = [
        Judged(claim, "sine", "median of ReLU", Estimate(2.0, 1.5, 3.0, 9)),
        Judged(claim, "sine", "median of ReLU", Estimate(2.0, math.nan, math.nan, 3), 12),
    ]
    assert plain({"sine": SINE}, {"sine": RUNS}, judged)[1:] == [
        "It is large. Median of ReLU 2 (1.5 to 3): holds",
        "It is large. Median of ReLU 2: undecided; about 12 seeds would decide",
    ]


def test_final_losses_are_quantiles_of_those_who_fit_and_diverged_ones_are_the_largest():
    runs = losses(relu=1, plu=2)
    runs["relu"]["final_loss"] = np.array([np.nan, 3.0, 1.0, np.nan, 2.0, 5.0])
    assert final_losses({"sine": runs, "other": {"plu": {"loss": np.ones((9, 5))}}}) == {
        "sine": {"relu": (1, 4, np.inf), "plu": (1, 2, 3)}
    }


def test_the_loss_of_the_mean_stands_next_to_test_losses():
    arrays = {"history": np.ones((1, 3)), "test_loss": np.full(3, 0.5), "baseline": np.array([0.9, 1.0, 1.1])}
    found = final_losses({"compare": {"plu": arrays, "relu": arrays}}, "test_loss")
    assert [*found["compare"]] == ["plu", "relu", "mean"]
    assert found["compare"]["mean"] == (0.9, 1.0, 1.1)


def test_an_interval_is_printed_if_there_is_one():
    assert with_interval(Estimate(16.66, 15.06, 18.49, 9)) == "16.7 (15.1 to 18.5)"
    assert with_interval(Estimate(16.66, math.nan, math.nan, 5)) == "16.7"
