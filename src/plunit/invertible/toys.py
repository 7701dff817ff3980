"""Four 2-D toy densities, each with mean 0 and variance 1 on both axes.

They are scaled by the means and variances of the distributions, in closed form, so that samples of every size have the
same scale:
- moons: half circles of radius 1, the second flipped and shifted by (1, 0.5), normal noise of sd 0.1. The mean is
  (1/2, 1/4), the variances 3/4 + 0.01 and 9/16 - 1/pi + 0.01.
- gaussians: eight normals of sd 0.5/sqrt(2) on a circle of radius 4/sqrt(2): variance 4 + 1/8.
- checkerboard: uniform on 8 of the 16 unit squares of [-2, 2]^2: variance 4/3.
- pinwheel: (r, s) with r ~ N(1, 0.3), s ~ N(0, 0.1), turned by one of five angles plus 0.25 exp(r): variance
  (1 + 0.09 + 0.01) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor


def toy(name: str, n: int, generator: Generator | None = None) -> Tensor:
    """Draw n points, shape (n, 2), of the toy density `name`: one of `TOYS`.

    >>> toy("moons", 3, torch.Generator().manual_seed(0)).shape
    torch.Size([3, 2])
    """
    if name not in TOYS:
        raise ValueError(f"unknown toy density {name!r}; choose one of {', '.join(TOYS)}")
    if n < 0:
        raise ValueError(f"the number of points must be at least 0, got {n}")
    return TOYS[name](n, generator)


def moons(n: int, generator: Generator | None = None) -> Tensor:
    """Draw n points from two half circles."""
    angle = math.pi * torch.rand(n, generator=generator)
    second = torch.randint(2, (n,), generator=generator)
    flip = 1 - 2 * second
    x = torch.stack([second + flip * angle.cos(), 0.5 * second + flip * angle.sin()], -1)
    x = x + 0.1 * torch.randn(n, 2, generator=generator)
    return (x - torch.tensor([0.5, 0.25])) / torch.tensor([0.76, 0.5725 - 1 / math.pi]).sqrt()


def gaussians(n: int, generator: Generator | None = None) -> Tensor:
    """Draw n points from eight normals on a circle."""
    angle = math.pi / 4 * torch.randint(8, (n,), generator=generator)
    centre = 4 / math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], -1)
    return (centre + 0.5 / math.sqrt(2) * torch.randn(n, 2, generator=generator)) / math.sqrt(4.125)


def checkerboard(n: int, generator: Generator | None = None) -> Tensor:
    """Draw n points from eight squares."""
    column = torch.randint(4, (n,), generator=generator)
    row = 2 * torch.randint(2, (n,), generator=generator) + column % 2
    x = torch.stack([column, row], -1) + torch.rand(n, 2, generator=generator) - 2
    return x / math.sqrt(4 / 3)


def pinwheel(n: int, generator: Generator | None = None) -> Tensor:
    """Draw n points from five bent arms."""
    arm = torch.randint(5, (n,), generator=generator)
    radial, tangential = (torch.randn(n, 2, generator=generator) * torch.tensor([0.3, 0.1])).unbind(-1)
    radial = 1 + radial
    angle = 2 * math.pi / 5 * arm + 0.25 * radial.exp()
    cos, sin = angle.cos(), angle.sin()
    x = torch.stack([radial * cos - tangential * sin, radial * sin + tangential * cos], -1)
    return x / math.sqrt(0.55)


TOYS: dict[str, Callable[[int, Generator | None], Tensor]] = {
    "moons": moons,
    "gaussians": gaussians,
    "checkerboard": checkerboard,
    "pinwheel": pinwheel,
}
"""The toy densities by name."""
