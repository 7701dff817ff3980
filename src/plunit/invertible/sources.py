"""What `Flow.fit` is given, as a source of batches and, if asked for, points set aside for validation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Generator, Tensor

from plunit.invertible.points import Draw, PointShape, Rows, checked_weights, from_batches, from_rows, is_array
from plunit.invertible.screening import screen


@dataclass(frozen=True)
class Source:
    """Batches to train with, and rows for validation with their weights."""

    draw: Draw
    held: Rows | None = None
    held_weights: Tensor | None = None


def prepare(
    form: PointShape, data: Any, context: Any, weights: Any, validation: Any, batch: int, generator: Generator | None
) -> Source:
    """Return the source of data that are points, a function or a loader; raise or warn if they cannot be learned."""
    is_number = isinstance(validation, Real) and not isinstance(validation, bool)
    fraction = float(validation) if is_number else None
    held = None if validation is None or fraction is not None else form.batch(validation)
    if is_array(data):
        rows, found = form.rows(data, context), None
        if weights is not None:
            found = checked_weights(weights, len(rows[0]))
            rows, found = tuple(part[(found > 0).to(part.device)] for part in rows), found[found > 0]
        screen(*rows)
        if fraction is not None:
            return _split(rows, found, fraction, generator)
        return Source(from_rows(rows, found, generator), held)
    for name, given in (("context", context), ("weights", weights), ("a fraction for validation", fraction)):
        if given is not None:
            raise ValueError(
                f"{name} needs points as a tensor or an array, got {type(data).__name__}; a function or a loader gives "
                f"contexts beside points and draws by weight itself, and validation takes points"
            )
    draw: Draw = (lambda n: form.batch(data(n))) if callable(data) else from_batches(form, data)
    first = draw(batch)
    screen(*first, whole=False)
    return Source(_after(first, draw), held)


def _after(first: Rows, draw: Draw) -> Draw:
    """Return a function that gives a batch that is drawn already, and from then on draws."""
    waiting = [first]
    return lambda n: waiting.pop() if waiting else draw(n)


def _split(rows: Rows, weights: Tensor | None, fraction: float, generator: Generator | None) -> Source:
    """Set a fraction of the rows aside, at random."""
    count = len(rows[0])
    aside = math.ceil(fraction * count) if 0 < fraction < 1 else 0
    if not 0 < aside < count - 1:
        raise ValueError(
            f"validation as a fraction must lie between 0 and 1 and leave points on both sides, at least two to train "
            f"with, got {fraction} of {count} points"
        )
    order = torch.randperm(count, generator=generator)
    held, kept = order[:aside], order[aside:]
    parts = [(tuple(part[chosen.to(part.device)] for part in rows), chosen) for chosen in (held, kept)]
    chosen_weights = [None if weights is None else weights[chosen] for _, chosen in parts]
    return Source(from_rows(parts[1][0], chosen_weights[1], generator), parts[0][0], chosen_weights[0])
