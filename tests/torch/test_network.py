import numpy as np
import pytest
import torch
from torch import nn

from plunit.pieces import activation, cells, curve
from plunit.torch import PLU
from plunit.torch.network import to_ensemble, to_network

ACTIVATIONS = {
    "PLU": lambda: PLU(),
    "PLU(0.3, 0.5)": lambda: PLU(0.3, 0.5),
    "PLU learned": lambda: PLU(0.2, 2.0, learnable=True),
    "PLU per unit": lambda: PLU(learnable=True, num_parameters=6),
    "ReLU": nn.ReLU,
    "LeakyReLU": lambda: nn.LeakyReLU(0.2),
    "PReLU": nn.PReLU,
    "PReLU per unit": lambda: nn.PReLU(6),
    "Hardtanh": lambda: nn.Hardtanh(-0.5, 2.0),
    "ReLU6": nn.ReLU6,
    "Hardsigmoid": nn.Hardsigmoid,
    "Identity": nn.Identity,
}


def perturbed(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return module.double().eval()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_network_is_the_module(name):
    torch.manual_seed(0)
    make = ACTIVATIONS[name]
    model = perturbed(nn.Sequential(nn.Linear(2, 6), make(), nn.Sequential(nn.Linear(6, 6), make()), nn.Linear(6, 3)))
    x = torch.randn(200, 2, dtype=torch.float64) * 3
    np.testing.assert_allclose(to_network(model)(x.numpy()), model(x).detach().numpy(), rtol=0, atol=1e-12)
    found = cells(to_network(model), ((-3.0, 3.0), (-3.0, 3.0)))
    x = x.clamp(-3, 3)
    np.testing.assert_allclose(found(x.numpy()), model(x).detach().numpy(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_and_flatten(affine):
    torch.manual_seed(1)
    norm = nn.BatchNorm1d(5, affine=affine)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 5, bias=False), norm, PLU(), nn.Linear(5, 1))
    model(torch.randn(50, 2, 2))
    model = perturbed(model)
    x = torch.randn(20, 2, 2, dtype=torch.float64)
    np.testing.assert_allclose(to_network(model)(x.flatten(1).numpy()), model(x).detach().numpy(), atol=1e-12)


def test_float32_weights_are_taken_exactly():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(1, 8), PLU(0.25), nn.Linear(8, 1))
    found = curve(to_network(model), -3.0, 3.0)
    x = torch.linspace(-3, 3, 101, dtype=torch.float64)[:, None]
    np.testing.assert_allclose(found(x[:, 0].numpy()), model.double()(x).detach().numpy(), atol=1e-12)


def test_ensemble_and_one_member():
    torch.manual_seed(3)
    layers = [(torch.randn(3, 1, 7), torch.randn(3, 7)), (torch.randn(2, 3, 7), torch.randn(2, 7))]
    member = to_ensemble(layers, activation.relu()).member(4)
    x = torch.linspace(-2, 2, 9)[:, None]
    (a, b), (c, d) = ((weight[..., 4], bias[..., 4]) for weight, bias in layers)
    np.testing.assert_allclose(member(x.numpy()), torch.relu(x @ a.T + b) @ c.T + d, atol=1e-5)
    with pytest.raises(ValueError, match="2 layers need 1 activations"):
        to_ensemble(layers, [activation.relu()] * 2)


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        (nn.Tanh(), TypeError, r"layer '1' is Tanh\(\)"),
        (nn.Sequential(nn.GELU()), TypeError, r"layer '1.0' is GELU"),
        (nn.Conv1d(1, 1, 1), TypeError, "layer '1' is Conv1d"),
        (nn.Dropout(), TypeError, "layer '1' is Dropout"),
        (nn.BatchNorm1d(3), ValueError, r"layer '1', BatchNorm1d.*call .eval\(\)"),
        (nn.BatchNorm1d(3, track_running_stats=False).eval(), ValueError, "track_running_stats"),
        (nn.Flatten(0), ValueError, "layer '1' is Flatten"),
        (PLU(learnable=True, num_parameters=3, dim=2), ValueError, "layer '1', PLU.*axis 1, not 2"),
    ],
)
def test_other_layers_are_named(layer, error, message):
    with pytest.raises(error, match=message):
        to_network(nn.Sequential(nn.Linear(2, 3), layer))


def test_nan_weights():
    model = nn.Sequential(nn.Linear(1, 1))
    nn.init.constant_(model[0].weight, float("nan"))
    with pytest.raises(ValueError, match="finite"):
        to_network(model)
