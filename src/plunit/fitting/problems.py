"""The problem to fit: the rows of a table, or a function given as text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plunit.base.errors import UserError, escape
from plunit.base.files import ending
from plunit.data.encoding import OTHER, column_encoder
from plunit.data.tables import PARQUET, Say, Table, read_columns, read_table
from plunit.ensemble.arrays import Array

if TYPE_CHECKING:
    from plunit.expressions import Expression

_POINTS = {1: 2000, 2: 3600}
"""Number of training points of a function of one and of two variables; functions of more have 5,000."""

_HUGE = 1e250
"""The largest value allowed for a function: the exact curve of a network holds numbers up to 1e300."""

_LARGEST, _LEAST, _SHORTEST = 1e150, 1e-150, 1e-9
"""The largest end of an interval, because squares of larger numbers overflow. Its width must be at least `_SHORTEST`
times its larger end, and times `_LEAST`, whose square is not 0."""

SOON = 5.0
"""Time limit of the search for poles (s)."""

ENDINGS = (".csv", ".tsv", ".txt", *PARQUET)

_FILE = re.compile(r"(.*[/\\])?[A-Za-z_]\w*(-[A-Za-z_]\w*)*\.[A-Za-z]\w+")
"""Names of files that are no functions: there, a point follows a number."""


class Problem(NamedTuple):
    """Rows x [n, in] and y [n], the names of their columns, the box [in, 2] of x, and the function, if it is known.

    For a table with text or missing values, `encoder` turns the rows of `table` into x. `notes` are lines that say how
    a function or such a table was read.
    """

    title: str
    x: Array
    y: Array
    inputs: tuple[str, ...]
    target: str
    box: Array
    expression: Expression | None = None
    table: Table | None = None
    encoder: Any = None
    notes: tuple[str, ...] = ()


def looks_like_a_file(text: str) -> bool:
    """Return whether an argument of `plunit fit` names a table rather than a function."""
    with suppress(OSError, ValueError):  # a long formula is not a valid file name
        if ending(text) in ENDINGS or _FILE.fullmatch(text):
            return True
        return Path(text).is_file() or Path(text).is_symlink()  # also a broken link
    return False


def root_mean_square(values: Array) -> float:
    """Return sqrt(mean(values^2)), without overflow or underflow of the squares.

    >>> root_mean_square(np.array([3e-300, -3e-300])), root_mean_square(np.array([2e300]))
    (3e-300, 2e+300)
    """
    unit = float(np.abs(values).max(initial=0.0))
    return unit * math.sqrt(float(np.mean((values / unit) ** 2))) if unit > 0 else 0.0


def of_numbers(path: Path, say: Say, *, content: bytes | None = None) -> Problem:
    """Return the problem of learning the last column of a table of numbers from the others; see `read_table`."""
    table = read_table(path, "-1", (), say, content=content)
    return _of_rows(path, table.x, table.y, table.inputs, table.target)


def of_table(
    path: Path,
    target: str,
    inputs: Sequence[str],
    say: Say,
    *,
    exclude: Sequence[str] = (),
    drop_missing: bool = False,
) -> Problem:
    """Return the problem of learning one column of a table from others; see `read_columns`.

    scikit-learn's transformers turn text into indicator columns, and fill and flag missing numbers.
    """
    table = read_columns(path, target, inputs, say, exclude=exclude, drop_missing=drop_missing)
    x, texts = table.x, table.texts
    if not texts and not np.isnan(x).any():
        return _of_rows(path, x, table.y, table.inputs, table.target)
    numbers = [at for at in range(len(table.inputs)) if at not in texts]
    encoder = column_encoder(numbers, texts)
    encoded = encoder.fit_transform(x)
    names, notes = _describe_columns(encoder, [table.inputs[at] for at in numbers], [table.inputs[at] for at in texts])
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UserError(
            f"{escape(path)}: two inputs would be named {escape(twice[0])!r}, because text and missing values become "
            "inputs with such names; rename the column or value"
        )
    problem = _of_rows(path, encoded, table.y, names, table.target)
    return problem._replace(table=table, encoder=encoder, notes=tuple(notes))


def _of_rows(path: Path, x: Array, y: Array, inputs: Sequence[str], target: str) -> Problem:
    low, high = x.min(0), x.max(0)
    around = np.where(low == high, np.maximum(1, np.abs(low)), 0)  # one value and gaps, which it fills
    box = np.stack([low - around, high + around], axis=1)
    # names are shown on terminals, pages and pictures, and may contain any character
    return Problem(escape(path.name), x, y, tuple(map(escape, inputs)), escape(target), box)


def _describe_columns(encoder: Any, numbers: list[str], texts: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of the columns of a fitted encoder, and lines that explain them."""
    names, lines = [*numbers], []
    if numbers:
        fill = encoder.named_transformers_["numbers"]
        for at in fill.indicator_.features_:
            flag, median = f"x[{len(names)}]", float(fill.statistics_[at])
            names.append(f"{numbers[at]} is missing")
            lines.append(f"where {numbers[at]} is missing: x[{at}] = {median!r} and {flag} = 1, otherwise {flag} = 0")
    if texts:
        indicate = encoder.named_transformers_["texts"]
        names += indicate.get_feature_names_out(texts).tolist()
        for text, values, rare in zip(texts, indicate.categories_, indicate.infrequent_categories_, strict=True):
            known = "; for any other value, all of its inputs are 0"
            if rare is not None:
                known = f": the {len(values) - len(rare)} most frequent, and other for all the rest"
            elif len(values) == 2:  # the encoder drops the first
                known = f"; any other value counts as {OTHER.get(values[0], values[0])}"
            lines.append(f"{text} is text with {len(values)} values{known}")
    return names, [*map(escape, lines), 'an input "... is ..." is 1 if that is true, else 0']


