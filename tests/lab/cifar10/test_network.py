"""The network is the paper's table, and seeds pair the activations."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from plunit.lab.read.cifar10 import EXPERIMENTS
from plunit.lab.train.cifar10 import CHOICES, make_network

SPEC, MATCHED = (one.spec for one in EXPERIMENTS)


def test_layers_are_those_of_the_paper():
    kinds = [type(layer).__name__ for layer in make_network(SPEC, "tanh", 0)]
    block = ["Conv2d", "MaxPool2d", "Tanh"]
    assert kinds == [*block * 3, "Flatten", "Linear", "Tanh", "Linear", "Tanh", "Linear"]
    shapes = [tuple(p.shape) for p in make_network(SPEC, "tanh", 0).parameters() if p.ndim > 1]
    assert shapes == [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (256, 1024), (64, 256), (10, 64)]


def test_the_output_is_that_of_the_layers_written_out():
    model = make_network(SPEC, "plu", 3).double()
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    plu = lambda z: torch.maximum(0.1 * (z + 1) - 1, torch.minimum(0.1 * (z - 1) + 1, z))  # noqa: E731
    parameters = list(model.parameters())
    y = x
    for weight, bias in zip(parameters[0:6:2], parameters[1:6:2], strict=True):
        y = plu(F.max_pool2d(F.conv2d(y, weight, bias, padding=1), 2))
    y = y.flatten(1)
    for weight, bias in zip(parameters[6:10:2], parameters[7:10:2], strict=True):
        y = plu(y @ weight.T + bias)
    y = y @ parameters[10].T + parameters[11]
    torch.testing.assert_close(model(x), y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", CHOICES)
def test_a_seed_gives_every_activation_the_same_weights(activation):
    tanh = make_network(SPEC, "tanh", 5).state_dict()
    before = torch.get_rng_state()
    ours = make_network(SPEC, activation, 5).state_dict()
    assert torch.equal(torch.get_rng_state(), before)  # the seed of the caller is left alone
    assert all(torch.equal(ours[name], value) for name, value in tanh.items())
    other = make_network(SPEC, activation, 6).state_dict()
    assert not torch.equal(other["0.weight"], ours["0.weight"])


def plu_gain():
    """Return 1 / sqrt(E[PLU(z)^2]) for a standard normal z, as a sum over a fine grid."""
    z = np.linspace(-12, 12, 240_001)
    density = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    plu = np.clip(z, -1, 1) + 0.1 * (z - np.clip(z, -1, 1))
    return (density * plu**2).sum() ** -0.5


@pytest.mark.parametrize(
    ("activation", "gain"), [("tanh", 5 / 3), ("relu", 2**0.5), ("plu", plu_gain()), ("identity", 1.0)]
)
def test_gain_matched_weights_have_the_spread_of_their_activation(activation, gain):
    model = make_network(MATCHED, activation, 0)
    weighted = [layer for layer in model if isinstance(layer, nn.Conv2d | nn.Linear)]
    terms = [27, 144, 288, 1024, 256, 64]  # in a sum; the first layer reads from the image
    expected = [factor / n**0.5 for factor, n in zip([1, *[gain] * 5], terms, strict=True)]
    found = [layer.weight.std().item() for layer in weighted]
    assert found[3] == pytest.approx(expected[3], rel=0.005)  # the layer of most weights, 262,144
    errors = [3 / layer.weight.numel() ** 0.5 for layer in weighted]
    assert [abs(a / b - 1) < error for a, b, error in zip(found, expected, errors, strict=True)] == [True] * 6
    assert all(layer.bias.abs().max() == 0 for layer in weighted)


def test_erratum_the_network_with_the_identity_is_not_linear():
    """Without bias a linear map is odd; max-pooling makes it not so."""
    model = make_network(SPEC, "identity", 0).double()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    x = torch.randn(4, 3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert (model(x) + model(-x)).abs().max() > 0.1 * model(x).abs().max()
