"""The network of a context: linear layers with PLUs between them, which starts as 0."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import Generator, nn

from plunit.torch import PLU


def network(sizes: tuple[int, ...], generator: Generator | None) -> nn.Sequential:
    """Return linear layers with PLUs between them, the last of them 0."""
    parts: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        # the global random numbers stay as they are
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
        bound = inputs**-0.5
        nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
        nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        parts += [layer, PLU()]
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(*parts[:-1])


def network_shapes(
    features: int, context: int, hidden: Sequence[int], slots: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of the network, by name."""
    sizes = itertools.pairwise((context, *hidden, sum(slots) * features))
    return {f"{2 * index}.weight": (outputs, inputs) for index, (inputs, outputs) in enumerate(sizes)}
