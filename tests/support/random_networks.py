"""Random networks: generic ones, and ones whose kinks coincide, lie on the boundary, are parallel or dead."""

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
