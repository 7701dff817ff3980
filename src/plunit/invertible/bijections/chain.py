"""Bijections made of others: `Chain` composes them, `Inverse` inverts one, `Frozen` fixes all parameters.

A chain of blocks (LU, SmoothPLU) that ends in LU is one operation with its own derivative, because on small samples the
time of a training step depends on the number of operations. The parameters of all blocks are stacked, and so are the
tensors that backward needs. Only samples and their gradients pass through block by block; the rest is computed for all
blocks together. With u the input of an activation, a = |u|, q and s as in `SmoothPLU`, r = 1 - q and e = sign(u) (c - w
q),

    dy = s du + r (u - e) d alpha + sign(u) (1 - alpha) r (dc - q dw)
    d log s = (r / s) d alpha - t (sign(u) du - dc + (q - r) dw),  t = (1 - alpha) / (2 w s) where 0 < r < 1, else 0
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from plunit.invertible.bijections.bijection import (
    Bijection,
    Leaf,
    LeafSteps,
    as_columns,
    expect,
    reverse,
    stack_raw,
    walk,
)
from plunit.invertible.bijections.linear import LU
from plunit.invertible.bijections.smooth_plu import SmoothPLU, smooth_columns
from plunit.torch.op import is_recorded, is_transformed


class Chain(Bijection):
    """F = F_k o ... o F_1: applies the bijections in turn and adds their log-determinants.

    >>> import torch
    >>> from plunit.invertible import PLU, Permutation
    >>> chain = Chain(Permutation([1, 0]), PLU(2))
    >>> y, log_det = chain(torch.tensor([0.5, 2.0]))
    >>> y
    tensor([1.1000, 0.5000])
    >>> chain.inverse(y)[0]
    tensor([0.5000, 2.0000])
    """

    def __init__(self, *bijections: Bijection) -> None:
        if not bijections:
            raise ValueError("a Chain needs at least one bijection, got none; ScaleShift(features) is one")
        for part in bijections:
            expect(part, "a Chain")
        sizes = [bijection.features for bijection in bijections]
        if len(set(sizes)) > 1:
            raise ValueError(f"the bijections of a Chain must have the same number of features, got {sizes}")
        super().__init__(sizes[0])
        self.bijections = nn.ModuleList(bijections)

    def parts(self) -> list[Bijection]:
        """Return the bijections, first applied first."""
        return list(self.bijections)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Apply all bijections."""
        return self._through(x, self._steps())

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Invert all bijections, last first."""
        return self._through(y, reverse(self._steps()))

    def _steps(self) -> list[tuple[Bijection, bool]]:
        return [step for bijection in self.parts() for step in _flatten(bijection)]

    def _through(self, x: Tensor, steps: list[tuple[Bijection, bool]]) -> tuple[Tensor, Tensor]:
        """Apply the steps; consecutive leaves are applied together."""
        total: Tensor | float = 0.0
        while steps:
            count = next((i for i, (step, _) in enumerate(steps) if not _is_just(step, Leaf)), len(steps))
            step, inverted = steps[0]
            if count:
                leaves = cast(Any, steps[:count])
                x, log_det = (walk_blocks if are_blocks(leaves) else walk)(self, x, leaves)
            else:
                x, log_det = step.inverse(x) if inverted else step(x)
            total, steps = total + log_det, steps[count or 1 :]
        return x, total  # type: ignore[return-value]

    def lipschitz(self) -> tuple[float, float]:
        """Return the products of the bounds."""
        forward, backward = 1.0, 1.0
        for bijection in self.parts():
            ahead, back = bijection.lipschitz()
            forward, backward = forward * ahead, backward * back
        return forward, backward

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """Return the leaves of all bijections."""
        return [leaf for bijection in self.parts() for leaf in bijection.leaves()]


class Inverse(Bijection):
    """F^-1 as a bijection: forward and inverse exchanged."""

    def __init__(self, bijection: Bijection) -> None:
        expect(bijection, "Inverse")
        super().__init__(bijection.features)
        self.bijection = bijection

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F^-1(x)."""
        return self.bijection.inverse(x)

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(y)."""
        return self.bijection(y)  # type: ignore[no-any-return]

    def lipschitz(self) -> tuple[float, float]:
        """Return the bounds of F, exchanged."""
        forward, backward = self.bijection.lipschitz()
        return backward, forward

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """Return the leaves of F in reverse order, each inverted."""
        return reverse(self.bijection.leaves())


class Frozen(Chain):
    """The same map as another bijection, with its matrices and slopes computed once.

    Args:
        bijection: made of leaves only. Later changes to its parameters have no effect here.

    Its state_dict is empty: save the bijection instead. To change the precision, convert the bijection and freeze it
    again: values that were rounded separately do not invert each other more precisely.

    >>> from plunit.invertible import LU, PLU, Chain
    >>> Frozen(Chain(LU(2), PLU(2)))
    Frozen(LU, PLU)
    """

    def __init__(self, bijection: Bijection) -> None:
        expect(bijection, "Frozen")
        with torch.no_grad(), parametrize.cached():
            steps = [(_FrozenLeaf(leaf), inverted) for leaf, inverted in bijection.leaves()]
        super().__init__(*(Inverse(leaf) if inverted else leaf for leaf, inverted in steps))

    def sharp(self) -> Bijection:
        """Raise TypeError: a frozen bijection has no parameters."""
        raise TypeError("a frozen bijection cannot be made sharp; freeze the sharp one: Frozen(bijection.sharp())")

    def __repr__(self) -> str:
        return f"Frozen({', '.join(leaf.kind for leaf, _ in self.leaves())})"


class _FrozenLeaf(Leaf):
    """A leaf whose values are stored as columns, in buffers."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf.features)
        self.evaluate, self.invert = leaf.evaluate, leaf.invert  # type: ignore[method-assign]
        self._kind, self._bounds = leaf.kind, leaf.lipschitz()
        self._unique = object()  # the only leaf of its kind: no values are left to compute
        ahead, back = as_columns(leaf.imply(*leaf.raw())), as_columns(leaf.imply_inverse(*leaf.raw()))
        self._ahead = len(ahead)
        for index, value in enumerate((*ahead, *back)):
            value = value.detach().clone(memory_format=torch.contiguous_format)
            self.register_buffer(f"value_{index}", value, persistent=False)

    def raw(self) -> tuple[Tensor, ...]:
        return tuple(self._buffers.values())  # type: ignore[arg-type]

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        return raw[: self._ahead]

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        return raw[self._ahead :]

    def lipschitz(self) -> tuple[float, float]:
        return self._bounds

    @property
    def kind(self) -> str:
        return self._kind


