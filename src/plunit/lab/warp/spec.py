"""A map of the plane with a known inverse, learned by an invertible network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Warp:
    """The swirl: x is turned about the origin by an angle `turn * exp(-|x|^2 / 2)`.

    Attributes:
        steps: steps of Adam, the step size falling to 0 along a half cosine.
        batch: points of each step, uniform on the square.
        lr: the step size at the start.
        depth: blocks (LU layer, activation) of the network.
        alpha: slope of the activation at the start, 1 / alpha in every other block; it is learned, for each unit.
        turn: the largest angle.
        half: half the side of the square.
        lines: lines of the drawn grid, in each direction ...
        dots: ... and points of each.
        points: test points, uniform on the square.
    """

    steps: int = 3000
    batch: int = 512
    lr: float = 0.02
    depth: int = 16
    alpha: float = 0.7
    turn: float = 2.0
    half: float = 2.0
    lines: int = 17
    dots: int = 81
    points: int = 4096


SPECS = {"warp": Warp()}

TITLES = {"warp": "A swirl of the plane and its inverse (section 6)"}

ACTIVATIONS = ("plu", "leaky_relu")

SHORT, SEEDS, CHUNK = 300, 5, 5

SOURCES = ("invertible", "torch", "functional.py", "learned.py", "lab/warp/spec.py", "lab/warp/compute.py")
