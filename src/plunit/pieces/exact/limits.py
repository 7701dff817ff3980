"""Limits on the number of pieces, and on the memory for the points of a layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

LIMIT = 2_000_000
"""Default maximum number of pieces."""

MEMORY = 2**31
"""Maximum number of bytes that the points of one layer may need."""

Report = Callable[[float, str], object]
"""Called with the fraction of the work done, from 0 to 1, and a text about the result so far."""


class Unlisted(ValueError):
    """The pieces cannot be listed: there are too many, or they are too short for double precision."""


def check_pieces(pieces: int, limit: int) -> None:
    """Raise Unlisted if there are more pieces than the limit."""
    if pieces > limit:
        raise Unlisted(f"at least {pieces:,} pieces, but limit={limit}; use a smaller domain, or raise limit")


def check_points(points: int, numbers: int) -> None:
    """Raise Unlisted if `points` points with `numbers` numbers each need more than `MEMORY`."""
    if 8 * points * numbers > MEMORY:
        raise Unlisted(
            f"at least {points:,} points with {numbers:,} numbers each, {8e-9 * points * numbers:.1f} GB, more than "
            f"the {1e-9 * MEMORY:.1f} GB allowed; use a smaller domain or a narrower network"
        )


@contextmanager
def name_layer(layer: int, layers: int) -> Iterator[None]:
    """Name the layer in the errors of `check_pieces` and `check_points`."""
    try:
        yield
    except Unlisted as error:
        raise Unlisted(f"layer {layer} of {layers} makes {error}") from None
