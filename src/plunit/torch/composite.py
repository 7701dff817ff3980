"""PLU from PyTorch's own ops, for every device: two ops forward and two backward where alpha < 1/2 is a number.

Backward keeps the input x. That is one tensor more than ReLU keeps, because the next layer usually keeps the output
anyway. Differences from the other kernels: values outside [-c, c] are not rounded outward and may have another last
bit (`lerp` rounds once on some devices and twice on others), and -0.0 becomes 0.0. Gradients are the same bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._C._nn import hardtanh  # F.hardtanh without its checks

from plunit.torch.kernel import Gradients, Parameter, sum_to_shape, widen

KEEPS_OUTPUT = False

_hardtanh_backward = torch.ops.aten.hardtanh_backward.default
_leaky_relu_backward = torch.ops.aten.leaky_relu_backward.grad_input
_ONES = {dtype: torch.ones((), dtype=dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)}


class _Edge(NamedTuple):
    """c as it is in a dtype: `rim` is the smallest number above c, `exact` whether the dtype can represent c."""

    rim: float
    exact: bool


_EDGES: dict[tuple[float, torch.dtype], _Edge] = {}
"""Results of `edge`, at most 256; functools.lru_cache would make torch.compile warn."""


def edge(c: float, dtype: torch.dtype) -> _Edge:
    """Compare c with the numbers of a dtype, with NumPy: so no mode of PyTorch and no recording of a graph notices."""
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


def forward(x: Tensor, alpha: Parameter, c: Parameter, *, outward: bool, inplace: bool = False) -> Tensor:
    """Return PLU(x); see `Kernel`."""
    if isinstance(alpha, Tensor) or isinstance(c, Tensor):
        y = _tensors(widen(x), alpha, c).to(x.dtype)
    elif outward:
        y = _outward(x, alpha, c)
    elif edge(c, x.dtype).exact:
        y = _from_clipped(hardtanh(x, -c, c), x, alpha)
    else:
        wide = widen(x)
        y = _from_clipped(hardtanh(wide, -c, c), wide, alpha).to(x.dtype)
    return x.copy_(y) if inplace else y


def backward(grad: Tensor, kept: Tensor, alpha: float, c: float) -> Tensor:
    """Return the gradient of x; `kept` is x, or y rounded outward."""
    rim = edge(c, kept.dtype).rim
    if alpha == 0:
        return _hardtanh_backward(grad, kept, -rim, rim)  # type: ignore[no-any-return]
    # 1 inside and 0 outside selects grad or alpha * grad; a product would make NaN of an infinite grad
    inside = _hardtanh_backward(_one(kept), kept, -rim, rim)
    return _leaky_relu_backward(grad, inside, alpha, False, grad_input=inside)  # type: ignore[no-any-return]


def backward_learned(grad: Tensor, x: Tensor, alpha: Parameter, c: Parameter) -> Gradients:
    """Return the gradients of x, alpha and c; comparisons and `where` are avoided, which are slow on a CPU."""
    g, wide = widen(grad), widen(x)
    excess = wide - _clipped(wide, c)
    side = excess.sign()  # -1, 0 and 1 on the three pieces
    dalpha = sum_to_shape(excess * g, alpha) if isinstance(alpha, Tensor) else None
    dc = _gradient_of_c(side * g, alpha, c) if isinstance(c, Tensor) else None
    end = alpha if isinstance(alpha, Tensor) else wide.new_full((), alpha)
    dx = torch.lerp(_one(wide), end, side.abs_()) * g  # at weights 0 and 1, lerp gives its ends to the bit
    return dx.to(grad.dtype), dalpha, dc


def _gradient_of_c(signed: Tensor, alpha: Parameter, c: Tensor) -> Tensor | None:
    """Sum (1 - alpha) * signed; the factor is applied after the sum if all terms of a sum share it."""
    if isinstance(alpha, Tensor) and alpha.shape != c.shape and alpha.numel() > 1:
        return sum_to_shape((1 - alpha) * signed, c)
    total = signed.sum_to_size(c.shape)
    return torch.addcmul(total, total, alpha, value=-1) if isinstance(alpha, Tensor) else total * (1 - alpha)


def _one(like: Tensor) -> Tensor:
    """Return a 0-D 1: a stored one on a CPU, a new one elsewhere, because a graph may be recording."""
    is_plain = like.device.type == "cpu" and type(like) is Tensor
    return _ONES[like.dtype] if is_plain else like.new_ones(())


def _from_clipped(m: Tensor, x: Tensor, alpha: float) -> Tensor:
    """Evaluate m + alpha * (x - m) in one or two passes over memory, into m."""
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
    """Evaluate PLU so that |y| > c wherever |x| > c: an outer value that would round to c becomes the rim."""
    size, rim = widen(x).abs(), edge(c, x.dtype).rim
    line = (size - c).mul_(alpha).add_(c)
    low = alpha <= 1  # whether the outer line is below the identity, outside
    y = torch.minimum(size, line.clamp_(min=rim)) if low else torch.maximum(size.clamp_(max=rim), line)
    return y.copysign_(widen(x)).to(x.dtype)
