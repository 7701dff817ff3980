"""A bijection as a `torch.distributions` Transform, for TransformedDistribution, Pyro and zuko."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import Transform, constraints

from plunit.invertible.bijection import Bijection, expect


class BijectionTransform(Transform):
    """y = F(x) for distributions over vectors. The `.inv` of it, PyTorch's own, goes the other way.

    Args:
        bijection: F. Its parameters are used as they are at each call.

    >>> import torch
    >>> from plunit.invertible import PLU
    >>> base = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2), torch.ones(2)), 1)
    >>> squeezed = torch.distributions.TransformedDistribution(base, [BijectionTransform(PLU(2))])
    >>> squeezed.log_prob(torch.tensor([0.5, 1.1]))
    tensor(-1.6603)
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.real_vector

    def __init__(self, bijection: Bijection, cache_size: int = 0) -> None:
        expect(bijection, "BijectionTransform")
        super().__init__(cache_size=cache_size)
        self.bijection = bijection

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BijectionTransform) and self.bijection is other.bijection

    def __hash__(self) -> int:
        return hash(self.bijection)

    def with_cache(self, cache_size: int = 1) -> BijectionTransform:
        """Return the transform with another size of the cache (0 or 1)."""
        return BijectionTransform(self.bijection, cache_size)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log|det dy/dx| at x."""
        return self.call_and_ladj(x)[1]

    def call_and_ladj(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx| from one evaluation; zuko asks for both at once."""
        return self.bijection(x)  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        return self.call_and_ladj(x)[0]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.bijection.inverse(y)[0]
