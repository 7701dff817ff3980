"""Linear bijections: `LU`, y = W x + b for any invertible W, `Orthogonal` and `Permutation`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from plunit.invertible.bijections.bijection import Leaf, Rule
from plunit.invertible.bijections.elementwise import limit


def is_permutation(order: Tensor) -> bool:
    """Return whether the order contains each of 0 to n - 1 once."""
    return sorted(order.tolist()) == list(range(len(order)))


ORDER: Rule = (is_permutation, "name each of 0 to n - 1 once")


class LU(Leaf):
    """y = W x + b with W = P L U: P a fixed permutation, L unit lower triangular, diag(U) = sign * exp(raw).

    The diagonal of U cannot reach 0, so W is invertible whatever the parameters; log|det W| is the sum of the logs of
    |diag(U)|, and the inverse is two triangular solves. Initially W is a random rotation, and b = 0. Training never
    changes the sign of det W.

    Args:
        features: n, the size of the last axis.
        generator: the source of random numbers.
    """

    permutation: Tensor
    order: Tensor
    sign: Tensor
    rules: ClassVar[dict[str, Rule]] = {
        "raw_diagonal": (
            lambda raw: bool((raw.abs() <= limit(raw.dtype)).all()),
            "be at most log(1/eps) in size; beyond that W is numerically singular",
        ),
        "permutation": ORDER,
        "sign": (lambda sign: bool(sign.abs().eq(1).all()), "hold 1 and -1"),
    }

    def __init__(self, features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(features)
        n = features
        self.lower = nn.Parameter(torch.empty(n * (n - 1) // 2))
        self.upper = nn.Parameter(torch.empty(n * (n - 1) // 2))
        self.raw_diagonal = nn.Parameter(torch.empty(n))
        self.bias = nn.Parameter(torch.zeros(n))
        self.register_buffer("permutation", torch.arange(n))
        self.register_buffer("sign", torch.ones(n))
        self.register_buffer("order", _order(n), persistent=False)
        weight = torch.empty(n, n, dtype=torch.float64)
        nn.init.orthogonal_(weight, generator=generator)
        weight[0] *= torch.linalg.det(weight).sign()
        self._factor(weight)

    @classmethod
    def from_matrix(cls, weight: Tensor, bias: Tensor | None = None) -> LU:
        """Return the bijection x -> weight x + bias, for an invertible square matrix."""
        if weight.ndim != 2 or weight.shape[0] != weight.shape[1]:
            raise ValueError(f"LU needs a square matrix, got shape {tuple(weight.shape)}")
        if weight.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"LU needs a matrix of float32 or float64, got {weight.dtype}; convert it first")
        module = cls(weight.shape[0]).to(weight)
        module._factor(weight.detach())
        if bias is not None:
            if bias.shape != module.bias.shape or not bias.isfinite().all():
                raise ValueError(
                    f"LU needs a bias of {module.features} finite numbers, got shape {tuple(bias.shape)}, "
                    f"{int((~bias.isfinite()).sum())} of them not finite"
                )
            with torch.no_grad():
                module.bias.copy_(bias)
        return module

    @property
    def weight(self) -> Tensor:
        """The matrix W."""
        return self.imply(*self.raw())[0]

    def raw(self) -> tuple[Tensor, ...]:
        """Return all parameters, the permutation and the signs."""
        return self.lower, self.upper, self.raw_diagonal, self.bias, self.permutation, self.sign

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return W, b and log|diag(U)|."""
        lower, upper, log_diagonal = self._factors(*raw)
        permutation = raw[4][..., None].expand_as(lower)
        return (lower @ upper).gather(-2, permutation), raw[3], log_diagonal

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return L and U transposed, the inverse of P, b and log|diag(U)|."""
        lower, upper, log_diagonal = self._factors(*raw)
        return lower.mT, upper.mT, raw[4].argsort(), raw[3], log_diagonal

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return W x + b and log|diag(U)|."""
        weight, bias, log_diagonal = values
        return torch.addmm(bias, weight, x), log_diagonal

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Solve W x = y - b by substitution, transposed, so that the columns need not be copied."""
        if y.dtype in (torch.float16, torch.bfloat16):
            raise TypeError(
                f"a triangular system needs float32 or float64, got {y.dtype}; convert the module by .float()"
            )
        lower, upper, order, bias, log_diagonal = values
        rows = (y - bias).index_select(0, order).mT
        rows = torch.linalg.solve_triangular(lower, rows, upper=True, left=False, unitriangular=True)
        return torch.linalg.solve_triangular(upper, rows, upper=False, left=False).mT, -log_diagonal

    def lipschitz(self) -> tuple[float, float]:
        """Return the largest singular value of W, and 1 over the smallest."""
        return _singular(self.weight)

    def _factors(
        self, lower: Tensor, upper: Tensor, raw_diagonal: Tensor, bias: Tensor, permutation: Tensor, sign: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return L, U and log|diag(U)|."""
        most = limit(raw_diagonal.dtype)
        log_diagonal = raw_diagonal.clamp(-most, most)
        packed = torch.cat([lower, sign * log_diagonal.exp(), upper], -1)
        packed = packed[..., self.order]
        eye = torch.eye(self.features, dtype=packed.dtype, device=packed.device)
        return packed.tril(-1) + eye, packed.triu(), log_diagonal

    @torch.no_grad()
    def _factor(self, weight: Tensor) -> None:
        """Set the factors to those of a matrix."""
        if not weight.isfinite().all():
            raise ValueError("LU needs a matrix of finite numbers, got NaN or infinity; check the file it came from")
        permutation, lower, upper = torch.linalg.lu(weight)
        diagonal = upper.diagonal()
        least, most = diagonal.abs().min(), diagonal.abs().max()
        eps = torch.finfo(self.raw_diagonal.dtype).eps
        if least <= torch.finfo(weight.dtype).eps * weight.abs().max() or not eps <= least <= most <= 1 / eps:
            raise ValueError(
                f"LU needs an invertible matrix with pivots of size {eps:.1e} to {1 / eps:.1e} in "
                f"{self.raw_diagonal.dtype}, got {least.item():.3g} to {most.item():.3g}; drop dependent features, "
                f"scale the data or use float64"
            )
        rows, columns = torch.tril_indices(self.features, self.features, -1, device=weight.device)
        self.lower.copy_(lower[rows, columns])
        self.upper.copy_(upper.mT[rows, columns])
        self.raw_diagonal.copy_(diagonal.abs().log())
        self.sign.copy_(diagonal.sign())
        self.permutation.copy_(permutation.argmax(1))


