"""Layers of images against the modules themselves, in float64 on random inputs, and convolutions against a loop."""

import numpy as np
import pytest
import torch
from torch import nn

from plunit.pieces import graphs, network
from plunit.pieces.graphs import Budget, Tensor, make_layers
from plunit.torch import PLU, Residual, to_network
from plunit.torch.exact.layers import CONVERT, Features, largest

LINE, IMAGE = (4, 9), (4, 7, 6)


def normed(layer):
    with torch.no_grad():
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.5, 2.0)
        if layer.affine:
            layer.weight.uniform_(-2.0, 2.0)
    return layer


CASES = {
    "Conv1d": (LINE, lambda: nn.Conv1d(4, 3, 3)),
    "Conv1d all": (LINE, lambda: nn.Conv1d(4, 6, 3, stride=2, padding=3, dilation=2, groups=2, bias=False)),
    "Conv1d same": (LINE, lambda: nn.Conv1d(4, 2, 4, padding="same")),
    "Conv1d valid": (LINE, lambda: nn.Conv1d(4, 2, 4, padding="valid")),
    "Conv1d circular": (LINE, lambda: nn.Conv1d(4, 2, 3, padding=2, padding_mode="circular")),
    "Conv2d": (IMAGE, lambda: nn.Conv2d(4, 3, 3)),
    "Conv2d all": (IMAGE, lambda: nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=4)),
    "Conv2d same": (IMAGE, lambda: nn.Conv2d(4, 2, (4, 3), padding="same", dilation=2)),
    "Conv2d same reflect": (IMAGE, lambda: nn.Conv2d(4, 2, (4, 3), padding="same", padding_mode="reflect")),
    "Conv2d reflect": (IMAGE, lambda: nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode="reflect")),
    "Conv2d replicate": (IMAGE, lambda: nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode="replicate")),
    "Conv2d circular": (IMAGE, lambda: nn.Conv2d(4, 2, 3, stride=2, padding=(1, 2), padding_mode="circular")),
    "Conv2d normed": (IMAGE, lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 2, 3))),
    "AvgPool1d": (LINE, lambda: nn.AvgPool1d(3, 2, padding=1, count_include_pad=False)),
    "AvgPool1d ceil": (LINE, lambda: nn.AvgPool1d(4, 3, padding=2, ceil_mode=True)),
    "AvgPool2d": (IMAGE, lambda: nn.AvgPool2d((3, 2), (2, 1), padding=1)),
    "AvgPool2d uncounted": (IMAGE, lambda: nn.AvgPool2d(3, 2, padding=1, ceil_mode=True, count_include_pad=False)),
    "AvgPool2d divisor": (IMAGE, lambda: nn.AvgPool2d(3, 2, ceil_mode=True, divisor_override=5)),
    "AdaptiveAvgPool1d": (LINE, lambda: nn.AdaptiveAvgPool1d(4)),
    "AdaptiveAvgPool2d": (IMAGE, lambda: nn.AdaptiveAvgPool2d((3, None))),
    "MaxPool1d": (LINE, lambda: nn.MaxPool1d(3, 2, padding=1)),
    "MaxPool1d dilated": (LINE, lambda: nn.MaxPool1d(4, 1, padding=2, dilation=2)),
    "MaxPool1d ceil": (LINE, lambda: nn.MaxPool1d(4, 3, ceil_mode=True)),
    "MaxPool1d of one": (LINE, lambda: nn.MaxPool1d(1, 2)),
    "MaxPool2d": (IMAGE, lambda: nn.MaxPool2d(2)),
    "MaxPool2d overlapping": (IMAGE, lambda: nn.MaxPool2d(3, 1, padding=1)),
    "MaxPool2d all": (IMAGE, lambda: nn.MaxPool2d((3, 2), (2, 3), padding=(1, 0), dilation=(2, 1), ceil_mode=True)),
    "BatchNorm1d": (LINE, lambda: normed(nn.BatchNorm1d(4))),
    "BatchNorm1d flat": ((5,), lambda: normed(nn.BatchNorm1d(5, affine=False))),
    "BatchNorm2d": (IMAGE, lambda: normed(nn.BatchNorm2d(4))),
    "Dropout": (IMAGE, nn.Dropout),
    "Dropout1d": (LINE, nn.Dropout1d),
    "Dropout2d": (IMAGE, nn.Dropout2d),
    "AlphaDropout": (LINE, nn.AlphaDropout),
    "FeatureAlphaDropout": (IMAGE, nn.FeatureAlphaDropout),
    "Flatten": (IMAGE, nn.Flatten),
    "Flatten part": (IMAGE, lambda: nn.Sequential(nn.Flatten(2), nn.BatchNorm1d(4))),
    "Unflatten": (LINE, lambda: nn.Sequential(nn.Unflatten(2, (3, -1)), nn.Conv2d(4, 2, 2))),
    "Identity": (IMAGE, nn.Identity),
    "Linear on rows": (IMAGE, lambda: nn.Linear(6, 5)),
    "PLU by channel": (IMAGE, lambda: PLU(learnable=True, num_parameters=4)),
    "PLU by column": (IMAGE, lambda: PLU(learnable="alpha", num_parameters=6, dim=-1)),
    "PReLU by channel": (IMAGE, lambda: nn.PReLU(4)),
    "PReLU": (IMAGE, nn.PReLU),
    "Residual": (IMAGE, lambda: Residual(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), PLU(), nn.Conv2d(4, 4, 1)))),
    "norm first": (IMAGE, lambda: nn.Sequential(normed(nn.BatchNorm2d(4)), nn.Conv2d(4, 2, 3))),
    "norm last": (IMAGE, lambda: nn.Sequential(nn.Conv2d(4, 2, 3), normed(nn.BatchNorm2d(2)), nn.ReLU())),
    "norm alone": (IMAGE, lambda: nn.Sequential(nn.ReLU(), normed(nn.BatchNorm2d(4)), PLU())),
}


