"""What can be said of a chain's inverse beforehand: Lipschitz bounds, condition numbers, round-trip error."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from plunit.invertible.bijections.bijection import Leaf, implied
from plunit.invertible.bijections.chain import Chain, Frozen

_Step = tuple[Leaf, bool]
"""A leaf, and whether it is its inverse that is applied."""

_WAYS = 8
"""How many ways there and back are looked at, because one way can be right by luck."""


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
            as a unit of rounding of its input or output where it is smaller by luck. The Jacobians of the inverses of
            the parts before it carry it back to x, without cancellation. Four times the lengths of what arrives are
            added, because the way back rounds at other points, and sums are taken in other orders. Where the way back
            may be on the other side of a kink, the larger inverse slope counts. The worst of several ways that round at
            random is taken.
            Where the Lipschitz bound is a worst case over all of R^n, this one is about these points.
        promises: whether there is such a bound, and it is smaller than the points: whether a digit of theirs is sure to
            come back. If not, a way back through other pieces than those met here can be worse than the bound.
    """

    features: int
    parts: int
    lipschitz: float
    inverse_lipschitz: float
    condition_numbers: tuple[float, ...]
    dtype: torch.dtype
    round_trip_error: float
    promises: bool

    def __str__(self) -> str:
        name = str(self.dtype).removeprefix("torch.")
        bound = f"<= {self.round_trip_error:.2g}" if self.promises else "has no bound of use: no promise"
        return "\n".join(
            [
                f"invertible network: {self.features} features, {self.parts} parts",
                f"  Lipschitz constant of F        <= {self.lipschitz:.4g}",
                f"  Lipschitz constant of F^-1     <= {self.inverse_lipschitz:.4g}",
                f"  condition number of a part     <= {max(self.condition_numbers):.4g}",
                f"  round-trip error, at the points {bound} ({name})",
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
    error = round_trip_errors(chain, x)[-1]
    return Certificate(
        features=chain.features,
        parts=len(bounds),
        lipschitz=forward,
        inverse_lipschitz=backward,
        condition_numbers=tuple(ahead * back for ahead, back in bounds),
        dtype=x.dtype,
        round_trip_error=error,
        promises=error < (x.norm(dim=-1).max().item() or 1.0),
    )


def part_by_part(chain: Chain) -> Chain:
    """Return the chain with each of its parts frozen."""
    return Chain(*(Frozen(part) for part in chain.parts()))


def round_trip_errors(chain: Chain, x: Tensor) -> list[float]:
    """Bound |F^-1(F(x)) - x| for the worst of the points [m, n], for the first part alone, the first two, ..., all.

    A bound is infinite if some part does not return its input at all.
    """
    steps = [step for part in chain.parts() for step in part.leaves()]
    generator, eps = torch.Generator().manual_seed(0), torch.finfo(x.dtype).eps
    path = _way_there(steps, x, generator)
    errors = _way_back(steps, path, generator)
    back = torch.eye(chain.features, dtype=x.dtype, device=x.device)[:, None].expand(-1, len(path[0]), -1)
    total, bounds = torch.zeros_like(path[0][:, 0]), []
    for step, before, after, error in zip(steps, path, path[1:], errors, strict=False):
        own = torch.maximum((_undo(step, after) - before).abs(), eps * before.abs()).detach()
        carried = (back.abs() * own).sum(-1)
        back = _carry_back(step, after, back, error)
        carried = torch.maximum(carried, (back.abs() * eps * after.abs()).sum(-1))
        total = total + 4 * carried.norm(dim=0)
        bounds.append(total.nan_to_num(torch.inf, torch.inf).max())
    ends = accumulate(len(part.leaves()) for part in chain.parts())
    return torch.stack(bounds)[[end - 1 for end in ends]].tolist()


@torch.no_grad()
def _way_there(steps: list[_Step], x: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Return the points and what each step makes of them: as they round here, and in ways that round at random."""
    path = [x.repeat(_WAYS, 1)]
    for leaf, inverted in steps:
        y = _undo((leaf, not inverted), path[-1])
        path.append(torch.cat([y[: len(x)], _rounded(y[len(x) :], generator)]))
    return path


@torch.no_grad()
def _way_back(steps: list[_Step], path: list[Tensor], generator: torch.Generator) -> list[Tensor]:
    """Return how far the way back may be from the output of each step: twice the most of all ways, at each point."""
    y, errors = path[-1], []
    for step, output in zip(reversed(steps), reversed(path), strict=False):
        y = _rounded(y, generator)
        error = (y - output).abs().amax(-1).view(_WAYS, -1).amax(0)
        errors.append(2 * error.repeat(_WAYS)[:, None])
        y = _undo(step, y)
    return errors[::-1]


def _rounded(y: Tensor, generator: torch.Generator) -> Tensor:
    """Return y with each number a unit of rounding larger or smaller, at random."""
    signs = 2 * torch.randint(2, y.shape, generator=generator) - 1
    return y + torch.finfo(y.dtype).eps * signs.to(y) * y.abs()


def _undo(step: _Step, y: Tensor) -> Tensor:
    leaf, inverted = step
    x: Tensor = (leaf(y) if inverted else leaf.inverse(y))[0]
    return x


def _carry_back(step: _Step, y: Tensor, back: Tensor, error: Tensor) -> Tensor:
    """Multiply d x0 / d x, one row per leading index, by the Jacobian d x / d y of the inverse of a step.

    Where y is off by up to `error`, the inverse of an elementwise leaf has its largest slope at an end of that range,
    or at 0 within it.
    """
    leaf, inverted = step
    if leaf.is_elementwise:
        near = torch.stack([y, y - error, y + error, torch.where(y.abs() <= error, 0, y)])
        return back * _undone_slopes(leaf, inverted, near).amax(0)
    y = y.expand_as(back).clone().requires_grad_()
    with torch.enable_grad():
        x = _undo(step, y)
    return torch.autograd.grad(x, y, back)[0]


def _undone_slopes(leaf: Leaf, inverted: bool, y: Tensor) -> Tensor:
    """Return the slopes of the inverse of an elementwise step at y (..., n)."""
    (columns,) = implied([(leaf, not inverted)])
    _, log_slopes = (leaf.evaluate if inverted else leaf.invert)(y.reshape(-1, leaf.features).mT, *columns)
    return log_slopes.exp().mT.expand(y.shape[:-1].numel(), -1).reshape(y.shape)
