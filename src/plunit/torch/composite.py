"""PLU from PyTorch's own ops, for every device: two ops forward and two backward if alpha < 1/2 is a number.

`plu` adds autograd, to all orders, and `inplace`. Backward keeps the input x, one tensor more than ReLU, because the
next layer usually keeps the output anyway. In place it keeps the output y, which forward then rounds outward: |y| > c
wherever |x| > c, so that y determines the piece. The native kernel (csrc/kernel.h) always does so.

Differences from the native kernel: values outside [-c, c] are not rounded outward and may have another last bit
(`lerp` rounds once on some devices and twice on others), and -0.0 becomes 0.0. Gradients have the same bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._C._nn import hardtanh  # F.hardtanh without its checks

Parameter = float | Tensor
"""alpha or c: a number, or a tensor that broadcasts with x."""

Gradients = tuple[Tensor, Tensor | None, Tensor | None]
"""The gradients of x, alpha and c; None for a parameter that is a number."""

_hardtanh_backward = torch.ops.aten.hardtanh_backward.default
_leaky_relu_backward = torch.ops.aten.leaky_relu_backward.grad_input
_ONES = {dtype: torch.ones((), dtype=dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)}


class _Edge(NamedTuple):
    """c in a dtype: `rim` is the smallest number above c, and `exact` is whether the dtype can represent c."""

    rim: float
    exact: bool


_EDGES: dict[tuple[float, torch.dtype], _Edge] = {}
"""Results of `edge`, at most 256; functools.lru_cache would make torch.compile warn."""


def edge(c: float, dtype: torch.dtype) -> _Edge:
    """Compare c with the numbers of a dtype, in NumPy, which PyTorch's modes and tracers do not see."""
    if (found := _EDGES.get((c, dtype))) is None:
        if len(_EDGES) >= 256:
            _EDGES.clear()
        found = _EDGES[c, dtype] = _find_edge(c, dtype)
    return found


def _find_edge(c: float, dtype: torch.dtype) -> _Edge:
    kind: Any = {torch.float16: np.float16, torch.float64: np.float64}.get(dtype, np.float32)
    with np.errstate(over="ignore"):
        value: Any = np.float64(c) if dtype == torch.float64 else np.float32(c)
        if dtype == torch.bfloat16:
            bits = value.view(np.uint32)
            above = (bits & np.uint32(0xFFFF0000)) + np.uint32(0x10000)
            return _Edge(float(above.view(np.float32)), not bits & np.uint32(0xFFFF))
        near = kind(value)
        return _Edge(float(near if near > value else np.nextafter(near, kind(np.inf))), bool(near == value))


def forward(x: Tensor, alpha: Parameter, c: Parameter, *, outward: bool = False, inplace: bool = False) -> Tensor:
    """Return PLU(x), rounded outward if alpha and c are numbers and `outward`, written into x if `inplace`."""
    if isinstance(alpha, Tensor) or isinstance(c, Tensor):
        y = _tensors(as_wide(x), alpha, c).to(x.dtype)
    elif outward:
        y = _outward(x, alpha, c)
    elif edge(c, x.dtype).exact:
        y = _from_clipped(hardtanh(x, -c, c), x, alpha)
    else:
        wide = as_wide(x)
        y = _from_clipped(hardtanh(wide, -c, c), wide, alpha).to(x.dtype)
    return x.copy_(y) if inplace else y


def backward(grad: Tensor, kept: Tensor, alpha: float, c: float) -> Tensor:
    """Return the gradient of x: grad where |kept| <= c, else alpha * grad. `kept` is x, or y rounded outward."""
    rim = edge(c, kept.dtype).rim
    if alpha == 0:
        return _hardtanh_backward(grad, kept, -rim, rim)  # type: ignore[no-any-return]
    # 1 inside and 0 outside selects grad or alpha * grad; a product would turn an infinite grad into NaN
    inside = _hardtanh_backward(_one(kept), kept, -rim, rim)
    return _leaky_relu_backward(grad, inside, alpha, False, grad_input=inside)  # type: ignore[no-any-return]


