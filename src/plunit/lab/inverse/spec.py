"""Section 6: the inverse of PLU, of other activations, and of networks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Linear = Literal["lu", "orthogonal"]


@dataclass(frozen=True)
class Inverse:
    """Round trips x -> F(x) -> x through untrained invertible networks, and inverses of single activations.

    Attributes:
        features: n of the networks R^n -> R^n.
        depths: numbers of blocks (linear layer, activation).
        linears: kinds of linear layers.
        dtypes: precisions.
        alpha: slope of PLU and LeakyReLU, 1 / alpha in every other block.
        points: standard normal points of a round trip.
        spread: the values whose inverse is looked for are normal with this standard deviation ...
        values: ... and this many.
    """

    features: int = 16
    depths: tuple[int, ...] = (1, 4, 16, 32, 64, 128, 256)
    linears: tuple[Linear, ...] = ("orthogonal", "lu")
    dtypes: tuple[str, ...] = ("float32", "float64")
    alpha: float = 0.7
    points: int = 32
    spread: float = 3.0
    values: int = 4096


SPECS = {"inverse": Inverse()}

TITLES = {"inverse": "Inverses and round trips (section 6)"}

ACTIVATIONS = ("tanh", "relu", "plu", "leaky_relu")

SOURCES = ("invertible", "torch", "functional.py", "learned.py", "lab/inverse/spec.py", "lab/inverse/compute.py")
