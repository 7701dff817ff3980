"""A trained density network as a flow of PyTorch: the same density, sample by sample."""

import numpy as np
import pytest
import torch

from plunit.densities import Architecture, DensityNetwork, start
from plunit.invertible.flow import to_flow


def network(activation, features=3, dtype=np.float64, rho=0.0):
    form, rng = Architecture(features, 5, activation), np.random.default_rng(0)
    begun = start(form, rng)
    theta = (begun.theta + 0.2 * rng.standard_normal(form.parameters)).astype(dtype)
    return DensityNetwork(form, theta, begun.order, begun.sign.astype(dtype), rho)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-9)])
@pytest.mark.parametrize("activation", ["smooth", "plu", "leaky"])
def test_it_is_the_same_density(activation, dtype, tolerance):
    ours = network(activation, dtype=dtype)
    x = np.random.default_rng(1).standard_normal((200, 3)).astype(dtype)
    flow = to_flow(ours)
    theirs = flow.log_prob(torch.from_numpy(x)).detach()
    assert theirs.dtype == torch.from_numpy(x).dtype
    np.testing.assert_allclose(ours.log_prob(x), theirs.numpy(), atol=tolerance)
    z, _ = flow.bijection(torch.from_numpy(x))
    np.testing.assert_allclose(ours.forward(x.T)[0].T, z.detach().numpy(), atol=tolerance)
    back, _ = ours.inverse(z.detach().numpy().T)
    np.testing.assert_allclose(back.T, flow.bijection.inverse(z)[0].detach().numpy(), atol=10 * tolerance)


def test_numbers_beyond_their_limit_are_kept_at_it():
    ours = network("smooth")
    for name in ("alpha", "c", "rho", "log_diagonal"):
        ours.views[name][0, 0] = -30.0
    x = np.random.default_rng(1).standard_normal((50, 3))
    np.testing.assert_allclose(ours.log_prob(x), to_flow(ours).log_prob(torch.from_numpy(x)).detach(), rtol=1e-6)


def test_a_network_with_corners_is_refused():
    with pytest.raises(ValueError, match=r"got one in training with corners of rho 0\.3"):
        to_flow(network("plu", rho=0.3))
