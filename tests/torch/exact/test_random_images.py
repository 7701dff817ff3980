"""Random convolutional networks against the module itself: every layer after every other."""

import numpy as np
import pytest
import torch
from torch import nn

from plunit.torch import PLU, Residual, to_network


def convolution(rng, channels):
    groups = int(rng.choice([1, channels]))
    size = rng.integers(1, 4, 2)
    return nn.Conv2d(
        channels,
        groups * int(rng.integers(1, 3)),
        tuple(size.tolist()),
        stride=int(rng.integers(1, 3)),
        padding=tuple((size // 2).tolist()),
        dilation=int(rng.integers(1, 3)),
        groups=groups,
        padding_mode=str(rng.choice(["zeros", "reflect", "replicate", "circular"])),
    )


def pool(rng, kind, **settings):
    size, ceil = int(rng.integers(1, 4)), bool(rng.integers(2))
    return kind(size, int(rng.integers(1, 3)), padding=int(rng.integers(size // 2 + 1)), ceil_mode=ceil, **settings)


def block(rng, channels):
    parts = nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 1, 1)
    return Residual(nn.Sequential(*parts[: int(rng.integers(1, 4))]))


MAKERS = [
    lambda rng, shape: convolution(rng, shape[0]),
    lambda rng, shape: pool(rng, nn.MaxPool2d, dilation=int(rng.integers(1, 3))),
    lambda rng, shape: pool(rng, nn.AvgPool2d, count_include_pad=bool(rng.integers(2))),
    lambda rng, shape: nn.AdaptiveAvgPool2d(tuple(rng.integers(1, 5, 2).tolist())),
    lambda rng, shape: nn.BatchNorm2d(shape[0]),
    lambda rng, shape: PLU(learnable=True, num_parameters=shape[0]),
    lambda rng, shape: nn.LeakyReLU(0.2),
    lambda rng, shape: block(rng, shape[0]),
    lambda rng, shape: nn.Linear(shape[2], int(rng.integers(1, 5))),
]


def perturbed(layer):
    """Return the layer with other numbers for each channel."""
    with torch.no_grad():
        for number in layer.state_dict().values():
            if number.is_floating_point():
                number += 0.3 * torch.rand_like(number)
    return layer.double().eval()


def output(layer, x):
    """Return layer(x), or None where PyTorch refuses x or a window holds nothing but padding."""
    try:
        y = layer(x)
    except RuntimeError:
        return None
    return y if y.numel() and y.isfinite().all() else None


@pytest.mark.parametrize("seed", range(60))
def test_the_network_is_the_module(seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    shape = tuple(rng.integers([1, 3, 3], [4, 8, 8]).tolist())
    x = y = torch.randn(8, *shape, dtype=torch.float64)
    layers = []
    for maker in rng.choice(MAKERS, 6):
        layer = perturbed(maker(rng, y.shape[1:]))
        after = output(layer, y)
        if after is not None:
            layers.append(layer)
            y = after
    found = to_network(nn.Sequential(*layers), shape)(x.flatten(1).numpy())
    np.testing.assert_allclose(found, y.flatten(1).detach().numpy(), rtol=0, atol=1e-12)
