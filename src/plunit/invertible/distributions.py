"""Flows and `torch.distributions`: base densities as modules, and `BijectionTransform`, a bijection as a transform."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution, Transform, constraints

from plunit.invertible.bijections.bijection import Bijection, expect


class _Placed(nn.Module):
    """A module whose `origin` has its dtype and device."""

    origin: Tensor

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("origin", torch.zeros((), dtype=like.dtype, device=like.device), persistent=False)


class StandardNormal(_Placed):
    """N(0, 1) on R^n."""

    def __init__(self, features: int, like: Tensor) -> None:
        super().__init__(like)
        self.features = features

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log density, -|z|^2 / 2 - n/2 log(2 pi)."""
        return -0.5 * z.square().sum(-1) - 0.5 * self.features * math.log(2 * math.pi)

    def draw(self, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
        """Draw points, shape (*shape, features)."""
        like: dict[str, Any] = {"dtype": self.origin.dtype, "device": self.origin.device}
        return torch.randn(*shape, self.features, generator=generator, **like)


class Given(_Placed):
    """A distribution over vectors, given by the user. `.to()` and `.double()` reach all tensors that it holds.

    The distribution itself is left as it is: the module converts a copy.
    """

    def __init__(self, distribution: Distribution, like: Tensor) -> None:
        super().__init__(like)
        self.distribution = distribution

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log density."""
        log_density: Tensor = self.distribution.log_prob(z)
        return log_density

    def draw(self, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
        """Draw points, shape (*shape, features), differentiable in the tensors of the distribution where it can be."""
        if generator is not None:
            raise ValueError("this base, a torch.distributions one, takes no generator; use torch.manual_seed")
        return self.distribution.rsample(shape) if self.distribution.has_rsample else self.distribution.sample(shape)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Given:
        self.distribution = _mapped(self.distribution, fn, {})
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]


Base = StandardNormal | Given
"""What a flow has for its base."""


def base_for(features: int, distribution: Distribution | None, like: Tensor) -> Base:
    """Return the base density over vectors of so many features; `like` has the dtype and device of the flow."""
    if distribution is None:
        return StandardNormal(features, like)
    if not isinstance(distribution, Distribution):
        raise TypeError(
            f"the base must be a Distribution of torch.distributions, got {distribution!r:.60}; leave it out for the "
            f"standard normal"
        )
    if distribution.batch_shape:
        raise ValueError(f"the base must be one distribution, got a batch of shape {tuple(distribution.batch_shape)}")
    if distribution.event_shape != (features,):
        raise ValueError(
            f"the base must be a distribution over vectors of {features} features, got event shape "
            f"{tuple(distribution.event_shape)}; wrap it in torch.distributions.Independent(base, 1)"
        )
    return Given(distribution, like)


def _mapped(part: Any, fn: Callable[[Tensor], Tensor], seen: dict[int, Any]) -> Any:
    """Return a distribution, or what it holds, with fn applied to all its tensors; `seen` has what is done."""
    if isinstance(part, Tensor):
        return fn(part)
    if isinstance(part, nn.Module):
        return part._apply(fn)  # type: ignore[no-untyped-call]
    if type(part) in (list, tuple):
        return type(part)(_mapped(each, fn, seen) for each in part)
    if not isinstance(part, (Distribution, Transform)):
        return part
    if id(part) not in seen:  # a transform and its inverse know one another
        seen[id(part)] = twin = copy.copy(part)
        for name, value in vars(part).items():
            # a weak reference to an inverse is made anew where it is missing
            vars(twin)[name] = None if isinstance(value, weakref.ref) else _mapped(value, fn, seen)
    return seen[id(part)]


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
