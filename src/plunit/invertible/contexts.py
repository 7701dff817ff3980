"""Bijections that depend on a context: `Conditional`, whose parameters are shifted by a network of the context.

The network has linear layers with PLUs between them, and initially returns 0.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from plunit.base.ranges import as_count
from plunit.invertible.bijections.bijection import (
    Bijection,
    Elementwise,
    Leaf,
    Values,
    copy_sharp,
    expect,
    imply_all,
    reverse,
    walk,
)
from plunit.torch import PLU
from plunit.torch.op import is_recorded, is_transformed


def context_network(sizes: tuple[int, ...], generator: Generator | None) -> nn.Sequential:
    """Return linear layers with PLUs between them, the last of them 0."""
    parts: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        # without the global random generator
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
        bound = inputs**-0.5
        nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        parts += [layer, PLU()]
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(*parts[:-1])


class Conditional(nn.Module):
    """y = F(x; p + N(context)): a bijection of x whose parameters p are shifted by a network N of the context.

    N shifts the parameters of elementwise leaves, which have one number per feature: slopes, widths and rounding of
    activations, scales and shifts of `ScaleShift`. Matrices do not depend on the context.

    `forward(x, context)` and `inverse(y, context)` return value and log-determinant for x of shape (..., n) and
    contexts (..., k) that broadcast.

    Args:
        bijection: F, made of leaves, some of them elementwise with learned parameters.
        context: k, the size of a context.
        hidden: the units of each hidden layer of N.
        slots: how many numbers per feature N shifts in each of those leaves; by default all learned ones. A leaf
            ignores slots that it lacks: `PLU` has no rounding, which is the last number of `SmoothPLU`.
        generator: the source of random numbers for the start of N.

    >>> from plunit.invertible import ScaleShift
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
        slots: Sequence[int] | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        expect(bijection, "Conditional")
        if not isinstance(hidden, Sequence):
            raise TypeError(f"hidden must be the units of each hidden layer, such as (64, 64), got {hidden!r}")
        context, hidden = as_count("context", context, 1), tuple(as_count("each of hidden", size, 1) for size in hidden)
        self.bijection, self.features = bijection, bijection.features
        self.context, self.hidden = context, hidden
        learned = [len(_raw_parameters(leaf)) for leaf in _find_movable(bijection)]
        self.slots = learned if slots is None else list(slots)
        fit = len(self.slots) == len(learned) and all(a >= b for a, b in zip(self.slots, learned, strict=True))
        if not (fit and learned):
            raise ValueError(
                f"Conditional needs learned elementwise parts, such as ScaleShift, and for each at least as many slots "
                f"as it has numbers, got parts of {learned} numbers and slots {self.slots}"
            )
        self.network = context_network((context, *hidden, sum(self.slots) * self.features), generator)

    def forward(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx| at these contexts."""
        return self._through(x, context, self.bijection.leaves())

    def inverse(self, y: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y at these contexts, and log|det dx/dy|."""
        return self._through(y, context, reverse(self.bijection.leaves()))

    @torch.no_grad()
    def at(self, context: Tensor) -> Bijection:
        """Return the bijection for one context, shape (k,): a copy with shifted parameters."""
        if context.ndim != 1:
            raise ValueError(f"pass one context, shape ({self.context},), got shape {tuple(context.shape)}")
        check_finite(context)
        twin = copy.deepcopy(self.bijection)
        for leaf, shift in zip(_find_movable(twin), self._shifts(context), strict=True):
            for parameter, change in zip(_raw_parameters(leaf), shift, strict=False):
                parameter += change[:, 0]
        return twin

    def sharp(self) -> Any:
        """Return the same conditional bijection without rounded corners; it shares all parameters."""
        return copy_sharp(self)

    def extra_repr(self) -> str:
        """Name the numbers of features and of the context."""
        return f"{self.features}, context={self.context}"

    def _through(self, x: Tensor, context: Tensor, steps: list[tuple[Leaf, bool]]) -> tuple[Tensor, Tensor]:
        """Apply the steps, with the values of these contexts."""
        if x.ndim:  # the bijection rejects 0-D input
            batch = _batch(x, context)
            x = x.expand(*batch, x.shape[-1])
            if context.ndim > 1 and context.numel() > self.context:
                context = context.expand(*batch, context.shape[-1])
        shifts = dict(zip(map(id, _find_movable(self.bijection)), self._shifts(context), strict=True))
        others = iter(imply_all([step for step in steps if id(step[0]) not in shifts]))
        values = [_values(*step, shifts[id(step[0])]) if id(step[0]) in shifts else next(others) for step in steps]
        return walk(self.bijection, x, steps, values)

    def _shifts(self, context: Tensor) -> list[Tensor]:
        """Return N(context) for each elementwise leaf, as columns: [slots, n, m], with m = 1 for one context."""
        self.check(context)
        columns = self.network(context.reshape(-1, self.context)).mT
        return list(columns.reshape(sum(self.slots), self.features, -1 if columns.numel() else 0).split(self.slots))

    def check(self, context: Tensor) -> None:
        """Raise unless a tensor has the shape and dtype of contexts."""
        if not isinstance(context, Tensor):
            raise TypeError(
                f"context must be a tensor, got {type(context).__name__}; convert an array with torch.as_tensor"
            )
        if context.ndim < 1 or context.shape[-1] != self.context:
            raise ValueError(f"context must have {self.context} numbers on its last axis, got {tuple(context.shape)}")
        wanted = next(self.network.parameters()).dtype
        if context.dtype != wanted:
            raise TypeError(f"the network of the context holds {wanted} and got {context.dtype}; convert the context")


def check_finite(context: Tensor) -> None:
    """Raise ValueError if contexts are NaN or infinite; a tensor without numbers (meta, fake, traced) passes.

    On a GPU this waits for the contexts, so training steps do not call it.
    """
    if type(context) not in (Tensor, nn.Parameter) or context.is_meta or is_recorded() or is_transformed(context):
        return
    bad = ~context.isfinite()
    if bad.any():
        place = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"contexts must be finite, got {context[place].item()} at index {place}; drop or impute those contexts"
        )


