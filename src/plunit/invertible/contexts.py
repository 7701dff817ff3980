"""Bijections that depend on a context, for conditional densities p(x | context)."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from plunit.invertible.axes import ScaleShift
from plunit.invertible.bijection import Bijection, Elementwise, expect
from plunit.invertible.chain import Chain
from plunit.invertible.linear import LU
from plunit.invertible.network import activation_of
from plunit.torch import PLU


class Conditional(nn.Module):
    """y = F(x; p + N(context)): a bijection of x whose parameters p are moved by a network N of the context.

    N moves the parameters of elementwise parts, which have one number per feature: slopes, widths and roundings of
    activations, scales and shifts of `ScaleShift`. Matrices are the same for all contexts. N has hidden layers of PLUs
    and starts as 0.

    `Flow` asks this much of a conditional bijection: `features`; `context`, the k numbers of a context;
    `forward(x, context)` and `inverse(y, context)`, which return value and log-determinant for x of shape (..., n) and
    contexts (..., k) that broadcast; `at(context)`, the bijection of one context; `exact()`, as that of a `Bijection`.

    Args:
        bijection: F, with learned elementwise parts.
        context: k.
        hidden: the units of each hidden layer of N.
        generator: where the random numbers of the start of N come from.

    >>> line = Conditional(ScaleShift(2), context=3)
    >>> y, log_det = line(torch.zeros(5, 2), torch.zeros(3))
    >>> y.shape, log_det.shape
    (torch.Size([5, 2]), torch.Size([5]))
    """

    def __init__(
        self,
        bijection: Bijection,
        context: int,
        *,
        hidden: Sequence[int] = (64, 64),
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        expect(bijection, "Conditional")
        for size in (context, *hidden):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"context and hidden must be integers of at least 1, got {size!r}")
        self.bijection, self.features = bijection, bijection.features
        self.context, self.hidden = context, tuple(hidden)
        self.moved = _moved(bijection)
        if not self.moved:
            raise ValueError(
                "Conditional needs a bijection with learned elementwise parts, such as ScaleShift; got none"
            )
        self.network = _network((context, *hidden, len(self.moved) * self.features), generator)

    def forward(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx| at these contexts."""
        return self._call(x, context, inverted=False)

    def inverse(self, y: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y at these contexts, and log|det dx/dy|."""
        return self._call(y, context, inverted=True)

    @torch.no_grad()
    def at(self, context: Tensor) -> Bijection:
        """The bijection for one context, shape (k,): a copy with the parameters moved."""
        twin = copy.deepcopy(self.bijection)
        parameters = dict(twin.named_parameters())
        for name, value in self._parameters_at(context).items():
            if value.ndim != 1:
                raise ValueError(f"give one context, shape ({self.context},), got shape {tuple(context.shape)}")
            parameters[name].copy_(value)
        return twin

    def exact(self) -> Conditional:
        """The same with every rounded corner removed; it shares the parameters."""
        twin = Conditional.__new__(Conditional)
        nn.Module.__init__(twin)
        twin.bijection, twin.features, twin.network = self.bijection.exact(), self.features, self.network
        twin.context, twin.hidden, twin.moved = self.context, self.hidden, self.moved
        return twin.train(self.training)

    def extra_repr(self) -> str:
        """Name the numbers of features and of the context."""
        return f"{self.features}, context={self.context}"

    def _call(self, x: Tensor, context: Tensor, inverted: bool) -> tuple[Tensor, Tensor]:
        parameters = {f"bijection.{name}": value for name, value in self._parameters_at(context).items()}
        if x.ndim:  # what is none the bijection refuses itself
            x = x.expand(*torch.broadcast_shapes(x.shape[:-1], context.shape[:-1]), x.shape[-1])
        return functional_call(_Either(self.bijection, inverted), parameters, (x,))  # type: ignore[no-any-return]

    def _parameters_at(self, context: Tensor) -> dict[str, Tensor]:
        """Return p + N(context) by name: one number per feature, for each context."""
        self._check(context)
        own = dict(self.bijection.named_parameters())
        shifts = self.network(context).unflatten(-1, (len(self.moved), self.features)).unbind(-2)
        # a rounding that is learned has no part in the sharp bijection
        return {name: own[name] + shift for name, shift in zip(self.moved, shifts, strict=True) if name in own}

    def _check(self, context: Tensor) -> None:
        if not isinstance(context, Tensor):
            raise TypeError(
                f"context must be a tensor, got {type(context).__name__}; torch.as_tensor makes one of an array, and a "
                f"random generator is passed as generator="
            )
        if context.ndim < 1 or context.shape[-1] != self.context:
            raise ValueError(f"context must have {self.context} numbers on its last axis, got {tuple(context.shape)}")
        wanted = next(self.network.parameters()).dtype
        if context.dtype != wanted:
            raise TypeError(f"the network of the context holds {wanted} and got {context.dtype}; convert the context")


class _Either(nn.Module):
    """One direction of a bijection as a forward, for functional_call."""

    def __init__(self, bijection: Bijection, inverted: bool) -> None:
        super().__init__()
        self.bijection, self.inverted = bijection, inverted

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.bijection.inverse(x) if self.inverted else self.bijection(x)


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

    Scales, shifts, slopes, widths and roundings depend on the context; see `Conditional`.

    Args:
        features: n, the numbers of a point.
        context: k, the numbers of a context.
        blocks: how many.
        activation: as of `density`.
        hidden: the units of each hidden layer of the network of the context.
        generator: where the random numbers of the start come from.

    >>> from plunit.invertible import Flow
    >>> flow = Flow(conditional(2, context=1, blocks=2))
    >>> flow.log_prob(torch.zeros(5, 2), torch.zeros(5, 1)).shape
    torch.Size([5])
    >>> flow.sample(10, torch.tensor([[0.0], [1.0], [2.0]])).shape
    torch.Size([10, 3, 2])
    """
    make = activation_of(activation)
    parts: list[Bijection] = []
    for index in range(blocks):
        parts += [ScaleShift(features), LU(features, generator=generator), make(features, index)]
    chain = Chain(*parts, ScaleShift(features), LU(features, generator=generator))
    return Conditional(chain, context, hidden=hidden, generator=generator)


def _moved(bijection: Bijection) -> list[str]:
    """Return the names of the parameters of elementwise parts."""
    return [
        f"{path}.{name}" if path else name
        for path, module in bijection.named_modules()
        if isinstance(module, Elementwise)
        for name, _ in module.named_parameters(recurse=False)
    ]


def _network(sizes: tuple[int, ...], generator: Generator | None) -> nn.Sequential:
    """Return linear layers with PLUs between them, the last of them 0."""
    parts: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs)  # the global random numbers stay as they are
        bound = inputs**-0.5
        nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        parts += [layer, PLU()]
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(*parts[:-1])
