"""What can be said of a chain's inverse beforehand: Lipschitz bounds, condition numbers, round-trip error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from plunit.invertible.bijection import Bijection
from plunit.invertible.chain import Chain
from plunit.invertible.frozen import part_by_part


@dataclass(frozen=True)
class Certificate:
    """Bounds for a chain of bijections and its inverse; `print` it.

    Attributes:
        features: n.
        parts: how many bijections the chain has.
        lipschitz: a bound on the Lipschitz constant of F, the product of ||W|| max(1, alpha).
        inverse_lipschitz: a bound on that of the inverse, the product of ||W^-1|| max(1, 1/alpha).
        condition_numbers: of each part, the product of its two bounds.
        dtype: the precision the error is stated for.
        round_trip_error: a bound, to first order, on |F^-1(F(x)) - x| for the worst of the points asked about. Each
            part returns its own input, the one this x leads to, with an error that is measured in this dtype, and taken
            as a unit of rounding where it is smaller by luck. The Jacobians of the inverses of the parts before it
            carry it back to x, without cancellation. Twice the lengths of what arrives are added, for the way back
            rounds at slightly other points.
            Where the Lipschitz bound is a worst case over all of R^n, this one is about these points.
    """

    features: int
    parts: int
    lipschitz: float
    inverse_lipschitz: float
    condition_numbers: tuple[float, ...]
    dtype: torch.dtype
    round_trip_error: float

    def __str__(self) -> str:
        return "\n".join(
            [
                f"invertible network: {self.features} features, {self.parts} parts",
                f"  Lipschitz constant of F        <= {self.lipschitz:.4g}",
                f"  Lipschitz constant of F^-1     <= {self.inverse_lipschitz:.4g}",
                f"  condition number of a part     <= {max(self.condition_numbers):.4g}",
                f"  round-trip error, at the points <= {self.round_trip_error:.2g} ({self.dtype})".replace(
                    "torch.", ""
                ),
            ]
        )


def certify(chain: Chain, x: Tensor | None = None) -> Certificate:
    """Return the certificate of a chain at the points x, by default 256 standard normal ones."""
    chain = part_by_part(chain)
    if x is None:
        x = torch.randn(256, chain.features, generator=torch.Generator().manual_seed(0))
    if x.shape[-1:] != (chain.features,) or x.numel() == 0:
        raise ValueError(
            f"a certificate is about points of {chain.features} features, at least one, got shape {tuple(x.shape)}"
        )
    like = next((buffer for buffer in chain.buffers() if buffer.is_floating_point()), x)
    x = x.detach().to(like).reshape(-1, chain.features)
    forward, backward = chain.lipschitz()
    bounds = [part.lipschitz() for part in chain.parts()]
    return Certificate(
        features=chain.features,
        parts=len(bounds),
        lipschitz=forward,
        inverse_lipschitz=backward,
        condition_numbers=tuple(ahead * back for ahead, back in bounds),
        dtype=x.dtype,
        round_trip_error=round_trip_errors(chain, x)[-1],
    )


def round_trip_errors(chain: Chain, x: Tensor) -> list[float]:
    """Bound |F^-1(F(x)) - x| for the worst of the points [m, n], for the first part alone, the first two, ..., all.

    A bound is infinite if some part does not return its input at all.
    """
    back = torch.eye(chain.features, dtype=x.dtype, device=x.device)[:, None].expand(-1, len(x), -1)
    total, bounds = torch.zeros_like(x[:, 0]), []
    for part in chain.parts():
        with torch.no_grad():
            y, _ = part(x)
            error = torch.maximum((part.inverse(y)[0] - x).abs(), torch.finfo(x.dtype).eps * x.abs())
        total = total + 2 * (back.abs() * error).sum(-1).norm(dim=0)
        bounds.append(total.nan_to_num(torch.inf, torch.inf).max())
        back = _carry_back(part, y, back)
        x = y
    return torch.stack(bounds).tolist()


def _carry_back(part: Bijection, y: Tensor, back: Tensor) -> Tensor:
    """Multiply d x0 / d x, one row per leading index, by the Jacobian d x / d y of the inverse of a part."""
    y = y.expand_as(back).clone().requires_grad_()
    with torch.enable_grad():
        x, _ = part.inverse(y)
    return torch.autograd.grad(x, y, back)[0]
