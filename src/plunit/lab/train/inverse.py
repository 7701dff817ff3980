"""Round trips x -> F(x) -> x through untrained invertible networks, over depth, precision and kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from plunit.base.ranges import COUNT, Range
from plunit.invertible import PLU, ActivationMaker, Chain, Frozen, InvertibleNetwork, LeakyReLU, Tanh, alternating
from plunit.lab.cell import Arrays, Cell
from plunit.torch.threads import one_thread

Linear = Literal["lu", "orthogonal"]


@dataclass(frozen=True)
class InverseSpec:
    """Invertible networks, and the points that go through them and back.

    Attributes:
        features: n of the networks R^n -> R^n.
        depths: numbers of blocks (linear layer, activation).
        linears: kinds of linear layers.
        dtypes: precisions.
        alpha: slope of PLU and LeakyReLU, 1 / alpha in every other block.
        points: standard normal points of a round trip.
    """

    features: Annotated[int, Range(1, 1024)] = 16
    depths: Annotated[tuple[int, ...], Range(1, 10_000)] = (1, 4, 16, 32, 64, 128, 256)
    linears: tuple[Linear, ...] = ("orthogonal", "lu")
    dtypes: tuple[Literal["float32", "float64"], ...] = ("float32", "float64")
    alpha: Annotated[float, Range(1e-6, 1)] = 0.7
    points: Annotated[int, COUNT] = 32


NETWORKS: dict[str, Callable[[float], ActivationMaker]] = {
    "plu": partial(alternating, PLU),
    "leaky_relu": partial(alternating, LeakyReLU),
    "tanh": lambda alpha: lambda features, index: Tanh(features),
}
"""The activations of invertible networks, by slope; ReLU has no inverse."""


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return the round trips of a cell, each array [linears, dtypes, depths, seeds].

    - error: the largest |F^-1(F(x)) - x|, infinite if some is not finite;
    - lost: the share of points that come back as no number.
    """
    spec: InverseSpec = cell.spec
    kinds = list(product(cell.seeds, spec.linears, spec.dtypes))
    found = np.array([round_trips(spec, cell.activation, linear, dtype, seed) for seed, linear, dtype in kinds])
    trips = found.reshape(len(cell.seeds), len(spec.linears), len(spec.dtypes), 2, len(spec.depths))
    error, lost = np.moveaxis(trips, (0, 3), (-1, 0))
    return {"seed": np.array(cell.seeds), "error": error, "lost": lost}


def round_trips(spec: InverseSpec, activation: str, linear: Linear, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Return [2, depths]: the largest error, and the share of points lost.

    The network of some depth is the beginning of the deepest one.
    """
    generator = torch.Generator().manual_seed(seed)
    make = NETWORKS[activation](spec.alpha)
    network = InvertibleNetwork(spec.features, max(spec.depths), activation=make, linear=linear, generator=generator)
    x = torch.randn(spec.points, spec.features, generator=generator).to(getattr(torch, dtype))
    parts = [Frozen(part) for part in network.to(x).bijection.parts()]
    chains = [Chain(*parts[: 2 * depth + 1]) for depth in spec.depths]
    with torch.no_grad():
        errors = torch.stack([(chain.inverse(chain(x)[0])[0] - x).norm(dim=-1) for chain in chains])
    lost = (~errors.isfinite()).double().mean(-1)
    return np.stack([errors.nan_to_num(torch.inf, torch.inf).amax(-1).numpy(), lost.numpy()])
