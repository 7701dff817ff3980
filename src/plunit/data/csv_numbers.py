"""The numbers of a CSV file: a fast path for plain blocks, and a careful path that finds the wrong field."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plunit.base.errors import UserError
from plunit.data.csv_layout import NUMBER, CsvLayout, is_infinite, is_missing, is_number, records
from plunit.data.csv_text import blocks, quoted, shown

Array = npt.NDArray[np.float64]

MAX_NUMBERS = 2**27  # numbers kept: 1 GiB
_FIELDS = 2**18  # fields the careful path holds at once

# "1,234" may be 1234 or 1.234.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)


class _DecimalCommaError(Exception):
    """The file writes 3,5 for 3.5."""


def read_numbers(path: Path, layout: CsvLayout, columns: Sequence[int]) -> tuple[Array, str]:
    """Return the numbers [rows, columns], NaN where missing, and the place of the first missing one ("" if none)."""
    try:
        values = _gather(path, _parts(path, layout, columns, "."), len(columns))
    except _DecimalCommaError:
        _check_decimal_comma(path, layout, columns)
        values = _gather(path, _parts(path, layout, columns, ","), len(columns))
    return values, _first_missing(path, layout, columns) if np.isnan(values).any() else ""


def too_many_numbers(path: Path) -> UserError:
    """Return the error for a table beyond MAX_NUMBERS."""
    return UserError(
        f"{shown(path)}: the chosen columns hold more than {MAX_NUMBERS:,} numbers, which is the limit. "
        "Keep fewer rows, or choose fewer inputs."
    )


def _gather(path: Path, parts: Iterator[Array], width: int) -> Array:
    kept, count = [np.empty((0, width))], 0
    for part in parts:
        count += part.size
        if count > MAX_NUMBERS:
            raise too_many_numbers(path)
        kept.append(part)
    return np.concatenate(kept)


def _parts(path: Path, layout: CsvLayout, columns: Sequence[int], mark: str) -> Iterator[Array]:
    """Yield the numbers part by part. The careful path starts at the first block that is not plain."""
    data = _data_blocks(path, layout)
    for line, text in data:
        if (values := _plain(text, layout.delimiter, len(layout.names), mark)) is None:
            yield from _careful(path, chain([(line, text)], data), layout, columns, mark)
        else:
            yield values.take(columns, axis=1)


def _data_blocks(path: Path, layout: CsvLayout) -> Iterator[tuple[int, str]]:
    """Yield the blocks of a file without the lines before its data."""
    for line, text in blocks(path):
        before = layout.skip + 1 - line
        if before <= 0:
            yield line, text
        elif len(after := text.split("\n", before)) > before:
            yield line + before, after[before]


def _plain(text: str, delimiter: str, width: int, mark: str) -> Array | None:
    """Return the numbers [rows, width] of a text that holds nothing but finite numbers, else None."""
    plain = f"0123456789+-eE \t\n{mark}{delimiter}".encode()
    if not text.strip() or text.encode().translate(None, plain):
        return None
    lines = text.replace(mark, ".").split("\n")
    try:
        values = np.loadtxt(lines, delimiter=delimiter.strip(" ") or None, comments=None, ndmin=2)
    except ValueError:
        return None
    return values if values.shape[1] == width and np.isfinite(values).all() else None


def _careful(
    path: Path, stream: Iterator[tuple[int, str]], layout: CsvLayout, columns: Sequence[int], mark: str
) -> Iterator[Array]:
    """Yield the numbers of the chosen columns; raise a UserError at the first field that is wrong."""
    content = records(path, stream, layout.delimiter)
    while chunk := list(islice(content, max(1, _FIELDS // len(layout.names)))):
        rows = []
        for line, _, fields in chunk:
            if len(fields) != len(layout.names):
                raise _wrong_count(path, line, len(fields), layout)
            rows.append([fields[column] for column in columns])
        # A field that holds the joint or a line end changes the shape.
        values = _plain("\n".join(map("|".join, rows)), "|", len(columns), mark)
        if values is None or len(values) != len(rows):
            values = np.array(
                [
                    [_value(path, line, fields[column], layout, column, mark) for column in columns]
                    for line, _, fields in chunk
                ]
            )
        yield values


def _value(path: Path, line: int, field: str, layout: CsvLayout, column: int, mark: str) -> float:
    """Return the number in a field, NaN where it is missing; raise where it is anything else."""
    if is_missing(field):
        return math.nan
    written = NUMBER[mark].fullmatch(field)
    value = float(field.replace(mark, ".")) if written else math.nan
    if math.isfinite(value):
        return value
    where = f"{shown(path)}, {_place(line, field, layout, column)}"
    if written or is_infinite(field):
        rule = "is beyond the largest 64-bit number" if written else "is infinite"
        raise UserError(f"{where} {rule}. Numbers must be finite: correct the value or remove the row.")
    if is_number(field, layout.delimiter):
        if mark == ".":
            raise _DecimalCommaError
        raise UserError(
            f"{where} has a decimal point, and other numbers have a decimal comma. "
            "Write all numbers with a decimal point."
        )
    raise UserError(
        f"{where} is not a number. Write numbers like -1500 or 2.5e3, remove the column, "
        "or choose other inputs or another target."
    )


def _wrong_count(path: Path, line: int, found: int, layout: CsvLayout) -> UserError:
    return UserError(
        f"{shown(path)}, line {line}: {found} fields were found, and the first row has {len(layout.names)} "
        f"(delimiter {layout.delimiter!r}). All rows must have as many: correct the line, "
        "or put quotes around a field that contains the delimiter."
    )


def _place(line: int, field: str, layout: CsvLayout, column: int) -> str:
    return f"line {line}, column {quoted(layout.names[column])}: {quoted(field)}"


def _fields(path: Path, layout: CsvLayout, columns: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Yield (line, column, field) of the chosen columns."""
    for line, _, fields in records(path, _data_blocks(path, layout), layout.delimiter):
        yield from ((line, column, fields[column]) for column in columns if column < len(fields))


def _first_missing(path: Path, layout: CsvLayout, columns: Sequence[int]) -> str:
    found = ((line, column, field) for line, column, field in _fields(path, layout, columns) if is_missing(field))
    line, column, field = next(found)
    return _place(line, field, layout, column)


def _check_decimal_comma(path: Path, layout: CsvLayout, columns: Sequence[int]) -> None:
    """Refuse a file where each comma may separate thousands."""
    first = ""
    for line, column, field in _fields(path, layout, columns):
        if "," in field and NUMBER[","].fullmatch(field):
            if not _THOUSANDS.fullmatch(field.strip()):
                return
            first = first or _place(line, field, layout, column)
    raise UserError(
        f"{shown(path)}, {first} may have a decimal comma or a comma between thousands. "
        "Write numbers with a decimal point and without such commas."
    )