def _batch(x: Tensor, context: Tensor) -> torch.Size:
    """Return the broadcast shape of points and contexts."""
    try:
        return torch.broadcast_shapes(x.shape[:-1], context.shape[:-1])  # type: ignore[no-untyped-call, no-any-return]
    except RuntimeError:
        raise ValueError(
            f"points and contexts must broadcast: pass one context for each point, or one for all; got points of shape "
            f"{tuple(x.shape)} and contexts of shape {tuple(context.shape)}"
        ) from None


def _find_movable(bijection: Bijection) -> list[Elementwise]:
    """Return the elementwise leaves with learned parameters, first applied first, each once."""
    found = (leaf for leaf, _ in bijection.leaves() if isinstance(leaf, Elementwise) and _raw_parameters(leaf))
    return list(dict.fromkeys(found))


def _raw_parameters(leaf: Leaf) -> list[Tensor]:
    """Return the learned raw numbers of a leaf."""
    return [raw for raw in leaf.raw() if _is_learned(leaf, raw)]


def _is_learned(leaf: Leaf, raw: Tensor) -> bool:
    # by identity: within torch.func a parameter is a plain tensor
    return any(raw is parameter for parameter in leaf._parameters.values())


def _values(leaf: Leaf, inverted: bool, shift: Tensor) -> Values:
    """Return, as columns, the values of a leaf whose raw numbers are shifted by columns [slots, n, m]."""
    changes: Iterator[Tensor] = iter(shift)
    raw = [each[:, None] + next(changes) if _is_learned(leaf, each) else each[:, None] for each in leaf.raw()]
    return leaf.imply_inverse(*raw) if inverted else leaf.imply(*raw)
