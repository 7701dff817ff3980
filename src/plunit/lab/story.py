"""What the report says, computed from results: verdicts on the paper's statements, and a few sentences."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from plunit.base.errors import UserError
from plunit.lab.claims import FAILS, HOLDS, STATEMENTS, UNDECIDED, WEAKLY, Claim, Column, interval, median, ratios
from plunit.lab.experiment import Experiment, Results
from plunit.lab.style import number

Losses = dict[str, dict[str, tuple[float, float, float]]]
"""Experiment, activation: 5, 50 and 95 % quantiles of a loss."""

LOSSES = {"final loss": "final_loss", "test loss": "test_loss", "training loss": "train_loss"}
"""The losses at the end of training that experiments may have, and their arrays."""

CHECKED = "checked"
"""The verdict on a theorem whose primary claim holds."""

_VERBS = {HOLDS: "hold", WEAKLY: "hold weakly", FAILS: "do not hold", UNDECIDED: "cannot be decided"}


class Judged(NamedTuple):
    """A statement of the paper, its claims, the primary one first, and the verdict of that one."""

    key: str
    section: str
    sentence: str
    theorem: bool
    claims: list[Claim]
    verdict: str

    @property
    def said(self) -> str:
        """The verdict and, after a "but", the settings in which other claims disagree with it.

        Without a verdict, the other claims are counted.
        """
        if self.verdict == UNDECIDED:
            count = Counter(claim.verdict for claim in self.claims)
            others = ", ".join(f"{verdict} ({count[verdict]})" for verdict in (HOLDS, WEAKLY, FAILS) if count[verdict])
            return f"{UNDECIDED}; other claims: {others}" if others else UNDECIDED
        agreeing = HOLDS if self.verdict == CHECKED else self.verdict
        words = {HOLDS: "holds", WEAKLY: "only weakly" if agreeing == HOLDS else "holds weakly", FAILS: "not"}
        parts = []
        for verdict in words.keys() - {agreeing}:
            if settings := [claim.setting for claim in self.claims if claim.verdict == verdict]:
                parts.append(f"{words[verdict]} {'; '.join(settings)}")
        return f"{self.verdict}, but {', and '.join(sorted(parts))}" if parts else self.verdict


def judge(experiments: dict[str, Experiment], results: Results) -> list[Claim]:
    """Return all claims that the results can judge. A variant is not what the paper did: its claims are ours."""
    claims = []
    for name, runs in results.items():
        for claim in experiments[name].claims(runs, results):
            if variant := experiments[name].variant:
                sentence = f"{claim.sentence.removesuffix('.')} ({variant})."
                claim = dataclasses.replace(claim, sentence=sentence, statement="", setting="")
            claims.append(dataclasses.replace(claim, experiment=name))
    return claims


def statements(claims: Iterable[Claim]) -> list[Judged]:
    """Return the paper's statements that have claims, in its order, each with its verdict."""
    found: dict[str, list[Claim]] = {key: [] for key in STATEMENTS}
    for claim in sorted(claims, key=lambda claim: not claim.primary):
        if claim.statement:
            found[claim.statement].append(claim)
    return [_judged(key, group) for key, group in found.items() if group]


def _judged(key: str, claims: list[Claim]) -> Judged:
    primary = [claim for claim in claims if claim.primary]
    if len(primary) > 1:
        where = ", ".join(claim.experiment for claim in primary)
        raise UserError(f"{key!r} has {len(primary)} primary claims, from {where}; give all but one of them a setting")
    verdict = primary[0].verdict if primary else UNDECIDED
    verdict = CHECKED if verdict == HOLDS and STATEMENTS[key].theorem else verdict
    return Judged(key, *STATEMENTS[key], claims, verdict)


def final_losses(results: Results, key: str = "final_loss") -> Losses:
    """Return the quantiles of a loss at the end of training, of the experiments that have it."""

    def quantiles(losses: Column) -> tuple[float, float, float]:
        final = np.nan_to_num(losses, nan=np.inf)
        low, high = np.quantile(final, [0.05, 0.95], method="nearest")
        return float(low), float(np.median(final)), float(high)

    return {
        name: {activation: quantiles(arrays[key]) for activation, arrays in runs.items()}
        for name, runs in results.items()
        if all(key in arrays and "history" in arrays for arrays in runs.values())
    }


def tally(judged: list[Judged]) -> str:
    """Count the verdicts on the paper's statements: "1 holds, 0 hold weakly, 2 do not hold"; theorems apart."""
    count = Counter(one.verdict for one in judged if not one.theorem)
    shown = [verdict for verdict in _VERBS if count[verdict] or verdict != UNDECIDED] if count else []
    verbs = {verdict: verdict if count[verdict] == 1 else _VERBS[verdict] for verdict in shown}
    measured = ", ".join(f"{count[verdict]} {verb}" for verdict, verb in verbs.items())
    theorems = [one.verdict for one in judged if one.theorem]
    checked = f"{theorems.count(CHECKED)} of {len(theorems)} theorems checked" if theorems else ""
    return "; ".join(part for part in (measured, checked) if part)


def opening(experiments: dict[str, Experiment], results: Results, judged: list[Judged]) -> list[str]:
    """Return up to three sentences that say what was found."""
    if not judged:
        findings = {name: found for name, runs in results.items() if (found := experiments[name].finding(runs))}
        alone = len(findings) == 1 and not experiments[next(iter(findings))].variant
        return [found if alone else f"{experiments[name].title}: {found}" for name, found in findings.items()][:3]
    seeds = [max(claim.n for claim in one.claims) for one in judged if not one.theorem]
    first = (
        f"Of {len(seeds)} statements of the paper, judged on up to {max(seeds):,} seeds,"
        if seeds
        else "From the paper:"
    )
    failed = "; ".join(f"“{one.sentence.rstrip('.')}”" for one in judged if one.verdict == FAILS)
    missed = f"Not confirmed: {failed}." if failed else ""
    return [sentence for sentence in (f"{first} {tally(judged)}.", _compared(experiments, results), missed) if sentence]


def plain(experiments: dict[str, Experiment], results: Results, claims: list[Claim]) -> list[str]:
    """Return the lines to print for results without statements of the paper: findings, then claims with intervals."""
    shown = (f"{claim.sentence} {_told(claim.value, claim.low, claim.high)}: {claim.verdict}" for claim in claims)
    return [*opening(experiments, results, []), *shown]


def _told(value: float, low: float, high: float) -> str:
    return number(value) + ("" if math.isnan(low) else f" ({number(low)} to {number(high)})")


def _compared(experiments: dict[str, Experiment], results: Results) -> str:
    """Compare ReLU with PLU where both fitted a function."""
    parts = []
    for name, runs in results.items():
        if runs.keys() >= {"relu", "plu"} and "final_loss" in runs["plu"] and not experiments[name].variant:
            column = ratios(*(runs[activation]["final_loss"] for activation in ("relu", "plu")))
            told = _told(float(median(column)), *interval(median, column))
            parts.append(f"{told} on {getattr(experiments[name], 'noun', name)}")
    return f"Seed by seed, ReLU's final loss is this many times PLU's: {'; '.join(parts)}." if parts else ""
