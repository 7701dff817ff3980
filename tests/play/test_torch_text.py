import dataclasses

import numpy as np
import pytest
import torch

from plunit.ensemble import ACTIVATIONS, MLP, forward, initial
from plunit.play.exports import torch_code


@pytest.mark.parametrize("activation", [name for name, one in ACTIVATIONS.items() if one.module])
@pytest.mark.parametrize("widths", [(1, 3, 4, 2), (2, 3)])
def test_the_program_has_the_values_of_the_member(activation, widths):
    network = MLP(widths, activation)
    theta = initial(network, [np.random.default_rng(3)], alpha=0.25, c=0.6).astype(np.float64)
    theta += np.random.default_rng(9).normal(0, 0.3, theta.shape)  # biases start as 0
    names = {}
    exec(torch_code(network, theta, 0.25, 0.6), names)
    x = np.random.default_rng(1).uniform(-3, 3, (50, widths[0]))
    with torch.no_grad():
        found = names["model"](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found.T, forward(network, theta, x.T, 0.25, 0.6)[..., 0], rtol=1e-6, atol=1e-6)


def test_an_activation_that_pytorch_lacks_is_an_error_not_plu(monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, "silu", dataclasses.replace(ACTIVATIONS["silu"], module=None))
    network = MLP((1, 3, 1), "silu")
    with pytest.raises(ValueError, match=r"silu has no module in PyTorch; activations that have one are tanh, .*elu"):
        torch_code(network, np.zeros((network.parameters, 1)))
