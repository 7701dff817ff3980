"""Sections 2-4 of the paper: functions fitted by small networks."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Fit:
    """A function and the networks that fit it; what is not said is as in section 2 of the paper.

    Attributes:
        target: a name of `plunit.lab.fit.targets`.
        widths: units from input to output; depth 3 is three weight layers and two activations.
        steps: steps of Adam.
        low: lower end of the domain of every input.
        high: upper end.
        points: linearly spaced points of the domain, for each input: the training data, or, with `batch`, the points
            at which the final loss is taken.
        batch: 0 to train on all points at every step, else the number of uniformly drawn points of each step.
        lr: Adam's step size.
        alpha: PLU's outer slope, the start of a learned one.
        c: the half-width of its inner piece; likewise.
        stride: the loss is recorded every `stride` steps.
        checkpoints: steps after which the weights are kept, besides the last.
    """

    target: str
    widths: tuple[int, ...]
    steps: int
    low: float = -2 * math.pi
    high: float = 2 * math.pi
    points: int = 50
    batch: int = 0
    lr: float = 0.01
    alpha: float = 0.1
    c: float = 1.0
    stride: int = 16
    checkpoints: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)


SPECS = {
    "sine": Fit("sine", (1, 3, 3, 1), 2048),
    # the paper does not state the domain of t: the literal reading is the one of section 2 ...
    "parametric": Fit("curve", (1, 5, 5, 5, 5, 2), 4096),
    # ... and one period of the curve is what its figure shows
    "parametric-period": Fit("curve", (1, 5, 5, 5, 5, 2), 4096, low=0.0, high=2 * math.pi),
    # the paper does not state the number of steps: that of section 2
    "surface": Fit("saddle", (2, 3, 3, 1), 2048, low=-3.0, high=3.0, points=41, batch=100),
}

TITLES = {
    "sine": "Sine (section 2)",
    "parametric": "Parametric curve (section 3), t on the 50 points of section 2",
    "parametric-period": "Parametric curve (section 3), t on one period",
    "surface": "Hyperbolic paraboloid (section 4)",
}

SECTIONS = {"sine": "2", "parametric": "3", "parametric-period": "3", "surface": "4"}

NOUNS = {
    "sine": "the sine",
    "parametric": "the parametric curve",
    "parametric-period": "one period of the parametric curve",
    "surface": "the surface",
}

ACTIVATIONS = ("tanh", "relu", "plu", "plu_learned")

SOURCES = ("ensemble", "functional.py", "learned.py", "lab/fit/spec.py", "lab/fit/compute.py")
