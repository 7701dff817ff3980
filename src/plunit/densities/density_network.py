"""A density network with given parameters, in NumPy: z and log|det dz/dx| of points, the inverse, the log-density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit import learned
from plunit.densities.architecture import Architecture
from plunit.densities.chain_units import BlockUnits
from plunit.ensemble.arrays import Array
from plunit.numpy import NAMESPACE


@dataclass(frozen=True)
class DensityNetwork:
    """The density p(x) = N(z; 0, 1) |det dz/dx| of a network z = F(x).

    Attributes:
        architecture: its form.
        theta: the parameters.
        order: [maps, n]: row i of a matrix W is row order[i] of L U.
        sign: [maps, n], of the diagonals of U.
        rho: the rounding, where it is not learned: one number, 0 for kinks.
        widths: [blocks, n], see `BlockUnits`; for training only.
    """

    architecture: Architecture
    theta: Array
    order: Array
    sign: Array
    rho: float = 0.0
    widths: Array | None = None

    @cached_property
    def views(self) -> dict[str, Array]:
        """The parameters by kind."""
        return self.architecture.views(self.theta)

    @cached_property
    def log_diagonal(self) -> Array:
        """log|diag U| of all maps, bounded."""
        return np.clip(self.views["log_diagonal"], -learned.LIMIT, learned.LIMIT)

    @cached_property
    def factors(self) -> list[tuple[Array, Array]]:
        """L and U of all maps."""
        n = self.architecture.features
        rows, columns = np.tril_indices(n, -1)
        found = []
        for i, (below, above) in enumerate(zip(self.views["lower"], self.views["upper"], strict=True)):
            lower, upper = np.eye(n, dtype=self.theta.dtype), np.diag(self.sign[i] * np.exp(self.log_diagonal[i]))
            lower[rows, columns], upper[columns, rows] = below, above
            found.append((lower, upper.astype(self.theta.dtype)))
        return found

    @cached_property
    def weights(self) -> list[Array]:
        """W of all maps."""
        return [(lower @ upper)[order] for (lower, upper), order in zip(self.factors, self.order, strict=True)]

    @cached_property
    def units(self) -> list[BlockUnits]:
        """The units of all blocks."""
        form, views = self.architecture, self.views
        alpha = learned.positive(NAMESPACE, views["alpha"])
        c = learned.positive(NAMESPACE, views["c"]) if "c" in views else np.zeros_like(alpha)
        rho = learned.fraction(NAMESPACE, views["rho"]) if "rho" in views else np.full_like(alpha, self.rho)
        bent = "rho" in views or self.rho > 0
        widths = np.zeros_like(alpha) if self.widths is None else self.widths
        return [
            BlockUnits(
                alpha[i][:, None],
                c[i][:, None],
                (rho[i] * c[i])[:, None] if bent else None,
                widths[i][:, None],
                1 if form.activation == "leaky" else 2,
            )
            for i in range(form.blocks)
        ]

    def forward(self, x: Array) -> tuple[Array, Array]:
        """Return z and log|det dz/dx| of columns x [n, m]."""
        log_det = self._log_det(x)
        for i, weight in enumerate(self.weights):
            x = weight @ x + self.views["bias"][i][:, None]
            if i < self.architecture.blocks:
                x, log_slopes = self.units[i].forward(x)
                log_det = log_det + log_slopes.sum(0)
        return x, log_det

    def inverse(self, z: Array) -> tuple[Array, Array]:
        """Return the columns x with z = F(x), and log|det dz/dx| there."""
        log_det = self._log_det(z)
        for i in reversed(range(self.architecture.maps)):
            if i < self.architecture.blocks:
                z, log_slopes = self.units[i].inverse(z)
                log_det = log_det + log_slopes.sum(0)
            z = np.linalg.solve(self.weights[i], z - self.views["bias"][i][:, None])
        return z, log_det

    def _log_det(self, points: Array) -> Array:
        """Return the part of the maps in log|det dz/dx|, for each of some columns; never in a dtype of integers."""
        return np.full(points.shape[1], self.log_diagonal.sum(), np.result_type(points, self.theta))

    def log_prob(self, x: Array) -> Array:
        """Return the log-density of rows x [m, n]."""
        x = np.asarray(x)
        if x.ndim != 2 or x.shape[1] != self.architecture.features:
            raise ValueError(f"x must be [rows, {self.architecture.features}], got shape {x.shape}")
        z, log_det = self.forward(x.T)
        normal = -0.5 * (z**2).sum(0) - 0.5 * self.architecture.features * math.log(2 * math.pi)
        return np.asarray(normal + log_det)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Draw rows [count, n] of the density."""
        z = rng.standard_normal((self.architecture.features, count))
        return np.ascontiguousarray(self.inverse(z)[0].T)
