"""Models as exact networks: layers of features and residual sums against the modules themselves, and refused models."""

import copy
from fractions import Fraction

import numpy as np
import pytest
import torch
from rational_networks import forward, rational
from torch import nn

from plunit.pieces import Layer, Network, polygons
from plunit.pieces.graphs import Budget
from plunit.torch import PLU, Residual, to_network
from plunit.torch.exact.network import convert_module

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


LINE = torch.linspace(-3, 3, 101, dtype=torch.float64)[:, None]


def agree(model, x=LINE, shape=None):
    """Compare the network with a copy of the model in eval mode, and leave the model as it is."""
    found = to_network(model, shape)(x.flatten(1).numpy())
    np.testing.assert_allclose(found, copy.deepcopy(model).eval()(x).detach().numpy(), rtol=0, atol=1e-12)


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
    agree(model, x)
    found = polygons(to_network(model), ((-3.0, 3.0), (-3.0, 3.0)))
    x = x.clamp(-3, 3)
    np.testing.assert_allclose(found(x.numpy()), model(x).detach().numpy(), rtol=0, atol=1e-9)


def sequence(*layers):
    torch.manual_seed(4)
    return perturbed(nn.Sequential(*layers))


def test_layers_in_a_row_are_the_exact_function_of_their_weights():
    rng = np.random.default_rng(0)
    for kind in (np.float64, np.float32, np.float16):
        layers = [(rng.normal(size=(b, a)).astype(kind), rng.normal(size=b).astype(kind)) for a, b in ((2, 3), (3, 1))]
        modules = [nn.Linear(*weight.shape[::-1], dtype=torch.float64) for weight, _ in layers]
        for module, (weight, bias) in zip(modules, layers, strict=True):
            module.load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})
        net, x = to_network(nn.Sequential(*modules)), [Fraction(1, 3), Fraction(-2, 7)]
        apart = [Network((Layer(*(part.astype(np.float64) for part in layer)),)) for layer in layers]
        assert forward(rational(net), x) == forward([*rational(apart[0]), *rational(apart[1])], x)
        assert len(net.layers) == (1 if kind == np.float16 else 2)


@pytest.mark.parametrize(
    ("layer", "rounded"),
    [(nn.BatchNorm1d(3), True), (nn.AvgPool1d(3), True), (nn.AvgPool1d(2), False), (nn.Conv1d(3, 2, 1), False)],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else str(value),
)
def test_rounded_factors_are_said(layer, rounded):
    assert convert_module(nn.Sequential(layer.eval()), (3, 3), Budget()).rounded == rounded


def test_a_module_may_stand_in_several_places():
    act, middle = PLU(), nn.Linear(8, 8)
    model = sequence(nn.Linear(1, 8), act, middle, act, nn.Sequential(middle, act), nn.Linear(8, 1))
    assert len(to_network(model).hidden) == 3
    agree(model)


