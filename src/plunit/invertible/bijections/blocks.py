"""A chain of blocks (LU, SmoothPLU) ended by LU, as one operation whose derivative is written out.

On small samples the time of a training step is that of the number of operations. Here the parameters of all blocks are
stacked, and so is what backward needs of them: only the way of the samples through the blocks, and of their gradients
back, is taken block by block. The rest is computed for all blocks at once. With u the input of an activation, a = |u|,
q and s as in `SmoothPLU`, r = 1 - q and e = sign(u) (c - w q),

    dy = s du + r (u - e) d alpha + sign(u) (1 - alpha) r (dc - q dw)
    d log s = (r / s) d alpha - t (sign(u) du - dc + (q - r) dw),  t = (1 - alpha) / (2 w s) where 0 < r < 1, else 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from plunit.invertible.bijections.bijection import Bijection, Steps, as_columns, stacked_raw
from plunit.invertible.bijections.linear import LU
from plunit.invertible.bijections.smooth_plu import SmoothPLU, bend
from plunit.torch.op import is_recorded, is_transformed


def are_blocks(steps: Sequence[tuple[Bijection, bool]]) -> bool:
    """Say whether the steps are LU, SmoothPLU, ..., LU, of the same form in all blocks, and are taken forward."""
    if len(steps) < 3 or len(steps) % 2 == 0 or any(inverted for _, inverted in steps):
        return False
    kinds = all(type(leaf) is (SmoothPLU if place % 2 else LU) for place, (leaf, _) in enumerate(steps))
    return kinds and len({tuple(leaf._parameters) for leaf, _ in steps[1::2]}) == 1


def walk_blocks(user: Bijection, x: Tensor, steps: Steps) -> tuple[Tensor, Tensor]:
    """Return where the blocks take the samples x (..., n), and the log-determinant of each."""
    layers, units = steps[::2], steps[1::2]
    weight, bias, log_diagonal = as_columns(layers[0][0].imply(*stacked_raw(layers)), axes=2)
    values = as_columns(units[0][0].imply(*stacked_raw(units)), axes=2)
    user._check(x, (weight, values[1]))
    columns = x.reshape(-1, x.shape[-1]).mT
    inputs = (columns, weight, bias, *values)
    way = _formula if is_recorded() or is_transformed(*inputs) else _Blocks.apply
    y, log_slopes = way(*inputs)
    log_det = log_slopes + log_diagonal.sum((0, 1))
    return y.mT.reshape(x.shape), log_det.reshape(x.shape[:-1])


def _formula(x: Tensor, weight: Tensor, bias: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the blocks take the columns x, and the sum of the log-slopes of all activations, of each."""
    y, _, _, _, slopes = _forward(x, weight, bias, *values)
    return y, torch.stack(slopes).log().sum((0, 1))


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, *values: Tensor
) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """Return the output, and of each block what goes into the layer, into the activation, q and the slopes."""
    inputs = [x]
    before, qs, slopes = cast(list[list[Tensor]], [[], [], []])
    *layers, (last, shift) = zip(weight.unbind(), bias.unbind(), strict=True)
    for (matrix, vector), *of_block in zip(layers, *(value.unbind() for value in values), strict=True):
        u = torch.addmm(vector, matrix, inputs[-1])
        y, q, slope = bend(u, *of_block)
        for kept, found in zip((inputs, before, qs, slopes), (y, u, q, slope), strict=True):
            kept.append(found)
    return torch.addmm(shift, last, inputs[-1]), inputs, before, qs, slopes


class _Blocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        y, *kept = _forward(x, weight, bias, *values)
        inputs, before, q, slopes = (torch.stack(each) for each in kept)
        ctx.save_for_backward(x, weight, bias, *values, inputs, before, q, slopes)
        return y, slopes.log().sum((0, 1))

    @staticmethod
    def backward(ctx: Any, in_y: Tensor, in_log: Tensor) -> Any:
        x, weight, bias, *values, inputs, u, q, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: what was kept depends on the rest
            return _differentiate(in_y, in_log, x, weight, bias, *values)
        _, alpha, c, w, _, width = values
        rest, sign, inverse = 1 - alpha, u.sign(), in_log / slopes
        turned = torch.where((q > 0) & (q < 1), inverse * (rest / width), 0)
        outer, inner = _way_back(in_y, weight, slopes, sign * turned)
        r = 1 - q
        edge = sign * torch.addcmul(c, w, q, value=-1)
        in_alpha = r * torch.addcmul(inverse, outer, u - edge)
        moved = outer * sign * r * rest
        in_w = torch.addcmul(moved * q, turned, q - r).neg()
        of_units = (grad.sum(-1, keepdim=True) for grad in (in_alpha, moved + turned, in_w))
        in_x = weight[0].mT @ inner[0] if ctx.needs_input_grad[0] else None
        return in_x, inner @ inputs.mT, inner.sum(-1, keepdim=True), None, *of_units, None, None


def _way_back(in_y: Tensor, weight: Tensor, slopes: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients in the outputs of all activations, and in those of all layers."""
    outer, inner = [], [in_y]
    of_blocks = zip(weight[1:].mT.unbind(), slopes.unbind(), turned.unbind(), strict=True)
    for matrix, slope, term in reversed(list(of_blocks)):
        outer.append(matrix @ inner[-1])
        inner.append(torch.addcmul(-term, outer[-1], slope))
    return torch.stack(outer[::-1]), torch.stack(inner[::-1])


def _differentiate(in_y: Tensor, in_log: Tensor, *inputs: Tensor) -> Any:
    """Return the gradients of the formula, with a graph of their own."""
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    grads = torch.autograd.grad(_formula(*inputs), wanted, (in_y, in_log), create_graph=True, allow_unused=True)
    found = iter(grads)
    return tuple(next(found) if tensor.requires_grad else None for tensor in inputs)
