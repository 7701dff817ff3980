"""What can be said of a chain's inverse beforehand: Lipschitz bounds, condition numbers, expected round-trip error."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from plunit.invertible.bijection import Bijection, Chain


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
        round_trip_error: expected |F^-1(F(x)) - x| for the worst of the points asked about: each part makes a rounding
            error of size 4 eps L |h| (L its Lipschitz bound, h its input; forward and back), which the Jacobian of the
            inverse at that very point carries back to x; the parts' errors add in quadrature. A first-order estimate,
            meant to be above the measured error, where the Lipschitz bound is a worst case over all points.
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
                f"  expected round-trip error       ~ {self.round_trip_error:.2g} ({self.dtype})".replace("torch.", ""),
            ]
        )


def certify(chain: Chain, x: Tensor | None = None) -> Certificate:
    """Return the certificate of a chain at the points x, by default 256 standard normal ones."""
    reference = next(chain.parameters())
    if x is None:
        x = torch.randn(256, chain.features, generator=torch.Generator().manual_seed(0))
    x = x.detach().to(reference.device, torch.float64).reshape(-1, chain.features)
    forward, backward = chain.lipschitz()
    bounds = [part.lipschitz() for part in chain.parts()]
    return Certificate(
        features=chain.features,
        parts=len(bounds),
        lipschitz=forward,
        inverse_lipschitz=backward,
        condition_numbers=tuple(ahead * back for ahead, back in bounds),
        dtype=reference.dtype,
        round_trip_error=_round_trip_error(chain, x, torch.finfo(reference.dtype).eps),
    )


def _round_trip_error(chain: Chain, x: Tensor, eps: float) -> float:
    """Estimate |F^-1(F(x)) - x| in a precision eps, from a run in float64."""
    back = torch.eye(chain.features, dtype=x.dtype, device=x.device)[:, None].expand(-1, len(x), -1)
    squared = (eps * x.norm(dim=-1)) ** 2
    for part in chain.parts():
        part = copy.deepcopy(part).double()
        with torch.no_grad():
            y, _ = part(x)
        back = _carry_back(part, y, back)
        error = 4 * eps * part.lipschitz()[0] * x.norm(dim=-1)
        squared = squared + (error * back.square().sum((0, 2)).sqrt()) ** 2
        x = y
    return float(squared.max().sqrt())


def _carry_back(part: Bijection, y: Tensor, back: Tensor) -> Tensor:
    """Multiply d x0 / d x, one row per leading index, by the Jacobian d x / d y of the inverse of a part."""
    y = y.expand_as(back).clone().requires_grad_()
    with torch.enable_grad():
        x, _ = part.inverse(y)
    return torch.autograd.grad(x, y, back)[0]
