"""The options of flows and of `Flow.fit`: checked before anything is trained, numbers of NumPy among them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Generator

from plunit.invertible.bijections.anneal import Annealing

MOST = 10_000_000
"""The largest number of points in a step."""


def positive_rate(lr: Any) -> float:
    """Return the learning rate, or raise ValueError unless it is positive and finite."""
    rate = _number(lr)
    if not 0 < rate < math.inf:
        raise ValueError(f"lr must be positive and finite, got {lr!r}; the default is 0.01")
    return rate


def largest_norm(clip: Any) -> float | None:
    """Return the largest norm of the gradient, or raise ValueError unless it is positive or None."""
    norm = None if clip is None else _number(clip)
    if norm is not None and not norm > 0:
        raise ValueError(f"clip must be positive, or None, got {clip!r}")
    return norm


def check(anneal: Any, generator: Any, progress: Any, validation: Any, patience: Any) -> None:
    """Raise unless training can be run with these options, here and now."""
    if torch.is_inference_mode_enabled():
        raise RuntimeError("fit needs gradients, which torch.inference_mode() forbids; call fit outside of it")
    if patience is not None and validation is None:
        raise ValueError(f"patience needs validation, got patience={patience} without; give points or a fraction")
    if not (anneal is None or isinstance(anneal, Annealing)):
        raise TypeError(f"anneal takes an Annealing such as RHO, got {anneal!r}")
    if not (generator is None or isinstance(generator, Generator)):
        raise TypeError(f"generator takes a torch.Generator, or None, got {generator!r}")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress takes True, False or a function of (steps done, loss), got {progress!r}")


def _number(value: Any) -> float:
    """Return what is a number, and NaN for all else, text among it."""
    try:
        return float(value) if hasattr(value, "__float__") and not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, RuntimeError):
        return math.nan
