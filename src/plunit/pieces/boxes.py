"""The inputs of a question: checks of their box, bounds on the values it leads to, and their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plunit.base.errors import escape
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Ensemble, Network
from plunit.pieces.rounding import LARGEST


def many(count: int, what: str) -> str:
    """Return a count with its noun: 1 piece, 2 pieces."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def box_array(net: Network | Ensemble, box: Any, *, fixed: bool = False) -> Floats:
    """Return a box, a pair (low, high) for each input, as an array [in, 2]; ValueError if it does not fit the network.

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


def box_text(box: Any) -> str:
    """Return a box as [low, high] x [low, high] x ..."""
    return " x ".join(f"[{low!r}, {high!r}]" for low, high in np.asarray(box, dtype=np.float64).tolist())


def labels(inputs: int, names: Sequence[str], about: str) -> tuple[list[str], list[str]]:
    r"""Return the names of the inputs, all or none, and the lines of a text; control characters are escaped.

    >>> labels(2, ["temp", "a\tb"], "of data.csv\nby hand")
    (['temp', 'a\\tb'], ['of data.csv', 'by hand'])
    """
    if len(names) not in (0, inputs):
        raise ValueError(f"names needs one for each of {many(inputs, 'input')}, got {len(names)}; give all, or none")
    return [escape(name) for name in names], [escape(line) for line in about.splitlines()]


def interval(ends: Any, name: str, side: str = "", *, fixed: bool = False) -> tuple[float, float]:
    """Return (low, high) as floats; ValueError unless they are finite and in order. If fixed, they may be equal."""
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs two numbers, low and high, got {ends!r}{side}") from None
    if not (-np.inf < low <= high < np.inf and (fixed or low < high)):
        remedy = "; for a fixed input use a small interval around its value" if low == high else ""
        raise ValueError(f"{name} needs finite low {'<=' if fixed else '<'} high, got [{low}, {high}]{side}{remedy}")
    return low, high


def check_size(net: Network | Ensemble, size: Floats) -> None:
    """Raise ValueError if inputs, values or slopes for |x| <= size might be too large for floating point."""
    if not (size < LARGEST).all():
        raise ValueError(
            f"inputs reach {np.max(size):.1e} on this domain, but must stay below {LARGEST:g}; use a smaller domain"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        for bound in sizes(net, np.maximum(size, 1.0)):
            if not (bound < LARGEST).all():
                raise ValueError(f"values may reach {bound.max():.1e} on this domain; scale the weights")


def sizes(net: Network | Ensemble, size: Floats) -> Iterator[Floats]:
    """Yield bounds on |values| after each layer, [..., units], for |x| <= size [in]; not rounded outward."""
    for layer in net.layers:
        size = np.einsum("...oi,...i->...o", np.abs(layer.weight), size) + np.abs(layer.bias)
        if (f := layer.activation) is not None:
            size = np.abs(f.slopes).max(axis=-1) * size + np.abs(f.at_zero)
        yield size
