"""The bound on rounding errors, against rational arithmetic; the computed values are NumPy's."""

from fractions import Fraction

import numpy as np
import pytest
from fixed_networks import mixed, smooth
from random_networks import random_network, scaled_network
from rational_networks import forward, rational

from plunit.pieces import activation, network
from plunit.pieces.float_errors import rounding_bound

TYPES = {"double": np.float64, "float": np.float32}
NETS = {
    "5 inputs": smooth(0, 5),
    "relu": smooth(1, 2, f=activation.relu()),
    "mixed 0": mixed(0),
    "mixed 1": mixed(1),
    "integers": random_network(1, 2, 8, 3, 2),
    "far knots": network([([[1.0]], [0.0]), activation.plu(0.1, 1e5), ([[1.0]], [0.0])]),
} | {f"wild {seed}": scaled_network(seed, 2, 5, 3) for seed in (3, 4, 5)}


def computed(net, x, dtype):
    """Return f(x) with tables and sums in this type, term by term."""
    h = x
    for layer in net.layers:
        z = np.broadcast_to(layer.bias.astype(dtype), (len(h), len(layer.bias))).copy()
        for column, values in zip(layer.weight.astype(dtype).T, h.T, strict=True):
            z += column * values[:, None]
        h = z
        if layer.activation is not None:
            f = layer.activation.functions
            knots, slopes, intercepts = (part.astype(dtype) for part in f.units)
            piece = np.sum(z[..., None] > knots, axis=-1)
            unit = np.arange(z.shape[1])
            h = slopes[unit, piece] * z + intercepts[unit, piece]
    return h


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NETS)
def test_no_error_is_above_the_bound(name, dtype):
    net = NETS[name]
    x = np.random.default_rng(0).uniform(-2, 2, (200, net.inputs)).astype(TYPES[dtype])
    y, layers = computed(net, x, TYPES[dtype]), rational(net)
    assert y.dtype == TYPES[dtype]
    bound = rounding_bound(net, np.array([(-2.0, 2.0)] * net.inputs), dtype)
    for row, values in zip(x, y, strict=True):
        exact = forward(layers, [Fraction(float(number)) for number in row])
        errors = [abs(Fraction(float(a)) - b) for a, b in zip(values, exact, strict=True)]
        assert all(error <= Fraction(float(limit)) for error, limit in zip(errors, bound, strict=True))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["5 inputs", "relu", "mixed 0"])
def test_the_bound_is_small(name, dtype):
    net = NETS[name]
    bound = rounding_bound(net, np.array([(-2.0, 2.0)] * net.inputs), dtype)
    assert (bound <= 5e3 * np.finfo(TYPES[dtype]).eps).all()


@pytest.mark.parametrize("later", [[], [activation.identity(), ([[1.0]], [0.0])]], ids=["own", "passed on"])
def test_terms_that_cancel_are_seen(later):
    """1e6 / 3 (x - y) with x and y near 1: the error is that of the terms, not that of their sum."""
    net = network([([[1e6 / 3, -1e6 / 3]], [0.0]), *later])
    box = np.array([(1.0, 1.0 + 1e-6)] * 2)
    x = np.float32([[1.0, 1.0 + 1e-6]])
    error = abs(float(computed(net, x, np.float32)[0, 0]) - net(x.astype(float))[0, 0])
    assert 1e-3 < error <= rounding_bound(net, box, "float")[0]


def test_an_error_ends_where_units_are_flat():
    net = network([([[1e8]], [3e8]), activation.hardtanh(), ([[1.0]], [0.0])])
    assert rounding_bound(net, np.array([(-2.0, 2.0)]))[0] < 1e-14
