"""Triangular systems, in the precisions that PyTorch solves them in."""

from __future__ import annotations

import torch
from torch import Tensor

_HALF = (torch.float16, torch.bfloat16)


def solve(triangle: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return the x with triangle x = right, or with x triangle = right unless `left`; refuse half precision.

    >>> solve(torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    if right.dtype in _HALF:
        raise TypeError(
            f"a triangular system needs float32 or float64, got {right.dtype}; convert the module by .float()"
        )
    solution: Tensor = torch.linalg.solve_triangular(
        triangle, right, upper=upper, left=left, unitriangular=unitriangular
    )
    return solution
