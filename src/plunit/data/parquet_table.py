"""The numbers of a Parquet file, from its bytes, with pyarrow if it is installed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.errors import quoted
from plunit.base.files import ending
from plunit.data.csv_table import MAX_NUMBERS, Array, TableFault, too_many_numbers

ENDINGS = (".parquet", ".pq")
_MAGIC = b"PAR1"
_BATCH = 2**16  # rows
_SAFE = 15  # pyarrow before 14.0.1 ran code from a file's metadata (CVE-2023-47248)
_INSTALL = f"pip install 'pyarrow>={_SAFE}'"


def is_parquet(path: Path, content: bytes) -> bool:
    """Say whether a file calls itself Parquet, by its name or its first bytes."""
    return ending(path) in ENDINGS or content.startswith(_MAGIC)


def column_names(content: bytes) -> tuple[str, ...]:
    """Return the names of the columns."""
    with _opened(content) as file:
        return tuple(file.schema_arrow.names)


def numbers(content: bytes, columns: Sequence[int]) -> tuple[Array, str]:
    """Return the numbers [rows, columns], NaN where missing, and the place of the first missing one ("" if none)."""
    with _opened(content) as file:
        fields = [file.schema_arrow.field(column) for column in columns]
        for field in fields:
            _check_type(field)
        if file.metadata.num_rows * len(columns) > MAX_NUMBERS:
            raise too_many_numbers()
        names = [field.name for field in fields]
        batches = file.iter_batches(_BATCH, columns=names)
        # The batches keep the order of the file's columns.
        parts = [np.column_stack([_floats(batch.column(name)) for name in names]) for batch in batches]
    values = np.concatenate([np.empty((0, len(columns))), *parts])
    if (infinite := np.argwhere(np.isinf(values))).size:
        row, at = infinite[0]
        raise TableFault(
            f", row {row + 1}, column {quoted(names[at])}: {values[row, at]} is infinite. "
            "Numbers must be finite: correct the value or remove the row."
        )
    missing = np.argwhere(np.isnan(values))
    return values, f"row {missing[0, 0] + 1}, column {quoted(names[missing[0, 1]])}" if missing.size else ""


def _floats(column: Any) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _check_type(field: Any) -> None:
    from pyarrow import types

    if not (types.is_integer(field.type) or types.is_floating(field.type)):
        raise TableFault(
            f", column {quoted(field.name)}: the type is {field.type}. Columns must hold integers "
            "or floating-point numbers: convert or remove the column, or choose other inputs or another target."
        )


@contextmanager
def _opened(content: bytes) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise TableFault(f" is Parquet, and pyarrow is not installed: {_INSTALL}") from None
    if int(pyarrow.__version__.partition(".")[0]) < _SAFE:
        raise TableFault(f" is Parquet, and pyarrow {pyarrow.__version__} is not safe here: {_INSTALL}")
    try:
        with parquet.ParquetFile(io.BytesIO(content)) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        cause = str(error).partition("\n")[0]
        raise TableFault(f" could not be read as Parquet: {cause}. Write the file again.") from None
