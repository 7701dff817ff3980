"""D(x, e) = fixed(x) - net(x): the network that an optimiser can bound."""

import numpy as np
import pytest
from fixed_networks import NETS

from plunit.pieces import error_bound, error_network, quantize


def errors(fixed, x):
    """Return all rounding errors at x, in the order of the inputs of D."""
    q = fixed.rounded(x)
    found = [q * 2.0**-fixed.fraction + fixed.offset - x]
    for layer in fixed.layers:
        exact = layer.activate(q @ layer.weight.T + layer.bias) * 2.0 ** -(layer.sum_fraction + layer.slope_fraction)
        q = layer(q)
        if layer.shift:
            found.append(q * 2.0**-layer.fraction - exact)
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
def test_the_difference_is_one_network(name, bits):
    fixed = quantize(*NETS[name], bits)
    net, box = error_network(fixed)
    x = np.random.default_rng(0).uniform(*fixed.box.T, (2000, len(fixed.box)))
    both = np.concatenate([x, errors(fixed, x)], axis=1)
    assert box.shape == (net.inputs, 2)
    assert (both >= box[:, 0]).all()
    assert (both <= box[:, 1]).all()
    size = 1 + np.abs(fixed.net(x)).max()
    np.testing.assert_allclose(net(both), fixed(x) - fixed.net(x), rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
def test_the_bound_is_one_on_the_difference(name, bits):
    """Also for the worst signs of all rounding errors, which no x may have."""
    fixed = quantize(*NETS[name], bits)
    net, box = error_network(fixed)
    rng, bound = np.random.default_rng(0), error_bound(fixed, cuts=300)
    inputs = len(fixed.box)
    x = rng.uniform(*fixed.box.T, (200, inputs))
    middle = np.concatenate([x, np.zeros((200, net.inputs - inputs))], axis=1)
    for output in range(net.outputs):
        signs = np.stack([np.sign(_change(net, middle, box, i)[:, output]) for i in range(inputs, net.inputs)], axis=1)
        for sign in (1, -1):
            worst = np.concatenate([x, sign * signs * box[inputs:, 1]], axis=1)
            assert np.abs(net(worst)[:, output]).max() <= bound[output]


def _change(net, points, box, i):
    """Return D with rounding error i at its end minus D with it at its other end."""
    up, down = points.copy(), points.copy()
    up[:, i], down[:, i] = box[i, 1], box[i, 0]
    return net(up) - net(down)
