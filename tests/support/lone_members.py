"""A member of an ensemble on its own: a network of PyTorch's, trained by PyTorch."""

import itertools
import math

import numpy as np
import torch
from torch import nn


class PaperPLU(nn.Module):
    """The paper's max/min form, an oracle that shares nothing with the package."""

    def __init__(self, alpha=0.1, c=1.0):
        super().__init__()
        self.alpha, self.c = alpha, c

    def forward(self, x):
        return torch.maximum(self.alpha * (x + self.c) - self.c, torch.minimum(self.alpha * (x - self.c) + self.c, x))


class LearnedPLU(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_alpha = nn.Parameter(torch.tensor(math.log(0.1 / 0.9)))
        self.raw_c = nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        return PaperPLU(torch.sigmoid(self.raw_alpha), torch.exp(self.raw_c))(x)


MODULES = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "plu": PaperPLU,
    "identity": nn.Identity,
    "leaky_relu": nn.LeakyReLU,
    "hardtanh": nn.Hardtanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "plu_learned": LearnedPLU,
}


def generators(seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def alone(
    widths,
    activation,
    seed,
    batches,
    steps,
    dtype=torch.float32,
    *,
    lr=0.01,
    decay=0.0,
    schedule=None,
    loss=nn.functional.mse_loss,
    epsilon=lambda step: 1e-8,
):
    """Train one nn.Sequential by AdamW, with decay of weights alone; return its losses and its rows of theta."""
    generator = np.random.default_rng(seed)
    layers = []
    total = sum(m * n for m, n in itertools.pairwise(widths))
    draws = torch.from_numpy(generator.standard_normal(total, dtype=np.float32))
    for m, n in itertools.pairwise(widths):
        linear = nn.Linear(m, n)
        weights, draws = draws[: m * n], draws[m * n :]
        linear.weight.data = weights.view(n, m).clone()
        nn.init.zeros_(linear.bias)
        layers += [linear, activation()]
    net = nn.Sequential(*layers[:-1]).to(dtype)
    weights = [p for p in net.parameters() if p.ndim == 2]
    others = [p for p in net.parameters() if p.ndim != 2]
    groups = [{"params": weights, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=lr)
    losses = []
    for step in range(steps):
        x, y = batches(step)
        for group in optimiser.param_groups:
            group["lr"] = lr if schedule is None else lr * schedule[step]
            group["eps"] = epsilon(step)
        value = loss(net(torch.from_numpy(x).to(dtype)), torch.from_numpy(y).to(dtype))
        losses.append(value.item())
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    rows = [p.detach().flatten() for layer in net if isinstance(layer, nn.Linear) for p in layer.parameters()]
    return np.array(losses), torch.cat(rows).numpy()


def columns(runs):
    """Return the losses and the weights of several runs of `alone` as the columns of two matrices."""
    return [np.stack(parts, 1) for parts in zip(*runs, strict=True)]


def looks_of(losses, patience, tolerance):
    """Return the number of looks that a member has with these losses of validation, by the rule as it is written."""
    last, waited = math.inf, 0
    for number, loss in enumerate(losses, start=1):
        last, waited = (loss, 0) if loss < last - tolerance else (last, waited + 1)
        if waited == patience:
            return number
    return len(losses)
