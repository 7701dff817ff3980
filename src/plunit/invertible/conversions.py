"""Conversions: networks of `plunit.densities` to flows, and bijections to `torch.distributions` transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Transform, constraints

from plunit import learned
from plunit.densities import DensityNetwork
from plunit.invertible.bijections.bijection import Bijection, expect
from plunit.invertible.bijections.chain import Chain
from plunit.invertible.bijections.elementwise import PLU, LeakyReLU
from plunit.invertible.bijections.linear import LU
from plunit.invertible.bijections.smooth_plu import SmoothPLU
from plunit.invertible.flow import Flow

_ACTIVATIONS: dict[str, Callable[..., Bijection]] = {
    "smooth": partial(SmoothPLU, learnable_rho=True),
    "plu": PLU,
    "leaky": LeakyReLU,
}


def to_flow(network: DensityNetwork) -> Flow:
    """Return the flow of the same density, in the dtype of the network's parameters.

    `Flow.fit` can continue its training.

    >>> import numpy as np
    >>> from plunit.densities import Architecture, start
    >>> to_flow(start(Architecture(2, 3), np.random.default_rng(0))).log_prob(torch.zeros(5, 2)).shape
    torch.Size([5])
    """
    return Flow(to_chain(network)).to(torch.from_numpy(network.theta).dtype)


def to_chain(network: DensityNetwork) -> Chain:
    """Return the map from data to base of a network, in float64."""
    if network.rho:
        raise ValueError(f"the network must be fully trained, without rounded corners, got rho = {network.rho}")
    form, views = network.architecture, network.views
    parts: list[Bijection] = []
    for i in range(form.maps):
        linear = {"lower": views["lower"][i], "upper": views["upper"][i], "bias": views["bias"][i]}
        linear |= {"raw_diagonal": network.log_diagonal[i], "sign": network.sign[i], "permutation": network.order[i]}
        parts.append(_load(LU(form.features), linear))
        if i < form.blocks:
            # parameters beyond the limit have no effect
            names = [name for name in ("alpha", "c", "rho") if name in views]
            shapes = {f"raw_{name}": views[name][i].clip(-learned.LIMIT, learned.LIMIT) for name in names}
            parts.append(_load(_ACTIVATIONS[form.activation](form.features, learnable=True), shapes))
    return Chain(*parts)


def _load(part: Bijection, arrays: Mapping[str, Any]) -> Bijection:
    """Return a bijection with these numbers, in float64."""
    part.to(torch.float64).load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
    return part


class BijectionTransform(Transform):
    """A transform y = F(x) for distributions over vectors; PyTorch provides the inverse, `.inv`.

    Args:
        bijection: F. Later changes to its parameters take effect.

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
        """Return the transform with another cache size (0 or 1)."""
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
