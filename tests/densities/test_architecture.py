"""The form of a density network and where its parameters start."""

import numpy as np
import pytest

from plunit.densities import Architecture, DensityNetwork, start
from plunit.densities.architecture import factors
from plunit.invertible import density


@pytest.mark.parametrize(("activation", "torch_name"), [("smooth", "smooth"), ("plu", "plain"), ("leaky", "leaky")])
@pytest.mark.parametrize(("features", "blocks"), [(1, 3), (2, 12), (5, 0), (7, 4)])
def test_it_has_as_many_parameters_as_the_bijection_of_pytorch(activation, torch_name, features, blocks):
    theirs = sum(p.numel() for p in density(features, blocks, activation=torch_name).parameters())
    assert Architecture(features, blocks, activation).parameters == theirs


def test_views_are_the_whole_vector_once():
    form = Architecture(3, 2)
    views = form.views(np.arange(form.parameters))
    assert np.array_equal(np.concatenate([view.ravel() for view in views.values()]), np.arange(form.parameters))
    assert list(views) == ["lower", "upper", "log_diagonal", "bias", "alpha", "c", "rho"]


@pytest.mark.parametrize("features", [1, 2, 3, 64])
def test_all_maps_start_as_rotations(features):
    form = Architecture(features, 2)
    begun = start(form, np.random.default_rng(0))
    network = DensityNetwork(form, begun.theta.astype(np.float64), begun.order, begun.sign.astype(np.float64))
    weights = np.array(network.weights)
    np.testing.assert_allclose(weights @ weights.transpose(0, 2, 1), np.eye(features)[None].repeat(3, 0), atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(weights), 1, atol=1e-5)


def test_slopes_contract_and_expand_in_turn():
    form = Architecture(2, 4)
    views = form.views(start(form, np.random.default_rng(0)).theta)
    np.testing.assert_allclose(np.exp(views["alpha"][:, 0]), [0.7, 1 / 0.7, 0.7, 1 / 0.7], rtol=1e-6)
    assert not views["rho"].any()  # rho = 1/2
    assert not views["c"].any()


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_factors_give_the_matrix_back(n):
    matrix = np.random.default_rng(n).standard_normal((n, n))
    order, lower, upper = factors(matrix)
    np.testing.assert_allclose((lower @ upper)[order], matrix, atol=1e-12)
    assert np.array_equal(lower, np.tril(lower))
    assert np.array_equal(upper, np.triu(upper))
    assert np.abs(lower).max() == 1  # row pivots


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((65, 2), "features must be at most 64, got 65"),
        ((0, 2), "features must be an integer of at least 1"),
        *(((2, bad), "blocks must be an integer of at least 0") for bad in (-1, 2.5)),
        ((2, 2, "tanh"), "unknown activation 'tanh'; choose one of smooth, plu, leaky"),
    ],
)
def test_a_form_that_cannot_be_is_one_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        Architecture(*arguments)