class Orthogonal(Leaf):
    """y = Q x + b with Q orthogonal by PyTorch's parametrisation; log|det Q| = 0 and the inverse is Q transposed.

    Q is the exponential of a skew matrix, so it stays orthogonal to rounding when the dtype changes.

    Args:
        features: n, the size of the last axis.
        generator: the source of random numbers for the start, a random rotation.
    """

    weight: Tensor

    def __init__(self, features: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(features)
        # rotation angles over the full circle: uniform for n = 2, and of this order for every n
        reach = math.pi / math.sqrt(max(features / 2, 1))
        skew = torch.empty(features, features).uniform_(-reach, reach, generator=generator)
        self.weight = nn.Parameter(skew)
        self.bias = nn.Parameter(torch.zeros(features))
        parametrizations.orthogonal(self, orthogonal_map="matrix_exp", use_trivialization=False)

    def raw(self) -> tuple[Tensor, ...]:
        """Return Q and b."""
        return self.weight, self.bias

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return Q x + b and 0."""
        weight, bias = values
        return torch.addmm(bias, weight, x), torch.zeros_like(bias)

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return Q^T (y - b) and 0."""
        weight, bias = values
        return weight.mT @ (y - bias), torch.zeros_like(bias)

    def lipschitz(self) -> tuple[float, float]:
        """Return 1 and 1, to rounding."""
        return _singular(self.weight)


class Permutation(Leaf):
    """y[i] = x[order[i]].

    >>> Permutation([2, 0, 1])(torch.tensor([1.0, 2.0, 3.0]))[0]
    tensor([3., 1., 2.])
    """

    order: Tensor
    rules: ClassVar[dict[str, Rule]] = {"order": ORDER}

    def __init__(self, order: Sequence[int]) -> None:
        places = torch.tensor([operator.index(index) for index in order])
        super().__init__(len(places))
        if not is_permutation(places):
            raise ValueError(f"a permutation must {ORDER[1]}, got {places.tolist()}")
        self.register_buffer("order", places)

    def raw(self) -> tuple[Tensor, ...]:
        """Return the order."""
        return (self.order,)

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the inverse permutation."""
        return (raw[0].argsort(),)

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the permuted features and 0."""
        (order,) = values
        return x.index_select(0, order), x.new_zeros(len(order), 1)

    @classmethod
    def invert(cls, y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return `evaluate`, because the inverse is a permutation."""
        return cls.evaluate(y, *values)

    def lipschitz(self) -> tuple[float, float]:
        """Return 1 and 1."""
        return 1.0, 1.0


def _order(n: int) -> Tensor:
    """Return, for each entry of an n x n matrix, its place in [lower; diagonal; upper by columns], [n, n]."""
    place, triangle = torch.empty(n, n, dtype=torch.long), n * (n - 1) // 2
    rows, columns = torch.tril_indices(n, n, -1)
    place[rows, columns] = torch.arange(triangle)
    place[range(n), range(n)] = triangle + torch.arange(n)
    place[columns, rows] = triangle + n + torch.arange(triangle)
    return place


def _singular(weight: Tensor) -> tuple[float, float]:
    """Return the largest singular value, and 1 over the smallest."""
    values = torch.linalg.svdvals(weight.detach())
    smallest = values[-1].item()
    return values[0].item(), 1 / smallest if smallest > 0 else math.inf
