"""The form of the members: layers, starts, and outputs by hand."""

import numpy as np
import pytest
import torch
from lone_members import generators

from plunit.ensemble import MLP, forward, initial, preactivations
from plunit.ensemble.mlp import dead_units


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
    *hidden, last = preactivations(network, theta, x)
    assert [z.shape for z in hidden] == [(4, 7, 3), (3, 7, 3)]
    assert np.array_equal(last, forward(network, theta, x))


def test_weights_are_normal_with_the_scales_given_and_biases_0():
    network = MLP((1, 3, 3, 1), "plu")
    plain, scaled = (initial(network, generators(range(4000)), scales=scales) for scales in (None, [2.0, 0.5, 1.0]))
    weights, biases = zip(*network.layers(plain), strict=True)
    np.testing.assert_allclose([(w.mean(), w.std()) for w in weights], [(0.0, 1.0)] * 3, rtol=0, atol=0.05)
    assert not np.concatenate(biases).any()
    expected = [weight * np.float32(scale) for weight, scale in zip(weights, [2.0, 0.5, 1.0], strict=True)]
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
    shapes = network.alphas_and_cs(theta, np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(shapes, [np.full((2, 2), 0.3), np.full((2, 2), 2.0)], rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_taken_and_arrays_given(dtype):
    network = MLP((1, 3, 1), "plu")
    theta = torch.from_numpy(initial(network, generators([0, 1]))).to(dtype).requires_grad_()
    x = torch.linspace(-1, 1, 5)[None]
    output = forward(network, theta, x)
    assert isinstance(output, np.ndarray)
    np.testing.assert_array_equal(output, forward(network, theta.detach().numpy(), x.numpy()))
    assert output.dtype == theta.detach().numpy().dtype


def test_dead_units_are_counted():
    theta, x = np.zeros((22, 2), dtype=np.float32), np.linspace(-5, 7, 50)[None]
    theta[2] = 1  # first layer: unit 0 is always negative, unit 2 for half of the points
    theta[3:6, :] = np.array([-1.0, 1.0, 0.0])[:, None]
    theta[15:18, 0] = 1  # second layer: alive in member 0, all at 0 in member 1
    dead = {name: dead_units(MLP((1, 3, 3, 1), name), theta, x).tolist() for name in ("relu", "plu")}
    assert dead == {"relu": [1, 4], "plu": [0, 0]}
    assert dead_units(MLP((1, 3, 3, 1), "plu"), theta, x, 0.0, 0.5).tolist() == [5, 2]
