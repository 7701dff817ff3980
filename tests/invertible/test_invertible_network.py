"""Invertible networks, their round trips, and the Lipschitz bounds of their certificate."""

import math

import numpy as np
import pytest
import torch

from plunit.invertible import PLU, InvertibleNetwork, LeakyReLU, alternating, density


@pytest.mark.parametrize("linear", ["lu", "orthogonal"])
@pytest.mark.parametrize("kind", [PLU, LeakyReLU])
def test_round_trip_of_32_blocks(linear, kind):
    network = InvertibleNetwork(
        16, 32, activation=alternating(kind, 0.7), linear=linear, generator=torch.Generator().manual_seed(0)
    )
    x = torch.randn(100, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert (network.inverse(network(x)) - x).norm(dim=-1).max() <= 1e-3
        network, x = network.double(), x.double()
        assert (network.inverse(network(x)) - x).abs().max() <= 1e-9


def test_the_certificate_multiplies_norms_and_slopes(perturb):
    network = perturb(InvertibleNetwork(3, 2, activation=alternating(PLU, 0.1)))
    certificate = network.certificate()
    layers = [part.weight.detach() for part in network.bijection.parts()[::2]]
    slopes = [part.alpha.detach() for part in network.bijection.parts()[1::2]]
    expected = math.prod(torch.linalg.matrix_norm(torch.linalg.inv(weight), 2).item() for weight in layers)
    expected *= math.prod(max(1.0, 1 / alpha.min().item()) for alpha in slopes)
    assert certificate.inverse_lipschitz == pytest.approx(expected, rel=1e-4)
    assert certificate.condition_numbers[0] == pytest.approx(torch.linalg.cond(layers[0]).item(), rel=1e-4)
    assert certificate.condition_numbers[1] == pytest.approx(10, rel=1e-4)
    assert f"<= {certificate.inverse_lipschitz:.4g}" in str(certificate)
    assert str(certificate).startswith("invertible network: 3 features, 5 parts\n")


def test_values_log_det_and_bijection_agree(perturb):
    network = perturb(InvertibleNetwork(np.int64(3), np.int64(4))).double()
    assert [part.alpha[0].item() for part in network.bijection.parts()[1::2]] == pytest.approx([0.7, 1 / 0.7] * 2)
    x = torch.randn(5, 3, dtype=torch.float64)
    y, log_det = network.bijection(x)
    assert torch.equal(network(x), y)
    assert torch.equal(network.log_det(x), log_det)
    torch.testing.assert_close(network.inverse(y), x)


@pytest.mark.parametrize("name", ["smooth", "annealed", "flux", "plain", "leaky"])
def test_density_blocks_contract_and_expand_in_turn(name):
    parts = density(2, 4, activation=name).parts()
    signs = [part.raw_alpha.sign().tolist() for part in parts[1::2]]
    assert signs == [[-1, -1], [1, 1], [-1, -1], [1, 1]]
    assert all(isinstance(part.raw_alpha, torch.nn.Parameter) for part in parts[1::2])
