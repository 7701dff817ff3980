"""Networks made of networks, against the networks themselves."""

import numpy as np
import pytest

from plunit.pieces import activation, combination, difference, ensemble, network

X = np.random.default_rng(9).uniform(-2, 2, (50, 3))


def random_net(seed, *widths, f):
    rng = np.random.default_rng(seed)
    layers = []
    for before, width in zip((3, *widths), (*widths, 2), strict=True):
        layers += [(rng.standard_normal((width, before)), rng.standard_normal(width)), f]
    return network(layers[:-1])


NETS = {
    "affine": random_net(0, f=activation.plu()),
    "one layer": random_net(1, 4, f=activation.relu()),
    "three layers": random_net(2, 4, 5, 3, f=activation.plu()),
}


@pytest.mark.parametrize("one", NETS)
@pytest.mark.parametrize("other", NETS)
def test_a_difference_is_one(one, other):
    found = difference(NETS[one], NETS[other])
    np.testing.assert_allclose(found(X), NETS[one](X) - NETS[other](X), atol=1e-12)


def test_a_combination_is_one():
    net = NETS["three layers"]
    found = combination(net, [[2.0, -1.0], [0.0, 3.0], [1.0, 1.0]], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found(X), net(X) @ [[2, 0, 1], [-1, 3, 1]] + [1, 2, 3], atol=1e-12)


def test_networks_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match="3 -> 2 and 3 -> 1"):
        difference(NETS["affine"], combination(NETS["affine"], [[1.0, 0.0]]))
    with pytest.raises(TypeError, match="one network"):
        difference(ensemble([(np.ones((1, 3, 2)), np.ones((1, 2)))]), NETS["affine"])


@pytest.mark.parametrize(
    ("rows", "offset"), [([1.0, -1.0], 0.0), ([[1.0]], 0.0), ([[[1.0, -1.0]]], 0.0), ([[1.0, -1.0]], [1.0, 2.0])]
)
def test_rows_that_do_not_fit_are_an_error(rows, offset):
    with pytest.raises(ValueError, match=r"rows must be|broadcast"):
        combination(NETS["affine"], rows, offset)