def made(name):
    torch.manual_seed(0)
    shape, make = CASES[name]
    model = make().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model, shape


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_network_is_the_module(name):
    model, shape = made(name)
    x = 2 * torch.randn(30, *shape, dtype=torch.float64)
    expected = model(x).flatten(1).detach().numpy()
    found = to_network(model, shape)(x.flatten(1).numpy())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_every_layer_has_a_case():
    seen = {type(part) for name in CASES for part in made(name)[0].modules()}
    assert {kind for kind in CONVERT if kind not in (nn.LeakyReLU, nn.Hardtanh, nn.ReLU6, nn.Hardsigmoid)} <= seen


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.Conv2d(1, 1, 3), None, r"layer '0', Conv2d.*give shape=\(channels, height, width\)"),
        (nn.MaxPool1d(2), None, r"layer '0', MaxPool1d.*shape=\(channels, length\)"),
        (nn.BatchNorm2d(2).eval(), None, r"layer '0', BatchNorm2d.*shape=\(channels, height, width\)"),
        (nn.Conv2d(1, 1, 3), (5,), r"must have the axes \(channels, height, width\), got features of shape \(5,\)"),
        (nn.Conv2d(2, 1, 3), (1, 5, 5), r"layer '0', Conv2d.*features of shape \(1, 5, 5\) are not accepted"),
        (nn.Conv2d(1, 1, 3, padding=5, padding_mode="reflect"), (1, 5, 5), r"features of shape .* are not accepted"),
        (nn.BatchNorm1d(2).eval(), (2, 5, 5), r"must have the axes \(channels, length\)"),
        (nn.BatchNorm2d(3).eval(), (2, 5, 5), "the layer has 3 channels.*has 2"),
        (nn.BatchNorm2d(2), (2, 5, 5), r"call .eval\(\)"),
        (nn.Dropout(), (3,), r"layer '0', Dropout.*random in training mode; call .eval\(\)"),
        (nn.MaxPool2d(2, return_indices=True), (1, 4, 4), "return_indices=True is not supported"),
        (nn.MaxPool1d(2, padding=1, dilation=3), (1, 2), "only padding"),
        (nn.Flatten(-4), (1, 4, 4), "the batch axis would be flattened"),
        (nn.Unflatten(0, (1, 1)), (4,), "after the batch axis"),
        (nn.Unflatten(-2, (1, 1)), (4,), "after the batch axis"),
        (nn.Unflatten("a", (2, 2)), (4,), "after the batch axis, got 'a'"),
        (nn.Unflatten(1, (2, -1)), None, "its number of features"),
        (nn.Unflatten(1, (2, 3)), (5,), r"features of shape .* are not accepted"),
        (PLU(learnable=True, num_parameters=3, dim=0), (3, 4, 4), "cannot be the channel axis"),
        (nn.ReLU(), None, r"give to_network\(model, shape=\(features,\)\)"),
    ],
)
def test_what_cannot_be_turned_into_layers_is_named(layer, shape, message):
    with pytest.raises(ValueError, match=message) as raised:
        to_network(nn.Sequential(layer), shape)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("shape", [3, (), (0, 2), (1.5, 2)])
