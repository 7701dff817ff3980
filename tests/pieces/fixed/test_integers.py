"""The simulation, against Python's own integers and fractions."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from fixed_networks import NETS

from plunit.pieces import network, quantize
from plunit.pieces.fixed.integers import rounding_shift

HALF = Fraction(1, 2)


def by_hand(fixed, q):
    """Return the outputs for the integers q, one number after the other."""
    low, high = (end.tolist() for end in fixed.ends)
    h = [min(max(number, a), b) for number, a, b in zip(q, low, high, strict=True)]
    for layer in fixed.layers:
        values = []
        for row, bias, kind in zip(layer.weight.tolist(), layer.bias.tolist(), layer.kinds.tolist(), strict=True):
            total = sum((w * number for w, number in zip(row, h, strict=True)), bias)
            piece = sum(total > knot for knot in layer.knots[kind].tolist())
            product = layer.slopes[kind].tolist()[piece] * total + layer.intercepts[kind].tolist()[piece]
            values.append(floor(Fraction(product, 2**layer.shift) + HALF))
        h = values
    return h


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
def test_integers_are_those_of_python(name, bits):
    fixed = quantize(*NETS[name], bits)
    q = np.random.default_rng(0).integers(-(2**15), 2**15, (50, fixed.net.inputs))
    assert fixed.integers(q).tolist() == [by_hand(fixed, row) for row in q.tolist()]


@pytest.mark.parametrize("bits", [0, 1, 5, 40])
@pytest.mark.parametrize("number", [0, 1, -1, 15, 16, -16, -15, 2**41 + 7, -(2**41) - 7])
def test_halves_are_rounded_up(bits, number):
    assert rounding_shift(np.int64(number), bits) == floor(Fraction(number, 2**bits) + HALF)


@pytest.mark.parametrize("x", [-2.0, -1.9999999, -0.5, -(2.0**-14), 0.0, 2.0**-14, 0.49999999999999994 * 2.0**-13, 2.0])
def test_inputs_are_rounded_half_up(x):
    fixed = quantize(network([([[1.0]], [0.0])]), [(-2, 2)])
    assert fixed.fraction.tolist() == [13]
    assert fixed.to_integers([x]).tolist() == [floor(Fraction(x) * 2**13 + HALF)]


@pytest.mark.parametrize(("x", "same"), [(7.0, 2.0), (-np.inf, -2.0), (np.inf, 2.0), (np.nan, -2.0)])
def test_inputs_are_clipped_to_the_box(x, same):
    fixed = quantize(network([([[1.0]], [0.0])]), [(-2, 2)])
    assert fixed([x]) == fixed([same])


@pytest.mark.parametrize("shape", [(1,), (3, 1), (2, 3, 1), (0, 1)])
def test_any_leading_shape(shape):
    fixed = quantize(network([([[1.0], [2.0]], [0.0, 0.0])]), [(-2, 2)])
    x = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    y = fixed(x)
    assert y.shape == (*shape[:-1], 2)
    np.testing.assert_allclose(y[..., 1], 2 * x[..., 0], atol=1e-3)


@pytest.mark.parametrize("x", [0.5, [0.1, 0.2], np.zeros((3, 2))])
def test_other_shapes_are_refused(x):
    with pytest.raises(ValueError, match="takes x of shape"):
        quantize(network([([[1.0]], [0.0])]), [(-2, 2)])(x)
