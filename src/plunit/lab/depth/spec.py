"""Section 7: how the gradient of the first layer changes with depth."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Depth:
    """Gradients of fresh networks on the sine of section 2.

    Attributes:
        depths: numbers of weight layers.
        width: units of every hidden layer; that of section 3.
        scale: "paper" for weights N(0, 1), "fan_in" for N(0, 1 / inputs of the layer), which keeps a signal's variance
            up to the activation.
        low: lower end of the domain.
        high: upper end.
        points: linearly spaced points.
        alpha: PLU's outer slope.
        c: the half-width of its inner piece.
    """

    depths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    width: int = 5
    scale: str = "paper"
    low: float = -2 * math.pi
    high: float = 2 * math.pi
    points: int = 50
    alpha: float = 0.1
    c: float = 1.0


SPECS = {"depth": Depth(), "depth-scaled": Depth(scale="fan_in")}

TITLES = {
    "depth": "Gradients at depths 2 to 64 (section 7), weights N(0, 1)",
    "depth-scaled": "Gradients at depths 2 to 64 (section 7), weights N(0, 1 / inputs)",
}

ACTIVATIONS = ("tanh", "relu", "plu")

SOURCES = ("ensemble", "functional.py", "learned.py", "lab/depth/spec.py", "lab/depth/compute.py")
