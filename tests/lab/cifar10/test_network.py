"""The network is the paper's table, and seeds pair the activations."""

import pytest
import torch
from plunit.lab.cifar10.network import network
from torch import nn
from torch.nn import functional as F

from plunit.lab.cifar10 import ACTIVATIONS, CHOICES, SPECS

SPEC = SPECS["cifar10"]


def test_layers_are_those_of_the_paper():
    kinds = [type(layer).__name__ for layer in network(SPEC, "tanh", 0)]
    block = ["Conv2d", "MaxPool2d", "Tanh"]
    assert kinds == [*block * 3, "Flatten", "Linear", "Tanh", "Linear", "Tanh", "Linear"]
    shapes = [tuple(p.shape) for p in network(SPEC, "tanh", 0).parameters() if p.ndim > 1]
    assert shapes == [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (256, 1024), (64, 256), (10, 64)]


def test_the_output_is_that_of_the_layers_written_out():
    model = network(SPEC, "plu", 3).double()
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
    tanh = network(SPEC, "tanh", 5).state_dict()
    ours = network(SPEC, activation, 5).state_dict()
    assert all(torch.equal(ours[name], value) for name, value in tanh.items())
    other = network(SPEC, activation, 6).state_dict()
    assert not torch.equal(other["0.weight"], ours["0.weight"])


def test_the_seed_of_the_caller_is_left_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    network(SPEC, "plu", 0)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gain_matched_weights_have_the_spread_of_their_activation(activation):
    model = network(SPECS["cifar10-gain"], activation, 0)
    dense = next(layer for layer in model if isinstance(layer, nn.Linear))
    gains = {"tanh": 5 / 3, "relu": 2**0.5, "identity": 1.0}
    if activation in gains:
        assert dense.weight.std().item() == pytest.approx(gains[activation] / 32, rel=0.01)
    assert dense.bias.abs().max() == 0


def test_erratum_the_network_with_the_identity_is_not_linear():
    """Without bias a linear map is odd; max-pooling makes it not so."""
    model = network(SPEC, "identity", 0).double()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    x = torch.randn(4, 3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert (model(x) + model(-x)).abs().max() > 0.1 * model(x).abs().max()
