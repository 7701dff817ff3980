"""The choice of alpha and c: a map of the final loss over both."""

from __future__ import annotations

from dataclasses import dataclass

from plunit.lab.fit.spec import SPECS as FITS
from plunit.lab.fit.spec import Fit


@dataclass(frozen=True)
class ShapeMap:
    """A grid of alpha and c; every grid point is trained from the same seeds.

    Attributes:
        fit: the experiment; its alpha and c are the paper's choice.
        alphas: values of alpha, 0.1 among them.
        cs: values of c, 1 among them.
    """

    fit: Fit
    alphas: tuple[float, ...] = (0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)
    cs: tuple[float, ...] = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5)


SPECS = {"map-sine": ShapeMap(FITS["sine"]), "map-parametric": ShapeMap(FITS["parametric"])}

TITLES = {
    "map-sine": "Loss over alpha and c, sine",
    "map-parametric": "Loss over alpha and c, parametric curve",
}

ACTIVATIONS = ("plu",)

SOURCES = (
    "ensemble",
    "functional.py",
    "learned.py",
    "lab/fit/spec.py",
    "lab/fit/compute.py",
    "lab/shape/spec.py",
    "lab/shape/compute.py",
)
