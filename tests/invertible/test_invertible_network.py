"""Invertible networks, and the certificate's bound on the round trip, also at points that lead onto inner kinks."""

import math

import numpy as np
import pytest
import torch

from plunit.invertible import PLU, Chain, InvertibleNetwork, LeakyReLU, SmoothPLU, Tanh, alternating, density
from plunit.invertible.certificate import certify


@pytest.mark.parametrize("linear", ["lu", "orthogonal"])
@pytest.mark.parametrize("kind", [PLU, LeakyReLU])
def test_round_trip_of_32_blocks(linear, kind):
    network = InvertibleNetwork(
        16, 32, activation=alternating(kind, 0.7), linear=linear, generator=torch.Generator().manual_seed(0)
    )
    x = torch.randn(100, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        error = (network.inverse(network(x)) - x).norm(dim=-1).max().item()
        assert error <= 1e-3
        promised = network.certificate(x).round_trip_error
        assert promised / 100 < error <= promised
        network, x = network.double(), x.double()
        assert (network.inverse(network(x)) - x).abs().max() <= 1e-9
        assert error * 2.0**-29 / 30 < network.certificate(x).round_trip_error < promised * 2.0**-29 * 30


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


KINDS = (PLU, LeakyReLU, SmoothPLU)


def random_network(seed, generator):
    """1 to 8 features, 1 to 16 blocks, slopes from 0.01 to 100, all kinds of parts, both precisions."""

    def uniform(low, high):
        return low + (high - low) * torch.rand((), generator=generator).item()

    kind, alpha = KINDS[seed % 3], 10 ** uniform(-2, -0.05)
    activations = (alternating(kind, alpha), lambda n, index: kind(n, alpha), lambda n, index: kind(n, 1 / alpha))
    network = InvertibleNetwork(
        int(uniform(1, 9)),
        int(uniform(1, 17)),
        activation=activations[seed // 3 % 3],
        linear=("lu", "orthogonal")[seed % 2],
        generator=generator,
    )
    size = uniform(0, 0.3)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += size * torch.randn(parameter.shape, generator=generator)
    return network.to((torch.float32, torch.float64)[seed // 2 % 2])


def point_on_kinks(network, generator):
    """A point whose way leads, to rounding, onto kinks of half of the units of a random block."""
    parts, n = network.bijection.parts(), network.bijection.features
    place = 2 * int(torch.randint(len(parts) // 2, (), generator=generator)) + 1
    kinks = getattr(parts[place], "c", torch.zeros(n)).detach() * torch.randn(n, generator=generator).sign()
    u = torch.where(torch.rand(n, generator=generator) < 0.5, kinks, torch.randn(n, generator=generator))
    with torch.no_grad():
        return Chain(*parts[:place]).inverse(u.to(parts[0].bias.dtype))[0][None]


def is_kept(seed, points=2):
    """Tell whether the round trip is within the bound at all points, alone and among others, where one is promised."""
    generator = torch.Generator().manual_seed(seed)
    network = random_network(seed, generator)
    for _ in range(points):
        x = point_on_kinks(network, generator)
        certificate = network.certificate(x)
        with torch.no_grad():
            errors = [(network.inverse(network(rows)) - rows).norm(dim=-1).max() for rows in (x, x.repeat(9, 1))]
        if certificate.promises and not max(errors) <= certificate.round_trip_error:
            return False
    return True


@pytest.mark.parametrize("seed", range(36))
def test_the_bound_holds_at_kinks(seed):
    assert is_kept(seed)


@pytest.mark.soak
def test_the_bound_holds_at_kinks_of_a_thousand_networks():
    assert [seed for seed in range(1000) if not is_kept(seed)] == []


@pytest.mark.parametrize("options", [{}, {"rho": 1e-6}], ids=["PLU", "SmoothPLU"])
def test_the_larger_inverse_slope_counts_at_a_kink(options):
    """A point on the kink has the slope of the inner piece; the way back may be on the other one."""
    chain = Chain((SmoothPLU if options else PLU)(2, 0.01, **options), InvertibleNetwork(2, 0).bijection)
    inside, on, outside = (certify(chain, torch.full((1, 2), at)).round_trip_error for at in (0.9, 1.0, 1.1))
    assert on > 10 * inside
    assert on > outside / 4


def test_a_certificate_without_a_promise_says_so():
    network = InvertibleNetwork(2, 1, activation=lambda features, index: Tanh(features))
    lost, kept = (network.certificate(torch.full((1, 2), size)) for size in (100.0, 0.5))
    assert (lost.promises, lost.round_trip_error) == (False, torch.inf)
    assert "round-trip error, at the points has no bound of use: no promise (float32)" in str(lost)
    assert kept.promises
    assert f"round-trip error, at the points <= {kept.round_trip_error:.2g} (float32)" in str(kept)