def test_a_shape_is_positive_integers(shape):
    with pytest.raises(ValueError, match="shape must be positive integers"):
        to_network(nn.ReLU(), shape)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (nn.Sequential(nn.Conv2d(3, 64, 3)), r"'0', Conv2d.*3,154,176 x 150,528"),
        (nn.Sequential(nn.AvgPool2d(2)), r"'0', AvgPool2d"),
        (nn.Sequential(nn.MaxPool2d(2)), r"'0', MaxPool2d"),
        (nn.Sequential(Residual(nn.Identity())), r"'0', Residual"),
        (nn.Sequential(nn.BatchNorm2d(3).eval(), nn.ReLU()), r"'', Sequential"),
        (nn.Sequential(nn.BatchNorm2d(3).eval()), r"'', Sequential"),
    ],
)
def test_a_large_image_is_refused_before_memory_is_used(model, name):
    with pytest.raises(ValueError, match=rf"layer {name}.* bytes; the limit is .*; use a smaller image"):
        to_network(model, (3, 224, 224))


@pytest.mark.parametrize(
    "layers", [(nn.Linear(1, 10), nn.ReLU()), (nn.Linear(10, 1), nn.Linear(1, 10))], ids=["identity", "product"]
)
def test_the_identity_after_the_last_activation_and_a_product_of_thin_matrices_count(monkeypatch, layers):
    monkeypatch.setattr(graphs, "LIMIT", 8 * 50)
    with pytest.raises(ValueError, match="a layer of 10 units has 800 bytes"):
        to_network(nn.Sequential(*layers))


def test_the_matrices_of_all_layers_count(monkeypatch):
    monkeypatch.setattr(graphs, "LIMIT", 8 * 125)
    model = nn.Sequential(nn.Conv1d(1, 1, 1), nn.ReLU(), nn.Conv1d(1, 1, 1))
    assert to_network(model, (1, 10)).outputs == 10
    with pytest.raises(ValueError, match=r"layer '1', AvgPool1d.*10 x 10 numbers.*use a smaller image"):
        to_network(nn.Sequential(model, nn.AvgPool1d(1)), (1, 10))


def of_windows(windows, inputs):
    """The network of the largest number in each window."""
    budget = Budget()
    found = largest(windows, Features(Tensor(inputs), (inputs,), budget))
    return network(make_layers(found.node, budget).layers)


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("absent", [0.0, 0.4])
def test_the_largest_of_each_window(taps, absent):
    rng = np.random.default_rng(taps)
    windows = rng.integers(0, 6, (7, taps))
    windows[:, :-1][rng.random((7, taps - 1)) < absent] = -1
    net = of_windows(windows, 6)
    assert len(net.hidden) == np.ceil(np.log2((windows >= 0).sum(axis=1).max())) or absent
    x = rng.normal(size=(50, 6))
    expected = np.where(windows < 0, -np.inf, x[:, windows]).max(axis=2)
    np.testing.assert_allclose(net(x), expected, rtol=0, atol=1e-14)


def test_pairs_of_several_windows_are_compared_once():
    net = of_windows(np.array([[0, 1], [0, 1], [1, 2]]), 3)
    # x0 and x1 are passed on, x1 - x0 and x2 - x1 go through relu
    assert net.widths[1] == 4
    assert np.isinf(net.layers[0].activation.knots).sum() == 2
