"""Formats: nothing overflows, and no bit is wasted."""

import numpy as np
import pytest
from fixed_networks import NETS, corners

from plunit.pieces import activation, network, quantize


def sums(fixed, q):
    """Yield each layer with its sums and its values for integers q, and the largest sum that any order of terms has."""
    h = np.clip(q, *fixed.ends)
    for layer in fixed.layers:
        total = h @ layer.weight.T + layer.bias
        yield layer, total, layer(h), np.abs(h) @ np.abs(layer.weight.T) + np.abs(layer.bias)
        h = layer(h)


def points(fixed):
    x = np.random.default_rng(0).uniform(fixed.box[:, 0], fixed.box[:, 1], (20_000, len(fixed.box)))
    return fixed.to_integers(np.concatenate([x, corners(fixed.box)]))


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
def test_all_values_are_in_their_formats(name, bits):
    fixed = quantize(*NETS[name], bits)
    last = fixed.layers[-1]
    for layer, total, values, terms in sums(fixed, points(fixed)):
        product = np.abs(layer.slopes).max() * np.abs(total).max().astype(float) + np.abs(layer.intercepts).max()
        assert np.abs(layer.weight).max() < 2 ** (bits - 1)
        assert terms.max() < 2**44
        assert np.abs(total).max() < (2**44 if layer.wide else 2**31)
        assert product < 2**62
        assert np.abs(layer.slopes).max() < 2**15
        assert np.abs(layer.bias).max() < (2**63 if layer.wide else 2**31)
        assert np.abs(layer.knots).max() < (2**63 if layer.wide else 2**31)
        assert (values >= layer.low).all()
        assert (values <= layer.high).all()
        assert max(layer.high.max(), -layer.low.min()) < (2**31 if layer is last else 2**15)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", ["1 input", "5 inputs", "mixed 0", "far box"])
def test_no_bit_is_wasted(name, bits):
    fixed = quantize(*NETS[name], bits)
    assert all(np.abs(end).max() >= 2**14 for end in fixed.ends)
    for layer in fixed.layers:
        assert np.abs(layer.weight).max() >= 2 ** (bits - 2)
    for layer in fixed.layers[:-1]:
        assert max(layer.high.max(), -layer.low.min()) >= 2**14 - 1


@pytest.mark.parametrize("name", ["1 input", "5 inputs", "2 inputs, relu"])
def test_sums_of_eight_bits_are_short(name):
    assert not any(layer.wide for layer in quantize(*NETS[name], 8).layers)


@pytest.mark.parametrize("bits", [16, 8])
def test_raw_inputs_and_outputs(bits):
    net, box = NETS["2 inputs, relu"]
    raw = [(8.0, 12.0), (-1.0, 1.0)]
    fixed = quantize(net, raw, bits, shift=[10.0, 0.0], scale=[1.0, 0.5], output_shift=5.0, output_scale=100.0)
    x = np.random.default_rng(0).uniform(*np.transpose(box), (1000, 2))
    y = fixed(x * [1.0, 0.5] + [10.0, 0.0])
    np.testing.assert_allclose(y, 5 + 100 * net(x), atol=0.2 if bits == 16 else 20)


def test_a_box_between_whose_integers_there_is_no_double_is_refused():
    net = network([([[1.0]], [0.0])])
    quantize(net, [(1.0, 1 + 2.0**-34)])
    with pytest.raises(ValueError, match="too narrow for 16 bits of double precision"):
        quantize(net, [(1.0, 1 + 2.0**-49)])


@pytest.mark.parametrize("f", [activation.plu(0.3, 0.7), activation.hardsigmoid(), activation.absolute()])
def test_activations_in_integers_are_continuous(f):
    net = network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])])
    layer = quantize(net, [(-4, 4)]).layers[0]
    knots = layer.knots[0]
    left = layer.slopes[0, :-1] * knots + layer.intercepts[0, :-1]
    right = layer.slopes[0, 1:] * knots + layer.intercepts[0, 1:]
    assert left.tolist() == right.tolist()
