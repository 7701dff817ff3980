import numpy as np
import pytest
import torch

from plunit.ensemble import MLP, forward, initial, preactivations


def generators(seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def test_forward_is_the_paper_s_network():
    network = MLP((2, 4, 3, 2), "tanh")
    theta = initial(network, generators(range(3))).astype(np.float64)
    theta += np.random.default_rng(0).standard_normal(theta.shape)
    x = np.random.default_rng(1).standard_normal((2, 7))

    def alone(column):
        w1, b1, w2, b2, w3, b3 = np.split(column, np.cumsum([8, 4, 12, 3, 6]))
        h = np.tanh(w1.reshape(4, 2) @ x + b1[:, None])
        h = np.tanh(w2.reshape(3, 4) @ h + b2[:, None])
        return w3.reshape(2, 3) @ h + b3[:, None]

    expected = np.stack([alone(column) for column in theta.T], -1)
    np.testing.assert_allclose(forward(network, theta, x), expected, rtol=1e-12)


def test_the_last_preactivation_is_the_output_and_depth_counts_weight_layers():
    network = MLP((1, 3, 3, 1), "relu")
    theta = initial(network, generators([0]))
    x = np.linspace(-1, 1, 5)[None]
    layers = list(preactivations(network, theta, x))
    assert [tuple(z.shape) for z in layers] == [(3, 5, 1), (3, 5, 1), (1, 5, 1)]
    assert np.array_equal(layers[-1], forward(network, theta, x))
    assert network.depth == 3


def test_weights_are_standard_normal_and_biases_zero():
    network = MLP((1, 3, 3, 1), "plu")
    theta = initial(network, generators(range(4000)))
    weights, biases = zip(*network.layers(theta), strict=True)
    moments = [(weight.mean(), weight.std()) for weight in weights]
    np.testing.assert_allclose(moments, [(0.0, 1.0)] * 3, rtol=0, atol=0.05)
    assert not np.concatenate(biases).any()


def test_scales_are_standard_deviations():
    network = MLP((1, 3, 1), "plu")
    plain, scaled = (initial(network, generators([5]), scales=scales) for scales in (None, [2.0, 0.5]))
    expected = [
        weight * np.float32(scale) for (weight, _), scale in zip(network.layers(plain), [2.0, 0.5], strict=True)
    ]
    np.testing.assert_equal([weight for weight, _ in network.layers(scaled)], expected)


def test_a_seed_gives_every_activation_the_same_weights_and_leaves_its_generator_in_the_same_place():
    starts, nexts = [], []
    for activation in ("tanh", "plu", "plu_learned"):
        generator = np.random.default_rng(3)
        starts.append(initial(MLP((1, 3, 3, 1), activation), [generator])[:22])
        nexts.append(generator.random())
    assert np.array_equal(starts[0], starts[1])
    assert np.array_equal(starts[0], starts[2])
    assert len(set(nexts)) == 1


def test_learned_shapes_start_where_told():
    network = MLP((1, 3, 3, 1), "plu_learned")
    theta = initial(network, generators([0, 1]), alpha=0.3, c=2.0)
    alpha, c = network.alphas_and_cs(theta, np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(alpha, np.full((2, 2), 0.3), rtol=1e-6)
    np.testing.assert_allclose(c, np.full((2, 2), 2.0), rtol=1e-6)


@pytest.mark.parametrize(("widths", "activation"), [((3,), "plu"), ((1, 0, 1), "plu"), ((1, 2), "swish")])
def test_wrong_networks_are_named(widths, activation):
    with pytest.raises(ValueError, match=r"widths must be|unknown activation 'swish'; choose one of tanh"):
        MLP(widths, activation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_taken_and_arrays_given(dtype):
    network = MLP((1, 3, 1), "plu")
    theta = torch.from_numpy(initial(network, generators([0, 1]))).to(dtype).requires_grad_()
    x = torch.linspace(-1, 1, 5)[None]
    output = forward(network, theta, x)
    assert isinstance(output, np.ndarray)
    np.testing.assert_array_equal(output, forward(network, theta.detach().numpy(), x.numpy()))
    assert output.dtype == theta.detach().numpy().dtype


def test_no_generators_make_no_members():
    with pytest.raises(ValueError, match="one generator for each member, got none; pass"):
        initial(MLP((1, 2, 1)), [])
