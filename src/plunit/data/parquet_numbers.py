"""The numbers of a Parquet file, read with pyarrow if it is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.errors import UserError
from plunit.base.files import ending
from plunit.data.csv_numbers import MAX_NUMBERS, Array, too_many_numbers
from plunit.data.csv_text import quoted, readable, shown

ENDINGS = (".parquet", ".pq")
_MAGIC = b"PAR1"
_BATCH = 2**16  # rows
_SAFE = 15  # pyarrow before 14.0.1 ran code from a file's metadata (CVE-2023-47248)
_INSTALL = f"pip install 'pyarrow>={_SAFE}'"


def is_parquet(path: Path) -> bool:
    """Say whether a file calls itself Parquet, by its name or its first bytes."""
    with readable(path) as file:
        return ending(path) in ENDINGS or file.read(len(_MAGIC)) == _MAGIC


def column_names(path: Path) -> tuple[str, ...]:
    """Return the names of the columns."""
    with _opened(path) as file:
        return tuple(file.schema_arrow.names)


def read_numbers(path: Path, columns: Sequence[int]) -> tuple[Array, str]:
    """Return the numbers [rows, columns], NaN where missing, and the place of the first missing one ("" if none)."""
    with _opened(path) as file:
        fields = [file.schema_arrow.field(column) for column in columns]
        for field in fields:
            _check_type(path, field)
        if file.metadata.num_rows * len(columns) > MAX_NUMBERS:
            raise too_many_numbers(path)
        names = [field.name for field in fields]
        batches = file.iter_batches(_BATCH, columns=names)
        # The batches keep the order of the file's columns.
        parts = [np.column_stack([_floats(batch.column(name)) for name in names]) for batch in batches]
    values = np.concatenate([np.empty((0, len(columns))), *parts])
    if (infinite := np.argwhere(np.isinf(values))).size:
        row, at = infinite[0]
        raise UserError(
            f"{shown(path)}, row {row + 1}, column {quoted(names[at])}: {values[row, at]} is infinite. "
            "Numbers must be finite: correct the value or remove the row."
        )
    missing = np.argwhere(np.isnan(values))
    return values, f"row {missing[0, 0] + 1}, column {quoted(names[missing[0, 1]])}" if missing.size else ""


def _floats(column: Any) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _check_type(path: Path, field: Any) -> None:
    from pyarrow import types

    if not (types.is_integer(field.type) or types.is_floating(field.type)):
        raise UserError(
            f"{shown(path)}, column {quoted(field.name)}: the type is {field.type}. Columns must hold integers "
            "or floating-point numbers: convert or remove the column, or choose other inputs or another target."
        )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise UserError(f"{shown(path)} is Parquet, and pyarrow is not installed: {_INSTALL}") from None
    if int(pyarrow.__version__.partition(".")[0]) < _SAFE:
        raise UserError(f"{shown(path)} is Parquet, and pyarrow {pyarrow.__version__} is not safe here: {_INSTALL}")
    try:
        # pyarrow would open a name by itself, and the text in memory of `held.HeldText` is under no name
        with readable(path) as stream, parquet.ParquetFile(stream) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        cause = shown(str(error).partition("\n")[0])
        raise UserError(f"{shown(path)} could not be read as Parquet: {cause}. Write the file again.") from None
