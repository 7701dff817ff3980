import numpy as np
import pytest
import torch
from torch import nn

from plunit.ensemble import Network, forward, initial, preactivations


def generators(seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def test_forward_is_the_paper_s_network():
    network = Network((2, 4, 3, 2), "tanh")
    theta = initial(network, generators(range(3))).double()
    theta += torch.randn(theta.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.randn(2, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def alone(column):
        w1, b1, w2, b2, w3, b3 = column.split([8, 4, 12, 3, 6, 2])
        h = torch.tanh(w1.view(4, 2) @ x + b1[:, None])
        h = torch.tanh(w2.view(3, 4) @ h + b2[:, None])
        return w3.view(2, 3) @ h + b3[:, None]

    expected = torch.stack([alone(column) for column in theta.T], -1)
    torch.testing.assert_close(forward(network, theta, x), expected)


def test_the_last_preactivation_is_the_output_and_depth_counts_weight_layers():
    network = Network((1, 3, 3, 1), "relu")
    theta = initial(network, generators([0]))
    x = torch.linspace(-1, 1, 5)[None]
    layers = list(preactivations(network, theta, x))
    assert [tuple(z.shape) for z in layers] == [(3, 5, 1), (3, 5, 1), (1, 5, 1)]
    assert torch.equal(layers[-1], forward(network, theta, x))
    assert network.depth == 3


def test_weights_are_standard_normal_and_biases_zero():
    network = Network((1, 3, 3, 1), "plu")
    theta = initial(network, generators(range(4000)))
    weights, biases = zip(*network.layers(theta), strict=True)
    moments = torch.tensor([(weight.mean(), weight.std()) for weight in weights])
    torch.testing.assert_close(moments, torch.tensor([(0.0, 1.0)] * 3), rtol=0, atol=0.05)
    assert not torch.cat(biases).any()


def test_scales_are_standard_deviations():
    network = Network((1, 3, 1), "plu")
    plain, scaled = (initial(network, generators([5]), scales=scales) for scales in (None, [2.0, 0.5]))
    expected = [weight * scale for (weight, _), scale in zip(network.layers(plain), [2.0, 0.5], strict=True)]
    torch.testing.assert_close([weight for weight, _ in network.layers(scaled)], expected, rtol=0, atol=0)


def test_a_seed_gives_every_activation_the_same_weights_and_leaves_its_generator_in_the_same_place():
    starts, nexts = [], []
    for activation in ("tanh", "plu", "plu_learned"):
        generator = np.random.default_rng(3)
        starts.append(initial(Network((1, 3, 3, 1), activation), [generator])[:22])
        nexts.append(generator.random())
    assert torch.equal(starts[0], starts[1])
    assert torch.equal(starts[0], starts[2])
    assert len(set(nexts)) == 1


def test_learned_shapes_start_where_told():
    network = Network((1, 3, 3, 1), "plu_learned")
    theta = initial(network, generators([0, 1]), alpha=0.3, c=2.0)
    alpha, c = network.shapes(theta, torch.zeros(0), torch.zeros(0))
    torch.testing.assert_close(alpha, torch.full((2, 2), 0.3))
    torch.testing.assert_close(c, torch.full((2, 2), 2.0))


@pytest.mark.parametrize(("widths", "activation"), [((3,), "plu"), ((1, 0, 1), "plu"), ((1, 2), "swish")])
def test_wrong_networks_are_named(widths, activation):
    with pytest.raises(ValueError, match=r"widths must be|unknown activation 'swish'; choose one of tanh"):
        Network(widths, activation)


def test_gelu_is_the_exact_one():
    network = Network((1, 1, 1), "gelu")
    theta = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
    x = torch.linspace(-4, 4, 50)[None]
    torch.testing.assert_close(forward(network, theta, x)[..., 0], nn.GELU()(x))
