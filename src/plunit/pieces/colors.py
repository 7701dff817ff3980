"""Colours for gradients and for values; red, green and blue from 0 to 1."""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats

RAMP = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]) / 255
"""From the least value to the largest: dark blue, green, yellow; readers who do not see red or green can use them."""


def gradient_colors(slopes: Floats, largest: float) -> Floats:
    """Return a colour for each gradient [n, 2]: hue for the direction, white for 0, deepest at `largest`; [n, 3]."""
    size = np.linalg.norm(slopes, axis=1)
    depth = np.sqrt(np.minimum(size / largest, 1.0))[:, None]
    turn = (np.arctan2(slopes[:, 1], slopes[:, 0]) / (2 * np.pi))[:, None]
    # red, green and blue are a third of a turn apart; each falls off between a sixth and a third of a turn
    away = (6 * turn + np.array([5.0, 3.0, 1.0])) % 6
    fall = np.clip(np.minimum(away, 4 - away), 0.0, 1.0)
    return np.asarray((1 - 0.15 * depth) * (1 - 0.75 * depth * fall))


def value_colors(values: Floats) -> Floats:
    """Return a colour for each value [n], from that of the least to that of the largest; [n, 3]."""
    low, high = values.min(), values.max()
    part = (values / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.full(len(values), 0.5)
    steps = np.linspace(0.0, 1.0, len(RAMP))
    return np.stack([np.interp(part, steps, channel) for channel in RAMP.T], axis=1)


def largest_slope(slopes: Floats) -> float:
    """Return the size of the largest gradient [n, 2], or 1 if all are 0."""
    return float(np.linalg.norm(slopes, axis=1).max()) or 1.0
