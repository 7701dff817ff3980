"""PLU on PyTorch tensors. `plu` chooses the implementation for a call.

- The native kernel (csrc) handles plain CPU tensors; csrc/native.cpp checks this and returns None for others.
- The composite, PyTorch's own ops, handles all other eager tensors.
- Compilers, torch.export, torch.func and forward mode get the formula itself, and exporters to ONNX a shorter form.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from plunit.functional import check, formula, log_slope_formula, slope_formula
from plunit.torch import composite, native
from plunit.torch.composite import Parameter, as_wide

_native: Any = native.load()

_WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}
"""The supported dtypes of x, with the dtypes in which PLU is computed."""


def has_native() -> bool:
    """Whether the native kernel is available; without it PLU computes the same values and gradients, more slowly."""
    return _native is not None


def kernels() -> dict[str, str]:
    """Return the implementations of PLU, with the tensors that each one handles here.

    >>> list(kernels())
    ['native', 'composite']
    """
    native = "plain CPU tensors" if has_native() else "not built: python -m plunit.torch.build"
    return {"native": native, "composite": "all other tensors"}


def plu(x: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0, *, inplace: bool = False) -> Tensor:
    """Return PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise, in the dtype and memory format of x.

    Args:
        x: floating-point tensor of any shape; half precision is computed in float32.
        alpha: outer slope, alpha >= 0; a number or a tensor that broadcasts with x. Both parameters may need gradients.
        c: half-width of the inner piece, c >= 0; also a number or a tensor. Values of tensors are not checked.
        inplace: overwrite x with the result.

    The derivative is 1 where |x| <= c, kinks included, and alpha elsewhere. Backward keeps one tensor: the output in
    the native kernel, else the input. The native kernel also keeps the input if alpha = 0, because then the output does
    not determine the piece, and if the gradient of alpha needs more digits than the output has.

    >>> plu(torch.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.1000,  0.5000,  1.1000])
    """
    if _native is not None and not torch.compiler.is_compiling():
        y = _native.plu(x, alpha, c, inplace)
        if y is not None:
            return y  # type: ignore[no-any-return]
    if not (type(x) is Tensor and x.dtype is torch.float32 and _are_usual(alpha, c)):
        x, alpha, c = _as_arguments(x, alpha, c)
    if is_recorded() or is_transformed(x, alpha, c):
        y = _evaluate(_clip_form if torch.onnx.is_in_onnx_export() else formula, x, alpha, c)
        return x.copy_(y) if inplace else y
    if _native is None and x.is_cpu:
        native.notice()
    return composite.plu(x, alpha, c, inplace)


def inverse(y: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0) -> Tensor:
    """Return PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), alpha > 0.

    >>> inverse(plu(torch.tensor([-2.0, 0.5, 2.0])))
    tensor([-2.0000,  0.5000,  2.0000])
    """
    y, outer, c = _as_arguments(y, alpha, c)  # 1 / alpha in the precision of y, not in that of alpha
    check(alpha, c, invertible=True, tiny=torch.finfo(_WIDE[y.dtype]).tiny)
    return plu(y, 1 / outer, c)


def slope(x: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0) -> Tensor:
    """Return the slope dPLU/dx: alpha where |x| > c, else 1.

    >>> slope(torch.tensor([-2.0, 1.0, 2.0]))
    tensor([0.1000, 1.0000, 0.1000])
    """
    return _evaluate(slope_formula, *_as_arguments(x, alpha, c))


def log_slope(x: Tensor, alpha: Parameter = 0.1, c: Parameter = 1.0) -> Tensor:
    """Return the log of the slope: log(alpha) where |x| > c, else 0.

    >>> log_slope(torch.tensor([-2.0, 1.0, 2.0]))
    tensor([-2.3026,  0.0000, -2.3026])
    """
    return _evaluate(log_slope_formula, *_as_arguments(x, alpha, c))


def is_recorded() -> bool:
    """Whether torch.compile, torch.export or torch.jit.trace records the ops that run."""
    return torch.compiler.is_compiling() or is_traced()


def is_traced() -> bool:
    """Whether torch.jit.trace records the ops that run."""
    return torch.jit.is_tracing()  # type: ignore[attr-defined, no-any-return, no-untyped-call]


def is_transformed(*values: Any) -> bool:
    """Whether torch.func is active, or forward mode on one of these values; values other than tensors are ignored.

    PyTorch has no public function for this. Only this function in plunit calls the private ones.

    >>> is_transformed(torch.ones(2))
    False
    >>> torch.func.vmap(lambda x: x * is_transformed(x))(torch.ones(2))
    tensor([1., 1.])
    """
    if torch._C._functorch.maybe_current_level() is not None:
        return True
    if forward_ad._current_level < 0:
        return False
    tensors = [value for value in values if isinstance(value, Tensor)]
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)  # type: ignore[no-untyped-call]


def _are_usual(alpha: Any, c: Any) -> bool:
    """Whether alpha and c are floats that need no further check; this saves a tenth of the time of a small PLU."""
    return type(alpha) is type(c) is float and 1e-30 < alpha < 1e30 and 0 <= c < 1e30


def _as_arguments(x: Tensor, alpha: Any, c: Any) -> tuple[Tensor, Parameter, Parameter]:
    """Return the arguments, with alpha and c as numbers or as tensors in the precision of the computation."""
    check(alpha, c)
    if not isinstance(x, Tensor):
        raise TypeError(
            f"x must be a tensor, got {type(x).__name__}; convert it with torch.tensor(x), or call plunit.plu with "
            f"numbers and arrays only"
        )
    if x.dtype not in _WIDE:
        raise TypeError(f"PLU is computed in float16, bfloat16, float32 and float64, got {x.dtype}; {_remedy(x)}")
    return x, _parameter("alpha", alpha, x), _parameter("c", c, x)


def _remedy(x: Tensor) -> str:
    if x.is_quantized:
        return "convert it with x.dequantize()"
    return "apply PLU to x.real and x.imag" if x.is_complex() else "convert it with x.float()"


def _parameter(name: str, value: Any, x: Tensor) -> Parameter:
    dtype = _WIDE[x.dtype]
    if isinstance(value, (int, float)):
        # an alpha that underflows is 0, which has special rules
        info = torch.finfo(dtype)
        return 0.0 if name == "alpha" and value < info.tiny else min(float(value), info.max)
    tensor = value if isinstance(value, Tensor) else torch.as_tensor(value)
    if tensor.is_complex():
        raise TypeError(f"{name} must be real, got a tensor of {tensor.dtype}; pass its real part")
    return _convert(tensor, dtype, x.device)


def _evaluate(function: Any, x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
    return _convert(function(torch, as_wide(x), alpha, c), x.dtype, x.device)


def _clip_form(xp: Any, x: Tensor, alpha: Parameter, c: Parameter) -> Tensor:
    """Return m - alpha * (m - x) with m = clip(x, -c, c): four ONNX nodes, with the bits of `formula` for finite x.

    Its gradients differ from PLU's for NaN and for infinite gradients of y, so only exporters to ONNX use it.
    """
    m = xp.clamp(x, -c, c)
    return m if isinstance(alpha, float) and alpha == 0 else m - alpha * (m - x)  # type: ignore[no-any-return]


def _convert(tensor: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the tensor in this dtype on this device; `to` would leave a node in a trace even if both are the same."""
    return tensor if tensor.dtype == dtype and tensor.device == device else tensor.to(device, dtype)
