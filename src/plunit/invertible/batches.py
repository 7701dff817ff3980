"""Points to train a flow: arrays, functions or loaders become batches of checked tensors.

`screen` refuses points without a density, by the rules of `plunit.densities.density_faults`, and warns of points that
are hard to learn:
- a column has at most `FEW_VALUES` values, each on average at least `TIMES` times;
- the median of a column is farther than `FAR_OFF` from 0, or its spread (by quartiles, so that outliers do not matter)
  is above `FAR_OFF` or below 1 / `FAR_OFF`: training starts near centre 0 and spread 1, and takes small steps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor

from plunit.densities.density_faults import (
    TIMES,
    constants,
    dependent,
    discrete,
    is_atom,
    middle_and_spread,
    name_columns,
    thin,
)
from plunit.ensemble.arrays import Array, as_array, check_unmasked
from plunit.invertible.contexts import Conditional

if TYPE_CHECKING:
    from plunit.invertible.flow import Flow

BatchRows = tuple[Tensor, ...]
"""Points (x,), or points with their contexts (x, context): the arguments of `Flow.log_prob`."""

Draw = Callable[[int], BatchRows]
"""Draws a batch of n points; a loader determines the size of its batches."""

Batches = tuple[Draw, BatchRows | None, Tensor | None]
"""Training batches, and validation rows with their weights."""

FEW_VALUES = 30
FAR_OFF = 30.0

_EXPECTED = {
    "fit": "a tensor, an array or nested lists of points, a function that draws n of them, or a loader of batches",
    "weights": "real numbers, one for each point",
}


def context_size(flow: Flow, context: Any) -> int:
    """Return the size of a flow's contexts, 0 for none; raise ValueError if `context` is missing or superfluous."""
    size = flow.bijection.context if isinstance(flow.bijection, Conditional) else 0
    if not size and context is not None:
        raise ValueError("this flow has no context; leave it out, or build the flow with conditional(...)")
    if size and context is None:
        raise ValueError(f"this flow is conditional: give a context of {size} numbers for each point")
    return size


def _rows(flow: Flow, x: Any, context: Any = None) -> BatchRows:
    """Return points, and contexts if the flow has them, as checked rows."""
    points = _table(x, flow.bijection.features, "points of {} features", flow.origin)
    if not (size := context_size(flow, context)):
        return (points,)
    contexts = _table(context, size, "contexts of {} numbers", flow.origin)
    if len(contexts) != len(points):
        raise ValueError(f"each point needs its own context, got {len(points)} points and {len(contexts)} contexts")
    return points, contexts


def _batch(flow: Flow, given: Any) -> BatchRows:
    """Return the batch of a function or a loader: points, or a tuple of points and contexts."""
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
            raise TypeError(f"{user} expects real numbers, got a tensor of {data.dtype}; pass its real part")
        if data.is_meta:
            raise TypeError(f"{user} expects numbers, got a tensor on the device meta; pass the data itself")
        check_dense(data, user)
        return data.detach().to(like)
    check_unmasked("data", data)
    try:
        with np.errstate(over="ignore"):  # numbers that are too large become infinite, which is checked later
            array = as_array(data, np.float64 if like.dtype == torch.float64 else np.float32)
    except ValueError as error:
        raise TypeError(f"{user} expects {_EXPECTED[user]}, got {type(data).__name__}: {error}") from None
    return torch.tensor(array).to(like)


def check_dense(tensor: Tensor, user: str) -> None:
    """Raise TypeError if a tensor is nested or sparse; no number is read, so this never waits for a GPU."""
    if tensor.is_nested:
        raise TypeError(f"{user} expects a dense tensor, got a nested one; pass torch.cat(tensor.unbind())")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{user} expects a dense tensor, got one of {tensor.layout}; pass tensor.to_dense()")


def from_rows(rows: BatchRows, weights: Tensor | None, generator: Generator | None) -> Draw:
    """Return a function that draws rows at random, uniformly or in proportion to their weights."""
    count, device = len(rows[0]), rows[0].device
    ends = torch.zeros(0) if weights is None else proportions(weights).cumsum(0)

    def draw(n: int) -> BatchRows:
        if weights is None:
            chosen = torch.randint(count, (n,), generator=generator)
        else:
            place = ends[-1] * torch.rand(n, generator=generator, dtype=ends.dtype)
            chosen = torch.searchsorted(ends, place, right=True).clamp(max=count - 1)  # place may round to the end
        return tuple(part[chosen.to(device)] for part in rows)

    return draw