class Doubled(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


class Named(nn.Sequential):
    """A Sequential under another name computes the same."""


def test_a_subclass_with_the_same_forward_is_a_sequence():
    agree(sequence(nn.Linear(1, 4), Named(PLU(), nn.Linear(4, 1))))


def with_attribute(layer, **attributes):
    for name, value in attributes.items():
        vars(layer)[name] = value
    return layer


def with_hook(layer, register):
    getattr(layer, register)(lambda *parts: None)
    return layer


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm", "orthogonal"])
def test_a_parametrised_weight_is_evaluated(norm):
    torch.manual_seed(5)
    layer = getattr(nn.utils.parametrizations, norm)(nn.Linear(4, 4, dtype=torch.float64))
    model = nn.Sequential(
        nn.Linear(1, 4, dtype=torch.float64), PLU(), layer, PLU(), nn.Linear(4, 1, dtype=torch.float64)
    )
    with torch.no_grad():
        # the weight at the layer's creation would be stale
        for parameter in layer.parametrizations.parameters():
            parameter *= 1.3
    with pytest.raises(ValueError, match=r"layer '2', Linear.*parametrised weight .* call .eval\(\)"):
        to_network(model)
    agree(model.eval())


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
def test_a_residual_sum_is_the_module(name, first):
    torch.manual_seed(0)
    layers = [Residual(BODIES[name]()), PLU(), nn.Linear(3, 2)]
    model = nn.Sequential(*(layers if first else [nn.Linear(3, 3), *layers])).double().eval()
    agree(model, 2 * torch.randn(100, 3, dtype=torch.float64), (3,))


def test_units_that_pass_x_on_have_no_knots():
    net = to_network(Residual(nn.Sequential(nn.Linear(3, 5), PLU(), nn.Linear(5, 3))))
    knots = net.layers[0].activation.knots
    assert np.isinf(knots[:3]).all()
    assert knots[3:].tolist() == [[-1.0, 1.0]] * 5


def test_the_shape_may_follow_from_the_body():
    agree(Residual(nn.Sequential(nn.ReLU(), nn.Linear(2, 2))).double(), torch.randn(9, 2, dtype=torch.float64))


class Scaled(Residual):
    def forward(self, input):
        return input + 0.1 * self.body(input)


def itself():
    model = nn.Sequential(nn.ReLU())
    model.add_module("again", model)
    return model


def without_weight(layer, **weight):
    del layer.weight
    return with_attribute(layer, **weight)


def of_nan(layer):
    nn.init.constant_(layer.weight, float("nan"))
    return layer


REFUSED = [
    (nn.Tanh, TypeError, r"layer '1' is Tanh\(\)"),
    (lambda: nn.Sequential(nn.GELU()), TypeError, r"layer '1.0' is GELU"),
    (lambda: nn.ModuleList([nn.ReLU()]), TypeError, "layer '1' is ModuleList"),
    (lambda: None, TypeError, "layer '1' is None"),
    (itself, ValueError, r"layer '1.again' contains itself"),
    (lambda: nn.Linear(4, 1), ValueError, r"layer '1', Linear.*expects 4 features, but its input has shape \(3,\)"),
    (lambda: without_weight(nn.Linear(3, 1)), ValueError, r"layer '1', Linear.*the layer has no weight"),
    (lambda: without_weight(nn.Linear(3, 1), weight=None), ValueError, r"layer '1', Linear.*the layer has no weight"),
    (lambda: of_nan(nn.Linear(3, 1)), ValueError, "finite"),
    (lambda: nn.BatchNorm1d(3), ValueError, r"layer '1', BatchNorm1d.*call .eval\(\)"),
    (lambda: nn.BatchNorm1d(3, track_running_stats=False).eval(), ValueError, "track_running_stats"),
    (lambda: nn.PReLU(2), ValueError, "layer '1', PReLU.*has 2 channels.*has 3"),
    (lambda: PLU(learnable=True, num_parameters=3, dim=2), ValueError, "layer '1', PLU.*axis 2 of the input"),
    # modules that may compute something else
    (lambda: Doubled(nn.Linear(3, 3)), TypeError, r"layer '1', Doubled\(\), overrides forward"),
    (lambda: with_attribute(nn.ReLU(), forward=torch.tanh), TypeError, "layer '1', ReLU.*overrides forward"),
    (lambda: with_hook(nn.Linear(3, 3), "register_forward_hook"), ValueError, r"layer '1', Linear.* forward hooks"),
    (lambda: with_hook(nn.ReLU(), "register_forward_pre_hook"), ValueError, r"layer '1', ReLU.* forward hooks"),
    (lambda: with_hook(nn.Sequential(), "register_forward_hook"), ValueError, r"layer '1', Sequential.* hooks"),
    (lambda: nn.utils.weight_norm(nn.Linear(3, 3)), ValueError, r"Linear.*\(WeightNorm\).*parametrizations"),
    (lambda: nn.utils.spectral_norm(nn.Linear(3, 3)), ValueError, r"layer '1', Linear.*\(SpectralNorm\)"),
    (
        lambda: nn.Linear(3, 3, dtype=torch.complex64),
        ValueError,
        "layer '1', .*must be real, got torch.complex64",
    ),
    (lambda: nn.Linear(3, 3, device="meta"), ValueError, "Linear.*on the meta device, which holds no numbers"),
    (lambda: nn.LazyLinear(3), ValueError, r"layer '1', LazyLinear.*\(_infer_parameters\)"),
    # modules that are no residual sums
    (lambda: Residual(nn.Linear(3, 2)), ValueError, r"Residual\(\): .*equal shapes, got \(3,\) and \(2,\)"),
    (lambda: Residual(nn.Tanh()), TypeError, "layer '1.body' is Tanh"),
    (lambda: Residual(nn.ReLU(inplace=True)), ValueError, r"starts with ReLU\(inplace=True\), which changes x"),
    (lambda: Residual(nn.Sequential(nn.Identity(), PLU(inplace=True))), ValueError, "which changes x before the sum"),
    (lambda: Scaled(nn.Linear(3, 3)), TypeError, r"layer '1', Scaled\(\), overrides forward"),
]


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize(("make", "error", "message"), REFUSED)
def test_what_is_refused_is_named_in_one_line(make, error, message):
    model = nn.Sequential(nn.Linear(2, 3), nn.Identity())
    # not by add_module, so that any object can be set
    model._modules["1"] = make()
    with pytest.raises(error, match=message) as raised:
        to_network(model)
    assert "\n" not in str(raised.value)


def test_residual_sums_do_not_broadcast_and_need_a_shape():
    with pytest.raises(ValueError, match=r"equal shapes, got \(5, 3\) and \(5, 1\)"):
        Residual(nn.Linear(3, 1))(torch.zeros(5, 3))
    with pytest.raises(ValueError, match=r"give to_network\(model, shape=\(features,\)\)"):
        to_network(nn.Sequential(Residual(nn.ReLU())))
