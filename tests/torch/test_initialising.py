"""Weights of models with PLU at the start, and groups of parameters for an optimiser."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import plunit
from plunit.torch import PLU, init_, param_groups


@pytest.mark.parametrize(
    "activation", [PLU(), PLU(0.3, 0.5), PLU(learnable=True, num_parameters=512), nn.ReLU()], ids=repr
)
@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_init_keeps_the_variance(activation, mode):
    generator = torch.Generator().manual_seed(0)
    layers = [nn.Linear(512, 512)]
    # gradients: one layer, for weights that keep them let the activations drift from the variance 1 of the gain
    for _ in range(8 if mode == "forward" else 1):
        layers += [activation, nn.Linear(512, 512)]
    model = init_(nn.Sequential(*layers), mode=mode, generator=generator)
    x = torch.randn(512, 512, generator=generator).requires_grad_()
    y = model(x)
    (dx,) = torch.autograd.grad(y, x, torch.randn(y.shape, generator=generator))
    kept = y if mode == "forward" else dx
    # ReLU: E[relu(z)^2] = 1/2, so its gain keeps both
    assert kept.var().item() == pytest.approx(1, rel=0.35)


def test_init_uses_the_gain_of_the_activation_before():
    torch.manual_seed(0)
    model = init_(nn.Sequential(nn.Conv2d(16, 64, 3), nn.MaxPool2d(2), PLU(), nn.Flatten(), nn.Linear(1024, 256)))
    assert model[0].weight.std().item() == pytest.approx(1 / (16 * 9) ** 0.5, rel=0.03)
    assert model[4].weight.std().item() == pytest.approx(plunit.gain() / 1024**0.5, rel=0.01)
    assert model[0].bias.eq(0).all()


def test_init_gain_is_one_after_another_linear_and_after_what_has_no_known_gain():
    torch.manual_seed(0)
    layers = [nn.Linear(900, 900), PLU(), nn.Linear(900, 900), nn.Linear(900, 900), nn.GELU(), nn.Linear(900, 900)]
    model = init_(nn.Sequential(*layers))
    found = [layer.weight.std().item() * 30 for layer in model if isinstance(layer, nn.Linear)]
    assert found == pytest.approx([1, plunit.gain(), 1, 1], rel=0.01)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(64, 64, 4, stride=2, padding=1, groups=4),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
        nn.ConvTranspose1d(32, 64, 6, stride=3, groups=2),
        nn.Conv3d(16, 64, 2, stride=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_init_counts_the_terms_of_convolutions(layer, mode):
    torch.manual_seed(0)
    init_(layer, mode=mode)
    x = torch.randn(8, layer.in_channels, *[16] * len(layer.kernel_size), requires_grad=True)
    y = layer(x)
    kept = y if mode == "forward" else torch.autograd.grad(y, x, torch.randn_like(y))[0]
    inside = kept[(..., *[slice(3, -3)] * len(layer.kernel_size))]  # the padded rim sums fewer terms
    assert inside.var().item() == pytest.approx(1, rel=0.15)


def test_init_changes_nothing_if_a_gain_fails():
    model = nn.Sequential(nn.Linear(3, 3), PLU(0.0, 0.0), nn.Linear(3, 3))
    before = model[0].weight.clone()
    with pytest.raises(ValueError, match="no finite gain"):
        init_(model)
    assert torch.equal(model[0].weight, before)


def test_param_groups_keep_decay_off_alpha_and_c():
    model = nn.Sequential(nn.Linear(4, 8), PLU(learnable=True, num_parameters=8), nn.LayerNorm(8), PLU(learnable="c"))
    model.append(nn.Linear(8, 8).requires_grad_(False))
    decayed, free = param_groups(model, weight_decay=0.5)
    assert [id(p) for p in decayed["params"]] == [id(model[0].weight)]
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.5, 0.0)
    assert len(free["params"]) == 1 + 2 + 2 + 1


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")
@pytest.mark.parametrize("wrap", [parametrizations.weight_norm, parametrizations.spectral_norm, nn.utils.weight_norm])
def test_init_of_a_weight_that_is_computed_changes_nothing(wrap):
    model = nn.Sequential(nn.Linear(4, 4), PLU(), wrap(nn.Linear(4, 4)))
    before = model[0].weight.clone()
    with pytest.raises(ValueError, match=r"is computed .*; call init_ before adding that"):
        init_(model)
    assert torch.equal(model[0].weight, before)
