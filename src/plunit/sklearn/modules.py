"""A fitted estimator as modules of PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from plunit.densities import DensityNetwork
from plunit.ensemble.arrays import Array
from plunit.ensemble.nonlinearities import ACTIVATIONS, module_of
from plunit.invertible import LU, Chain, Flow
from plunit.invertible.conversions import to_chain
from plunit.sklearn.density.splits import Whitening
from plunit.torch import PLU


def sequential(layers: list[tuple[Array, Array]], activation: str, shapes: list[tuple[Array, Array]]) -> nn.Sequential:
    """Return Linear layers in float64 with the activation between them; shapes hold alpha and c of each unit."""
    modules: list[nn.Module] = []
    for i, (weight, bias) in enumerate(layers):
        linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight))
            linear.bias.copy_(torch.from_numpy(bias))
        modules += [linear] if i == len(layers) - 1 else [linear, _activation(activation, *shapes[i])]
    return nn.Sequential(*modules)


def flow(whitening: Whitening, network: DensityNetwork) -> Flow:
    """Return the density of a network behind a whitening as a flow in float64."""
    matrix = torch.linalg.solve(*map(torch.from_numpy, (whitening.lower, np.diag(1 / whitening.spread))))
    first = LU.from_matrix(matrix, -matrix @ torch.from_numpy(whitening.mean))
    return Flow(Chain(first, to_chain(network))).double()


def _activation(name: str, alpha: Array, c: Array) -> nn.Module:
    if (kind := module_of(name)) != "PLU":
        return getattr(nn, kind)()  # type: ignore[no-any-return]
    if not ACTIVATIONS[name].learned:
        return PLU(float(alpha[0]), float(c[0]))
    unit = PLU(learnable=True, num_parameters=len(alpha)).double()
    raw = {"raw_alpha": torch.from_numpy(alpha).logit(), "raw_c": torch.from_numpy(c).log()}
    unit.load_state_dict(raw)
    return unit
