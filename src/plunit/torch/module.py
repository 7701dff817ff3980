"""The modules: PLU, fixed or learnable, and a residual sum."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from plunit import learned
from plunit.torch.composite import as_wide
from plunit.torch.op import inverse, is_traced, plu

_NAMESPACE = SimpleNamespace(sigmoid=torch.sigmoid, exp=torch.exp, clip=nn.functional.hardtanh)
"""The functions that `plunit.learned` needs; the gradient of hardtanh is one op, that of clip five."""


class PLU(nn.Module):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c): slope 1 on |x| <= c, slope alpha outside.

    Args:
        alpha: outer slope, alpha >= 0; if learnable, alpha = sigmoid(raw_alpha) is in (0, 1) by construction.
        c: half-width of the inner piece, c >= 0; if learnable, c = exp(raw_c) > 0.
        learnable: what is trained, starting from the given values: False (nothing), True (both), "alpha" or "c".
        num_parameters: the number of learned values of each: 1, or one per channel.
        dim: the channel axis.
        inplace: overwrite the input.

    Shape: any; the output has the shape, dtype and memory format of the input. With num_parameters > 1,
    input.shape[dim] must be num_parameters.

    The raw parameters have one axis, so the common rule "no weight decay for ndim <= 1" covers them
    (`plunit.torch.param_groups` applies it): decay would pull alpha to 0.5 and c to 1.

    >>> PLU()
    PLU(alpha=0.1, c=1.0)
    >>> PLU(learnable=True, num_parameters=16)
    PLU(alpha=0.1, c=1.0, learnable=True, num_parameters=16, dim=1)
    """

    __jit_unused_properties__ = ("alpha", "c")  # torch.jit.script compiles all other members that `forward` uses

    def __init__(
        self,
        alpha: float = 0.1,
        c: float = 1.0,
        *,
        learnable: bool | Literal["alpha", "c"] = False,
        num_parameters: int = 1,
        dim: int = 1,
        inplace: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name in learned.starts(alpha, c, learnable, num_parameters):
            raw = torch.empty(num_parameters, device=device, dtype=dtype)
            self.register_parameter(f"raw_{name}", nn.Parameter(raw))
        self.initial_alpha, self.initial_c = float(alpha), float(c)
        self.learnable, self.num_parameters, self.dim, self.inplace = learnable, num_parameters, dim, inplace
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the learned values to the initial alpha and c."""
        for name, start in learned.starts(self.initial_alpha, self.initial_c, self.learnable).items():
            raw = getattr(self, f"raw_{name}")
            if parametrize.is_parametrized(self, f"raw_{name}"):
                setattr(self, f"raw_{name}", torch.full_like(raw, start))
            else:
                nn.init.constant_(raw, start)

    @property
    def alpha(self) -> float | Tensor:
        """The outer slope: a number, or the learned values [num_parameters], float32 if the raw ones are half."""
        return self._value("alpha")

    @property
    def c(self) -> float | Tensor:
        """The half-width of the inner piece: a number, or the learned values, as for alpha."""
        return self._value("c")

    def forward(self, input: Tensor) -> Tensor:
        """Return PLU(input)."""
        if not torch.jit.is_scripting():  # type: ignore[attr-defined]
            if self.learnable is False:
                return plu(input, self.initial_alpha, self.initial_c, inplace=self.inplace)
            return plu(input, *self._along_channels(input), inplace=self.inplace)
        return self._script(input)

    def inverse(self, y: Tensor) -> Tensor:
        """Return the x with PLU(x) = y."""
        return inverse(y, *self._along_channels(y))

    def extra_repr(self) -> str:
        """Show the current alpha and c, min..max over channels, and what is learned."""
        parts = [f"alpha={self._format('alpha')}", f"c={self._format('c')}"]
        if self.learnable is not False:
            parts.append(f"learnable={self.learnable!r}")
        if self.num_parameters > 1:
            parts += [f"num_parameters={self.num_parameters}", f"dim={self.dim}"]
        if self.inplace:
            parts.append("inplace=True")
        return ", ".join(parts)

    def _format(self, name: str) -> str:
        """Return a value in four digits, or the range of several; for tensors without numbers, the initial value."""
        if self.learnable not in (True, name):
            return str(getattr(self, f"initial_{name}"))
        try:
            with torch.no_grad():
                least, largest = torch.stack(torch.aminmax(self._value(name))).tolist()  # type: ignore[arg-type]
        except Exception:  # meta and fake tensors, empty shards, vmap: printing never fails
            return str(getattr(self, f"initial_{name}"))
        ends = [str(float(f"{value:.4g}")) for value in (least, largest)]
        return "..".join(dict.fromkeys(ends))

    def _value(self, name: str) -> float | Tensor:
        if self.learnable not in (True, name):
            initial: float = getattr(self, f"initial_{name}")
            return initial
        # not self._parameters: parametrisations, pruning, replicas and shards keep the tensor elsewhere
        raw: Tensor = as_wide(getattr(self, f"raw_{name}"))
        return learned.value_of(_NAMESPACE, name, raw)  # type: ignore[no-any-return]

    def _along_channels(self, x: Tensor) -> tuple[float | Tensor, float | Tensor]:
        """Return alpha and c, shaped to broadcast along axis `dim` of x."""
        several = self.num_parameters > 1
        shape = learned.channel_shape(_read_sizes(x), self.num_parameters, self.dim) if several else []
        values = (self.alpha, self.c)
        return tuple(_fold(v.reshape(shape)) if isinstance(v, Tensor) else v for v in values)  # type: ignore[return-value]

    def _script(self, input: Tensor) -> Tensor:
        """Return PLU(input) in the subset of Python that torch.jit.script compiles."""
        x = as_wide(input)
        alpha = torch.full([], self.initial_alpha, dtype=x.dtype, device=x.device)
        c = torch.full([], self.initial_c, dtype=x.dtype, device=x.device)
        shape = [1] * x.dim()
        if self.num_parameters > 1:
            shape[self.dim] = x.size(self.dim)
        if hasattr(self, "raw_alpha"):
            alpha = torch.sigmoid(_limit(self.raw_alpha)).to(x.dtype).reshape(shape)  # type: ignore[arg-type]
        if hasattr(self, "raw_c"):
            c = torch.exp(_limit(self.raw_c)).to(x.dtype).reshape(shape)  # type: ignore[arg-type]
        y = _script_formula(x, alpha, c).to(input.dtype)
        return input.copy_(y) if self.inplace else y


def _limit(raw: Tensor) -> Tensor:
    """Return raw numbers clamped to the limits of `plunit.learned`, in at least single precision."""
    return torch.clamp(as_wide(raw), -learned.LIMIT, learned.LIMIT)


def _script_formula(x: Tensor, alpha: Tensor, c: Tensor) -> Tensor:
    """Return `plunit.functional.formula` of tensors, without the namespace that torch.jit.script cannot compile."""
    edge = x.sign() * c
    reach = torch.where(x.isinf() & (alpha == 0), torch.zeros_like(x), x - edge)
    return torch.where(x.abs() > c, edge + reach * alpha, x)


@contextlib.contextmanager
def _read_constants() -> Iterator[None]:
    """Let torch.jit.trace store numbers that are read from tensors as constants, without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        yield


def _read_sizes(x: Tensor) -> Sequence[int]:
    """Return the shape of x as numbers; within torch.jit.trace, x.shape holds tensors."""
    if not is_traced():
        return x.shape
    with _read_constants():
        return [int(size) for size in x.shape]


def _fold(value: Tensor) -> Tensor:
    """Return a value of the module; if torch.jit.trace exports to ONNX, as a constant, to save nodes."""
    if not (is_traced() and torch.onnx.is_in_onnx_export()):
        return value
    with _read_constants():
        return torch.tensor(value.tolist(), dtype=value.dtype, device=value.device)


class Residual(nn.Module):
    """x + body(x), for a body that keeps the shape of its input.

    `to_network` accepts it, unlike a sum in your own forward method.

    >>> Residual(nn.Identity())(torch.ones(1, 2))
    tensor([[2., 2.]])
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, input: Tensor) -> Tensor:
        """Return input + body(input), without broadcasting."""
        output: Tensor = self.body(input)
        if output.shape != input.shape:
            raise ValueError(f"x + body(x) needs equal shapes, got {tuple(input.shape)} and {tuple(output.shape)}")
        return input + output
