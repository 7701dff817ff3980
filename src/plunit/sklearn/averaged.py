"""The weighted mean of the densities of several networks, each behind a whitening of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plunit.densities import Architecture, DensityNetwork
from plunit.ensemble.arrays import Array
from plunit.sklearn.whitening import Whitening


@dataclass(frozen=True)
class Averaged:
    """p(u) = sum over members of weight p(v) |det dv/du|, with v the whitened u; weights have the sum 1."""

    whitenings: Sequence[Whitening]
    networks: Sequence[DensityNetwork]
    weights: Array

    def log_prob(self, u: Array) -> Array:
        """Return log p of rows."""
        logs = [
            network.log_prob(whitening.forward(u)) + whitening.log_det + np.log(weight)
            for whitening, network, weight in zip(self.whitenings, self.networks, self.weights, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    def sample(self, count: int, rng: np.random.RandomState) -> Array:
        """Return random rows; each is of a member drawn by its weight."""
        z = rng.standard_normal((count, self.networks[0].architecture.features))
        whose = rng.choice(len(self.networks), size=count, p=self.weights)
        u = np.empty_like(z)
        for i, (whitening, network) in enumerate(zip(self.whitenings, self.networks, strict=True)):
            u[whose == i] = whitening.inverse(network.inverse(z[whose == i].T)[0].T)
        return u


def identity(features: int) -> DensityNetwork:
    """Return the network of no blocks with z = x: behind a whitening it is a normal density."""
    form = Architecture(features, 0)
    return DensityNetwork(form, np.zeros(form.parameters), np.arange(features)[None], np.ones((1, features)))
