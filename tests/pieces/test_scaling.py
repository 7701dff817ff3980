import numpy as np
import pytest
from fixed_networks import mixed, smooth

from plunit.pieces import network, rescaled

NETS = {"deep": mixed(0), "5 inputs": smooth(0, 5), "affine": network([([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])])}


@pytest.mark.parametrize("name", NETS)
def test_raw_numbers_in_and_out(name):
    net, rng = NETS[name], np.random.default_rng(0)
    shift, scale = rng.normal(size=net.inputs), rng.uniform(0.5, 2, net.inputs)
    up, height = rng.normal(size=net.outputs), rng.uniform(-2, -0.5, net.outputs)
    raw = rescaled(net, shift=shift, scale=scale, output_shift=up, output_scale=height)
    x = rng.normal(size=(100, net.inputs))
    np.testing.assert_allclose(raw(x), up + height * net((x - shift) / scale), rtol=1e-12, atol=1e-12)


def test_a_bias_is_rounded_once():
    """1e16 + 1 - 1e16: only exact arithmetic keeps the 1."""
    net = network([([[1.0]], [1.0]), ([[1.0]], [0.0])])
    assert rescaled(net, shift=-1e16, output_shift=-1e16).layers[0].bias.tolist() == [1.0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"scale": 0.0}, "scale must not be 0"),
        ({"output_scale": [1.0, 0.0]}, "output_scale must not be 0"),
        ({"shift": [1.0, 2.0, 3.0]}, "shift must be a finite number or 2 of them"),
        ({"scale": np.inf}, "scale must be a finite number"),
        ({"scale": 1e-320}, "larger than 1e308"),
    ],
)
def test_bad_scales_are_one_line(options, reason):
    with pytest.raises(ValueError, match=reason):
        rescaled(NETS["affine"], **options)
