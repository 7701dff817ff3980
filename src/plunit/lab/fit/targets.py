"""The functions the paper fits, [inputs, ...] to [outputs, ...]."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def sine(x: Array) -> Array:
    """sin(x)."""
    return np.sin(x)


def curve(t: Array) -> Array:
    """[(cos t - cos 2t)^3, (sin 2t - sin t)^3]: the paper's parametric function with c = [1, 2, 2, 1]."""
    return np.concatenate([(np.cos(t) - np.cos(2 * t)) ** 3, (np.sin(2 * t) - np.sin(t)) ** 3])


def saddle(x: Array) -> Array:
    """x^2 - y^2."""
    z: Array = x[:1] ** 2 - x[1:] ** 2
    return z


TARGETS = {"sine": sine, "curve": curve, "saddle": saddle}
