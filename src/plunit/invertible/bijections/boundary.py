"""The boundary term: the part of a likelihood's gradient that automatic differentiation drops at kinks.

log s(u) of a kinked activation jumps by log(alpha) where u crosses a kink. Its derivative is 0 elsewhere, but d/dtheta
E[log s(u)] = log(alpha) * (density of u at the kink) * E[du/dtheta there] is not 0: samples cross the kink when
parameters change (Lee, Yu and Yang, 2018). The density is estimated from the batch, separately for each unit, by the
nearest neighbours (Loftsgaarden and Quesenberry, 1965): the k = ceil(sqrt(m)) of m samples that are nearest to the kink
define a width h, and each sample nearer than h counts 1 / (2 h). Outliers, heavy tails and other modes do not change h.
docs/glossary.md has the references.

The term is for parameters in training. A bijection adds it in training mode (`module.train()`, PyTorch's default) if
gradients are recorded. The input of a bijection may be the output of another layer, so the input's gradient includes
the term. The input of a flow is data: `of_data` keeps the term out of its gradient in every mode.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from plunit.torch.op import is_transformed

Mode = Literal["data may have gradients", "data have none", "left out"]


class _Thread(threading.local):
    rule: Mode = "data may have gradients"


_thread = _Thread()


@contextmanager
def under(rule: Mode) -> Iterator[None]:
    """Apply another rule within a `with` block."""
    before, _thread.rule = _thread.rule, rule
    try:
        yield
    finally:
        _thread.rule = before


def is_wanted() -> bool:
    """Return whether bijections in training mode add the term."""
    return _thread.rule != "left out" and torch.is_grad_enabled()


def width(distance: Tensor) -> Tensor:
    """Return the distance of the k-th nearest sample, [n, 1], given those of all samples [n, m] to the kinks."""
    return distance.kthvalue(math.ceil(math.sqrt(distance.shape[-1])), dim=-1, keepdim=True).values


def term(beyond: Tensor, jump: Tensor) -> Tensor:
    """Return 0, with the gradient of the boundary term.

    Args:
        beyond: how far each sample is beyond the kink, [n, m]; negative before it.
        jump: log(alpha), [n, 1].
    """
    if not beyond.numel():
        return torch.zeros_like(beyond)
    most = min(1e30, torch.finfo(beyond.dtype).max)
    beyond = beyond.clamp(-most, most)  # infinities get no gradient
    distance = beyond.detach().abs()
    h = width(distance)
    weighted = torch.where(distance < h, jump.detach() / (2 * h), 0) * beyond
    return weighted - weighted.detach()


def of_data(bijection: nn.Module, *data: Tensor) -> tuple[Tensor, Tensor]:
    """Return F(x) and its log-determinant; gradients in x and its origins have no boundary term.

    The term is added for a detached copy of x, so it reaches only the parameters of the bijection. A conditional
    bijection has two inputs, x and context.
    """
    # within torch.func and forward mode, requires_grad is not set on tensors
    has_gradient = any(x.requires_grad for x in data) or is_transformed(*data)
    has_term = any(module.training and getattr(module, "boundary", False) for module in bijection.modules())
    if not (has_gradient and has_term and is_wanted()) or _thread.rule == "data have none":
        return bijection(*data)  # type: ignore[no-any-return]
    still = [x.detach() for x in data]
    with under("left out"):
        y, log_det = bijection(*data)
        without = bijection(*still)[1]
    return y, log_det + torch.where(log_det.isfinite(), bijection(*still)[1] - without, 0)
