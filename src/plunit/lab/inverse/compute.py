"""Invert activations by bisection, and networks by their own inverse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from plunit.ensemble import one_thread
from plunit.invertible import PLU, Bijection, InvertibleNetwork, LeakyReLU, Tanh, alternating
from plunit.lab.cell import Cell
from plunit.lab.inverse.spec import Inverse, Linear
from plunit.lab.store import Arrays
from plunit.torch import plu

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "plu": plu,
    "leaky_relu": torch.nn.functional.leaky_relu,
}
"""The activations as functions of one number."""

_REACH = 1e6


@one_thread()
def compute(cell: Cell) -> Arrays:
    """Return what a cell measures; the last axis is that of the seeds S.

    - reached [2, S]: the share of values y inside (-1, 1) and outside of it that the activation takes.
    - shared [S]: the share of inputs x whose output another input has too.
    - error [linears, dtypes, depths, S], the largest |F^-1(F(x)) - x|, infinite if some is not finite; lost
      [linears, dtypes, depths, S], the share of points that come back as no number; bound [linears, dtypes, depths, S],
      the bound of the certificate. They are NaN for ReLU, which has no inverse, and so is the bound for tanh, whose
      inverse has no Lipschitz constant.
    """
    members = [_member(cell.spec, cell.activation, seed) for seed in range(cell.first, cell.last)]
    arrays = {name: np.stack([member[name] for member in members], -1) for name in members[0]}
    return {"seed": np.arange(cell.first, cell.last), **arrays}


def _member(spec: Inverse, activation: str, seed: int) -> Arrays:
    generator = torch.Generator().manual_seed(seed)
    values = spec.spread * torch.randn(spec.values, generator=generator, dtype=torch.float64)
    found = is_reached(FUNCTIONS[activation], values)
    inside = values.abs() < 1
    _, where, count = np.unique(FUNCTIONS[activation](values).numpy(), return_inverse=True, return_counts=True)
    trips = np.array(
        [
            [
                [round_trip(spec, activation, linear, dtype, depth, seed) for depth in spec.depths]
                for dtype in spec.dtypes
            ]
            for linear in spec.linears
        ]
    )
    return {
        "reached": np.array([found[inside].double().mean(), found[~inside].double().mean()]),
        "shared": np.array(np.mean(count[where] > 1)),
        "error": trips[..., 0],
        "lost": trips[..., 1],
        "bound": trips[..., 2],
    }


def is_reached(function: Callable[[Tensor], Tensor], y: Tensor) -> Tensor:
    """Tell for each y whether the increasing function takes it, by bisection: no formula of an inverse is used."""
    low, high = torch.full_like(y, -_REACH), torch.full_like(y, _REACH)
    for _ in range(100):
        middle = (low + high) / 2
        above = function(middle) >= y
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return (function(high) - y).abs() <= 1e-9 * (1 + y.abs())


def round_trip(
    spec: Inverse, activation: str, linear: Linear, dtype: str, depth: int, seed: int
) -> tuple[float, float, float]:
    """Return the largest error, the share of points lost, and the bound of the certificate."""
    makers: dict[str, Callable[[int, int], Bijection]] = {
        "plu": alternating(PLU, spec.alpha),
        "leaky_relu": alternating(LeakyReLU, spec.alpha),
        "tanh": lambda features, index: Tanh(features),
    }
    if activation not in makers:
        return (np.nan,) * 3
    generator = torch.Generator().manual_seed(seed)
    network = InvertibleNetwork(
        spec.features,
        depth,
        activation=makers[activation],
        linear=linear,
        generator=generator,
    ).to(getattr(torch, dtype))
    x = torch.randn(spec.points, spec.features, generator=generator, dtype=torch.float64).to(getattr(torch, dtype))
    chain = network.chain.frozen()
    with torch.no_grad():
        error = (chain.inverse(chain(x)[0])[0] - x).norm(dim=-1)
    good = error.isfinite()
    worst = float(error.max()) if good.all() else np.inf
    bound = np.nan if activation == "tanh" else network.certificate(x).round_trip_error
    return worst, 1 - float(good.double().mean()), bound
