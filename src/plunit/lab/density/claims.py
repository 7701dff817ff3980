"""What the densities say of PLU in flows; the paper only points there."""

from __future__ import annotations

import numpy as np

from plunit.lab.claims import Claim, Column, Range, measure
from plunit.lab.density.spec import METHODS, SPECS
from plunit.lab.results import Results

_TOYS = {"smooth": Range(high=1.80), "annealed": Range(high=1.86), "flux": Range(high=1.90), "plain": Range(low=2.6)}


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run."""
    rows = []
    for name, spec in SPECS.items():
        for method in results.activations(name):
            arrays = results[name, method]
            if method != "gaussian":
                sentence, claimed, column = _sentence(name, method, results)
                rows.append(
                    measure(
                        name,
                        "ours",
                        f"{sentence} ({arrays['loss'].shape[1]:,} steps).",
                        f"mean test NLL of {', '.join(spec.data)}, nats",
                        _mean,
                        column,
                        claimed=claimed,
                        weaker=claimed,
                    )
                )
    return rows


def _sentence(name: str, method: str, results: Results) -> tuple[str, Range, Column]:
    nll: Column = results[name, method]["nll"].mean(0)
    if name == "density" and method in _TOYS:
        claimed = _TOYS[method]
        verb = "stays near a Gaussian" if method == "plain" else "learns four toy densities"
        return f"A flow of {METHODS[method]} {verb}", claimed, nll
    if results.has(name, "gaussian"):
        floor = float(results[name, "gaussian"]["nll"].mean())
        return f"A flow of {METHODS[method]} is better than a Gaussian on {name}", Range(high=floor), nll
    return f"A flow of {METHODS[method]} on {name}", Range(), nll


def _mean(column: Column) -> Column:
    mean: Column = np.mean(column, axis=-1)
    return mean
