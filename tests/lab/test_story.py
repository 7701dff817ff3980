"""What the report says, from claims and results."""

import dataclasses

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.lab.claims import STATEMENTS, mean, measure
from plunit.lab.read.fit import EXPERIMENTS as FITS
from plunit.lab.read.warp import EXPERIMENTS as WARPS
from plunit.lab.story import final_losses, judge, opening, statements, tally

SINE, WARP = FITS[0], WARPS[0]


HOLDS, WEAKLY, FAILS = 0, 1.5, 3
"""Values that get a verdict."""


def claim(statement, value, setting="", seeds=6):
    bars = {"claimed": Range(high=1), "weaker": Range(high=2)}
    return measure(statement, "Said.", "what", mean, np.full(seeds, float(value)), **bars, setting=setting)


def test_statements_are_judged_by_their_primary_claims_in_the_order_of_the_paper():
    claims = [
        claim("dead", HOLDS, "elsewhere"),
        claim("dead", HOLDS, "elsewhere too"),
        claim("", WEAKLY),
        claim("dead", FAILS),
        claim("sine-tanh", HOLDS),
        claim("sine-relu", WEAKLY, seeds=4),
        claim("curve-relu", HOLDS, "on one period"),
        claim("inverse-plu", HOLDS),
    ]
    judged = statements(claims)
    assert [(one.key, one.verdict) for one in judged] == [
        ("sine-tanh", "holds"),
        ("sine-relu", "cannot be decided"),
        ("curve-relu", "cannot be decided"),
        ("inverse-plu", "checked"),
        ("dead", "does not hold"),
    ]
    assert [(one.section, one.sentence, one.theorem) for one in judged] == [STATEMENTS[one.key] for one in judged]
    assert judged[-1].claims == [claims[3], claims[0], claims[1]]
    assert tally(judged) == "1 holds, 0 hold weakly, 1 does not hold, 2 cannot be decided; 1 of 1 theorems checked"
    assert tally(judged[:1]) == "1 holds, 0 hold weakly, 0 do not hold"
    assert tally(statements([claim("inverse-plu", FAILS), claim("inverse-others", HOLDS)])) == "1 of 2 theorems checked"


@pytest.mark.parametrize(
    ("first", "others", "said"),
    [
        (HOLDS, {}, "holds"),
        (HOLDS, {"here": HOLDS}, "holds"),
        (HOLDS, {"here": FAILS, "there": FAILS}, "holds, but not here; there"),
        (HOLDS, {"here": WEAKLY, "there": HOLDS}, "holds, but only weakly here"),
        (WEAKLY, {"here": HOLDS, "there": FAILS}, "holds weakly, but holds here, and not there"),
        (FAILS, {"here": FAILS, "there": WEAKLY}, "does not hold, but holds weakly there"),
    ],
)
def test_a_verdict_says_where_other_claims_disagree(first, others, said):
    (one,) = statements([claim("dead", first), *(claim("dead", value, where) for where, value in others.items())])
    assert one.said == said


def test_claims_that_cannot_be_decided_disagree_with_none_and_are_not_counted():
    few = claim("dead", FAILS, "elsewhere", seeds=4)
    assert statements([claim("dead", HOLDS), few])[0].said == "holds"
    others = [claim("dead", HOLDS, "here"), claim("dead", FAILS, "there"), few]
    found = [statements(claims)[0].said for claims in ([claim("dead", HOLDS, seeds=4), *others], others)]
    assert found == ["cannot be decided; other claims: holds (1), does not hold (1)"] * 2


def test_two_claims_cannot_both_decide():
    with pytest.raises(UserError, match="'dead' has 2 primary claims"):
        statements([claim("dead", HOLDS), claim("dead", HOLDS)])


def losses(**factors):
    counts = {
        f"{stage}_{kind}": np.ones(5) for stage in ("initial", "random", "trained") for kind in ("pieces", "patterns")
    }
    column = np.linspace(0.5, 1.5, 5)
    more = counts | {"seed": np.arange(5), "dead": np.zeros(5), "history": np.ones((1, 5))}
    return {name: more | {"final_loss": factor * column} for name, factor in factors.items()}


RUNS = losses(tanh=1, relu=10, plu=2)


def test_claims_have_the_name_of_their_experiment_and_those_of_a_variant_are_ours():
    varied = SINE.varied({"lr": 0.1})
    claims = judge({"sine": SINE, varied.name: varied}, {"sine": RUNS, varied.name: RUNS})
    ours, theirs = ([one for one in claims if one.experiment == name] for name in (varied.name, "sine"))
    assert len(ours) == len(theirs) == len(claims) / 2
    assert {one.statement for one in ours} == {""}
    assert {one.statement for one in theirs} == {"", "sine-tanh", "sine-relu", "dead", "sine-pieces"}
    assert [one.sentence for one in ours] == [f"{one.sentence[:-1]} (lr = 0.1)." for one in theirs]
    told = {"experiment": "", "statement": "", "setting": "", "sentence": ""}
    assert [dataclasses.replace(one, **told) for one in ours] == [dataclasses.replace(one, **told) for one in theirs]
    assert {one.setting for one in ours} == {""}


def test_the_opening_counts_verdicts_compares_losses_and_names_what_failed():
    varied = SINE.varied({"lr": 0.1})  # is not compared
    experiments, results = {"sine": SINE, varied.name: varied}, {"sine": RUNS, varied.name: RUNS}
    judged = statements([claim("sine-tanh", HOLDS), claim("sine-relu", FAILS, seeds=1200)])
    assert opening(experiments, results, judged) == [
        "Of 2 statements of the paper, judged on up to 1,200 seeds, 1 holds, 0 hold weakly, 1 does not hold.",
        "Seed by seed, ReLU's final loss is this many times PLU's: 5 (5 to 5) on the sine.",
        "Not confirmed: “On the sine, ReLU's loss is two orders of magnitude higher”.",
    ]


@pytest.mark.parametrize(
    "runs", [losses(tanh=1, plu=2), {"relu": {"seed": np.arange(5)}, "plu": {"seed": np.arange(5)}}]
)
def test_losses_are_compared_only_where_both_are_there(runs):
    judged = statements([claim("sine-tanh", HOLDS)])
    assert len(opening({"sine": SINE}, {"sine": runs}, judged)) == 1


def test_without_statements_the_opening_is_the_findings():
    runs = {"plu": {"seed": np.arange(5), "steps": np.full(5, 9), "inverse_error": np.linspace(0.1, 0.3, 5)}}
    varied = SINE.varied({"lr": 0.1})
    experiments = {"warp": WARP, "sine": SINE, varied.name: varied}
    warp, sine = WARP.finding(runs), SINE.finding(RUNS)
    assert opening(experiments, {"warp": runs, "sine": RUNS}, []) == [f"{WARP.title}: {warp}", f"Sine: {sine}"]
    assert opening(experiments, {"sine": RUNS}, []) == [sine]
    assert opening(experiments, {varied.name: RUNS}, []) == [f"Sine, lr = 0.1: {sine}"]


def test_final_losses_are_quantiles_of_those_who_fit_and_diverged_ones_are_the_largest():
    runs = losses(relu=1, plu=2)
    runs["relu"]["final_loss"] = np.array([np.nan, 3.0, 1.0, np.nan, 2.0])
    assert final_losses({"sine": runs, "warp": {"plu": {"loss": np.ones((9, 5))}}}) == {
        "sine": {"relu": (1, 3, np.inf), "plu": (1, 2, 3)}
    }
