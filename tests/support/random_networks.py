"""Random networks: generic, with kinks that coincide, lie on the boundary, are parallel or dead, and of wild scales."""

import itertools

import numpy as np

from plunit.pieces import activation, network

KINDS = ("generic", "integer", "sparse", "repeated")


def random_activation(rng, kind):
    alpha = 0.1 if kind == "generic" else float(rng.choice([0.0, 0.25, 0.5, 1.0, 2.0]))
    c = float(rng.choice([0.5, 1.0] if kind == "generic" else [0.0, 0.5, 1.0, 2.0]))
    choices = [
        activation.relu(),
        activation.plu(alpha, c),
        activation.plu(alpha, c),
        activation.leaky_relu(0.25),
        activation.hardtanh(),
        activation.absolute(),
        activation.relu6(),
        activation.identity(),
    ]
    if kind == "generic":
        choices.append(activation.hardsigmoid())
    return choices[rng.integers(len(choices))]


def random_matrix(rng, kind, shape):
    if kind == "generic":
        return rng.normal(size=shape)
    values = rng.integers(-2, 3, size=shape).astype(float)
    if kind == "sparse":
        values *= rng.random(shape) < 0.5
    if kind == "repeated":
        values[1::2] = values[::2][: len(values[1::2])] * rng.choice([-1.0, 1.0, 2.0])
    return values


def random_network(seed, inputs, width, depth, outputs=1):
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    layers, before = [], inputs
    for _ in range(int(rng.integers(1, depth + 1))):
        units = int(rng.integers(1, width + 1))
        weight = random_matrix(rng, kind, (units, before))
        layers += [(weight, random_matrix(rng, kind, (units,))), random_activation(rng, kind)]
        before = units
    last = random_matrix(rng, kind, (outputs, before))
    return network([*layers, (last, random_matrix(rng, kind, (outputs,)))])


def dense_network(seed, *widths, f=None, weight=1.0, bias=1.0, fan=True):
    """Return a network of these widths, inputs first and outputs last: N(0, weight^2 / inputs of the layer) weights.

    Without `fan` the inputs of a layer do not count. Biases are N(0, bias^2), and f, by default PLU, is the activation.
    """
    rng, layers = np.random.default_rng(seed), []
    for before, width in itertools.pairwise(widths):
        scale = weight / np.sqrt(before) if fan else weight
        layers += [(scale * rng.normal(size=(width, before)), bias * rng.normal(size=width)), f or activation.plu()]
    return network(layers[:-1])


SHAPES = [
    activation.relu(),
    activation.leaky_relu(0.25),
    activation.leaky_relu(0.01),
    activation.plu(),
    activation.plu(0.5, 0.5),
    activation.hardtanh(),
    activation.absolute(),
    activation.relu6(),
    activation.identity(),
]


def mixture(rng, units):
    """One shape for all units, or another one for each."""
    chosen = [SHAPES[i] for i in rng.integers(len(SHAPES), size=units if rng.random() < 0.5 else 1)] * units
    return activation.stack([f.broadcast(1) for f in chosen[:units]])


def rows(rng, shape, wild):
    """Return (weight, bias): normal or whole numbers, some rows repeated; where wild, rows scaled from 1e-12 to 1e8."""
    whole = rng.random() < 0.5
    weight, bias = (
        rng.integers(-2, 3, size).astype(float) if whole else rng.normal(size=size) for size in (shape, shape[:1])
    )
    if rng.random() < 0.25:
        bias *= 0.0
    if rng.random() < 0.3:
        factor = rng.choice([-1.0, 1.0, 2.0, 0.1, 3.0] if wild else [-1.0, 1.0, 2.0])
        weight[1::2] = factor * weight[::2][: len(weight[1::2])]
        bias[1::2] = (factor if rng.random() < 0.5 else 1.0) * bias[::2][: len(bias[1::2])]
    if wild:
        scale = np.where(rng.random(shape[0]) < 0.7, 10.0 ** rng.uniform(-12, 8, shape[0]), 1.0)
        weight *= scale[:, None]
        if rng.random() < 0.5:
            bias *= scale
    return weight, bias


def scaled_network(seed, inputs, width, depth):
    """Return a random network of up to two outputs; odd seeds make it wild."""
    rng = np.random.default_rng([seed, inputs])
    layers, before = [], inputs
    for _ in range(int(rng.integers(1, depth + 1))):
        units = int(rng.integers(1, width + 1))
        layers += [rows(rng, (units, before), seed % 2 == 1), mixture(rng, units)]
        before = units
    return network([*layers, rows(rng, (int(rng.integers(1, 3)), before), seed % 2 == 1)])
