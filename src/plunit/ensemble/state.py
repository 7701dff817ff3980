"""What a training run carries from step to step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from plunit.ensemble.network import Network


@dataclass
class State:
    """Parameters, Adam's moments and the recorded losses of an ensemble; an engine's `advance` changes them in place.

    Attributes:
        network: the form of the members.
        lr: Adam's step size; its other settings are the defaults (0.9, 0.999, 1e-8).
        stride: the loss is recorded before every step that is a multiple of it.
        theta: [rows, S].
        mean: Adam's first moment, [rows, S].
        square: Adam's second moment, [rows, S].
        alpha: [depth - 1, S].
        c: [depth - 1, S].
        history: losses [ceil(steps / stride), S].
    """

    network: Network
    lr: float
    stride: int
    theta: Tensor
    mean: Tensor
    square: Tensor
    alpha: Tensor
    c: Tensor
    history: Tensor
