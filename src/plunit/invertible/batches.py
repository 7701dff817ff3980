"""Points to train a flow with: from arrays, functions or loaders to batches of checked tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor

from plunit.ensemble.arrays import as_array, check_unmasked
from plunit.invertible.contexts import Conditional
from plunit.invertible.screening import screen

if TYPE_CHECKING:
    from plunit.invertible.flow import Flow

Rows = tuple[Tensor, ...]
"""Points (x,), or points with their contexts (x, context): what `Flow.log_prob` takes."""

Draw = Callable[[int], Rows]
"""Draws a batch of n points; the batches of a loader have the size that the loader gives them."""

Source = tuple[Draw, Rows | None, Tensor | None]
"""Batches to train with, and rows for validation with their weights."""

_TAKES = {
    "fit": "a tensor, an array or nested lists of points, a function that draws n of them, or a loader of batches",
    "weights": "real numbers, one for each point",
}


def context_size(flow: Flow, context: Any) -> int:
    """Return the size of a flow's contexts, 0 if it has none; raise ValueError unless one is given where it has."""
    size = flow.bijection.context if isinstance(flow.bijection, Conditional) else 0
    if not size and context is not None:
        raise ValueError("this flow has no context; leave it out, or build the flow with conditional(...)")
    if size and context is None:
        raise ValueError(f"this flow is conditional: give a context of {size} numbers for each point")
    return size


def _rows(flow: Flow, x: Any, context: Any = None) -> Rows:
    """Return points, and their contexts if the flow has them, as checked rows."""
    points = _table(x, flow.bijection.features, "points of {} features", flow.origin)
    if not (size := context_size(flow, context)):
        return (points,)
    contexts = _table(context, size, "contexts of {} numbers", flow.origin)
    if len(contexts) != len(points):
        raise ValueError(f"each point needs its own context, got {len(points)} points and {len(contexts)} contexts")
    return points, contexts


def _batch(flow: Flow, given: Any) -> Rows:
    """Return what a function or a loader gave: points, or a tuple of points and contexts."""
    if isinstance(given, tuple) or (isinstance(given, list) and given and isinstance(given[0], Tensor)):
        if len(given) not in (1, 2):
            raise ValueError(f"a batch must be points, or points and contexts, got {len(given)} parts")
        return _rows(flow, *given)
    return _rows(flow, given)


def _table(data: Any, size: int, what: str, like: Tensor) -> Tensor:
    x = _tensor(data, "fit", like)
    if x.shape[-1:] != (size,) or x.numel() == 0:
        raise ValueError(
            f"fit needs {what.format(size)}, a tensor of shape (n, {size}), n > 0, got a tensor of shape "
            f"{tuple(x.shape)}"
        )
    bad = ~x.isfinite()
    if bad.any():
        raise ValueError(
            f"fit needs finite data, got {int(bad.sum())} values that are not (in {x.dtype}), the first at index "
            f"{tuple(bad.nonzero()[0].tolist())}; drop or impute those rows"
        )
    return x.reshape(-1, size)


def _tensor(data: Any, user: str, like: Tensor) -> Tensor:
    """Return data as a tensor like another one, without a graph, or raise TypeError unless they are real numbers."""
    if isinstance(data, Tensor):
        if data.is_complex():
            raise TypeError(f"{user} takes real numbers, got a tensor of {data.dtype}; pass its real part")
        if data.is_meta:
            raise TypeError(f"{user} takes numbers, got a tensor on the device meta; pass the data themselves")
        check_dense(data, user)
        return data.detach().to(like)
    check_unmasked("data", data)
    try:
        with np.errstate(over="ignore"):  # what is too large is found as infinite
            array = as_array(data, np.float64 if like.dtype == torch.float64 else np.float32)
    except ValueError as error:
        raise TypeError(f"{user} takes {_TAKES[user]}, got {type(data).__name__}: {error}") from None
    return torch.tensor(array).to(like)


def check_dense(tensor: Tensor, user: str) -> None:
    """Raise TypeError if a tensor is nested or sparse; it looks at no number, and so never waits for a GPU."""
    if tensor.is_nested:
        raise TypeError(f"{user} takes dense tensors, got a nested one; pass torch.cat(tensor.unbind())")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{user} takes dense tensors, got one of {tensor.layout}; pass tensor.to_dense()")