def _flatten(bijection: Bijection) -> list[tuple[Bijection, bool]]:
    """Return the parts, or the bijection itself, in the order of application, each with whether to invert it."""
    if isinstance(bijection, Chain) and _is_just(bijection, Chain):
        return bijection._steps()
    if isinstance(bijection, Inverse) and _is_just(bijection, Inverse):
        return reverse(_flatten(bijection.bijection))
    return [(bijection, False)]


def _is_just(bijection: Bijection, kind: type[Bijection]) -> bool:
    """Return whether a bijection uses the methods of this kind and has no hooks."""
    own = type(bijection)
    hooked = bijection._forward_hooks or bijection._forward_pre_hooks or bijection._backward_hooks
    return own.forward is kind.forward and own.inverse is kind.inverse and not hooked


def are_blocks(steps: LeafSteps) -> bool:
    """Return whether the steps are LU, SmoothPLU, ..., LU with equal settings in all blocks, and none is inverted."""
    if len(steps) < 3 or len(steps) % 2 == 0 or any(inverted for _, inverted in steps):
        return False
    kinds = all(type(leaf) is (SmoothPLU if place % 2 else LU) for place, (leaf, _) in enumerate(steps))
    return kinds and len({tuple(leaf._parameters) for leaf, _ in steps[1::2]}) == 1