def of_expression(
    text: str,
    low: float,
    high: float,
    axis: int | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Problem:
    """Return the problem of fitting a function; all variables not in `ranges` are from low to high.

    Each axis has `axis` training points; for the default see `_POINTS`.
    """
    from plunit.expressions import MOST_VARIABLES, finite_values, parse, sup_error
    from plunit.pieces import network

    try:
        expression = parse(text)
    except ValueError as error:
        raise UserError(f"{text[:200]!r}, {error}") from None
    own = ranges or {}
    names = expression.names
    if not names:
        raise UserError(f"{text!r} is a constant; use at least one variable, as in 'sin(x)'")
    if len(names) > 8:
        raise UserError(f"{text!r} has {len(names)} variables; the limit is 8")
    if unknown := [name for name in own if name not in names]:
        raise UserError(
            f"{unknown[0]!r} has a range but is not a variable of {text[:200]!r}; its variables are {', '.join(names)}"
        )
    for name in names:
        _check_ends(*own.get(name, (low, high)), f" for {name}" if name in own else "")
    box = np.array([own.get(name, (low, high)) for name in names], dtype=np.float64)
    x = _points(box, axis)
    try:
        y = finite_values(expression, *x.T)
        if axis is None and len(names) <= MOST_VARIABLES:  # find poles between the points before training
            nothing = network([(np.zeros((1, len(names))), np.zeros(1))])
            sup_error(expression, nothing, box, closeness=1, time_limit=SOON)
    except ValueError as error:
        raise UserError(str(error)) from None
    if (largest := np.abs(y).max()) > _HUGE:
        raise UserError(
            f"{text[:200]!r} reaches {largest:.3g}; the limit is {_HUGE:g}: divide the function by a number, or choose "
            "another range"
        )
    notes = [f"Read as {expression.text}"] if expression.text != text else []
    if re.search(r"\be\b", expression.text):
        notes.append("e is the number 2.71828, not a variable")
    notes += _note_products(names)
    return Problem(expression.text, x, y, names, "f", box, expression, notes=tuple(notes))


def _note_products(names: Sequence[str]) -> Iterator[str]:
    """Yield a note for each variable that looks like a product or a call, such as xy and sinx."""
    from plunit.expressions.expression import FUNCTIONS, OTHER_NAMES

    known = {"x", "y", "z", *(name for name in names if len(name) == 1)}
    functions = [f for f in (*FUNCTIONS, *OTHER_NAMES) if len(FUNCTIONS[OTHER_NAMES.get(f, f)].arguments) == 1]
    for name in names:
        calls = [f for f in functions if name.startswith(f) and name.removeprefix(f) in known]
        if len(name) > 1 and known.issuperset(name):
            yield f"{name} is one variable; for a product write {'*'.join(name)}"
        elif calls:
            yield f"{name} is a variable; for the function write {calls[0]}({name.removeprefix(calls[0])})"


def _check_ends(low: float, high: float, of: str) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"low and high must be finite, and low below high, got {low} and {high}{of}")
    if max(-low, high) > _LARGEST:
        raise UserError(f"low and high must be between -{_LARGEST:g} and {_LARGEST:g}, got {low} and {high}{of}")
    if high - low < (least := _SHORTEST * max(abs(low), abs(high), _LEAST)):
        raise UserError(
            f"low {low} and high {high} are too close for double precision{of}; their difference must be at least "
            f"{least:.3g}"
        )


def of_drawing(points: Any, count: int) -> Problem:
    """Return the problem of fitting a line drawn through points [n, 2], at `count` points; equal x are averaged."""
    try:
        pairs = np.array(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not (np.abs(pairs) <= 1e30).all():
        raise UserError("a drawing must be a list of pairs [x, y] of numbers up to 1e30")
    x, place = np.unique(pairs[:, 0], return_inverse=True)
    if len(x) < 2:
        raise UserError(f"a drawing needs at least two different x, got {len(x)}; draw from left to right")
    y = np.bincount(place.ravel(), pairs[:, 1]) / np.bincount(place.ravel())
    even = np.linspace(x[0], x[-1], count)
    return Problem("your drawing", even[:, None], np.interp(even, x, y), ("x",), "y", np.array([[x[0], x[-1]]]))


def _points(box: Array, axis: int | None) -> Array:
    """Return points of the box [n, in]: an even grid for one and two inputs, else random ones."""
    inputs = len(box)
    count = _POINTS.get(inputs, 5000)
    if inputs > 2:
        return np.random.default_rng(0).uniform(box[:, 0], box[:, 1], (count, inputs))
    ticks = [np.linspace(low, high, axis or round(count ** (1 / inputs))) for low, high in box]
    return np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, inputs)
