from dataclasses import replace

import numpy as np
import pytest

from plunit.densities import Architecture, start


@pytest.fixture
def random_network():
    """A function: a network in float64 whose parameters are all away from where they start."""

    def made(features, blocks, activation, rho=0.0, seed=0):
        form, rng = Architecture(features, blocks, activation), np.random.default_rng(seed)
        begun = start(form, rng)
        theta = begun.theta.astype(np.float64) + 0.6 / features * rng.standard_normal(form.parameters)
        return replace(begun, theta=theta, sign=begun.sign.astype(np.float64), rho=rho)

    return made