def walk_blocks(user: Bijection, x: Tensor, steps: LeafSteps) -> tuple[Tensor, Tensor]:
    """Return the images of the samples x (..., n) under the blocks, and their log-determinants."""
    layers, units = steps[::2], steps[1::2]
    weight, bias, log_diagonal = as_columns(layers[0][0].imply(*stack_raw(layers)), axes=2)
    values = as_columns(units[0][0].imply(*stack_raw(units)), axes=2)
    user._check(x, (weight, values[1]))
    columns = x.reshape(-1, x.shape[-1]).mT
    inputs = (columns, weight, bias, *values)
    apply = _formula if is_recorded() or is_transformed(*inputs) else _Blocks.apply
    y, log_slopes = apply(*inputs)
    log_det = log_slopes + log_diagonal.sum((0, 1))
    return y.mT.reshape(x.shape), log_det.reshape(x.shape[:-1])


def _formula(x: Tensor, weight: Tensor, bias: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the images of the columns x, and for each column the sum of the log-slopes of all activations."""
    y, _, _, _, slopes = _forward(x, weight, bias, *values)
    return y, torch.stack(slopes).log().sum((0, 1))


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, *values: Tensor
) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """Return the output, and for each block the inputs of its layer and activation, q and the slopes."""
    inputs = [x]
    before, qs, slopes = cast(list[list[Tensor]], [[], [], []])
    *layers, (last, shift) = zip(weight.unbind(), bias.unbind(), strict=True)
    for (matrix, vector), *of_block in zip(layers, *(value.unbind() for value in values), strict=True):
        u = torch.addmm(vector, matrix, inputs[-1])
        y, q, slope = smooth_columns(u, *of_block)
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
        if torch.is_grad_enabled():  # create_graph=True: the stored tensors depend on the others
            return _differentiate(in_y, in_log, x, weight, bias, *values)
        _, alpha, c, w, _, width = values
        rest, sign, inverse = 1 - alpha, u.sign(), in_log / slopes
        turned = torch.where((q > 0) & (q < 1), inverse * (rest / width), 0)
        outer, inner = _pull_back(in_y, weight, slopes, sign * turned)
        r = 1 - q
        edge = sign * torch.addcmul(c, w, q, value=-1)
        in_alpha = r * torch.addcmul(inverse, outer, u - edge)
        moved = outer * sign * r * rest
        in_w = torch.addcmul(moved * q, turned, q - r).neg()
        of_units = (grad.sum(-1, keepdim=True) for grad in (in_alpha, moved + turned, in_w))
        in_x = weight[0].mT @ inner[0] if ctx.needs_input_grad[0] else None
        return in_x, inner @ inputs.mT, inner.sum(-1, keepdim=True), None, *of_units, None, None


def _pull_back(in_y: Tensor, weight: Tensor, slopes: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients in the outputs of all activations and of all layers."""
    outer, inner = [], [in_y]
    of_blocks = zip(weight[1:].mT.unbind(), slopes.unbind(), turned.unbind(), strict=True)
    for matrix, slope, term in reversed(list(of_blocks)):
        outer.append(matrix @ inner[-1])
        inner.append(torch.addcmul(-term, outer[-1], slope))
    return torch.stack(outer[::-1]), torch.stack(inner[::-1])


def _differentiate(in_y: Tensor, in_log: Tensor, *inputs: Tensor) -> Any:
    """Return the gradients of the formula, with their graph."""
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    grads = torch.autograd.grad(_formula(*inputs), wanted, (in_y, in_log), create_graph=True, allow_unused=True)
    found = iter(grads)
    return tuple(next(found) if tensor.requires_grad else None for tensor in inputs)
