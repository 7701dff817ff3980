"""The table of claims, and the rule that makes verdicts of them."""

import dataclasses
import math

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.lab import claims
from plunit.lab.claims import CLAIMS, STATEMENTS, Claim, Judged, Ruling, Weaker, answers, judge, tally, verdict
from plunit.lab.experiment import Experiment, Statistic
from plunit.lab.intervals import Estimate, median
from plunit.lab.theorems import THEOREMS

NAN = math.nan
HUNDRED = Claim("sine-relu", "sine", "relu/plu", Range(low=100), weaker=Weaker(Range(10, 100), "ten times"))
NEAR = Claim("sine-tanh", "sine", "plu/tanh", Range(0.5, 2))


@pytest.mark.parametrize(
    ("claim", "low", "high", "said"),
    [
        (HUNDRED, 100, 200, "holds"),
        (HUNDRED, 99, 200, "undecided"),
        (HUNDRED, 5, 200, "undecided"),
        (HUNDRED, 10, 100, "holds in a weaker form"),
        (HUNDRED, 15.1, 18.5, "holds in a weaker form"),
        (HUNDRED, 9, 99, "refuted"),
        (HUNDRED, 1, 9, "refuted"),
        (HUNDRED, NAN, NAN, "undecided"),
        (NEAR, 0.5, 2, "holds"),
        (NEAR, 0.4, 2, "undecided"),
        (NEAR, 1, 2.1, "undecided"),
        (NEAR, 0.4, 2.1, "undecided"),
        (NEAR, 0.3, 0.4, "refuted"),
        (NEAR, 2.1, math.inf, "refuted"),
        (Claim("cifar-faster", "cifar10", "x", Range(low=1)), 0.54, 1.23, "undecided"),
    ],
)
def test_the_rule(claim, low, high, said):
    assert verdict(claim, Estimate(math.sqrt(low * high), low, high, 10)) == said


def judged(key, low, high, setting="", weaker=None, needed=0, steps=0):
    """A claim that the value is at least 1, and an interval."""
    claim = Claim(key, "sine", "x", Range(low=1), setting=setting, weaker=weaker, steps=steps)
    return Judged(claim, "sine", "x in words", Estimate((low + high) / 2, low, high, 6), needed)


@pytest.fixture
def two_primary_claims(monkeypatch):
    """A table in which both claims of "dead" and the one of "sine-tanh" decide."""
    table = [Claim(key, "sine", "x", Range(low=1)) for key in ("dead", "dead", "sine-tanh")]
    monkeypatch.setattr(claims, "CLAIMS", tuple(table))


HOLDS, WEAK, REFUTED, OPEN = (2, 3), (0.5, 0.9), (0.1, 0.2), (0.5, 2)
HALF = Weaker(Range(0.4, 1), "half")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (HOLDS, HOLDS, "holds"),
        (HOLDS, WEAK, "holds in a weaker form: half"),
        (HOLDS, OPEN, "undecided"),
        (WEAK, OPEN, "undecided"),
        (OPEN, REFUTED, "refuted"),
        (HOLDS, REFUTED, "refuted"),
        (WEAK, WEAK, "holds in a weaker form: half"),
        (HOLDS, (0.3, 0.6), "refuted; undecided in a weaker form: half"),
    ],
)
def test_all_primary_claims_decide(two_primary_claims, first, second, said):
    for pair in ((first, second), (second, first)):
        found = {one.key: one for one in answers(judged("dead", *ends, weaker=HALF) for ends in pair)}
        assert found["dead"].said == said


def test_a_statement_one_of_whose_primary_claims_was_not_run_is_undecided_unless_the_other_refutes_it(
    two_primary_claims,
):
    for ends, said in ((HOLDS, "undecided"), (REFUTED, "refuted")):
        assert {one.key: one.verdict for one in answers([judged("dead", *ends)])}["dead"] == said
    (other,) = [one for one in answers([judged("dead", *HOLDS, "elsewhere")]) if not one.theorem]
    assert other.said == "undecided; not all claims that decide were run, but holds elsewhere"


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({}, "holds"),
        ({"here": HOLDS, "there": OPEN}, "holds"),
        ({"here": REFUTED, "there": REFUTED}, "holds, but refuted here and there"),
        ({"here": WEAK, "there": REFUTED}, "holds, but holds in a weaker form here, and refuted there"),
    ],
)
def test_a_verdict_says_where_claims_in_other_settings_disagree(two_primary_claims, others, said):
    both = [judged("sine-tanh", *HOLDS)]
    both += [judged("sine-tanh", *ends, setting, HALF) for setting, ends in others.items()]
    (found,) = [one for one in answers([*both[1:], both[0]]) if not one.theorem]
    assert found.said == said
    assert found.claims[0] is both[0]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([HOLDS, HOLDS, HOLDS, OPEN, HOLDS], "refuted, but holds after 1 to 100 and 10,000 steps"),
        ([HOLDS, HOLDS, REFUTED, REFUTED, OPEN], "refuted, but holds after 1 and 10 steps"),
        ([REFUTED, OPEN, OPEN, HOLDS, OPEN], "refuted, but holds after 1,000 steps"),
    ],
)
def test_settings_that_differ_in_steps_are_a_series(two_primary_claims, verdicts, said):
    found = [judged("sine-tanh", *REFUTED)]
    found += [judged("sine-tanh", *ends, f"after {10**i:,} steps", steps=10**i) for i, ends in enumerate(verdicts)]
    (one,) = [one for one in answers([found[0], *reversed(found[1:])]) if not one.theorem]
    assert one.said == said


