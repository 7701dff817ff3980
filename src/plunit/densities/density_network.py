"""A density network in NumPy: its form, random start, z and log|det dz/dx| of points, inverse and density.

Each block is an affine map and an activation; a last map follows.

`BlockUnits` has the values, slopes and gradients of the units of a block, by the formulas of `plunit.smooth` with
a = |u| (for LeakyReLU a = -u); at a kink r jumps from 0 to 1.

At a kink log s jumps by log alpha. Its derivative is 0 elsewhere, but samples cross the kink when parameters change.
`BlockUnits.turn` estimates the density there from the samples nearer than `radius`: log(alpha) / (2 radius) for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit import learned, smooth
from plunit.base.ranges import as_count
from plunit.ensemble.arrays import Array
from plunit.numpy import NAMESPACE

MOST_FEATURES = 64  # the maximum number of features of the compiled program

LEARNED = {"smooth": ("alpha", "c", "rho"), "plu": ("alpha", "c"), "leaky": ("alpha",)}
"""The learned parameters of a unit, for SmoothPLU, PLU and LeakyReLU."""

ALPHA = 0.7  # blocks start with the slopes 0.7 and 1/0.7 in turn, so that the network neither contracts nor expands


@dataclass(frozen=True)
class Architecture:
    """z = A_B(sigma(... A_1(sigma(A_0 x)))) with A(x) = P L U x + b and one alpha, c and rho for every unit.

    The parameters of a network are one vector: the lower triangles of all maps, their upper triangles (by columns), the
    logarithms of their diagonals, the biases, and those of log alpha, log c and logit rho that are learned, by unit.

    Attributes:
        features: the dimension n.
        blocks: B, the number of activations.
        activation: "smooth", "plu" or "leaky".

    >>> Architecture(2, 12).parameters, Architecture(2, 48).parameters
    (150, 582)
    """

    features: int
    blocks: int
    activation: str = "smooth"

    def __post_init__(self) -> None:
        as_count("features", self.features, 1)
        as_count("blocks", self.blocks)
        if self.features > MOST_FEATURES:
            raise ValueError(f"features must be at most {MOST_FEATURES}, got {self.features}; drop columns")
        if self.activation not in LEARNED:
            raise ValueError(f"unknown activation {self.activation!r}; choose one of {', '.join(LEARNED)}")

    @property
    def maps(self) -> int:
        """The number of affine maps."""
        return self.blocks + 1

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """The shape of each kind of parameter, in order."""
        triangle = (self.maps, self.features * (self.features - 1) // 2)
        maps, units = (self.maps, self.features), (self.blocks, self.features)
        return {
            "lower": triangle,
            "upper": triangle,
            "log_diagonal": maps,
            "bias": maps,
            **dict.fromkeys(LEARNED[self.activation], units),
        }

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(rows * columns for rows, columns in self.sizes.values())

    def views(self, theta: Array) -> dict[str, Array]:
        """Return the parameters of each kind, [maps or blocks, ...], as views."""
        ends = np.cumsum([rows * columns for rows, columns in self.sizes.values()])
        parts = np.split(theta, ends[:-1])
        return {name: part.reshape(size) for part, (name, size) in zip(parts, self.sizes.items(), strict=True)}


@dataclass(frozen=True)
class DensityNetwork:
    """A network z = F(x) with the density p(x) = N(z; 0, 1) |det dz/dx|."""

    architecture: Architecture
    theta: Array  # [parameters]
    order: Array  # [maps, n]: row i of a matrix W is row order[i] of L U
    sign: Array  # [maps, n], the signs of the diagonals of U
    rho: float = 0.0  # rho, unless it is learned; 0 for kinks
    radii: Array | None = None  # [blocks, n], see `BlockUnits`; only for training

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
        radii = np.zeros_like(alpha) if self.radii is None else self.radii
        return [
            BlockUnits(
                alpha[i][:, None],
                c[i][:, None],
                (rho[i] * c[i])[:, None] if bent else None,
                radii[i][:, None],
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
        """Return the maps' contribution to log|det dz/dx| for each column, in a floating-point dtype."""
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
        """Draw rows [count, n] from the density."""
        z = rng.standard_normal((self.architecture.features, count))
        return np.ascontiguousarray(self.inverse(z)[0].T)


