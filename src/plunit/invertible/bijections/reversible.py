"""A chain that keeps its input and output only, and finds the inputs of its parts again by inverting them.

The idea is that of reversible networks (Gomez et al., 2017; docs/glossary.md).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from plunit.invertible.bijections import boundary
from plunit.invertible.bijections.bijection import Bijection
from plunit.invertible.bijections.chain import Chain, Inverse
from plunit.torch.op import is_recorded, is_transformed

TOLERANCE = 0.01
"""How far off the input found on the way back may be, relative to the size of the points; gradients are as far off."""

_State = tuple[dict[str, Tensor], dict[str, Tensor]]
"""The parameters and the buffers of a part, by name."""


class Reversible(Chain):
    """The same map as `Chain`, forward and inverse, with memory for backward that does not grow with depth.

    Backward inverts the chain part by part, last first, and differentiates each part at the input found: each part is
    inverted and evaluated once more. `inverse` has ordinary gradients. Under torch.compile and torch.func it is an
    ordinary chain, with their memory.

    The gradients are those at the input that the way back ends at, whichever part has lost the digits. Backward
    compares it with the input that was given, and raises if they differ by more than `TOLERANCE`.
    """

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        if is_recorded() or is_transformed(x, *self.parameters()) or not torch.is_grad_enabled():
            return super().forward(x)
        states = [(dict(part.named_parameters()), dict(part.named_buffers())) for part in self.parts()]
        tensors = [tensor for parameters, _ in states for tensor in parameters.values()]
        return _Chain.apply(x, self, states, *tensors)  # type: ignore[no-any-return, no-untyped-call]


class _Chain(torch.autograd.Function):
    """A chain as one operation. The parameters live in the modules anyway; of activations input and output are kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, chain: Chain, states: list[_State], *tensors: Tensor) -> tuple[Tensor, Tensor]:
        y, log_det = Chain.forward(chain, x)
        ctx.save_for_backward(x, y)
        ctx.chain, ctx.states, ctx.rule = chain, states, boundary.rule()
        ctx.modules, ctx.versions = list(chain.modules()), _versions(chain, states)
        return y, log_det.clone()  # a part alone may return an expanded constant

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor, grad_log_det: Tensor) -> Any:
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError("a reversible network has first derivatives only; for second ones use reversible=False")
        x, y = ctx.saved_tensors
        if ctx.modules != list(ctx.chain.modules()) or _versions(ctx.chain, ctx.states) != ctx.versions:
            raise RuntimeError(
                "a part, parameter, buffer or mode of a reversible network was changed between forward and backward, "
                "so its activations cannot be found again; call backward before the optimiser's step"
            )
        grads: list[Tensor | None] = []
        for part, state in reversed(list(zip(ctx.chain.parts(), ctx.states, strict=True))):
            with boundary.under(ctx.rule):
                y, grad_y, found = _step_back(part, state, y, grad_y, grad_log_det)
            grads = found + grads
        _compare(y, x)
        return grad_y, None, None, *grads


def _versions(chain: Chain, states: list[_State]) -> list[int]:
    """Return a list that differs after any change of the tensors or of the mode."""
    tensors = [tensor for state in states for named in state for tensor in named.values()]
    return [*(tensor._version for tensor in tensors), *(module.training for module in chain.modules())]


def _compare(found: Tensor, given: Tensor) -> None:
    """Raise unless the input found is the one that was given.

    The size of a point is its largest feature, and at least that of the middle one of all points.
    """
    if not given.numel():
        return
    sizes = given.abs().amax(-1)
    sizes = sizes.maximum(sizes.median())
    error = ((found - given).abs().amax(-1) / torch.where(sizes > 0, sizes, 1)).max().item()
    if not error <= TOLERANCE:  # NaN too
        raise RuntimeError(
            f"the gradients of a reversible network would be wrong: the way back ends at an input that is off by "
            f"{error:.2g} of the size of the points; at most {TOLERANCE} is allowed. "
            f"The points are in {given.dtype}; use float64, milder slopes or reversible=False"
        )


def _step_back(
    part: Bijection, state: _State, y: Tensor, grad_y: Tensor, grad_log_det: Tensor
) -> tuple[Tensor, Tensor, list[Tensor | None]]:
    """Return the input of a part, and the gradients for it and for the part's parameters."""
    parameters, buffers = state
    with torch.no_grad():
        held = {f"bijection.{name}": tensor for name, tensor in (parameters | buffers).items()}
        x = functional_call(Inverse(part), held, (y,))[0]
    x = x.detach().requires_grad_()
    fresh = {name: tensor.detach().requires_grad_(tensor.requires_grad) for name, tensor in parameters.items()}
    with torch.enable_grad():
        outputs = functional_call(part, fresh | buffers, (x,))
    pairs = [(out, grad) for out, grad in zip(outputs, (grad_y, grad_log_det), strict=True) if out.requires_grad]
    wanted = [x, *(tensor for tensor in fresh.values() if tensor.requires_grad)]
    found = iter(torch.autograd.grad([p[0] for p in pairs], wanted, [p[1] for p in pairs], allow_unused=True))
    grad_x = next(found)
    return x.detach(), grad_x, [next(found) if tensor.requires_grad else None for tensor in fresh.values()]
