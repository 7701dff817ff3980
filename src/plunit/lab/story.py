"""What the report and the terminal say: a few sentences and tables of losses, from judged claims and results."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from plunit.lab.claims import REFUTED, Judged, Ruling, tally
from plunit.lab.experiment import Experiment, Results
from plunit.lab.intervals import Column, Estimate, worst_if_diverged
from plunit.lab.summary import number

Losses = dict[str, dict[str, tuple[float, float, float]]]
"""Experiment, activation: 5, 50 and 95 % quantiles of a loss."""

LOSSES = {"final loss": "final_loss", "test loss": "test_loss", "training loss": "train_loss"}
"""The losses at the end of training that experiments may have, and their arrays."""

_COMPARED = {"sine-relu": "the sine", "curve-relu": "the parametric curve", "surface-relu": "the surface"}


def final_losses(results: Results, key: str = "final_loss") -> Losses:
    """Return the quantiles of a loss at the end of training, of the experiments that have it.

    Next to test losses stands that of a constant, the mean, if it was measured.
    """

    def quantiles(losses: Column) -> tuple[float, float, float]:
        final = worst_if_diverged(losses)
        low, high = np.quantile(final, [0.05, 0.95], method="nearest")
        return float(low), float(np.median(final)), float(high)

    found = {}
    for name, runs in results.items():
        if all(key in arrays and "history" in arrays for arrays in runs.values()):
            found[name] = {activation: quantiles(arrays[key]) for activation, arrays in runs.items()}
            for arrays in list(runs.values())[:1]:
                if key == "test_loss" and "baseline" in arrays:
                    found[name]["mean"] = quantiles(arrays["baseline"])
    return found


def opening(experiments: Mapping[str, Experiment], results: Results, found: list[Ruling]) -> list[str]:
    """Return up to three sentences that say what was found."""
    if not found:
        findings = {name: told for name, runs in results.items() if (told := experiments[name].finding(runs))}
        alone = len(findings) == 1 and not experiments[next(iter(findings))].variant
        return [told if alone else f"{experiments[name].title}: {told}" for name, told in findings.items()][:3]
    measured = [one for one in found if not one.theorem]
    seeds = max(one.estimate.n for answer in measured for one in answer.claims)
    first = f"Of {len(measured)} statements of the paper, judged on up to {seeds:,} seeds, {tally(found)}."
    ratios = [
        f"{with_interval(one.estimate)} on {_COMPARED[answer.key]}"
        for answer in measured
        for one in answer.primary
        if answer.key in _COMPARED and one.claim.statistic == "relu/plu"
    ]
    compared = f"Seed by seed, ReLU's final loss is this many times PLU's: {'; '.join(ratios)}." if ratios else ""
    refuted = "; ".join(f"“{one.sentence.rstrip('.')}”" for one in found if one.verdict == REFUTED)
    return [text for text in (first, compared, f"Refuted: {refuted}." if refuted else "") if text]


def plain(experiments: Mapping[str, Experiment], results: Results, judged: list[Judged]) -> list[str]:
    """Return the lines to print for results without statements of the paper: findings, then claims with intervals."""
    shown = (f"{one.claim.said} {_sentence(one.words)} {with_interval(one.estimate)}: {one.said}" for one in judged)
    return [*opening(experiments, results, []), *shown]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def with_interval(estimate: Estimate) -> str:
    """Print an estimate and its interval: "16.7 (15.1 to 18.5)".

    >>> with_interval(Estimate(1.0, 0.5, 2.0, 6)), with_interval(Estimate(1.0, math.nan, math.nan, 1))
    ('1 (0.5 to 2)', '1')
    """
    ends = "" if math.isnan(estimate.low) else f" ({number(estimate.low)} to {number(estimate.high)})"
    return f"{number(estimate.value)}{ends}"
