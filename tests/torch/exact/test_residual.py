"""x + body(x) as a module and as layers, against the module itself."""

import numpy as np
import pytest
import torch
from torch import nn

from plunit.pieces import curve
from plunit.torch import PLU, Residual, to_network

BODIES = {
    "linear": lambda: nn.Linear(3, 3),
    "nothing": lambda: nn.Identity(),
    "activation": lambda: PLU(),
    "activation first": lambda: nn.Sequential(nn.ReLU(), nn.Linear(3, 3)),
    "activation last": lambda: nn.Sequential(nn.Linear(3, 3), PLU(learnable=True)),
    "two activations": lambda: nn.Sequential(nn.PReLU(3), PLU(0.3, 0.2)),
    "wide": lambda: nn.Sequential(nn.Linear(3, 7), PLU(), nn.Linear(7, 5), nn.Hardsigmoid(), nn.Linear(5, 3)),
    "nested": lambda: nn.Sequential(nn.Linear(3, 3), Residual(nn.Sequential(nn.ReLU(), nn.Linear(3, 3))), PLU()),
    "in place, later": lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)),
    "norm": lambda: nn.Sequential(nn.BatchNorm1d(3), nn.ReLU(), nn.BatchNorm1d(3)),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("first", [True, False])
def test_the_network_is_the_module(name, first):
    torch.manual_seed(0)
    layers = [Residual(BODIES[name]()), PLU(), nn.Linear(3, 2)]
    model = nn.Sequential(*(layers if first else [nn.Linear(3, 3), *layers])).double().eval()
    x = 2 * torch.randn(100, 3, dtype=torch.float64)
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(to_network(model, (3,))(x.numpy()), expected, rtol=0, atol=1e-12)


def test_units_that_pass_x_on_have_no_knots():
    net = to_network(Residual(nn.Sequential(nn.Linear(3, 5), PLU(), nn.Linear(5, 3))))
    knots = net.layers[0].activation.knots
    assert np.isinf(knots[:3]).all()
    assert knots[3:].tolist() == [[-1.0, 1.0]] * 5


def test_the_shape_may_follow_from_the_body():
    model = Residual(nn.Sequential(nn.ReLU(), nn.Linear(2, 2))).double()
    x = torch.randn(9, 2, dtype=torch.float64)
    np.testing.assert_allclose(to_network(model)(x.numpy()), model(x).detach().numpy(), rtol=0, atol=1e-12)


def test_the_curve_of_a_residual_network():
    torch.manual_seed(1)
    block = Residual(nn.Sequential(nn.Linear(4, 4), PLU(), nn.Linear(4, 4)))
    model = nn.Sequential(nn.Linear(1, 4), block, block, nn.Linear(4, 1)).double()
    found = curve(to_network(model), -4.0, 4.0)
    x = torch.linspace(-4, 4, 501, dtype=torch.float64)[:, None]
    np.testing.assert_allclose(found(x[:, 0].numpy()), model(x).detach().numpy(), rtol=0, atol=1e-10)


class Scaled(Residual):
    def forward(self, input):
        return input + 0.1 * self.body(input)


@pytest.mark.parametrize(
    ("module", "error", "message"),
    [
        (Residual(nn.Linear(3, 2)), ValueError, r"layer '0', Residual\(\): x \+ body\(x\) needs equal shapes"),
        (Residual(nn.Sequential(nn.Linear(3, 2), nn.ReLU())), ValueError, r"equal shapes, got \(3,\) and \(2,\)"),
        (Residual(nn.ReLU()), ValueError, r"give to_network\(model, shape=\(features,\)\)"),
        (Residual(nn.Tanh()), TypeError, "layer '0.body' is Tanh"),
        (Residual(nn.ReLU(inplace=True)), ValueError, r"starts with ReLU\(inplace=True\), which changes x"),
        (Residual(nn.Sequential(nn.Identity(), PLU(inplace=True))), ValueError, "which changes x before the sum"),
        (Scaled(nn.Linear(3, 3)), TypeError, r"layer '0', Scaled\(\), has a forward of its own"),
    ],
)
def test_what_is_no_residual_sum_is_named(module, error, message):
    with pytest.raises(error, match=message):
        to_network(nn.Sequential(module))


def test_the_module_does_not_broadcast():
    with pytest.raises(ValueError, match=r"equal shapes, got \(5, 3\) and \(5, 1\)"):
        Residual(nn.Linear(3, 1))(torch.zeros(5, 3))
