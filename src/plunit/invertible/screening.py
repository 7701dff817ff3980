"""Data that a flow cannot learn, or not as they are: named before training, with the rule and the remedy.

Two rules mean that there is no density, so that the likelihood of a flow can grow without end:
- a column is constant,
- columns are linearly dependent: a direction exists in which the columns, scaled to variance 1, have less than
  `DEPENDENT` of standard deviation.
Two rules mean that training will be poor:
- one value makes up `SHARE` of a column or more (and at least `TIMES` points): the column is discrete, and the density
  wants to be infinite there,
- the middle of a column is farther than `FAR` from 0, or its spread is beyond `FAR` or below 1 / `FAR`: training starts
  near centre 0 and spread 1, and takes small steps. Median and quartiles are meant, so an outlier does not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import torch
from torch import Tensor

DEPENDENT = 1e-5
SHARE = 0.05
TIMES = 10
FAR = 30.0

_ROWS = 10_000
_NAMED = 5


def screen(x: Tensor, context: Tensor | None = None, *, whole: bool = True) -> None:
    """Raise if the rows x have no density, and warn if they, or their contexts, are hard to learn.

    Args:
        x: points [m, n].
        context: their contexts [m, k]; discrete and constant ones are fine.
        whole: whether these are all data. Of a batch everything is a warning, because the other batches may differ.
    """
    faults = [*_constant(x), *_dependent(x)] if whole or len(x) >= 2 * TIMES else []
    if faults and whole:
        raise ValueError("; ".join(faults))
    some = _some(x)
    doubts = [*faults, *_discrete(some), *_far(some, "column")]
    if context is not None:
        doubts += _far(_some(context), "context column")
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=4)


def _some(x: Tensor) -> Tensor:
    """Return about ten thousand rows in float64."""
    return x[:: max(1, len(x) // _ROWS)].double()


def _varying(x: Tensor) -> Tensor:
    return x.amax(0) > x.amin(0)


def _constant(x: Tensor) -> Iterable[str]:
    if len(x) > 1:
        found = (~_varying(x)).nonzero()[:, 0].tolist()
        if found:
            yield (
                f"{_columns(found)} constant ({x[0, found[0]].item():g}), and a constant has no density: drop what is "
                f"constant"
            )


def _dependent(x: Tensor) -> Iterable[str]:
    columns = _varying(x).nonzero()[:, 0]
    rows = _some(x)[:, columns]
    if len(columns) < 2 or len(rows) < 2 * x.shape[1] + 2:
        return
    rows = rows - rows.mean(0)
    rows = rows / rows.square().mean(0).sqrt().clamp(min=torch.finfo(rows.dtype).tiny)
    values, vectors = torch.linalg.eigh(rows.mT @ rows / len(rows))
    if values[0] < DEPENDENT**2:
        sizes = vectors[:, 0].abs()
        found = columns[sizes > 0.1 * sizes.max()].tolist()
        yield (
            f"{_columns(found)} linearly dependent (to {max(values[0].item(), 0) ** 0.5:.1g} of their spread), and on "
            f"a plane there is no density: drop one of them"
        )


def _discrete(x: Tensor) -> Iterable[str]:
    times = max(TIMES, round(SHARE * len(x)))
    if len(x) < times:
        return
    ordered = x.sort(0).values
    often = (ordered[times - 1 :] == ordered[: len(x) - times + 1]) & _varying(x)
    found = often.any(0).nonzero()[:, 0].tolist()
    if found:
        value = ordered[often[:, found[0]].nonzero()[0, 0], found[0]]
        share = (x[:, found[0]] == value).double().mean().item()
        yield (
            f"{_columns(found)} discrete, at least in part: {value.item():g} makes up {share:.0%} of column "
            f"{found[0]}. A density becomes infinite there: dequantise (add uniform noise as wide as a step), or drop "
            f"what is discrete"
        )


def _far(x: Tensor, what: str) -> Iterable[str]:
    if len(x) < TIMES:
        return
    low, middle, high = x.quantile(x.new_tensor([0.25, 0.5, 0.75]), dim=0)
    spread = torch.where(high > low, (high - low) / 1.349, x.std(0))  # as a normal's; half of the points may be equal
    wide, narrow = spread > FAR, (spread < 1 / FAR) & (spread > 0)
    found = ((middle.abs() > FAR) | wide | narrow).nonzero()[:, 0].tolist()
    if found:
        centre, width = middle[found[0]].item(), spread[found[0]].item()
        yield (
            f"{_columns(found, what)} far from standard: {what} {found[0]} has the centre {centre:.3g} and the spread "
            f"{width:.3g}, while training starts from 0 and 1 and takes small steps. Standardise: "
            f"(x - x.mean(0)) / x.std(0)"
        )


def _columns(found: list[int], what: str = "column") -> str:
    """Name columns, and begin a sentence about them."""
    if len(found) == 1:
        return f"{what} {found[0]} is"
    rest = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{what}s {', '.join(map(str, found[:_NAMED]))}{rest} are"
