"""Train an ensemble: many independent networks, each from its own start, as one."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from plunit.ensemble import eager, native
from plunit.ensemble.build import Unavailable, library
from plunit.ensemble.data import Data, Stream, fill, take
from plunit.ensemble.network import Network, spread
from plunit.ensemble.state import State

ENGINES = {"native": native.advance, "eager": eager.advance}
_STREAMED = 64  # batches asked of a stream at once


@dataclass(frozen=True)
class Trained:
    """An ensemble after training.

    Attributes:
        theta: the final parameters [rows, S].
        history: the losses [ceil(steps / stride), S]; row k is the loss before step k * stride.
        checkpoints: parameters [len(checkpoints), rows, S] after the steps asked for.
    """

    theta: Tensor
    history: Tensor
    checkpoints: Tensor


def engine() -> str:
    """Return the faster engine that works here: "native", or "eager" where no C++ compiler is found."""
    return "eager" if why_not_native() else "native"


def why_not_native() -> str:
    """Return the reason why the compiled program cannot be had, or "" where it can."""
    try:
        library()
    except Unavailable as reason:
        return str(reason)
    return ""


def train(
    network: Network,
    theta: Tensor,
    data: Data | Stream,
    *,
    steps: int,
    lr: float = 0.01,
    alpha: Tensor | float = 0.1,
    c: Tensor | float = 1.0,
    stride: int = 16,
    checkpoints: Sequence[int] = (),
    engine: str | None = None,
) -> Trained:
    """Minimise every member's mean square error by `steps` steps of Adam.

    Args:
        network: the form of the members.
        theta: the start [rows, S], left as it is; see `initial`.
        data: a fixed batch, or a stream of new ones.
        steps: number of steps.
        lr: Adam's step size; its other settings are PyTorch's defaults.
        alpha: the outer slope of PLU; a number, [S] or [depth - 1, S].
        c: the half-width of its inner piece; likewise.
        stride: the loss is recorded every `stride` steps.
        checkpoints: steps after which the parameters are kept, in increasing order.
        engine: "native" (compiled, float32 on the processor) or "eager"; by default native where possible.

    A member's result depends on its own start and data only, to the last bit: not on the other members, not on their
    number. The engines run the same algorithm and round differently. Differences of rounding grow during training, so
    that a single member can end elsewhere, while statistics over many members agree.
    """
    if steps < 0 or stride < 1 or list(checkpoints) != sorted({k for k in checkpoints if 0 <= k <= steps}):
        raise ValueError(
            f"need steps >= 0, stride >= 1, 0 <= checkpoints <= steps; got {steps}, {stride}, {checkpoints}"
        )
    if theta.ndim != 2 or theta.shape[0] != network.rows or theta.shape[1] < 1:
        raise ValueError(f"theta must be [{network.rows}, members] for {network}, got {tuple(theta.shape)}")
    if engine == "native" and not _fits_native(theta):
        raise ValueError(f"the native engine takes float32 on the processor, got {theta.dtype} on {theta.device}")
    advance = ENGINES[engine or _best(theta)]
    members = theta.shape[1]
    state = _start(network, theta, spread(network, theta, alpha), spread(network, theta, c), lr, stride, steps)
    kept = []
    marks = {*checkpoints, steps, *(range(0, steps, _STREAMED) if callable(data) else ())}
    for first, last in itertools.pairwise(sorted({0, *marks})):
        if first in checkpoints:
            kept.append(state.theta[:, :members].clone())
        advance(state, *take(data, last - first, network, theta), first, last)
    if steps in checkpoints:
        kept.append(state.theta[:, :members].clone())
    weights = torch.stack(kept) if kept else theta.new_empty(0, network.rows, members)
    return Trained(state.theta[:, :members].clone(), state.history[:, :members].clone(), weights)


def _fits_native(theta: Tensor) -> bool:
    return theta.dtype == torch.float32 and theta.device.type == "cpu"


def _best(theta: Tensor) -> str:
    if not _fits_native(theta):
        return "eager"
    if reason := why_not_native():
        warnings.warn(
            f"{reason}. Training runs eagerly, which is slower. The algorithm is the same, but single members differ, "
            "because differences of rounding grow during training. Statistics over many members agree.",
            stacklevel=3,
        )
        return "eager"
    return "native"


def _start(network: Network, theta: Tensor, alpha: Tensor, c: Tensor, lr: float, stride: int, steps: int) -> State:
    theta, alpha, c = (fill(value.detach()) for value in (theta, alpha, c))
    history = theta.new_zeros(math.ceil(steps / stride), theta.shape[1])
    moments = torch.zeros_like(theta), torch.zeros_like(theta)
    return State(network, lr, stride, theta.clone(), *moments, alpha, c, history)
