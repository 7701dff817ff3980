"""The affine map that gives columns mean 0, variance 1 and no correlation; by itself it makes a normal density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.units import Scale

SHRINKAGES = (1e-8, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Parts of the correlations that are given up; the rows of validation choose one."""


@dataclass(frozen=True)
class Whitening:
    """v = L^-1 (u - mean) / spread, with L L^T the matrix of correlations.

    Attributes:
        mean: [n].
        spread: [n], standard deviations.
        lower: [n, n], L.
    """

    mean: Array
    spread: Array
    lower: Array

    def forward(self, u: Array) -> Array:
        """Return the rows v."""
        return np.linalg.solve(self.lower, ((u - self.mean) / self.spread).T).T

    def inverse(self, v: Array) -> Array:
        """Return the rows u."""
        return np.asarray((v @ self.lower.T) * self.spread + self.mean)

    @property
    def log_det(self) -> float:
        """log|det dv/du|."""
        return float(-np.log(self.spread).sum() - np.log(self.lower.diagonal()).sum())

    def loss(self, u: Array, weight: Array) -> float:
        """Return the mean of |v|^2 / 2 - log|det dv/du|."""
        return float(np.average(0.5 * (self.forward(u) ** 2).sum(1), weights=weight)) - self.log_det


def whiten(training: tuple[Array, Array], validation: tuple[Array, Array] | None) -> Whitening:
    """Return the whitening of rows and weights, with the shrinkage that is best for those of validation.

    Correlations C become (1 - s) C + s I. Without rows of validation, s = 1.
    """
    u, weight = training
    scale = Scale.of(u, weight)
    scaled = scale(u)
    correlation = (scaled * weight[:, None]).T @ scaled / weight.sum()
    found = [
        Whitening(scale.mean, scale.spread, np.linalg.cholesky((1 - s) * correlation + s * np.eye(len(correlation))))
        for s in (SHRINKAGES if validation else SHRINKAGES[-1:])
    ]
    return min(found, key=lambda one: one.loss(*validation)) if validation else found[0]
