"""Invert activations by bisection, and networks by their own inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from plunit.base.ranges import COUNT, Range
from plunit.invertible import PLU, ActivationMaker, Chain, InvertibleNetwork, LeakyReLU, Tanh, alternating
from plunit.invertible.certificate import round_trip_errors
from plunit.invertible.frozen import part_by_part
from plunit.lab.cell import Arrays, Cell
from plunit.lab.train.threads import one_thread
from plunit.torch import plu

Linear = Literal["lu", "orthogonal"]


@dataclass(frozen=True)
class InverseSpec:
    """Round trips x -> F(x) -> x through untrained invertible networks, and inverses of single activations.

    Attributes:
        features: n of the networks R^n -> R^n.
        depths: numbers of blocks (linear layer, activation).
        linears: kinds of linear layers.
        dtypes: precisions.
        alpha: slope of PLU and LeakyReLU, 1 / alpha in every other block.
        points: standard normal points of a round trip.
        spread: the values whose inverse is looked for are normal with this standard deviation ...
        values: ... and this many.
    """

    features: Annotated[int, Range(1, 1024)] = 16
    depths: Annotated[tuple[int, ...], Range(1, 10_000)] = (1, 4, 16, 32, 64, 128, 256)
    linears: tuple[Linear, ...] = ("orthogonal", "lu")
    dtypes: tuple[Literal["float32", "float64"], ...] = ("float32", "float64")
    alpha: Annotated[float, Range(1e-6, 1)] = 0.7
    points: Annotated[int, COUNT] = 32
    spread: Annotated[float, Range(1e-6, 1e6)] = 3.0
    values: Annotated[int, Range(100, 1_000_000)] = 4096


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "plu": plu,
    "leaky_relu": torch.nn.functional.leaky_relu,
}
"""The activations as functions of one number."""

NETWORKS: dict[str, Callable[[float], ActivationMaker]] = {
    "plu": partial(alternating, PLU),
    "leaky_relu": partial(alternating, LeakyReLU),
    "tanh": lambda alpha: lambda features, index: Tanh(features),
}
"""The activations of invertible networks, by slope; ReLU has no inverse."""

_REACH = 1e6


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return what a cell measures; the last axis is that of the seeds S.

    - reached [2, S]: the share of values y inside (-1, 1) and outside of it that the activation takes.
    - shared [S]: the share of inputs x whose output another input has too.
    - error [linears, dtypes, depths, S], the largest |F^-1(F(x)) - x|, infinite if some is not finite; lost
      [linears, dtypes, depths, S], the share of points that come back as no number; bound [linears, dtypes, depths, S],
      the bound of the certificate. They are NaN for ReLU, which has no inverse, and so is the bound for tanh, whose
      inverse has no Lipschitz constant.
    """
    members = [_member(cell.spec, cell.activation, seed) for seed in cell.seeds]
    arrays = {name: np.stack([member[name] for member in members], -1) for name in members[0]}
    return {"seed": np.array(cell.seeds), **arrays}


def _member(spec: InverseSpec, activation: str, seed: int) -> Arrays:
    generator = torch.Generator().manual_seed(seed)
    values = spec.spread * torch.randn(spec.values, generator=generator, dtype=torch.float64)
    found = is_reached(FUNCTIONS[activation], values)
    inside = values.abs() < 1
    _, where, count = np.unique(FUNCTIONS[activation](values).numpy(), return_inverse=True, return_counts=True)
    trips = np.array(
        [[round_trips(spec, activation, linear, dtype, seed) for dtype in spec.dtypes] for linear in spec.linears]
    )
    return {
        "reached": np.array([found[inside].double().mean(), found[~inside].double().mean()]),
        "shared": np.array(np.mean(count[where] > 1)),
        "error": trips[..., 0, :],
        "lost": trips[..., 1, :],
        "bound": trips[..., 2, :],
    }


def is_reached(function: Callable[[Tensor], Tensor], y: Tensor) -> Tensor:
    """Say for each y whether the increasing function takes it, by bisection: no formula of an inverse is used."""
    low, high = torch.full_like(y, -_REACH), torch.full_like(y, _REACH)
    for _ in range(100):
        middle = (low + high) / 2
        above = function(middle) >= y
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return (function(high) - y).abs() <= 1e-9 * (1 + y.abs())


def round_trips(spec: InverseSpec, activation: str, linear: Linear, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Return [3, depths]: the largest error, the share of points lost, and the bound of the certificate.

    The network of some depth is the beginning of the deepest one.
    """
    if activation not in NETWORKS:
        return np.full((3, len(spec.depths)), np.nan)
    generator = torch.Generator().manual_seed(seed)
    make = NETWORKS[activation](spec.alpha)
    network = InvertibleNetwork(spec.features, max(spec.depths), activation=make, linear=linear, generator=generator)
    x = torch.randn(spec.points, spec.features, generator=generator).to(getattr(torch, dtype))
    whole = part_by_part(network.to(x).bijection)
    chains = [Chain(*whole.parts()[: 2 * depth + 1]) for depth in spec.depths]
    with torch.no_grad():
        errors = torch.stack([(chain.inverse(chain(x)[0])[0] - x).norm(dim=-1) for chain in chains])
    lost = (~errors.isfinite()).double().mean(-1)
    bounds = np.nan if activation == "tanh" else np.array(round_trip_errors(whole, x))[[2 * d for d in spec.depths]]
    return np.stack(
        [errors.nan_to_num(torch.inf, torch.inf).amax(-1).numpy(), lost.numpy(), np.broadcast_to(bounds, lost.shape)]
    )
