"""Networks with boxes, for fixed point: ordinary ones, and ones whose formats are at the edge."""

from itertools import product

import numpy as np
from random_networks import mixture, random_network

from plunit.pieces import activation, network


def smooth(seed, inputs, width=16, f=None):
    """A network as training leaves it: weights of the usual size, two hidden layers."""
    rng = np.random.default_rng(seed)
    f = activation.plu() if f is None else f
    sizes = [(width, inputs), (width, width), (1, width)]
    affine = [(rng.normal(size=s) / np.sqrt(s[1]), rng.normal(size=s[0]) / 2) for s in sizes]
    return network([affine[0], f, affine[1], f, affine[2]])


def mixed(seed):
    """Another activation for each unit, two outputs."""
    rng = np.random.default_rng(seed)
    first, second = mixture(rng, 9), mixture(rng, 5)
    sizes = [(9, 3), (5, 9), (2, 5)]
    affine = [(rng.normal(size=s), rng.normal(size=s[0])) for s in sizes]
    return network([affine[0], first, affine[1], second, affine[2]])


def corners(box):
    """Return all corners of a box, or those of its first eight sides."""
    sides = [tuple(side) if i < 8 else (side[0],) for i, side in enumerate(np.asarray(box).tolist())]
    return np.array(list(product(*sides)))


TINY = [(1e-9 * np.ones((3, 1)), [1e5, -1e5, 0.0]), activation.plu(), (np.ones((1, 3)), [0.0])]
MANY = activation.piecewise(list(np.linspace(-2, 2, 9)), list(np.linspace(-3, 5, 10)), 100.0)
NETS = {
    "1 input": (smooth(0, 1), [(-2, 2)]),
    "2 inputs, relu": (smooth(1, 2, f=activation.relu()), [(-2, 2)] * 2),
    "5 inputs": (smooth(2, 5), [(-2, 2)] * 5),
    "mixed 0": (mixed(0), [(-2, 2)] * 3),
    "mixed 1": (mixed(1), [(-1, 2)] * 3),
    "integers": (random_network(1, 2, 8, 3, 2), [(-2, 2)] * 2),
    "sparse": (random_network(2, 3, 8, 3, 2), [(-2, 2)] * 3),
    "repeated": (random_network(3, 3, 8, 3, 2), [(-2, 2)] * 3),
    "far box": (smooth(3, 2), [(1000, 1001), (-1e-3, 2e-3)]),
    "one affine layer": (network([([[1.5, -2.0], [0.1, 3.0]], [0.25, 0.0])]), [(-2, 2)] * 2),
    "zeros": (network([(np.zeros((2, 2)), np.zeros(2)), activation.relu(), (np.zeros((1, 2)), [0.0])]), [(-2, 2)] * 2),
    "large biases": (network(TINY), [(-2, 2)]),
    "many knots": (network([([[1.0], [0.3]], [0.0, 0.1]), MANY, ([[1.0, -1.0]], [0.0])]), [(-3, 3)]),
    "far knots": (network([([[1.0]], [0.0]), activation.plu(0.1, 1e30), ([[1.0]], [0.0])]), [(-2, 2)]),
    "constant": (network([([[0.0]], [1 / 3])]), [(-2, 2)]),
    "steep": (network([([[1e6]], [-3e5]), activation.hardtanh(), ([[1e-3]], [0.0])]), [(-3, 3)]),
}
