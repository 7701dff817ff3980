"""Invertible networks R^n -> R^n: blocks of a linear layer and an activation, and a last linear layer.

`density` and `conditional` return bijections for flows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from torch import Generator, Tensor, nn

from plunit.base.ranges import as_count
from plunit.invertible.bijections.bijection import Bijection
from plunit.invertible.bijections.chain import Chain
from plunit.invertible.bijections.elementwise import PLU, LeakyReLU, ScaleShift
from plunit.invertible.bijections.linear import LU, Orthogonal
from plunit.invertible.bijections.smooth_plu import RHO, SmoothPLU
from plunit.invertible.contexts import Conditional

ActivationMaker = Callable[[int, int], Bijection]
"""Returns the activation of a block, given the number of features and the index of the block."""

LinearLayer = Literal["lu", "orthogonal"] | Callable[..., Bijection]
"""The name of a kind of linear layer, or a function that returns one from (features, generator=)."""

LINEAR_LAYERS: dict[str, Callable[..., Bijection]] = {"lu": LU, "orthogonal": Orthogonal}


def alternating(make: Callable[..., Bijection], alpha: float, **options: Any) -> ActivationMaker:
    """Return activations that contract and expand in turn: slope alpha in blocks 0, 2, ..., 1/alpha in the others."""
    return lambda features, index: make(features, alpha if index % 2 == 0 else 1 / alpha, **options)


START_ALPHA = 0.7
"""The default slope: mild enough for round trips through many blocks, and for training flows."""

MILD = alternating(PLU, START_ALPHA)
"""The default activations of a network."""


@dataclass(frozen=True)
class Certificate:
    """Bounds for an invertible network and its inverse on all of R^n; `print` shows them.

    They hold for real numbers; the singular values of W are computed in the precision of the network.

    Attributes:
        features: the dimension n.
        parts: the number of bijections in the chain.
        lipschitz: a bound on the Lipschitz constant of F, the product of ||W|| max(1, alpha).
        inverse_lipschitz: a bound on that of the inverse, the product of ||W^-1|| max(1, 1/alpha).
        condition_numbers: the product of the two bounds of each part.
    """

    features: int
    parts: int
    lipschitz: float
    inverse_lipschitz: float
    condition_numbers: tuple[float, ...]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"invertible network: {self.features} features, {self.parts} parts",
                f"  Lipschitz constant of F        <= {self.lipschitz:.4g}",
                f"  Lipschitz constant of F^-1     <= {self.inverse_lipschitz:.4g}",
                f"  condition number of a part     <= {max(self.condition_numbers):.4g}",
            ]
        )


class InvertibleNetwork(nn.Module):
    """F(x) = A_k(sigma(... A_1(sigma(A_0 x)))): the paper's network R^n -> R^n, with its exact inverse.

    Args:
        features: n, the size of the last axis.
        depth: k, the number of blocks (linear layer, activation); one more linear layer follows.
        activation: a function that returns the activation of a block from (features, index of the block), such as
            `lambda features, index: Tanh(features)`. The default is PLU with alpha 0.7 and 1/0.7 in turn: with the
            paper's alpha = 0.1 in all of 32 blocks, a round trip in float32 loses all digits.
        linear: "lu" or "orthogonal", or a function that returns a layer from (features, generator=).
        generator: the source of random numbers for the start.

    `bijection` is the same map with its log-determinants, for `Flow` and `Chain`.

    >>> import torch
    >>> network = InvertibleNetwork(2, depth=3, generator=torch.Generator().manual_seed(0))
    >>> x = torch.tensor([[0.5, -2.0]])
    >>> network.inverse(network(x)).detach().round(decimals=4)
    tensor([[ 0.5000, -2.0000]])
    """

    def __init__(
        self,
        features: int,
        depth: int,
        *,
        activation: ActivationMaker = MILD,
        linear: LinearLayer = "lu",
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        depth = as_count("depth, the number of blocks,", depth)
        if not callable(linear) and linear not in LINEAR_LAYERS:
            raise ValueError(f'linear must be "lu", "orthogonal" or a function, got {linear!r}')
        if not callable(activation) or isinstance(activation, (type, nn.Module)):
            raise TypeError(
                f"activation must be a function of (features, index of the block), got {activation!r}; for instance "
                f"alternating(PLU, 0.5)"
            )
        layer = partial(linear if callable(linear) else LINEAR_LAYERS[linear], features, generator=generator)
        blocks = [part for index in range(depth) for part in (layer(), activation(features, index))]
        self.bijection = Chain(*blocks, layer())

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x)."""
        return self.bijection(x)[0]  # type: ignore[no-any-return]

    def inverse(self, y: Tensor) -> Tensor:
        """Return the x with F(x) = y."""
        return self.bijection.inverse(y)[0]

    def log_det(self, x: Tensor) -> Tensor:
        """Return log|det dF/dx| at x."""
        return self.bijection(x)[1]  # type: ignore[no-any-return]

    def certificate(self) -> Certificate:
        """Return bounds on the Lipschitz constants of the network and its inverse."""
        bounds = [part.lipschitz() for part in self.bijection.parts()]
        forward, backward = self.bijection.lipschitz()
        return Certificate(
            features=self.bijection.features,
            parts=len(bounds),
            lipschitz=forward,
            inverse_lipschitz=backward,
            condition_numbers=tuple(ahead * back for ahead, back in bounds),
        )


