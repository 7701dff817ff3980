"""What the densities say of PLU in flows; the paper only points there."""

from __future__ import annotations

from plunit.lab.claims import Claim, Column, Range, mean, measure
from plunit.lab.density.spec import METHODS, SPECS
from plunit.lab.results import Results

_TOYS = {"smooth": Range(high=1.80), "annealed": Range(high=1.86), "flux": Range(high=1.90), "plain": Range(low=2.6)}
"""Mean test NLL of the four toys, after all steps."""


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run; those on the toys need all steps of the spec."""
    rows = []
    for name, spec in SPECS.items():
        for method in results.activations(name):
            if method == "gaussian":
                continue
            steps = results[name, method]["loss"].shape[1]
            nll: Column = results[name, method]["nll"].mean(0)
            if name == "density" and method in _TOYS and steps >= spec.steps:
                verb = "stays near a Gaussian" if method == "plain" else "learns four toy densities"
                sentence = f"A flow of {METHODS[method]} {verb}, {steps:,} steps."
                rows.append(_likelihood(name, sentence, "mean test NLL", nll, _TOYS[method]))
            elif results.has(name, "gaussian") and method != "plain":
                beyond = nll - results[name, "gaussian"]["nll"].mean(0)
                sentence = f"A flow of {METHODS[method]} is better than a Gaussian, {steps:,} steps."
                rows.append(_likelihood(name, sentence, "mean of test NLL - a Gaussian's", beyond, Range(high=0)))
    return rows


def _likelihood(name: str, sentence: str, what: str, column: Column, claimed: Range) -> Claim:
    statistic = f"{what}, {', '.join(SPECS[name].data)}, nats"
    return measure(name, "ours", sentence, statistic, mean, column, claimed=claimed, weaker=claimed)
