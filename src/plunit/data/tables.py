"""A user's table: inputs x and a target y from CSV or Parquet, checked; numbers only, or with text and gaps."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plunit.base.errors import UserError, escape, quote
from plunit.base.files import ending
from plunit.data.csv_records import TableFault
from plunit.data.csv_table import Column, CsvTable, Numbers, is_number

if TYPE_CHECKING:
    from plunit.data.parquet_table import ParquetTable

__all__ = ["Table", "read_columns", "read_table"]

PARQUET = (".parquet", ".pq")
MAX_FILE = 2**30  # bytes
MIN_ROWS = 10
_MISSING = " does not exist. Check the name and the folder."
_NAMED = 8  # column names listed in a message
_LARGEST = 1e100  # squares and their sums must stay finite


@dataclass(frozen=True)
class Table:
    """The rows of a file: inputs x, a target y of finite numbers, and their names.

    Attributes:
        x: [rows, inputs], numbers, NaN where missing; objects if a column holds text.
        y: the target [rows].
        inputs: the names of the columns of x.
        target: the name of y.
        sha256: the hash of the file.
        texts: the columns of x that hold text, None where missing; `read_table` refuses text.
    """

    x: Column
    y: Numbers
    inputs: tuple[str, ...]
    target: str
    sha256: str
    texts: tuple[int, ...] = ()


Say = Callable[[str], object]


def read_table(
    path: Path, target: str, inputs: Sequence[str] = (), say: Say = print, *, content: bytes | None = None
) -> Table:
    r"""Read the target and the inputs (all other columns by default) of a CSV or Parquet file of numbers.

    A column is given by its name or its number, counted from 1; -1 is the last column. A name takes precedence.
    Constant inputs are left out and reported to `say`. A fault of the file raises a one-line UserError.
    `content` is a CSV file in memory: nothing is opened, and messages use the path as its name.

    >>> rows = "".join(f"{n},{n * n}\n" for n in range(10))
    >>> table = read_table(Path("squares.csv"), "area", content=("side,area\n" + rows).encode())
    >>> table.inputs, table.x.shape, table.y[:4]
    (('side',), (10, 1), array([0., 1., 4., 9.]))
    """
    with _faults(path):
        content, table = _open(path, content, say)
        columns = _choose(table.names, target, inputs)
        values = table.numbers(columns)
        _say_comments(path, table, say)
        names = [table.names[column] for column in columns]
        if gaps := int(np.isnan(values).any(axis=1).sum()):
            raise TableFault(
                f": {gaps} of {len(values)} rows have missing values, the first at {table.first_missing(columns)}. "
                "Every value must be given: fill them in, remove the rows, or leave columns out of the inputs."
            )
        _check_rows(values, names[-1])
        return _keep_varying(path, list(values.T[:-1]), values[:, -1], names, content, say)


def read_columns(
    path: Path,
    target: str,
    inputs: Sequence[str] = (),
    say: Say = print,
    *,
    exclude: Sequence[str] = (),
    drop_missing: bool = False,
) -> Table:
    """Read the target and the inputs as `read_table` does, without those of `exclude`, keeping text and missing values.

    Rows without a target are left out, and with `drop_missing` all rows with a missing value. A column of dates is
    refused. Text that differs in every row, such as names and case numbers, is left out like a constant.
    """
    with _faults(path):
        content, table = _open(path, None, say)
        chosen = _choose(table.names, target, inputs, exclude)
        *x, y = table.columns(chosen)
        _say_comments(path, table, say)
        gaps = [_is_missing(column) for column in (x if drop_missing else [])]
        # a column without values is left out below
        gone = np.any([*(missing for missing in gaps if not missing.all()), np.isnan(y)], axis=0)
        if gone.any():
            what = "a missing value" if drop_missing else "no target"
            say(f"{escape(path)}: {gone.sum()} of {len(y)} rows are left out, because they have {what}.")
            *x, y = (column[~gone] for column in (*x, y))
        names = [table.names[column] for column in chosen]
        _check_rows(np.column_stack([*(column for column in x if column.dtype != object), y]), names[-1])
        return _keep_varying(path, x, y, names, content, say)


def _is_missing(column: Column) -> Any:
    return np.array([text is None for text in column], bool) if column.dtype == object else np.isnan(column)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turn a TableFault into a UserError of one line."""
    try:
        yield
    except TableFault as fault:
        raise UserError(escape(path) + escape(fault)) from None


def check_exists(path: Path) -> None:
    """Raise UserError if the path does not exist."""
    with _faults(path), suppress(OSError):
        if not path.exists():
            raise TableFault(_MISSING)


def _open(path: Path, content: bytes | None, say: Say) -> tuple[bytes, CsvTable | ParquetTable]:
    if content is None:
        content = _bytes(path)
        if ending(path) in PARQUET or content.startswith(b"PAR1"):
            from plunit.data.parquet_table import ParquetTable

            return content, ParquetTable.of(content)
    table = CsvTable.of(content)
    _say_header(path, table, say)
    return content, table


def _bytes(path: Path) -> bytes:
    """Return the bytes of a regular file; a pipe or a device could be endless."""
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a pipe or a device"
            raise TableFault(f" is {kind}. A table must be a file: name a CSV or Parquet file.")
        if path.exists() and path.stat().st_size > MAX_FILE:
            raise TableFault(f" has more than {MAX_FILE:,} bytes, which is the limit. Keep fewer rows or columns.")
        with path.open("rb") as file:
            return file.read()
    except FileNotFoundError:
        raise TableFault(_MISSING) from None
    except OSError as error:
        raise TableFault(f" could not be read: {error.strerror or error}. Check the file's permissions.") from None


