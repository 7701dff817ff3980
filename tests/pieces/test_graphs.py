"""Graphs as layers: the function is exactly that of the graph, against Fractions."""

import contextlib
from fractions import Fraction

import numpy as np
import pytest
from rational_networks import forward, rational

from plunit.pieces import activation, network
from plunit.pieces.graphs import Budget, Pick, Product, Tensor, Total, make_layers

X = [Fraction(1, 3), Fraction(-2, 7), Fraction(5, 11)]


def exact(tensor, x, known):
    """Return the numbers of a tensor of the inputs x, node by node."""
    if tensor.number in known:
        return known[tensor.number]
    parents = [exact(parent, x, known) for parent in tensor.parents]
    bias = [Fraction(b) for b in (np.zeros(tensor.size) if tensor.bias is None else tensor.bias)]
    if tensor.activation is not None:
        found = [max(z, Fraction(0)) if len(tensor.activation.knots) else z for z in parents[0]]
    elif isinstance(tensor.map, Pick):
        flat = [number for parent in parents for number in parent]
        factor = np.broadcast_to(tensor.map.factor, tensor.size)
        found = [
            Fraction(f) * flat[i] if i >= 0 else Fraction(0) for f, i in zip(factor, tensor.map.index, strict=True)
        ]
    elif isinstance(tensor.map, Total):
        terms = [[Fraction(s) * z for z in parent] for s, parent in zip(tensor.map.signs, parents, strict=True)]
        found = [sum(parts) for parts in zip(*terms, strict=True)]
    elif isinstance(tensor.map, Product):
        rows = tensor.map.matrix(tensor.size, tensor.parents[0].size)
        found = [sum(Fraction(w) * z for w, z in zip(row, parents[0], strict=True)) for row in rows]
    else:
        found = x
    if tensor.is_affine:
        found = [z + b for z, b in zip(found, bias, strict=True)]
    known[tensor.number] = found
    return found


def random_graph(rng, kind):
    """Return a tensor of three inputs, with weights of a type."""

    def numbers(*shape):
        return rng.normal(size=shape).astype(kind).astype(np.float64)

    tensors = [Tensor(3)]
    for _ in range(7):
        one, other = (tensors[i] for i in rng.integers(max(0, len(tensors) - 3), len(tensors), size=2))
        choice = rng.integers(4)
        if choice == 0:
            tensors.append(Tensor(one.size, (one,), activation=activation.relu()))
        elif choice == 1:
            size = int(rng.integers(1, 5))
            weight = numbers(size, one.size)
            as_function = bool(rng.integers(2))
            linear = Product(lambda x, weight=weight: x @ weight.T) if as_function else Product(weight)
            tensors.append(Tensor(size, (one,), linear, numbers(size)))
        elif choice == 2 and one.size == other.size:
            tensors.append(Tensor(one.size, (one, other), Total((1.0, -1.0))))
        else:
            size = int(rng.integers(1, 5))
            index = rng.integers(-1, one.size + other.size, size=size)
            factor = rng.choice([-2.0, 0.5, 1.0], size=size) if rng.integers(2) else 1.0
            tensors.append(Tensor(size, (one, other), Pick(index, factor)))
    return tensors[-1]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("seed", range(40))
def test_layers_are_exactly_the_graph(seed, kind):
    output = random_graph(np.random.default_rng(seed), kind)
    layering = make_layers(output, Budget())
    assert not layering.rounded
    assert forward(rational(network(layering.layers)), X) == exact(output, X, {})


@pytest.mark.parametrize(("other", "layers"), [(0.1, 1), (0.2, 3)])
def test_a_sum_that_is_rounded_stays_apart(other, layers):
    x = Tensor(3)
    parts = [Tensor(1, (x,), Product(np.full((1, 3), number))) for number in (0.1, other)]
    total = Tensor(1, tuple(parts), Total((1.0, 1.0)))
    found = make_layers(total, Budget()).layers
    assert len(found) == layers
    assert forward(rational(network(found)), X) == exact(total, X, {})


def test_a_factor_is_joined_with_a_matrix_and_rounding_is_said():
    rng = np.random.default_rng(0)
    x = Tensor(3)
    for factor, rounded in ((2.0, False), (0.1, True)):
        scaled = Tensor(4, (Tensor(4, (x,), Product(rng.normal(size=(4, 3)))),), Pick(np.arange(4), factor))
        layering = make_layers(scaled, Budget())
        assert layering.rounded == rounded
        assert len(layering.layers) == 1


def test_what_is_larger_than_its_parts_is_carried_as_these():
    x = Tensor(2)
    units = Tensor(2, (x,), activation=activation.relu())
    wide = Tensor(9, (x,), Product(np.ones((9, 2))))
    layers = make_layers(Tensor(9, (wide, Tensor(9, (units,), Product(np.ones((9, 2))))), Total((1.0, 1.0))), Budget())
    assert network(layers.layers).widths == (2, 4, 9)


def test_arrays_that_are_dropped_make_room_again():
    budget = Budget()
    for _ in range(5):
        with contextlib.suppress(ArithmeticError), budget.lend():
            budget.take("an array", 2**30)
            raise ArithmeticError  # the work that they were for cannot be done
    budget.take("an array", 2**30)
    with pytest.raises(ValueError, match="all arrays have"):
        budget.take("two more", 2**30), budget.take("two more", 2**30)
