"""What captions and sentences say of runs: medians, ranks and numbers of seeds, as they are printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from plunit.ensemble.nonlinearities import title_of
from plunit.lab.cell import Arrays
from plunit.lab.intervals import worst_if_diverged

label = title_of
"""Returns an activation's name as printed."""


def names(activations: Iterable[str]) -> str:
    """Print the names of activations, separated by commas."""
    return ", ".join(map(label, activations))


def seeds_of(runs: dict[str, Arrays], noun: str = "seed") -> str:
    """Return the largest number of seeds of any activation, with its noun.

    >>> seeds_of({"plu": {"seed": np.arange(1000)}}), seeds_of({"plu": {"seed": np.arange(1)}}, "split")
    ('1,000 seeds', '1 split')
    """
    count = max(int(arrays["seed"].size) for arrays in runs.values())
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def steps_of(runs: dict[str, Arrays]) -> int:
    """Return the largest number of training steps of any activation."""
    return max(int(arrays["steps"].max()) for arrays in runs.values())


def ranked(arrays: Arrays, by: str = "final_loss") -> Any:
    """Return the members from the least to the largest; those that diverged come last."""
    return np.argsort(worst_if_diverged(arrays[by]), kind="stable")


def medians(runs: dict[str, Arrays], key: str) -> dict[str, float]:
    """Return the median of a loss for each activation."""
    return {activation: float(np.median(worst_if_diverged(arrays[key]))) for activation, arrays in runs.items()}


def lowest(runs: dict[str, Arrays], key: str) -> str:
    """Print the medians of a loss, and whose is the lowest: "ReLU 0.5, PLU 0.25; the lowest is PLU's"."""
    found = medians(runs, key)
    return f"{listed(found)}; the lowest is {label(min(found, key=lambda activation: found[activation]))}'s"


def median_member(arrays: Arrays, by: str = "final_loss") -> int:
    """Return the member in the middle of the order; the lower one of two."""
    return int(ranked(arrays, by)[(arrays[by].size - 1) // 2])


def number(value: float) -> str:
    """Print a number to three digits.

    >>> number(0.000123), number(41.96), number(0.0), number(12345.6)
    ('1.23e-04', '42', '0', '1.23e+04')
    """
    return f"{value:.3g}" if value == 0 or 0.001 <= abs(value) < 10000 else f"{value:.2e}"


def listed(values: dict[str, float]) -> str:
    """Print values by activation: "ReLU 0.5, PLU 0.25"."""
    return ", ".join(f"{label(activation)} {number(value)}" for activation, value in values.items())