DENSITY_ACTIVATIONS: dict[str, ActivationMaker] = {
    "smooth": alternating(SmoothPLU, START_ALPHA, learnable=True, learnable_rho=True),
    "annealed": alternating(SmoothPLU, START_ALPHA, rho=RHO.start, learnable=True, annealing=RHO),
    "flux": alternating(PLU, START_ALPHA, learnable=True, boundary=True),
    "plain": alternating(PLU, START_ALPHA, learnable=True),
    "leaky": alternating(LeakyReLU, START_ALPHA, learnable=True, boundary=True),
}
"""The activations of `density` by name."""


def density(
    features: int,
    blocks: int = 12,
    *,
    activation: str = "smooth",
    linear: LinearLayer = "lu",
    generator: Generator | None = None,
) -> Chain:
    """Return a bijection for densities: blocks of a linear layer and a learned activation, and a last linear layer.

    Args:
        features: n, the size of the last axis.
        blocks: the number of blocks.
        activation: "smooth" (SmoothPLU, alpha, c and rho learned), "annealed" (SmoothPLU, which `Flow.fit` turns into
            PLU during training), "flux" (PLU with the boundary term), "plain" (PLU without it, which stays near a
            Gaussian) or "leaky" (LeakyReLU with the boundary term).
        linear: as in `InvertibleNetwork`.
        generator: the source of random numbers for the start.

    >>> sum(parameter.numel() for parameter in density(2).parameters())
    150
    """
    make, depth = activation_of(activation), as_count("blocks", blocks)
    return InvertibleNetwork(features, depth, activation=make, linear=linear, generator=generator).bijection


def conditional(
    features: int,
    context: int,
    blocks: int = 8,
    *,
    activation: str = "smooth",
    hidden: Sequence[int] = (64, 64),
    generator: Generator | None = None,
) -> Conditional:
    """Return a bijection for conditional densities: blocks of ScaleShift, LU and activation, then ScaleShift and LU.

    Scales, shifts, slopes, widths and rounding depend on the context. `features`, `blocks` and `activation` are as in
    `density`; `context` (the size of a context) and `hidden` (the units of its network) are as in `Conditional`.

    >>> import torch
    >>> from plunit.invertible import Flow
    >>> flow = Flow(conditional(2, context=1, blocks=2))
    >>> flow.log_prob(torch.zeros(5, 2), torch.zeros(5, 1)).shape
    torch.Size([5])
    >>> flow.sample(10, torch.tensor([[0.0], [1.0], [2.0]])).shape
    torch.Size([10, 3, 2])
    """
    make = activation_of(activation)
    parts: list[Bijection] = []
    for index in range(as_count("blocks", blocks)):
        parts += [ScaleShift(features), LU(features, generator=generator), make(features, index)]
    chain = Chain(*parts, ScaleShift(features), LU(features, generator=generator))
    return Conditional(chain, context, hidden=hidden, generator=generator)


def activation_of(name: str) -> ActivationMaker:
    """Return the activations of `density` with this name."""
    if name not in DENSITY_ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}; choose one of {', '.join(DENSITY_ACTIVATIONS)}")
    return DENSITY_ACTIVATIONS[name]