def _cycle(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of a loader, over and over."""
    while True:
        batch = None
        for batch in batches:
            yield batch
        if batch is None:
            raise ValueError(
                "the loader has no batches left; pass one that can be iterated again, such as a DataLoader or a list, "
                "or reduce the number of steps"
            )


def is_array(data: Any) -> bool:
    """Return whether data are points, rather than a function or a loader that provides them."""
    if isinstance(data, (Tensor, list, tuple, str, bytes, dict)) or hasattr(data, "__array__"):
        return True
    return not (callable(data) or isinstance(data, Iterable))


def as_weights(weights: Any, count: int) -> Tensor:
    """Return weights as float64 on the CPU, where points are drawn; raise unless each point has one."""
    found = _tensor(weights, "weights", torch.zeros((), dtype=torch.float64))
    if found.shape != (count,):
        raise ValueError(f"weights must hold one number for each of the {count} points, got shape {tuple(found.shape)}")
    if not (found.isfinite().all() and (found >= 0).all() and found.max() > 0):
        raise ValueError(
            f"weights must be finite and at least 0, and not all 0, got {found.min().item()} to {found.max().item()}"
        )
    return found


def proportions(weights: Tensor) -> Tensor:
    """Return positive weights divided by their sum, even if that sum would overflow or underflow."""
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def prepare_batches(
    flow: Flow, data: Any, context: Any, weights: Any, validation: Any, batch: int, generator: Generator | None
) -> Batches:
    """Return batches of data that are points, a function or a loader; raise or warn if they have no density."""
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
                f"{name} needs points as a tensor or an array, got {type(data).__name__}; a function or a loader must "
                f"provide contexts with its points and draw by weight itself, and validation must be points"
            )
    stream = None if callable(data) else _cycle(data)
    draw: Draw = lambda n: _batch(flow, data(n) if stream is None else next(stream))  # noqa: E731
    first = draw(batch)
    screen(*first, whole=False)
    waiting = [first]  # it is also the first training batch
    return lambda n: waiting.pop() if waiting else draw(n), held, None


def _split(rows: BatchRows, weights: Tensor | None, fraction: float, generator: Generator | None) -> Batches:
    """Set a fraction of the rows aside, at random."""
    count = len(rows[0])
    aside = math.ceil(fraction * count) if 0 < fraction < 1 else 0
    if not 0 < aside < count - 1:
        raise ValueError(
            f"validation as a fraction must lie between 0 and 1 and leave at least one point to validate and two to "
            f"train, got {fraction} of {count} points"
        )
    held, kept = torch.randperm(count, generator=generator).tensor_split([aside])
    held_rows, kept_rows = (tuple(part[chosen.to(part.device)] for part in rows) for chosen in (held, kept))
    held_weights, kept_weights = (None if weights is None else weights[chosen] for chosen in (held, kept))
    return from_rows(kept_rows, kept_weights, generator), held_rows, held_weights


def screen(x: Tensor, context: Tensor | None = None, *, whole: bool = True) -> None:
    """Raise if the rows x have no density, and warn if they or their contexts are hard to learn.

    Args:
        x: points [m, n].
        context: their contexts [m, k], which may be discrete or constant.
        whole: whether these are all data. A batch only causes warnings, because other batches may differ.
    """
    if whole and len(x) < 2:
        raise ValueError("one point has no density; pass at least two different points of weight above 0")
    some, varies = _thin(x), (x.amax(0) > x.amin(0)).cpu().numpy()
    faults: list[str] = []
    if whole or len(x) >= 2 * TIMES:
        faults = [*constants(some, np.flatnonzero(~varies).tolist()), *dependent(some, np.arange(x.shape[1]))]
    if faults and whole:
        raise ValueError("; ".join(faults))

    def is_discrete(values: Array, counts: Array) -> bool:
        return is_atom(counts.max(), len(some)) or (len(counts) <= FEW_VALUES and TIMES * len(counts) <= len(some))

    doubts = [*faults, *discrete(some, np.flatnonzero(varies).tolist(), is_discrete), *_far(some, "column")]
    if context is not None:
        doubts += _far(_thin(context), "context column")
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=4)


def _thin(x: Tensor) -> Array:
    """Return about ten thousand rows as an array."""
    return thin(x).double().cpu().numpy()  # type: ignore[no-any-return]


def _far(x: Array, what: str) -> Iterator[str]:
    if len(x) < TIMES:
        return
    middle, spread = middle_and_spread(x)
    narrow = (spread < 1 / FAR_OFF) & (spread > 0)
    found = np.flatnonzero((np.abs(middle) > FAR_OFF) | (spread > FAR_OFF) | narrow).tolist()
    if found:
        yield (
            f"{name_columns(found, what)} far from standard: {what} {found[0]} has the centre {middle[found[0]]:.3g} "
            f"and the spread {spread[found[0]]:.3g}, while training starts from 0 and 1 and takes small steps. "
            f"Standardise: (x - x.mean(0)) / x.std(0), or by median and quartiles if there are outliers"
        )