def _say_header(path: Path, table: CsvTable, say: Say) -> None:
    """Say how the first row was read, if it could be read in another way."""
    if not table.header:
        say(
            f"{escape(path)}: the first row is data, because it holds only numbers. "
            f"The columns are numbered from 1 to {len(table.names)}. Add a header line to name them."
        )
    elif numbers := [name for name in table.names if is_number(name, table.delimiter)]:
        text = next(name for name in table.names if not is_number(name, table.delimiter))
        say(
            f"{escape(path)}: the first row is the header, because {quote(text)} is not a number. "
            f"It also has the number {quote(numbers[0])}. If the row is data, add a header line above it."
        )


def _say_comments(path: Path, table: CsvTable | ParquetTable, say: Say) -> None:
    """Say how many lines of a CSV file were skipped as comments."""
    if isinstance(table, CsvTable) and (count := len(table.comments)):
        skipped = "1 line is skipped as a comment" if count == 1 else f"{count} lines are skipped as comments"
        say(
            f"{escape(path)}: {skipped}. A line that begins with # is a row only if it has {len(table.names)} fields "
            "and comes after the first row."
        )


def _choose(names: Sequence[str], target: str, inputs: Sequence[str], exclude: Sequence[str] = ()) -> list[int]:
    """Return the input columns, by default all others except those to exclude, followed by the target column."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        places = [number for number, name in enumerate(names, 1) if name == repeated[0]]
        raise TableFault(
            f": columns {places[0]} and {places[1]} are both named {quote(repeated[0])}. Names must differ: rename one."
        )
    last = _find(names, target)
    excluded = {_find(names, name) for name in exclude}
    if last in excluded:
        raise UserError(f"The target {quote(names[last])} is among the excluded columns. Remove it there.")
    chosen = [_find(names, name) for name in inputs] or [at for at in range(len(names)) if at not in {last, *excluded}]
    if not chosen:
        raise TableFault(f": no column is left besides the target {quote(names[last])}. Exclude fewer columns.")
    if last in chosen:
        raise UserError(f"The target {quote(names[last])} is among the inputs. Remove it there.")
    if twice := [at for at, count in Counter(chosen).items() if count > 1]:
        raise UserError(f"The input {quote(names[twice[0]])} is given twice. Name each column once.")
    return [*chosen, last]


def _find(names: Sequence[str], wanted: str) -> int:
    """Return the index of the column with this name, or else this number, counted from 1 or backwards from -1."""
    if wanted in names:
        return names.index(wanted)
    if re.fullmatch(r"[+-]?\d{1,9}", wanted, re.ASCII):
        number = int(wanted)
        if 1 <= abs(number) <= len(names):
            return number - 1 if number > 0 else number + len(names)
        raise TableFault(
            f" has no column {wanted}. Columns are counted from 1 to {len(names)}, "
            f"or from -1 (the last) to {-len(names)}: {_list_names(names)}."
        )
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), lowered, n=1)
    guess = f" Did you mean {quote(lowered[near[0]])}?" if near else ""
    raise TableFault(f" has no column {quote(wanted)}.{guess} The columns are {_list_names(names)}.")


def _list_names(names: Sequence[str]) -> str:
    rest = f", ... ({len(names)} in all)" if len(names) > _NAMED else ""
    return ", ".join(map(quote, names[:_NAMED])) + rest


def _check_rows(values: Numbers, target: str) -> None:
    """Raise TableFault if there are too few rows, huge numbers or a constant target, the last column."""
    rows = len(values)
    if rows < MIN_ROWS:
        count = "1 row" if rows == 1 else f"{rows} rows"
        raise TableFault(f" has {count} of numbers. At least {MIN_ROWS} are needed: add rows.")
    if (largest := np.nanmax(np.abs(values))) > _LARGEST:
        raise TableFault(f" holds a number of size {largest:g}. The limit is {_LARGEST:g}: scale its column.")
    if (values[:, -1] == values[0, -1]).all():
        raise TableFault(
            f": the target {quote(target)} is {values[0, -1]} in every row. "
            "A target must vary: choose another column as the target."
        )


def _keep_varying(path: Path, x: Sequence[Column], y: Numbers, names: Sequence[str], content: bytes, say: Say) -> Table:
    """Return the table without constant inputs and text that differs in every row; say which were left out."""
    constant, kept, unique = [], [], []
    for at, column in enumerate(x):
        given = column[~_is_missing(column)]
        different = len(set(given)) if column.dtype == object else 1 + int((given != given[:1]).any())
        if different + (len(given) < len(column)) < 2 or not len(given):
            constant.append(names[at])
        elif column.dtype == object and 2 < different == len(given):
            unique.append(names[at])
        else:
            kept.append(at)
    if constant:
        say(f"{escape(path)}: inputs with one value in all rows are left out: {_list_names(constant)}.")
    if unique:
        say(f"{escape(path)}: text inputs that differ in every row are left out: {_list_names(unique)}.")
    if not kept:
        raise TableFault(": no input column is left. At least one must vary: choose other inputs.")
    return Table(
        np.stack([x[at] for at in kept], axis=1),
        np.ascontiguousarray(y),
        tuple(names[at] for at in kept),
        names[-1],
        hashlib.sha256(content).hexdigest(),
        tuple(place for place, at in enumerate(kept) if x[at].dtype == object),
    )
