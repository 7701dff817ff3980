"""An affine bijection for many features: reflections, whose cost grows with the features and not with their square."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from plunit.invertible.bijections import linear, positive
from plunit.invertible.bijections.bijection import Leaf


class Householder(Leaf):
    """y = Q (exp(raw_scale) * x) + b with Q = H_1 ... H_r, H_i = I - 2 v_i v_i^T / |v_i|^2 reflections.

    Q is orthogonal whatever the vectors, so log|det| is the sum of raw_scale, and the transpose of Q undoes it. With
    V = (v_1, ..., v_r) and the upper triangular T of the products v_i . v_j (i < j), the diagonal halved, Q is
    I - V T^-1 V^T: two products with V and one small triangular system, O(n r) for a sample. There are n r + 2 n
    parameters.

    Args:
        features: n, the size of the last axis.
        reflections: r, even, so that Q keeps orientation; at most 16 by default, and as many as fit n.
        generator: where the random numbers of the start come from.

    >>> layer = Householder(784, reflections=16)
    >>> sum(parameter.numel() for parameter in layer.parameters())
    14112
    """

    def __init__(
        self, features: int, reflections: int | None = None, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(features)
        if reflections is None:
            reflections = min(16, 2 * ((features + 1) // 2))
        if isinstance(reflections, bool) or not isinstance(reflections, int) or reflections < 2 or reflections % 2:
            raise ValueError(
                f"reflections must be an even integer of at least 2, got {reflections!r}: an odd number would turn the "
                f"orientation round"
            )
        self.reflections = reflections
        self.vectors = nn.Parameter(torch.randn(features, reflections, generator=generator))
        self.raw_scale = nn.Parameter(torch.zeros(features))
        self.bias = nn.Parameter(torch.zeros(features))

    @property
    def scale(self) -> Tensor:
        """The factors before the rotation, one per feature."""
        return positive.exp(self.raw_scale)

    @property
    def weight(self) -> Tensor:
        """The matrix W = Q diag(scale)."""
        vectors, triangle, *_ = self.values()
        eye = torch.eye(self.features, dtype=vectors.dtype, device=vectors.device)
        return _rotated(eye, vectors, triangle) * self.scale

    def values(self) -> tuple[Tensor, ...]:
        """V with columns of length 1, T, the scale and b."""
        # a vector of length 0 reflects nothing, and must not divide by 0
        lengths = self.vectors.norm(dim=0)
        vectors = self.vectors / lengths.clamp(min=torch.finfo(lengths.dtype).tiny)
        eye = torch.eye(self.reflections, dtype=vectors.dtype, device=vectors.device)
        return vectors, (vectors.mT @ vectors).triu(1) + eye / 2, self.scale, self.bias

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return Q (scale * x) + b and log(scale)."""
        vectors, triangle, scale, bias = values
        return _rotated(scale * x, vectors, triangle) + bias, scale.log()

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return Q^T (y - b) / scale and -log(scale)."""
        vectors, triangle, scale, bias = values
        y = y - bias
        inner = linear.solve(triangle.mT, vectors.mT @ y, upper=False)
        return (y - vectors @ inner) / scale, -scale.log()

    def lipschitz(self) -> tuple[float, float]:
        """The largest scale, and 1 over the smallest, as of a rotation without rounding errors."""
        scale = self.scale.detach()
        return scale.max().item(), 1 / scale.min().item()

    def extra_repr(self) -> str:
        """Name the numbers of features and reflections."""
        return f"{self.features}, reflections={self.reflections}"


def _rotated(x: Tensor, vectors: Tensor, triangle: Tensor) -> Tensor:
    """Return Q x = x - V T^-1 V^T x."""
    return x - vectors @ linear.solve(triangle, vectors.mT @ x, upper=True)
