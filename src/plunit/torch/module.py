"""The PLU module, fixed or learnable."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from plunit import learned
from plunit.functional import check
from plunit.torch.op import inverse, plu


class PLU(nn.Module):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c): slope 1 on |x| <= c, slope alpha outside.

    Args:
        alpha: outer slope, alpha >= 0; where learnable, 0 < alpha < 1.
        c: half-width of the inner piece, c >= 0; where learnable, c > 0.
        learnable: what is trained: False (nothing), True (both), "alpha" or "c". The bounds hold by construction,
            alpha = sigmoid(raw_alpha) and c = exp(raw_c); training starts from the given values, to rounding.
        num_parameters: how many values of each are learned: 1, or one per channel.
        dim: the axis of the channels.
        inplace: overwrite the input.

    Shape: any; the output has the shape, dtype and memory format of the input. With num_parameters > 1,
    input.shape[dim] must be num_parameters.

    The raw parameters have at most one axis, so the usual rule "no weight decay on ndim <= 1" leaves them alone
    (`plunit.torch.param_groups` applies it): decay would pull alpha to 0.5 and c to 1.

    >>> PLU()
    PLU(alpha=0.1, c=1.0)
    >>> PLU(learnable=True, num_parameters=16)
    PLU(alpha=0.1, c=1.0, learnable=True, num_parameters=16, dim=1)
    """

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
        if learnable not in (False, True, "alpha", "c"):
            raise ValueError(f'learnable must be False, True, "alpha" or "c", got {learnable!r}')
        if num_parameters < 1 or (num_parameters > 1 and learnable is False):
            raise ValueError(
                f"num_parameters must be 1, or the number of channels of a learnable PLU, got {num_parameters} "
                f"with learnable={learnable!r}"
            )
        check(alpha, c)
        self.initial_alpha, self.initial_c = float(alpha), float(c)
        self.learnable, self.num_parameters, self.dim, self.inplace = learnable, num_parameters, dim, inplace
        shape = () if num_parameters == 1 else (num_parameters,)
        for name in ("alpha", "c"):
            if learnable in (True, name):
                self.register_parameter(f"raw_{name}", nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set what is learned back to the initial alpha and c."""
        for name, raw in self.named_parameters():
            to_raw = learned.raw_of_alpha if name == "raw_alpha" else learned.raw_of_c
            initial = self.initial_alpha if name == "raw_alpha" else self.initial_c
            nn.init.constant_(raw, to_raw(initial, torch.finfo(raw.dtype).eps))

    @property
    def alpha(self) -> float | Tensor:
        """The outer slope: a number, or the learned values, 0-D or 1-D."""
        raw = self._parameters.get("raw_alpha")
        return self.initial_alpha if raw is None else learned.alpha_of(torch, raw, torch.finfo(raw.dtype).eps)

    @property
    def c(self) -> float | Tensor:
        """The half-width of the inner piece: a number, or the learned values, 0-D or 1-D."""
        raw = self._parameters.get("raw_c")
        return self.initial_c if raw is None else learned.c_of(torch, raw, torch.finfo(raw.dtype).eps)

    def forward(self, input: Tensor) -> Tensor:
        """Return PLU(input)."""
        return plu(input, *self._along_channels(input), inplace=self.inplace)

    def inverse(self, y: Tensor) -> Tensor:
        """Return the x with PLU(x) = y."""
        return inverse(y, *self._along_channels(y))

    def extra_repr(self) -> str:
        """Name the initial values and what is learned."""
        parts = [f"alpha={self.initial_alpha}", f"c={self.initial_c}"]
        if self.learnable is not False:
            parts.append(f"learnable={self.learnable!r}")
        if self.num_parameters > 1:
            parts += [f"num_parameters={self.num_parameters}", f"dim={self.dim}"]
        if self.inplace:
            parts.append("inplace=True")
        return ", ".join(parts)

    def _along_channels(self, x: Tensor) -> tuple[float | Tensor, float | Tensor]:
        """Return alpha and c, shaped to broadcast along axis `dim` of x."""
        alpha, c = self.alpha, self.c
        if self.num_parameters == 1:
            return alpha, c
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != self.num_parameters:
            raise ValueError(
                f"expected {self.num_parameters} channels on axis {self.dim}, got an input of shape {tuple(x.shape)}; "
                f"set num_parameters and dim to match"
            )
        shape = [1] * x.ndim
        shape[self.dim] = -1
        return tuple(v.reshape(shape) if isinstance(v, Tensor) else v for v in (alpha, c))  # type: ignore[return-value]