def from_rows(rows: Rows, weights: Tensor | None, generator: Generator | None) -> Draw:
    """Return a function that draws rows at random: all alike, or in proportion to their weights."""
    count, device = len(rows[0]), rows[0].device
    ends = torch.zeros(0) if weights is None else shares(weights).cumsum(0)

    def draw(n: int) -> Rows:
        if weights is None:
            chosen = torch.randint(count, (n,), generator=generator)
        else:
            place = ends[-1] * torch.rand(n, generator=generator, dtype=ends.dtype)
            chosen = torch.searchsorted(ends, place, right=True).clamp(max=count - 1)  # it may round to the end
        return tuple(part[chosen.to(device)] for part in rows)

    return draw


def _cycle(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of a loader, from the first again after the last."""
    while True:
        batch = None
        for batch in batches:
            yield batch
        if batch is None:
            raise ValueError(
                "the loader has no batches left; give one that can be read again, such as a DataLoader or a list, or "
                "take fewer steps"
            )


def is_array(data: Any) -> bool:
    """Return whether data are points themselves, not a function or a loader that gives them."""
    if isinstance(data, (Tensor, list, tuple, str, bytes, dict)) or hasattr(data, "__array__"):
        return True
    return not (callable(data) or isinstance(data, Iterable))


def as_weights(weights: Any, count: int) -> Tensor:
    """Return weights as float64 on the CPU, where they are drawn from, or raise unless each point has one."""
    found = _tensor(weights, "weights", torch.zeros((), dtype=torch.float64))
    if found.shape != (count,):
        raise ValueError(f"weights must hold one number for each of the {count} points, got shape {tuple(found.shape)}")
    if not (found.isfinite().all() and (found >= 0).all() and found.max() > 0):
        raise ValueError(
            f"weights must be finite and at least 0, and some above 0, got {found.min().item()} to {found.max().item()}"
        )
    return found


def shares(weights: Tensor) -> Tensor:
    """Return the parts of positive weights in their sum, which itself may be too large a number, or too small."""
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def prepare(
    flow: Flow, data: Any, context: Any, weights: Any, validation: Any, batch: int, generator: Generator | None
) -> Source:
    """Return batches of data that are points, a function or a loader; raise or warn if they cannot be learned."""
    is_number = isinstance(validation, Real) and not isinstance(validation, bool)
    fraction = float(validation) if is_number else None
    held = None if validation is None or fraction is not None else _batch(flow, validation)
    if is_array(data):
        rows, found = _rows(flow, data, context), None
        if weights is not None:
            found = as_weights(weights, len(rows[0]))
            rows, found = tuple(part[(found > 0).to(part.device)] for part in rows), found[found > 0]
        screen(*rows)
        if fraction is not None:
            return _split(rows, found, fraction, generator)
        return from_rows(rows, found, generator), held, None
    for name, given in (("context", context), ("weights", weights), ("a fraction for validation", fraction)):
        if given is not None:
            raise ValueError(
                f"{name} needs points as a tensor or an array, got {type(data).__name__}; a function or a loader gives "
                f"contexts together with points and draws by weight itself, and validation takes points"
            )
    stream = None if callable(data) else _cycle(data)
    draw: Draw = lambda n: _batch(flow, data(n) if stream is None else next(stream))  # noqa: E731
    first = draw(batch)
    screen(*first, whole=False)
    waiting = [first]  # it is also the first batch of training
    return lambda n: waiting.pop() if waiting else draw(n), held, None


def _split(rows: Rows, weights: Tensor | None, fraction: float, generator: Generator | None) -> Source:
    """Set a fraction of the rows aside, at random."""
    count = len(rows[0])
    aside = math.ceil(fraction * count) if 0 < fraction < 1 else 0
    if not 0 < aside < count - 1:
        raise ValueError(
            f"validation as a fraction must lie between 0 and 1 and leave points on both sides, at least two to train "
            f"with, got {fraction} of {count} points"
        )
    held, kept = torch.randperm(count, generator=generator).tensor_split([aside])
    held_rows, kept_rows = (tuple(part[chosen.to(part.device)] for part in rows) for chosen in (held, kept))
    held_weights, kept_weights = (None if weights is None else weights[chosen] for chosen in (held, kept))
    return from_rows(kept_rows, kept_weights, generator), held_rows, held_weights
