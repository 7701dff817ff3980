"""The paper's convolutional network, with any of several activations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from plunit.lab.cifar10.spec import Cifar10
from plunit.torch import PLU, init_

CHOICES: dict[str, Callable[[Cifar10], nn.Module]] = {
    "tanh": lambda spec: nn.Tanh(),
    "relu": lambda spec: nn.ReLU(),
    "plu": lambda spec: PLU(spec.alpha, spec.c),
    "identity": lambda spec: nn.Identity(),
    "leaky_relu": lambda spec: nn.LeakyReLU(),
    "gelu": lambda spec: nn.GELU(),
    "silu": lambda spec: nn.SiLU(),
    "plu_learned": lambda spec: PLU(spec.alpha, spec.c, learnable=True),
}
"""Activation name to the module between two layers."""


def network(spec: Cifar10, activation: str, seed: int) -> nn.Sequential:
    """Return the untrained network; all activations get the same weights from the same seed and the default start."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.MaxPool2d(2), CHOICES[activation](spec)]
        layers.append(nn.Flatten())
        for inputs, outputs in ((1024, 256), (256, 64)):
            layers += [nn.Linear(inputs, outputs), CHOICES[activation](spec)]
        model = nn.Sequential(*layers, nn.Linear(64, 10)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return init_(model) if spec.init == "gain" else model  # type: ignore[return-value]