def test_in_a_setting_all_claims_together_decide(two_primary_claims, monkeypatch):
    table = [*claims.CLAIMS, *[Claim("sine-tanh", "sine", name, Range(low=1), setting="here") for name in "xy"]]
    monkeypatch.setattr(claims, "CLAIMS", tuple(table))
    refuted, *pairs = judged("sine-tanh", *REFUTED), (HOLDS, HOLDS), (HOLDS, REFUTED), (HOLDS,)
    found = [answers([refuted, *(judged("sine-tanh", *ends, "here") for ends in pair)]) for pair in pairs]
    said = [one.said for group in found for one in group if not one.theorem]
    assert said == ["refuted, but holds here", "refuted", "refuted"]


def test_of_several_undecided_claims_the_one_that_needs_most_seeds_is_named(two_primary_claims):
    for needed, said in (((8, 40), "; about 40 seeds would decide"), ((0, 40), "")):
        found = answers(judged("dead", *OPEN, needed=one) for one in needed)
        assert [one.said for one in found if not one.theorem] == [f"undecided{said}"]


def test_words_name_the_experiment_where_the_claims_that_decide_are_of_several():
    one = judged("dead", *HOLDS)
    other = dataclasses.replace(one, experiment="surface")
    assert Ruling("dead", (one,), "holds").words(one) == "x in words"
    assert Ruling("dead", (one, other), "holds").words(other) == "x in words (surface)"


def test_an_undecided_claim_says_how_many_seeds_would_decide():
    assert judged("dead", *OPEN, needed=1234).said == "undecided; about 1,234 seeds would decide"


def test_answers_come_in_the_order_of_the_paper_and_theorems_are_counted_apart(two_primary_claims, monkeypatch):
    found = answers([judged("dead", *REFUTED), judged("sine-tanh", *HOLDS)])
    shown = [key for key, one in STATEMENTS.items() if one.theorem or key in ("dead", "sine-tanh")]
    assert [one.key for one in found] == shown
    assert tally(found) == "1 holds, 1 is refuted; 7 of 7 theorems checked"
    monkeypatch.setitem(THEOREMS, "odd", lambda: [True, False])
    assert tally(answers([judged("sine-tanh", *HOLDS)])) == "1 holds; 6 of 7 theorems checked"
    assert answers([]) == []


class Coins(Experiment):
    """Two statistics, one of them only where both activations were run."""

    activations = choices = ("one", "two")
    claims = (Claim("", "coins", "both", Range(low=1), sentence="Both are large."),)

    @staticmethod
    def compute(cell, scratch):
        raise NotImplementedError

    def statistics(self, runs):
        yield Statistic("first", "the first", median(runs["one"]["x"]))
        if "two" in runs:
            yield Statistic("both", "both of them", median(runs["two"]["x"]))

    def figures(self, runs):
        return ()


@dataclasses.dataclass(frozen=True)
class CoinsSpec:
    x: int = 0


COINS = Coins("coins", "Coins", CoinsSpec())
RUNS = {name: {"seed": np.arange(8), "x": np.linspace(1, 2, 8)} for name in ("one", "two")}


def test_claims_are_judged_on_the_statistics_that_can_be_computed():
    (found,) = judge({"coins": COINS}, {"coins": RUNS})
    assert (found.words, found.verdict, found.estimate.n) == ("both of them", "holds", 8)
    assert judge({"coins": COINS}, {"coins": {"one": RUNS["one"]}}) == []


def test_claims_on_a_variant_are_ours_and_name_it():
    varied = COINS.vary({"x": 3})
    (found,) = judge({varied.name: varied}, {varied.name: RUNS})
    assert (found.claim.said, found.experiment) == ("Both are large (x = 3).", "coins+x=3")


def test_a_variant_of_a_paper_s_experiment_does_not_judge_the_paper(monkeypatch):
    monkeypatch.setattr(claims, "CLAIMS", (Claim("dead", "coins", "first", Range(low=5), setting="there"),))
    varied = COINS.vary({"x": 3})
    usual, ours = (judge({one.name: one}, {one.name: RUNS})[0].claim for one in (COINS, varied))
    assert (usual.statement, usual.setting) == ("dead", "there")
    assert (ours.statement, ours.setting) == ("", "")
    assert ours.said == f"{STATEMENTS['dead'].sentence[:-1]} (there, x = 3)."


def test_a_claim_of_another_package_on_a_statistic_that_is_not_computed_is_one_line(monkeypatch):
    claim = dataclasses.replace(Coins.claims[0], statistic="bothh")
    monkeypatch.setattr(Coins, "claims", (claim,))
    with pytest.raises(UserError, match=r"'bothh'.*first, both"):
        judge({"coins": COINS}, {"coins": RUNS})


@pytest.mark.parametrize("wrong", [{"statement": "half"}, {"statement": "", "sentence": ""}])
def test_a_claim_is_about_a_statement_or_has_a_sentence(wrong):
    with pytest.raises(UserError):
        dataclasses.replace(Coins.claims[0], **wrong)


def test_every_measured_statement_has_a_primary_claim_and_every_theorem_its_checks():
    decided = {claim.statement for claim in CLAIMS if claim.primary}
    assert decided == {key for key, one in STATEMENTS.items() if not one.theorem}
    assert THEOREMS.keys() == {key for key, one in STATEMENTS.items() if one.theorem}
    assert len(STATEMENTS) >= 24


def test_no_claim_is_there_twice():
    places = [(claim.statement, claim.experiment, claim.statistic, claim.setting) for claim in CLAIMS]
    assert len(set(places)) == len(places)
