"""From a density that the compiled program has trained to the flow of PyTorch with the same parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from plunit import learned
from plunit.densities import DensityNetwork
from plunit.invertible.bijection import Bijection
from plunit.invertible.chain import Chain
from plunit.invertible.elementwise import PLU, LeakyReLU
from plunit.invertible.flow import Flow
from plunit.invertible.linear import LU
from plunit.invertible.smooth import SmoothPLU


def to_flow(network: DensityNetwork) -> Flow:
    """Return the flow of the same density, in the dtype of the network's parameters.

    Its parameters can be trained on by `Flow.fit`, and its bijections be used wherever PyTorch's are.

    >>> import numpy as np
    >>> from plunit.densities import Architecture, start
    >>> form = Architecture(2, 3)
    >>> begun = start(form, np.random.default_rng(0))
    >>> to_flow(DensityNetwork(form, begun.theta, begun.order, begun.sign)).log_prob(torch.zeros(5, 2)).shape
    torch.Size([5])
    """
    return Flow(to_chain(network)).to(torch.from_numpy(network.theta).dtype)


def to_chain(network: DensityNetwork) -> Chain:
    """Return the map from data to base of a network, in float64."""
    if network.rho:
        raise ValueError(
            f"the network must have its final kinks, got one in training with corners of rho {network.rho}"
        )
    form, views = network.architecture, network.views
    parts: list[Bijection] = []
    for i in range(form.maps):
        linear = {"lower": views["lower"][i], "upper": views["upper"][i], "bias": views["bias"][i]}
        linear |= {"raw_diagonal": network.log_diagonal[i], "sign": network.sign[i], "permutation": network.order[i]}
        parts.append(_loaded(LU(form.features), linear))
        if i < form.blocks:
            shapes = {f"raw_{name}": views[name][i] for name in ("alpha", "c", "rho") if name in views}
            parts.append(_loaded(_activation(form.activation, form.features), shapes))
    return Chain(*parts)


def _activation(name: str, features: int) -> Bijection:
    if name == "smooth":
        return SmoothPLU(features, learnable=True, learnable_rho=True)
    return (PLU if name == "plu" else LeakyReLU)(features, learnable=True)


def _loaded(part: Bijection, arrays: Mapping[str, Any]) -> Bijection:
    """Give a bijection its numbers; beyond their limit they have no effect."""
    part.to(torch.float64)
    state = {name: torch.tensor(array) for name, array in arrays.items()}
    for name in ("raw_alpha", "raw_c", "raw_rho"):
        if name in state:
            state[name] = state[name].clamp(-learned.LIMIT, learned.LIMIT)
    part.load_state_dict(state)
    return part
