"""The rules for the parameters of the estimators: a wrong one is a ValueError with its value and the rule."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from plunit.base.ranges import as_count
from plunit.densities import Architecture
from plunit.ensemble import ACTIVATIONS, MLP
from plunit.ensemble.arrays import Array

SHAPES = ((16,), (32,), (16, 16), (32, 16))
"""The hidden layers that "auto" searches."""

MOST_NUMBERS = 2**27
"""The most parameters, and losses, of all starts of a shape: 5 GiB with Adam's moments, means, best and a copy."""

START, STEP = 1000, 8
"""The numbers that a start of a density needs beside its parameters, and those of each step."""

DECAYS = (0.0, 0.1, 0.3, 1.0)
"""The weight decays that the starts take in turn for "auto"."""

_RANGES = {
    "learning_rate_init": (0, math.inf, False),
    "c": (0, math.inf, False),
    "alpha": (0, math.inf, True),
    "weight_decay": (0, math.inf, True),
    "tol": (0, math.inf, True),
    "validation_fraction": (0, 1, False),
}
"""Low, high, and whether low is allowed."""


def check_parameters(model: Any) -> None:
    """Raise ValueError if a parameter of an estimator is wrong."""
    check_name("activation", model.activation, ACTIVATIONS)
    unset = {"max_iter": None, "n_iter_no_change": None, "batch_size": "auto"}
    for name in ("n_init", "n_best", "max_iter", "n_iter_no_change", "batch_size"):
        check_count(name, getattr(model, name), *([unset[name]] if name in unset else []))
    for name, limits in _RANGES.items():
        value = getattr(model, name)
        if not (name == "weight_decay" and isinstance(value, str) and value == "auto"):
            check_number(name, value, *limits)
    for name in ("early_stopping", "warm_start", "verbose"):
        check_flag(name, getattr(model, name), count=name == "verbose")


def check_name(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise ValueError unless the value is one of some words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def check_count(name: str, value: Any, *unset: Any) -> None:
    """Raise ValueError unless the value is a positive integer, or a value that stands for none."""
    if any(value is one or (isinstance(value, str) and value == one) for one in unset):
        return
    as_count(name, value, 1, math.inf)


def check_number(name: str, value: Any, low: float, high: float, closed: bool) -> None:
    """Raise ValueError unless low < value < high; `closed` allows low."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (number and (low < value < high or (closed and value == low))):
        raise ValueError(f"{name} must be a number in {'[' if closed else '('}{low}, {high}), got {value!r}")


def check_flag(name: str, value: Any, *, count: bool = False) -> None:
    """Raise ValueError unless the value is True or False; `count` allows integers."""
    if not isinstance(value, (bool, np.bool_)) and not (count and isinstance(value, numbers.Integral)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def hidden_shapes(sizes: Any) -> Sequence[tuple[int, ...]]:
    """Return the hidden layers to search: the given ones, or `SHAPES` for "auto"."""
    if isinstance(sizes, str):
        if sizes != "auto":
            raise ValueError(f'hidden_layer_sizes must be "auto" or positive integers, got {sizes!r}')
        return SHAPES
    hidden = tuple(np.atleast_1d(np.asarray(sizes, dtype=object)))
    for size in hidden:
        check_count("each of hidden_layer_sizes", size)
    return [tuple(int(size) for size in hidden)]


def start_decays(decay: Any, starts: int) -> Array:
    """Return the weight decay of each start: the given one, or `DECAYS` in turn for "auto"."""
    return np.resize(DECAYS if isinstance(decay, str) else float(decay), starts)


def check_density_room(forms: Sequence[Architecture], starts: int, splits: int, steps: int) -> None:
    """Raise ValueError if the starts of a number of blocks, on all splits, do not fit into memory."""
    largest = max(forms, key=lambda form: form.parameters)
    numbers = splits * (starts * (largest.parameters + START) + STEP * steps)
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"n_blocks = {largest.blocks} means {largest.parameters} parameters; n_best = {splits} times (n_init = "
            f"{starts} times these and {START}, and {STEP} for each of {steps} steps) must be at most {MOST_NUMBERS}, "
            f"got {numbers}; take fewer blocks, starts, splits or steps"
        )


def check_room(networks: Sequence[MLP], starts: int, steps: int) -> None:
    """Raise ValueError if the starts of a shape do not fit into memory."""
    for network in networks:
        if starts * (network.parameters + steps) > MOST_NUMBERS:
            raise ValueError(
                f"hidden layers {network.widths[1:-1]} have {network.parameters} parameters; n_init = {starts} times "
                f"these and the {steps} steps must be at most {MOST_NUMBERS}; take smaller layers, fewer starts or "
                f"steps"
            )