def backward_learned(grad: Tensor, x: Tensor, alpha: Parameter, c: Parameter) -> Gradients:
    """Return the gradients of x, alpha and c, without comparisons and `where`, which are slow on a CPU."""
    g, wide = as_wide(grad), as_wide(x)
    excess = wide - _clipped(wide, c)
    side = excess.sign()  # -1, 0 and 1 on the three pieces
    dalpha = sum_to_shape(excess * g, alpha) if isinstance(alpha, Tensor) else None
    dc = _gradient_of_c(side * g, alpha, c) if isinstance(c, Tensor) else None
    end = alpha if isinstance(alpha, Tensor) else wide.new_full((), alpha)
    dx = torch.lerp(_one(wide), end, side.abs_()) * g  # at weights 0 and 1, lerp returns exactly its ends
    return dx.to(grad.dtype), dalpha, dc


def _gradient_of_c(signed: Tensor, alpha: Parameter, c: Tensor) -> Tensor | None:
    """Return the sum of (1 - alpha) * signed; the factor is applied after the sum if all terms share it."""
    if isinstance(alpha, Tensor) and alpha.shape != c.shape and alpha.numel() > 1:
        return sum_to_shape((1 - alpha) * signed, c)
    total = signed.sum_to_size(c.shape)
    return torch.addcmul(total, total, alpha, value=-1) if isinstance(alpha, Tensor) else total * (1 - alpha)


def _one(like: Tensor) -> Tensor:
    """Return a 0-D tensor 1: a stored one on a CPU, a new one elsewhere, where a graph may be recording."""
    is_plain = like.device.type == "cpu" and type(like) is Tensor
    return _ONES[like.dtype] if is_plain else like.new_ones(())


def _from_clipped(m: Tensor, x: Tensor, alpha: float) -> Tensor:
    """Return m + alpha * (x - m), written into m in one or two passes over memory."""
    if 0 < alpha < 0.5:
        return m.lerp_(x, alpha)
    if alpha == 0:
        return m
    # for alpha >= 1/2 lerp computes x - (x - m) (1 - alpha), which is infinity - infinity for an infinite x
    return m.sub_(m - x, alpha=alpha)


