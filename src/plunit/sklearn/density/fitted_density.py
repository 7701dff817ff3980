"""The weighted mean of the densities of several networks, each behind a whitening of its own.

A `Whitening` gives columns mean 0, variance 1 and no correlation; by itself it makes a normal density.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from plunit.densities import Architecture, DensityNetwork
from plunit.ensemble.arrays import ROUNDING, Array, Scale
from plunit.ensemble.native_steps import row_blocks
from plunit.sklearn.base import check_count
from plunit.sklearn.density.columns import Columns

if TYPE_CHECKING:
    from plunit.invertible import Flow


SHRINKAGES = (1e-8, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Parts of the correlations that are given up; the rows of validation choose one."""

MOST_SAMPLED = 2**30  # the most numbers of a sample: 8 GiB


@dataclass(frozen=True)
class Whitening:
    """v = L^-1 (u - mean) / spread, with L L^T the matrix of correlations."""

    mean: Array  # [n]
    spread: Array  # [n], standard deviations
    lower: Array  # [n, n], L

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


MixturePart = tuple[Whitening, DensityNetwork, float]
"""A term weight p(v) |det dv/du| of p(u), with v the whitened u and p the density of the network."""


def identity(features: int) -> DensityNetwork:
    """Return the network of no blocks with z = x: behind a whitening it is a normal density."""
    form = Architecture(features, 0)
    return DensityNetwork(form, np.zeros(form.parameters), np.arange(features)[None], np.ones((1, features)))


class FittedDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Networks as arrays, the best first, the whitening before each, and the kinds of columns."""

    integers: Any
    theta_: Array
    orders_: Array
    signs_: Array
    n_blocks_: int
    activation_: str
    means_: Array
    spreads_: Array
    lowers_: Array
    normal_share_: float
    bounds_: Array
    steps_: Array
    integers_: Array
    margins_: Array
    constants_: Array

    @property
    def networks_(self) -> list[DensityNetwork]:
        """The networks that are averaged, the best first, as functions of whitened columns."""
        check_is_fitted(self)
        form = Architecture(self.means_.shape[1], self.n_blocks_, self.activation_)
        return [DensityNetwork(form, *parts) for parts in zip(self.theta_, self.orders_, self.signs_, strict=True)]

    @property
    def network_(self) -> DensityNetwork:
        """The best network, as a function of whitened columns."""
        return self.networks_[0]

    def _mixture(self) -> list[MixturePart]:
        """The networks and, with the weight `normal_share_`, the normal densities of their splits."""
        networks, arrays = self.networks_, zip(self.means_, self.spreads_, self.lowers_, strict=True)
        whitenings, count = [Whitening(*parts) for parts in arrays], len(networks)
        if self.normal_share_ == 0:
            return list(zip(whitenings, networks, [1 / count] * count, strict=True))
        weights = np.repeat([1 - self.normal_share_, self.normal_share_], count) / count
        normals = [identity(self.means_.shape[1])] * count
        return list(zip(2 * whitenings, networks + normals, weights.tolist(), strict=True))

    def _kinds(self) -> Columns:
        return Columns(self.bounds_[0], self.bounds_[1], self.steps_, self.integers_, self.margins_)

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return log p of rows X, in the units of the data; -inf outside of bounds and between integers."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        columns, mixture = self._kinds(), self._mixture()
        nodes, fractions = columns.nodes(), np.zeros(len(columns.low), bool)
        found = np.full(len(x), -math.inf)
        for block in row_blocks(len(x), nodes.size):
            rows, possible = self._varying(x[block])
            fractions |= (rows != np.rint(rows)).any(0)
            possible &= columns.admits(rows).all(1)
            found[block][possible] = _log_prob(columns, mixture, nodes, rows[possible])
        self._warn_of_fractions(self.integers_ & fractions)
        return found

    def _varying(self, x: Array) -> tuple[Array, Array]:
        """Return the columns that vary, and whether each row has the constants of the others."""
        varies = np.isnan(self.constants_)
        fixed = self.constants_[~varies]
        return x[:, varies], (np.abs(x[:, ~varies] - fixed) <= 2 * ROUNDING * np.spacing(np.abs(fixed))).all(1)

    def _warn_of_fractions(self, odd: Array) -> None:
        if odd.any() and isinstance(self.integers, str):
            where = np.flatnonzero(np.isnan(self.constants_))[odd].tolist()
            warnings.warn(
                f"columns {where} held integers in fit and hold others now, which get the density 0; fit with "
                "integers=None, or name the columns of integers",
                stacklevel=3,
            )

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean of log p over rows X, as GaussianMixture does."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return random rows [n_samples, features]."""
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        if n_samples * len(self.constants_) > MOST_SAMPLED:
            raise ValueError(
                f"n_samples times {len(self.constants_)} columns must be at most {MOST_SAMPLED}, got n_samples = "
                f"{n_samples}; draw the samples in parts"
            )
        varies = np.isnan(self.constants_)
        x = np.tile(self.constants_, (n_samples, 1))
        mixture, rng = self._mixture(), check_random_state(random_state)
        z = rng.standard_normal((n_samples, int(varies.sum())))
        whose = rng.choice(len(mixture), size=n_samples, p=[weight for _, _, weight in mixture])
        u = np.empty_like(z)
        for i, (whitening, network, _) in enumerate(mixture):
            u[whose == i] = whitening.inverse(network.inverse(z[whose == i].T)[0].T)
        x[:, varies] = self._kinds().from_line(u)
        return x

    def to_torch(self) -> Flow:
        """Return the density of the best network as a `plunit.invertible.Flow` in float64, in the units of the data.

        It is the density of the estimator for n_best=1; otherwise it is one of those that are averaged.
        """
        import torch

        from plunit.invertible import LU, Chain, Flow
        from plunit.invertible.conversions import to_chain

        check_is_fitted(self)
        if self.integers_.any() or np.isfinite(self.bounds_).any() or not np.isnan(self.constants_).all():
            raise ValueError("to_torch is for columns without bounds, integers and constants; fit without them")
        whitening, network, _ = self._mixture()[0]
        matrix = torch.linalg.solve(*map(torch.from_numpy, (whitening.lower, np.diag(1 / whitening.spread))))
        first = LU.from_matrix(matrix, -matrix @ torch.from_numpy(whitening.mean))
        return Flow(Chain(first, to_chain(network))).double()


def _log_prob(columns: Columns, mixture: list[MixturePart], nodes: Array, x: Array) -> Array:
    """Return log p of rows that are possible: for integers the mean over the nodes of their intervals."""
    u, log_slopes = columns.to_line((x[:, None] + nodes).reshape(-1, x.shape[1]))
    with np.errstate(over="ignore"):  # squares of rows far away: the density is 0
        terms = [
            network.log_prob(white.forward(u)) + white.log_det + np.log(weight) for white, network, weight in mixture
        ]
    logs = (np.logaddexp.reduce(terms, axis=0) + log_slopes).reshape(len(x), len(nodes))
    return np.asarray(np.logaddexp.reduce(logs, axis=1) - math.log(len(nodes)))
