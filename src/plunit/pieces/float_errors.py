"""|computed f(x) - exact f(x)| <= bound for all x in a box: an a-priori bound on the rounding errors of a network.

Let u be the unit roundoff (2^-24 for float, 2^-53 for double) and gamma_k = k u / (1 - k u). Layer by layer, with h the
exact values, E their error and m = max |h| + E over the box:

    z = W h + b      E_z = |W| E + gamma_{n + 5} (|W| m + |b|)          n inputs, sums in any order, fused or not
    y = f(z)         E_y = L E_z + gamma_7 (|slope| |z| + |intercept|) + 2 u |jump of slope| |knot|

where L is the largest slope that z +- E_z can meet. The bound includes the rounding of tables, and underflow. Ranges of
h and z come from interval arithmetic. gamma_k is that of Higham (2002; docs/glossary.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.activation import Functions
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Layer, Network
from plunit.pieces.rounding import EPS, gamma


def check_knots(knots: Floats, dtype: np.dtype[Any]) -> None:
    """Raise ValueError if two knots [..., k] round to one number of this type: the step between them would be lost."""
    with np.errstate(over="ignore", invalid="ignore"):
        lost = (np.diff(knots) > 0) & (np.diff(knots.astype(dtype)) == 0)
    if lost.any():
        raise ValueError(
            f"two knots near {knots[..., :-1][lost][0]} round to one number in {dtype}; use double precision"
        )


_TYPES: dict[str, Any] = {"double": np.float64, "float": np.float32}


def numpy_type(dtype: str) -> Any:
    """Return the NumPy type of a C type, "double" or "float"; ValueError for any other."""
    if dtype not in _TYPES:
        raise ValueError(f"dtype must be one of {', '.join(_TYPES)}, got {dtype!r}")
    return _TYPES[dtype]


class Arithmetic(NamedTuple):
    """The arithmetic of a type: unit roundoff, smallest subnormal and largest number, and its name for messages."""

    unit: float
    smallest: float
    largest: float
    name: str


REAL_NUMBERS = Arithmetic(0.0, 0.0, np.inf, "real numbers")


def rounding_bound(net: Network, box: Floats, dtype: str = "double") -> Floats:
    """Return a bound on the rounding error of each output in `dtype`, for x of that type in the box [in, 2]."""
    info = np.finfo(numpy_type(dtype))
    kind = Arithmetic(float(info.eps) / 2, float(info.smallest_subnormal), float(info.max), str(info.dtype))
    return error_after(net, box, kind, [np.zeros(1)] * len(net.layers))


def error_after(net: Network, box: Floats, kind: Arithmetic, added: Sequence[Floats]) -> Floats:
    """Return a bound on the error of each output where each layer also adds an error of at most added[layer]."""
    low, high, error = box[:, 0], box[:, 1], np.zeros(len(box))
    with np.errstate(over="ignore", invalid="ignore"):
        for layer, more in zip(net.layers, added, strict=True):
            low, high, error = _affine(layer, low, high, error, kind)
            if layer.activation is not None:
                low, high, error = _activation(layer.activation.functions, low, high, error, kind)
            error = error + more
    # the bound is itself a sum of positive numbers in double precision
    return np.asarray(error * (1 + 1e-6))


def _check_size(terms: Floats, kind: Arithmetic) -> None:
    if not (terms < kind.largest / 4).all():
        raise ValueError(
            f"values may reach {terms.max():.1e} in this box, which is too large for {kind.name}; use a smaller box, "
            "or scale the weights"
        )


def _affine(layer: Layer, low: Floats, high: Floats, error: Floats, kind: Arithmetic) -> tuple[Floats, Floats, Floats]:
    """Return the range of z = W h + b and the error of its computed value."""
    steep, size, count = np.abs(layer.weight), np.maximum(np.abs(low), np.abs(high)) + error, len(low)
    terms = steep @ size + np.abs(layer.bias)
    _check_size(terms, kind)
    lost = 2 * kind.smallest * (size.sum() + count + 1)
    found = steep @ error + gamma(count + 5, kind.unit) * terms + lost
    middle, radius = layer.weight @ ((low + high) / 2) + layer.bias, steep @ ((high - low) / 2)
    radius = radius + (count + 8) * EPS * terms + lost
    return middle - radius, middle + radius, found


def _activation(
    f: Functions, low: Floats, high: Floats, error: Floats, kind: Arithmetic
) -> tuple[Floats, Floats, Floats]:
    """Return the range of y = f(z) and the error of its computed value."""
    knots, slopes, intercepts = f.units
    unit, lost = kind.unit, 4 * kind.smallest
    size = np.maximum(np.abs(low), np.abs(high)) + error
    met = f.meets(low - error, high + error, 4 * unit * np.abs(knots) + lost)
    steep = np.abs(slopes).max(axis=1, where=met, initial=0.0)
    parts = np.abs(slopes) * size[:, None] + np.abs(intercepts)
    parts = np.where(met, parts, 0.0)
    _check_size(parts, kind)
    jumps = np.abs(np.diff(slopes)) * np.abs(knots)
    fresh = gamma(7, unit) * parts.max(axis=1) + lost * (1 + size + np.abs(slopes).max(axis=1))
    near = met[:, 1:] & met[:, :-1]
    fresh += 2 * unit * jumps.sum(axis=1, where=near)
    values = f(f.turns(low, high))
    margin = 8 * EPS * parts.max(axis=1)
    return values.min(axis=0) - margin, values.max(axis=0) + margin, steep * error + fresh