def _tensors(x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
    m = _clipped(x, c)
    if not isinstance(alpha, Tensor):
        return _from_clipped(m, x, alpha)
    if alpha.requires_grad:  # a trained alpha is hardly ever 0, so 0 * infinity is not prevented
        return torch.addcmul(m, alpha, m - x, value=-1)
    # infinity times alpha = 0 is NaN, but a flat piece has the value of its edge; if x is NaN, so is m
    return m - ((m - x) * alpha).nan_to_num_(0.0, math.inf, -math.inf)


def _clipped(x: Tensor, c: Parameter) -> Tensor:
    return torch.clamp(x, -c, c)  # type: ignore[arg-type]  # both numbers or both tensors


def _outward(x: Tensor, alpha: float, c: float) -> Tensor:
    """Return PLU(x) rounded so that |y| > c wherever |x| > c: an outer value that would round to c becomes the rim."""
    size, rim = as_wide(x).abs(), edge(c, x.dtype).rim
    line = (size - c).mul_(alpha).add_(c)
    low = alpha <= 1  # whether the outer pieces lie below the identity
    y = torch.minimum(size, line.clamp_(min=rim)) if low else torch.maximum(size.clamp_(max=rim), line)
    return y.copysign_(as_wide(x)).to(x.dtype)


def plu(x: Tensor, alpha: Parameter, c: Parameter, inplace: bool = False) -> Tensor:
    """Return PLU(x) with gradients to all orders."""
    learned = isinstance(alpha, Tensor) or isinstance(c, Tensor)
    if inplace:
        return _overwrite(x, alpha, c, learned)
    if learned:
        return _Learned.apply(x, alpha, c)  # type: ignore[no-any-return, no-untyped-call]
    if x.requires_grad and torch.is_grad_enabled():
        return _Fixed.apply(x, alpha, c, False)  # type: ignore[no-any-return, no-untyped-call]
    return forward(x, alpha, c)


def _overwrite(x: Tensor, alpha: Parameter, c: Parameter, learned: bool) -> Tensor:
    """Replace x by PLU(x); if PyTorch forbids that, raise before x is changed."""
    if x.is_inference() and not torch.is_inference_mode_enabled():
        raise RuntimeError("an inference tensor cannot be overwritten outside inference mode; use inplace=False")
    is_plain = x._base is None and not (x.is_leaf and x.requires_grad and torch.is_grad_enabled())
    if is_plain and not learned and alpha > 0:
        return _Fixed.apply(x, alpha, c, True)  # type: ignore[no-any-return, no-untyped-call]
    return x.copy_(plu(x.clone(), alpha, c))


def as_wide(x: Tensor) -> Tensor:
    """Return x in a precision to compute in: half precision becomes float32."""
    return x.float() if x.dtype in [torch.float16, torch.bfloat16] else x  # a list, which torch.jit.script compiles


def sum_to_shape(grad: Tensor, parameter: Parameter) -> Tensor | None:
    """Return a gradient summed over the axes along which its parameter was broadcast; None for a number."""
    if not isinstance(parameter, Tensor):
        return None
    return grad.sum_to_size(parameter.shape).to(parameter.dtype)


class _Fixed(torch.autograd.Function):
    """PLU for numbers alpha and c. Backward keeps x or, in place with alpha > 0, y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float, c: float, inplace: bool) -> Tensor:
        y = forward(x, alpha, c, outward=inplace, inplace=inplace)
        if inplace:
            ctx.mark_dirty(x)
        ctx.save_for_backward(y if inplace else x)
        ctx.numbers = alpha, c
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (kept,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            return differentiable(grads[0], kept, *ctx.numbers)[0], None, None, None
        return backward(grads[0], kept, *ctx.numbers), None, None, None


class _Learned(torch.autograd.Function):
    """PLU for a tensor alpha or c. Backward keeps x, because a tensor may hold alpha = 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
        ctx.save_for_backward(x, *(v for v in (alpha, c) if isinstance(v, Tensor)))
        ctx.alpha, ctx.c = (None if isinstance(v, Tensor) else v for v in (alpha, c))
        return forward(x, alpha, c)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, *tensors = ctx.saved_tensors
        alpha = tensors.pop(0) if ctx.alpha is None else ctx.alpha
        c = tensors.pop(0) if ctx.c is None else ctx.c
        return (differentiable if torch.is_grad_enabled() else backward_learned)(grads[0], x, alpha, c)


def differentiable(grad: Tensor, kept: Tensor, alpha: Parameter, c: Parameter) -> Gradients:
    """Return the gradients as expressions that can be differentiated again; `kept` is y only if alpha is a number."""
    g, wide = as_wide(grad), as_wide(kept)
    outside, sign = wide.abs() > c, wide.sign()
    zero = g.new_zeros(())
    dx = torch.where(outside, alpha * g, g).to(grad.dtype)
    dalpha = sum_to_shape(torch.where(wide.abs() <= c, zero, (wide - c * sign) * g), alpha)  # a NaN stays one
    dc = sum_to_shape(torch.where(outside, (1 - alpha) * sign * g, zero), c)
    return _Connected.apply(dx, kept), dalpha, dc  # type: ignore[no-untyped-call]


class _Connected(torch.autograd.Function):
    """Return dx, whose derivative in x is 0, as in PyTorch's own activations."""

    @staticmethod
    def forward(ctx: Any, dx: Tensor, kept: Tensor) -> Tensor:
        ctx.save_for_backward(kept)
        return dx.view_as(dx)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0], torch.zeros_like(ctx.saved_tensors[0])
