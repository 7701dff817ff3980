"""PLU in Triton, for tensors on CUDA, ROCm and XPU: one launch forward, one backward, learned: one and a sum.

Used after `plunit.torch.use_triton()` only, because it has never run on a GPU: its tests run the interpreter on a CPU
and read the compiled code. Backward reads the output, and the input where alpha is 0 or learned. Memory is taken as
[outer, channels, inner], as in csrc/kernel.h, so that channels_last needs no copy.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from plunit.torch.composite import edge
from plunit.torch.kernel import Gradients, Parameter

KEEPS_OUTPUT = True

BLOCK, WARPS = 1024, 4
ROWS, COLUMNS = 16, 64  # of a tile where channels are last
_MOST = 2**31 - 2 * BLOCK  # offsets beyond need 64 bits
_OPTIONS = {"num_warps": WARPS, "enable_fp_fusion": False}  # fused multiply-adds would give other bits


@triton.jit
def _value(x, alpha, c, rim):
    """PLU(x): the outer line, at least the rim, and for alpha <= 1 at most |x|."""
    size = tl.abs(x)
    line = tl.where(alpha == 0, c, c + alpha * (size - c))
    line = tl.maximum(line, rim)
    outer = tl.where(alpha > 1, line, tl.minimum(line, size))
    return tl.where(size > c, tl.where(x < 0, -outer, outer), x)


@triton.jit
def _offsets(block: tl.constexpr, wide: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64) if wide else tl.program_id(0)
    return pid * block + tl.arange(0, block)


@triton.jit
def _computed(pointer, offsets, mask):
    """Load in the precision of the computation."""
    value = tl.load(pointer + offsets, mask)
    return value if value.dtype == tl.float64 else value.to(tl.float32)


@triton.jit
def _forward(
    x_ptr, y_ptr, n, alpha: tl.float64, c: tl.float64, rim: tl.float64, block: tl.constexpr, wide: tl.constexpr
):
    offsets = _offsets(block, wide)
    mask = offsets < n
    x = _computed(x_ptr, offsets, mask)
    y = _value(x, tl.full((1,), alpha, x.dtype), tl.full((1,), c, x.dtype), tl.full((1,), rim, x.dtype))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask)


@triton.jit
def _backward(grad_ptr, kept_ptr, dx_ptr, n, alpha: tl.float64, c: tl.float64, block: tl.constexpr, wide: tl.constexpr):
    offsets = _offsets(block, wide)
    mask = offsets < n
    grad, kept = _computed(grad_ptr, offsets, mask), _computed(kept_ptr, offsets, mask)
    outside = tl.abs(kept) > tl.full((1,), c, kept.dtype)
    dx = tl.where(outside, grad * tl.full((1,), alpha, kept.dtype), grad)
    tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask)


@triton.jit
def _learned_forward(
    x_ptr, y_ptr, alpha_ptr, c_ptr, n, channels, inner, alpha_step, c_step, block: tl.constexpr, wide: tl.constexpr
):
    offsets = _offsets(block, wide)
    mask = offsets < n
    x = _computed(x_ptr, offsets, mask)
    channel = offsets // inner % channels
    alpha, c = tl.load(alpha_ptr + channel * alpha_step), tl.load(c_ptr + channel * c_step)
    tl.store(y_ptr + offsets, _value(x, alpha, c, c * 0).to(y_ptr.dtype.element_ty), mask)


@triton.jit
def _learned_backward(
    grad_ptr, x_ptr, dx_ptr, sums_ptr, alpha_ptr, c_ptr, outer, channels, inner, slabs, alpha_step, c_step,
    rows: tl.constexpr, columns: tl.constexpr, last: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Store dx of one tile, and the sums over it of grad (x - m) and grad sign(x) on the outer pieces.

    A tile is [rows, columns]. If channels are last (`last`), its columns are channels and sums are stored for each
    column; else all of it belongs to one channel. sums is [2, slabs, channels].
    """
    pid = tl.program_id(0).to(tl.int64) if wide else tl.program_id(0)
    row, column = tl.arange(0, rows)[:, None], tl.arange(0, columns)[None, :]
    if last:
        tiles = tl.cdiv(channels, columns)
        slab, channel = pid // tiles, pid % tiles * columns + column
        mask = (slab * rows + row < outer) & (channel < channels)
        offsets = (slab * rows + row) * channels + channel
        channel = tl.where(channel < channels, channel, 0)
    else:
        slab, channel = pid // channels, pid % channels
        chunks = slabs // outer
        position = slab % chunks * (rows * columns) + row * columns + column
        mask = position < inner
        offsets = (slab // chunks * channels + channel) * inner + position
    alpha, c = tl.load(alpha_ptr + channel * alpha_step), tl.load(c_ptr + channel * c_step)
    x = tl.where(mask, _computed(x_ptr, offsets, mask), 0)
    grad = tl.where(mask, _computed(grad_ptr, offsets, mask), 0)
    excess = tl.abs(x) - c
    outside = excess > 0
    tl.store(dx_ptr + offsets, tl.where(outside, grad * alpha, grad).to(dx_ptr.dtype.element_ty), mask)
    signed = tl.where(outside, tl.where(x < 0, -grad, grad), 0)
    excess = tl.where(excess <= 0, 0, excess) * signed  # a NaN stays one
    stored = sums_ptr + slab * channels
    if last:
        column = pid % tiles * columns + tl.arange(0, columns)
        is_channel = column < channels
        tl.store(stored + column, tl.sum(excess, 0), is_channel)
        tl.store(stored + slabs * channels + column, tl.sum(signed, 0), is_channel)
    else:
        tl.store(stored + channel, tl.sum(tl.sum(excess, 1), 0))
        tl.store(stored + slabs * channels + channel, tl.sum(tl.sum(signed, 1), 0))


class Layout(NamedTuple):
    """Memory as [outer, channels, inner]."""

    outer: int
    channels: int
    inner: int


def takes(x: Tensor, alpha: Parameter, c: Parameter) -> bool:
    """Whether the kernels serve this call: plain tensors on a GPU; one value, or one per channel on one axis."""
    if type(x) is not Tensor or not x.numel() or not _is_served(x.device):
        return False
    return _layout(x, alpha, c) is not None


def _layout(x: Tensor, alpha: Parameter, c: Parameter) -> Layout | None:
    """Return the layout of a dense x for these parameters; None if the kernels have no loop for their shapes."""
    axes = set()
    for parameter in (alpha, c):
        if isinstance(parameter, Tensor) and parameter.numel() != 1:
            long = [axis for axis, size in enumerate(parameter.shape) if size != 1]
            axis = long[0] + x.ndim - parameter.ndim
            if len(long) > 1 or axis < 0 or parameter.numel() != x.shape[axis]:
                return None
            axes.add(axis)
        elif isinstance(parameter, Tensor) and parameter.ndim > x.ndim:
            return None
    if len(axes) > 1:
        return None
    if not axes:
        return Layout(1, 1, x.numel())
    axis = axes.pop()
    inner = _dense(x).stride(axis)
    return Layout(x.numel() // (x.shape[axis] * inner), x.shape[axis], inner)


def forward(x: Tensor, alpha: Parameter, c: Parameter, *, outward: bool, inplace: bool = False) -> Tensor:
    """Return PLU(x); see `Kernel`."""
    dense = _dense(x)
    y = dense if inplace else torch.empty_like(dense)
    grid, n, wide = (triton.cdiv(x.numel(), BLOCK),), x.numel(), x.numel() > _MOST
    with _current(x):
        if isinstance(alpha, Tensor) or isinstance(c, Tensor):
            layout: Any = _layout(dense, alpha, c)
            alphas, cs = _values(alpha, x), _values(c, x)
            steps = int(alphas.numel() > 1), int(cs.numel() > 1)
            arguments = (dense, y, alphas, cs, n, *layout[1:], *steps, BLOCK, wide)
            _learned_forward[grid](*arguments, **_OPTIONS)
        else:
            rim = edge(c, x.dtype).rim if outward else 0.0
            _forward[grid](dense, y, n, alpha, c, rim, BLOCK, wide, **_OPTIONS)
    return y if not inplace or dense is x else x.copy_(y)


def backward(grad: Tensor, kept: Tensor, alpha: float, c: float) -> Tensor:
    """Return the gradient of x; `kept` is x, or y rounded outward."""
    kept = _dense(kept)
    grad, dx = _like(grad, kept), torch.empty_like(kept)
    n = kept.numel()
    with _current(kept):
        _backward[(triton.cdiv(n, BLOCK),)](grad, kept, dx, n, alpha, c, BLOCK, n > _MOST, **_OPTIONS)
    return dx


def backward_learned(grad: Tensor, x: Tensor, alpha: Parameter, c: Parameter) -> Gradients:
    """Return the gradients of x, alpha and c: sums over tiles that depend on the shape alone, then a sum of these."""
    x = _dense(x)
    grad, dx = _like(grad, x), torch.empty_like(x)
    layout: Any = _layout(x, alpha, c)
    last = layout.inner == 1 and layout.channels > 1
    rows, columns = (ROWS, COLUMNS) if last else (1, BLOCK)
    slabs = triton.cdiv(layout.outer, rows) if last else layout.outer * triton.cdiv(layout.inner, BLOCK)
    tiles = triton.cdiv(layout.channels, columns) if last else layout.channels
    alphas, cs = _values(alpha, x), _values(c, x)
    sums = x.new_empty(2, slabs, layout.channels, dtype=alphas.dtype)
    steps = int(alphas.numel() > 1), int(cs.numel() > 1)
    with _current(x):
        _learned_backward[(slabs * tiles,)](
            grad, x, dx, sums, alphas, cs, *layout, slabs, *steps, rows, columns, last, x.numel() > _MOST, **_OPTIONS
        )
    dalpha, dc = sums.sum(1, dtype=torch.float64).to(sums.dtype)
    dc = dc * (1 - alphas.flatten())
    return dx, _shaped(dalpha, alpha), _shaped(dc, c)


def _is_served(device: torch.device) -> bool:
    return device.type in ("cuda", "xpu") or (device.type == "cpu" and triton.knobs.runtime.interpret)


def _current(x: Tensor) -> contextlib.AbstractContextManager[object]:
    """Make the device of x the current one, where Triton launches."""
    if x.device.type == "cpu":
        return contextlib.nullcontext()
    return torch.get_device_module(x.device).device(x.device)  # type: ignore[no-any-return]


def _dense(x: Tensor) -> Tensor:
    """Return x if its numbers fill a stretch of memory, in any order of the axes; else a copy that does."""
    expected = 1
    for stride, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size != 1 and stride != expected:
            return x.contiguous()
        expected *= size
    return x


def _like(grad: Tensor, model: Tensor) -> Tensor:
    """Return grad with the strides of the model."""
    return grad if grad.stride() == model.stride() else torch.empty_like(model).copy_(grad)


def _values(parameter: Parameter, x: Tensor) -> Tensor:
    """Return one value, or one per channel, as a 1-D tensor in the precision of the computation."""
    if isinstance(parameter, Tensor):
        return parameter.reshape(-1).contiguous()
    return x.new_full((1,), parameter, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)


def _shaped(sums: Tensor, parameter: Parameter) -> Tensor | None:
    """Return the sums per channel as the gradient of a parameter; None for a number."""
    if not isinstance(parameter, Tensor):
        return None
    return (sums if parameter.numel() == sums.numel() else sums.sum()).reshape(parameter.shape)
