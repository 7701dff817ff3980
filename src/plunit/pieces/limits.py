"""What bounds a question: box and names of its inputs, and the most pieces and bytes that its answer may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from plunit.base.errors import escape
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Ensemble, Network, interval

LIMIT = 2_000_000
"""The most pieces that are allowed, by default."""

MEMORY = 2**31
"""The most bytes that the points of one layer may need."""

Progress = Callable[[float, str], None]
"""Is called with the part of the work that is done, from 0 to 1, and with what is being done."""


class Unlisted(ValueError):
    """The pieces cannot be listed: they are too many, or too short for double precision."""


def many(count: int, what: str) -> str:
    """Return a count with its noun: 1 piece, 2 pieces."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def box_array(net: Network | Ensemble, box: Any, *, fixed: bool = False) -> Floats:
    """Return a box with a pair (low, high) for each input as an array [in, 2]; ValueError if it does not fit.

    fixed: whether low == high is allowed.

    >>> from plunit.pieces import network
    >>> box_array(network([([[1.0, 2.0]], [0.0])]), [(-1, 1), (0, 3)]).tolist()
    [[-1.0, 1.0], [0.0, 3.0]]
    """
    form = f"a box of {many(net.inputs, 'input')} is {many(net.inputs, 'pair')} (low, high)"
    try:
        pairs = [tuple(pair) for pair in box]
    except TypeError:
        raise ValueError(f"{form}, got {box!r}") from None
    if len(pairs) != net.inputs:
        raise ValueError(f"{form}, got {len(pairs)}")
    return np.array([interval(pair, "a box", f" for input {i}", fixed=fixed) for i, pair in enumerate(pairs)])


def labels(inputs: int, names: Sequence[str], about: str) -> tuple[list[str], list[str]]:
    r"""Return the names of all inputs, or none, and the lines of a text, without control characters.

    >>> labels(2, ["temp", "a\tb"], "of data.csv\nby hand")
    (['temp', 'a\\tb'], ['of data.csv', 'by hand'])
    """
    if len(names) not in (0, inputs):
        raise ValueError(f"names must be one for each of {many(inputs, 'input')}, got {len(names)}; give all, or none")
    return [escape(name) for name in names], [escape(line) for line in about.splitlines()]


def check_count(pieces: int, limit: int) -> None:
    """Raise Unlisted if there are more pieces than the limit."""
    if pieces > limit:
        raise Unlisted(f"{pieces:,} pieces or more, but limit={limit}; take a smaller domain, or raise limit")


def check_memory(points: int, numbers: int) -> None:
    """Raise Unlisted if `points` points with `numbers` numbers each need more than `MEMORY`."""
    if 8 * points * numbers > MEMORY:
        raise Unlisted(
            f"{points:,} points or more with {numbers:,} numbers each, {8e-9 * points * numbers:.1f} GB, more than the "
            f"{1e-9 * MEMORY:.1f} GB allowed; take a smaller domain or a narrower network"
        )


@contextmanager
def limited(layer: int, layers: int) -> Iterator[None]:
    """Name the layer in what `check_count` and `check_memory` raise."""
    try:
        yield
    except Unlisted as error:
        raise Unlisted(f"layer {layer} of {layers} makes {error}") from None
