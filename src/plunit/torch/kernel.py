"""The contract of an implementation of PLU, and autograd on top of any of them."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

__all__ = ["Kernel"]

Parameter = float | Tensor
"""alpha or c: a number, or a tensor that broadcasts with x."""

Gradients = tuple[Tensor, Tensor | None, Tensor | None]
"""Those of x, alpha and c; None for a parameter that is a number."""


class Kernel(Protocol):
    """One implementation of PLU: `forward`, `backward` and `backward_learned`, as in csrc/kernel.h.

    Check-list for a new one. It is a module, not a class; `composite.py` is the shortest:

    - The three functions and `KEEPS_OUTPUT`. `apply` below adds autograd to all orders, and `inplace`.
    - A line in `op.plu`, which decides which kernel serves a call, and its name in `op.kernels`.
    - x is floating-point; half precision is computed in float32 and rounded once.
    - alpha and c are numbers or tensors in the precision that x is computed in. Numbers are finite and >= 0.
    - Values are those of `plunit.functional.formula`: |x| <= c gives x. Tests compare bits with the native kernel.
    - `KEEPS_OUTPUT`: backward gets the output y instead of x if alpha is a number > 0. Then forward rounds outward:
      |y| > c wherever |x| > c, so that y determines the piece. In place keeps y with every kernel.
    - `backward` is right for x and for y rounded outward; an infinite gradient stays infinite.
    - A NaN in x makes the gradient of alpha NaN. It has the slope 1 and adds nothing to the gradient of c.
    - A line in `LOADERS` of tests/torch/test_kernels.py, which holds the tests for every kernel.
    """

    KEEPS_OUTPUT: bool

    def forward(self, x: Tensor, alpha: Parameter, c: Parameter, *, outward: bool, inplace: bool = False) -> Tensor:
        """Return PLU(x), written into x if `inplace`."""

    def backward(self, grad: Tensor, kept: Tensor, alpha: float, c: float) -> Tensor:
        """Return the gradient of x: grad where |kept| <= c, else alpha * grad. `kept` is x, or y rounded outward."""

    def backward_learned(self, grad: Tensor, x: Tensor, alpha: Parameter, c: Parameter) -> Gradients:
        """Return the gradients of x, alpha and c; at least one of alpha and c is a tensor."""


def apply(kernel: Kernel, x: Tensor, alpha: Parameter, c: Parameter, inplace: bool) -> Tensor:
    """Return PLU(x) with gradients to all orders."""
    learned = isinstance(alpha, Tensor) or isinstance(c, Tensor)
    if inplace:
        return _overwrite(kernel, x, alpha, c, learned)
    if learned:
        return _Learned.apply(kernel, x, alpha, c)  # type: ignore[no-any-return, no-untyped-call]
    if x.requires_grad and torch.is_grad_enabled():
        return _Fixed.apply(kernel, x, alpha, c, False)  # type: ignore[no-any-return, no-untyped-call]
    return kernel.forward(x, alpha, c, outward=False)


def _overwrite(kernel: Kernel, x: Tensor, alpha: Parameter, c: Parameter, learned: bool) -> Tensor:
    """Replace x by PLU(x); where PyTorch forbids that, raise before x is touched."""
    if x.is_inference() and not torch.is_inference_mode_enabled():
        raise RuntimeError("an inference tensor cannot be overwritten outside inference mode; use inplace=False")
    is_plain = x._base is None and not (x.is_leaf and x.requires_grad and torch.is_grad_enabled())
    if is_plain and not learned and alpha > 0:
        return _Fixed.apply(kernel, x, alpha, c, True)  # type: ignore[no-any-return, no-untyped-call]
    return x.copy_(apply(kernel, x.clone(), alpha, c, False))


def widen(x: Tensor) -> Tensor:
    """Return x with enough digits to compute in: half precision as float32."""
    return x.float() if x.dtype in [torch.float16, torch.bfloat16] else x  # a list, which torch.jit.script compiles


def sum_to_shape(grad: Tensor, parameter: Parameter) -> Tensor | None:
    """Sum a gradient over the axes along which its parameter was broadcast; None for a number."""
    if not isinstance(parameter, Tensor):
        return None
    return grad.sum_to_size(parameter.shape).to(parameter.dtype)


class _Fixed(torch.autograd.Function):
    """PLU where alpha and c are numbers. Backward keeps x, or y if the kernel or `inplace` wants that."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, x: Tensor, alpha: float, c: float, inplace: bool) -> Tensor:
        outward = alpha > 0 and (inplace or kernel.KEEPS_OUTPUT)
        y = kernel.forward(x, alpha, c, outward=outward, inplace=inplace)
        if inplace:
            ctx.mark_dirty(x)
        ctx.save_for_backward(y if outward else x)
        ctx.rest = kernel, alpha, c
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        kernel, alpha, c = ctx.rest
        (kept,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, differentiable(grads[0], kept, alpha, c)[0], None, None, None
        return None, kernel.backward(grads[0], kept, alpha, c), None, None, None


class _Learned(torch.autograd.Function):
    """PLU where alpha or c is a tensor. Backward keeps x, because a tensor may hold alpha = 0."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
        ctx.save_for_backward(x, *(v for v in (alpha, c) if isinstance(v, Tensor)))
        ctx.kernel = kernel
        ctx.alpha, ctx.c = (None if isinstance(v, Tensor) else v for v in (alpha, c))
        return kernel.forward(x, alpha, c, outward=False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, *tensors = ctx.saved_tensors
        alpha = tensors.pop(0) if ctx.alpha is None else ctx.alpha
        c = tensors.pop(0) if ctx.c is None else ctx.c
        gradients = differentiable if torch.is_grad_enabled() else ctx.kernel.backward_learned
        return None, *gradients(grads[0], x, alpha, c)


def differentiable(grad: Tensor, kept: Tensor, alpha: Parameter, c: Parameter) -> Gradients:
    """Return the gradients as expressions that can be differentiated again; `kept` is y only if alpha is a number."""
    g, wide = widen(grad), widen(kept)
    outside, sign = wide.abs() > c, wide.sign()
    zero = g.new_zeros(())
    dx = torch.where(outside, alpha * g, g).to(grad.dtype)
    dalpha = sum_to_shape(torch.where(wide.abs() <= c, zero, (wide - c * sign) * g), alpha)  # a NaN stays one
    dc = sum_to_shape(torch.where(outside, (1 - alpha) * sign * g, zero), c)
    return _Connected.apply(dx, kept), dalpha, dc  # type: ignore[no-untyped-call]


class _Connected(torch.autograd.Function):
    """dx itself, with the derivative 0 by x: PyTorch's activations have second derivatives, too, and they are 0."""

    @staticmethod
    def forward(ctx: Any, dx: Tensor, kept: Tensor) -> Tensor:
        ctx.save_for_backward(kept)
        return dx.view_as(dx)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0], torch.zeros_like(ctx.saved_tensors[0])
