"""PLU on PyTorch tensors: a native kernel on the CPU, and the same function from PyTorch's own ops everywhere else.

Backward works from the output alone. Its piece is that of the input, |y| > c iff |x| > c, also after rounding, for an
outer value that would round to c is moved to the next number above; and x - m = (y - m) / alpha.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from plunit.functional import check, formula, log_slope_formula, slope_formula

try:
    _native: Any = importlib.import_module("plunit.torch._native")
except ImportError:  # installed without a compiler, or for another release of PyTorch
    _native = None

Parameter = float | Tensor
"""alpha or c: a number, or a tensor that broadcasts with x."""


def has_native() -> bool:
    """Whether the native kernel is there; without it PLU has the same values and gradients, more slowly."""
    return _native is not None


def plu(x: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0, *, inplace: bool = False) -> Tensor:
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise, in the dtype and memory format of x.

    Args:
        x: floating-point tensor of any shape; half precision is computed in float32.
        alpha: outer slope, alpha >= 0; a number or a tensor that broadcasts with x. Both parameters may need gradients.
        c: half-width of the inner piece, c >= 0; likewise. The values of tensors are not checked.
        inplace: overwrite x with the result.

    The derivative is 1 where |x| <= c and alpha elsewhere; so it is 1 at the kinks. Backward keeps one tensor, the
    output; the input instead where that cannot do, namely for alpha = 0 and, off the native kernel or in half
    precision, for the gradient of alpha.

    >>> plu(torch.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.1000,  0.5000,  1.1000])
    """
    if _native is not None and not torch.compiler.is_compiling():
        y = _native.plu(x, alpha, c, inplace)
        if y is not None:
            return y  # type: ignore[no-any-return]
    x, alpha, c = _checked(x, alpha, c)
    if inplace:
        return _overwrite(x, alpha, c)
    if _is_transformed(x, alpha, c):
        return _wide_formula(formula, x, alpha, c)
    return _PLU.apply(x, alpha, c, False)  # type: ignore[no-any-return, no-untyped-call]


def inverse(y: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0) -> Tensor:
    """PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), alpha > 0.

    >>> inverse(plu(torch.tensor([-2.0, 0.5, 2.0])))
    tensor([-2.0000,  0.5000,  2.0000])
    """
    check(alpha, c, invertible=True)
    return plu(y, 1 / alpha, c)


def slope(x: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0) -> Tensor:
    """Slope dPLU/dx: alpha where |x| > c, else 1.

    >>> slope(torch.tensor([-2.0, 1.0, 2.0]))
    tensor([0.1000, 1.0000, 0.1000])
    """
    return _wide_formula(slope_formula, *_checked(x, alpha, c))


def log_slope(x: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0) -> Tensor:
    """Log of the slope: log(alpha) where |x| > c, else 0.

    >>> log_slope(torch.tensor([-2.0, 1.0, 2.0]))
    tensor([-2.3026,  0.0000, -2.3026])
    """
    return _wide_formula(log_slope_formula, *_checked(x, alpha, c))


def _checked(x: Tensor, alpha: Any, c: Any) -> tuple[Tensor, Parameter, Parameter]:
    """Return the arguments with alpha and c as numbers, or as tensors in the precision that x is computed in."""
    check(alpha, c)
    if not isinstance(x, Tensor):
        raise TypeError(f"plunit.torch takes tensors, got {type(x).__name__}; plunit.plu takes numbers and arrays")
    if not x.is_floating_point():
        raise TypeError(f"PLU is defined for real floating-point tensors, got {x.dtype}; convert it with x.float()")
    return x, _parameter(alpha, x), _parameter(c, x)


def _parameter(value: Any, x: Tensor) -> Parameter:
    dtype = widened(x).dtype
    if isinstance(value, (int, float)):
        # what underflows is 0, and 0 has rules of its own
        return float(value) if value >= torch.finfo(dtype).tiny else 0.0
    return torch.as_tensor(value, device=x.device).to(dtype)