@dataclass(frozen=True)
class BlockUnits:
    """The units of one block; the arrays are columns [n, 1]."""

    alpha: Array  # the outer slopes
    c: Array  # the position of the kinks; 0 for LeakyReLU
    w: Array | None  # the half-widths of the rounded corners; None for kinks
    radius: Array  # the radius within which samples estimate the density at a kink; 0 for no estimate
    sides: int  # the number of kinks: 2, or 1 for LeakyReLU

    def split(self, u: Array) -> tuple[Array, Array]:
        """Return a and the sign, with u = sign a."""
        sign = np.copysign(np.ones((), u.dtype), u) if self.sides == 2 else np.full_like(u, -1)
        return sign * u, sign

    def bend(self, a: Array) -> tuple[Array, Array]:
        """Return r and R of `plunit.smooth`."""
        if self.w is None:
            return (a > self.c).astype(a.dtype), np.maximum(a - self.c, 0)
        return smooth.bend(np, a, self.c, self.w)

    def slope(self, r: Array) -> Array:
        """Return the slope s: exactly 1 at r = 0, and alpha at r = 1."""
        return np.asarray(smooth.slope(np, r, self.alpha))

    def turn(self, a: Array, r: Array, slope: Array) -> Array:
        """Return -(d log s / d a)."""
        if self.w is not None:
            return np.asarray(smooth.log_slope_descent(np, r, slope, self.alpha, self.w))
        with np.errstate(divide="ignore", invalid="ignore"):
            density = np.where(self.radius > 0, -np.log(self.alpha) / (2 * self.radius), 0)
        return np.where(np.abs(a - self.c) < self.radius, density, 0)

    def forward(self, u: Array) -> tuple[Array, Array]:
        """Return the values and the log-slopes."""
        a, sign = self.split(u)
        r, integral = self.bend(a)
        return u - sign * (1 - self.alpha) * integral, np.log(self.slope(r))

    def inverse(self, y: Array) -> tuple[Array, Array]:
        """Return u with the values y, and the log-slopes at u."""
        b, sign = self.split(y)
        if self.w is None:
            slope = np.where(b > self.c, self.alpha, 1)
            return sign * np.where(b > self.c, self.c + (b - self.c) / self.alpha, b), np.log(slope)
        a, r = smooth.unbend(np, b, self.alpha, self.c, self.w)
        return sign * a, np.log(self.slope(r))

    def backward(self, u: Array, in_value: Array, in_log: Array) -> tuple[Array, dict[str, Array]]:
        """Return the gradients in u and in alpha, c and w [n], from those in the values and the log-slopes."""
        a, sign = self.split(u)
        r, integral = self.bend(a)
        slope = self.slope(r)
        in_a, turned = sign * in_value, in_log * self.turn(a, r, slope)
        moved = in_a * r * (1 - self.alpha)
        found = {
            "alpha": (in_a * integral + in_log * r / slope).sum(1),
            "c": (moved + turned).sum(1),
            "w": -(moved * (1 - r) + turned * (1 - 2 * r)).sum(1),
        }
        return sign * (in_a - moved - turned), found


def start(architecture: Architecture, rng: np.random.Generator) -> DensityNetwork:
    """Return an initial float32 network: random rotations, biases 0, slopes 0.7 and 1/0.7 in turn, c = 1, rho = 1/2."""
    n, maps = architecture.features, architecture.maps
    theta = np.zeros(architecture.parameters, np.float32)
    views = architecture.views(theta)
    order, sign = np.empty((maps, n), np.int64), np.empty((maps, n), np.float32)
    rows, columns = np.tril_indices(n, -1)
    for i in range(maps):
        order[i], lower, upper = factors(rotation(n, rng))
        views["lower"][i], views["upper"][i] = lower[rows, columns], upper[columns, rows]
        views["log_diagonal"][i], sign[i] = np.log(np.abs(upper.diagonal())), np.sign(upper.diagonal())
    views["alpha"][0::2], views["alpha"][1::2] = np.log(ALPHA), -np.log(ALPHA)
    return DensityNetwork(architecture, theta, order, sign)


def rotation(n: int, rng: np.random.Generator) -> Array:
    """Return a random rotation matrix: orthogonal, with determinant 1."""
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    q = q * np.sign(r.diagonal())
    q[0] *= np.sign(np.linalg.det(q))
    return np.asarray(q)


def factors(matrix: Array) -> tuple[Any, Array, Array]:
    """Return order, L and U with matrix[i] = (L U)[order[i]], by Gaussian elimination with row pivoting.

    >>> order, lower, upper = factors(np.array([[0.0, 2.0], [1.0, 3.0]]))
    >>> (lower @ upper)[order]
    array([[0., 2.],
           [1., 3.]])
    """
    n = len(matrix)
    upper, lower, rows = np.array(matrix, dtype=np.float64), np.eye(n), np.arange(n)
    for i in range(n):
        pivot = i + int(np.abs(upper[i:, i]).argmax())
        for part in (upper, rows):
            part[[i, pivot]] = part[[pivot, i]]
        lower[[i, pivot], :i] = lower[[pivot, i], :i]
        lower[i + 1 :, i] = upper[i + 1 :, i] / upper[i, i]
        upper[i + 1 :] -= np.outer(lower[i + 1 :, i], upper[i])
    return np.argsort(rows), lower, np.triu(upper)
