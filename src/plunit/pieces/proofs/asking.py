"""For every question: a box, constraints, a time limit, and a function that is called with the progress."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np

from plunit.pieces.limits import Progress
from plunit.pieces.networks import Network
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.maximising import Effort, Optimum, maximise
from plunit.pieces.rewriting import combination

Box = Sequence[Any]
"""A pair (low, high) for each input."""

Constraints = tuple[Any, Any] | None
"""(A, b) for A x <= b."""

SECONDS = 60.0
"""The default time limit."""


class Undecided(Exception):
    """Neither answer was proved: time is over, or a value is too close to 0. `best` has the best point and a bound."""

    def __init__(self, best: Optimum) -> None:
        super().__init__(
            f"undecided after {best.seconds:.0f} s: the largest value found is {best.value:.9g}, and none is above "
            f"{best.bound:.9g}; raise time_limit or take a smaller box, unless both are 0 to rounding"
        )
        self.best = best


def effort_of(time_limit: float | None, progress: Progress | None) -> Effort:
    """Check a time limit; None stands for no limit."""
    if time_limit is None:
        return Effort(progress=progress)
    number = isinstance(time_limit, (int, float, np.number)) and not isinstance(time_limit, bool)
    if not number or not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, or None for no limit, got {time_limit!r}")
    return Effort(float(time_limit), progress=progress)


def checked_index(value: int, count: int, name: str, what: str) -> int:
    """Check the index of one of `count` inputs or outputs."""
    try:
        found = -1 if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        found = -1
    if not 0 <= found < count:
        raise ValueError(f"{name} must be one of the {what} 0 to {count - 1}, got {value!r}")
    return found


def one_output(net: Network, output: int, sign: float = 1.0) -> Network:
    """Return x -> sign f_output(x)."""
    return combination(net, sign * np.eye(net.outputs)[[checked_index(output, net.outputs, "output", "outputs")]])


def maximise_each(domain: Domain, parts: list[Network], effort: Effort) -> list[Optimum]:
    """Return the maximum of each network; they share the time."""
    return [maximise(part, domain, share) for part, share in shares(parts, effort)]


def shares(parts: list[Network], effort: Effort) -> Iterator[tuple[Network, Effort]]:
    """Yield each part with a fair share of the time that is left."""
    end = time.monotonic() + effort.seconds
    for done, part in enumerate(parts):
        left = max(end - time.monotonic(), 0.01)
        yield part, replace(effort, seconds=left / (len(parts) - done))


def largest_of(found: list[Optimum]) -> Optimum:
    """Return the largest of some maxima; its bound is above all of them."""
    best = max(found, key=lambda part: part.value)
    bound = max(part.bound for part in found)
    return replace(
        best,
        bound=bound,
        proved=all(part.proved or part.bound <= best.value for part in found),
        seconds=sum(part.seconds for part in found),
    )