def widened(x: Tensor) -> Tensor:
    """Return x with enough digits to compute in: half precision as float32."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _wide_formula(function: Any, x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
    return function(torch, widened(x), alpha, c).to(x.dtype)  # type: ignore[no-any-return]


def _is_transformed(*values: Parameter) -> bool:
    """Whether a compiler, an exporter, torch.func or forward mode is at work: they want PyTorch's own ops."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return True
    if torch._C._functorch.maybe_current_level() is not None:
        return True
    tensors = [value for value in values if isinstance(value, Tensor)]
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)  # type: ignore[no-untyped-call]


def _output_tells(alpha: Parameter) -> bool:
    """Whether y is enough for backward: alpha is a number, not 0 (a tensor may hold a 0, and wants x - m itself)."""
    return not isinstance(alpha, Tensor) and alpha > 0


def _overwrite(x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
    """Replace x by PLU(x); where PyTorch forbids that, it raises before x is touched."""
    if _is_transformed(x, alpha, c):
        return x.copy_(_wide_formula(formula, x, alpha, c))
    if x.is_inference() and not torch.is_inference_mode_enabled():
        raise RuntimeError("an inference tensor cannot be overwritten outside inference mode; use inplace=False")
    is_plain = x._base is None and not (x.is_leaf and x.requires_grad and torch.is_grad_enabled())
    if is_plain and _output_tells(alpha):
        return _PLU.apply(x, alpha, c, True)  # type: ignore[no-any-return, no-untyped-call]
    return x.copy_(_PLU.apply(x.clone(), alpha, c, False))  # type: ignore[no-untyped-call]


def _rim(c: Parameter, x: Tensor) -> Tensor:
    """Return the least number of the dtype of x above c."""
    c = torch.as_tensor(c, dtype=widened(x).dtype, device=x.device)
    near = c.to(x.dtype)
    bits = near.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.dtype.itemsize])
    return torch.where(widened(near) > c, near, (bits + 1).view(x.dtype))


def _evaluate(x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
    """Evaluate the formula so that y, too, tells the piece: |y| > c iff |x| > c for alpha > 0."""
    y, rim = _wide_formula(formula, x, alpha, c), _rim(c, x)
    rounded_in = (widened(x).abs() > c) & (y.abs() < rim)
    if not _output_tells(alpha):
        rounded_in &= torch.as_tensor(alpha, device=x.device) > 0
    return torch.where(rounded_in, rim.copysign(x), y)


class _PLU(torch.autograd.Function):
    """PLU with gradients to all orders from one tensor: the output, or the input where that cannot do."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Parameter, c: Parameter, inplace: bool) -> Tensor:
        y = _evaluate(x, alpha, c)
        if inplace:
            y = x.copy_(y)
            ctx.mark_dirty(x)
        ctx.save_for_backward(y if _output_tells(alpha) else x, *(v for v in (alpha, c) if isinstance(v, Tensor)))
        ctx.alpha, ctx.c = (None if isinstance(v, Tensor) else v for v in (alpha, c))
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        saved = list(ctx.saved_tensors)
        kept, grad = widened(saved.pop(0)), widened(grads[0])
        alpha = saved.pop(0) if ctx.alpha is None else ctx.alpha
        c = saved.pop(0) if ctx.c is None else ctx.c
        outside, sign, zero = kept.abs() > c, kept.sign(), grad.new_zeros(())
        dx = torch.where(outside, alpha * grad, grad)
        dalpha = torch.where(outside, (kept - c * sign) * grad, zero) if ctx.alpha is None else None
        dc = torch.where(outside, (1 - alpha) * sign * grad, zero) if ctx.c is None else None
        return dx.to(grads[0].dtype), _reduced(dalpha, alpha), _reduced(dc, c), None


def _reduced(grad: Tensor | None, parameter: Parameter) -> Tensor | None:
    """Sum a gradient over the axes along which its parameter was broadcast."""
    if grad is None or not isinstance(parameter, Tensor):
        return None
    return grad.sum_to_size(parameter.shape).to(parameter.dtype)
