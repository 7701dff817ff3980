"""The columns of a Parquet file from its bytes, read by pyarrow if it is installed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.base.errors import describe_missing, quote
from plunit.data.csv_records import TableFault
from plunit.data.csv_table import (
    MAX_NUMBERS,
    Column,
    Numbers,
    check_limit,
    check_texts,
    date_fault,
    first_date,
)

_BATCH = 2**16  # rows
_SAFE = 15  # pyarrow before 14.0.1 ran code from a file's metadata (CVE-2023-47248)
_INSTALL = f"pip install 'pyarrow>={_SAFE}'"


@dataclass(frozen=True)
class ParquetTable:
    """The bytes of a Parquet file, and the names of its columns."""

    content: bytes
    names: tuple[str, ...]

    @classmethod
    def of(cls, content: bytes) -> ParquetTable:
        """Read the column names; raise TableFault if the file cannot be read."""
        with _open(content) as file:
            return cls(content, tuple(file.schema_arrow.names))

    def numbers(self, columns: Sequence[int]) -> Numbers:
        """Return the numbers [rows, columns], NaN where missing."""
        return np.column_stack(self._load(columns, texts=()))

    def first_missing(self, columns: Sequence[int]) -> str:
        """Return the place of the first missing number."""
        row, at = np.argwhere(np.isnan(self.numbers(columns)))[0]
        return f"row {row + 1}, column {quote(self.names[columns[at]])}"

    def columns(self, columns: Sequence[int]) -> list[Column]:
        """Return each column; the last one must hold numbers."""
        return self._load(columns, texts=columns[:-1])

    def _load(self, columns: Sequence[int], texts: Sequence[int]) -> list[Any]:
        """Return the columns; those in `texts` may hold text."""
        with _open(self.content) as file:
            fields = [file.schema_arrow.field(column) for column in columns]
            kinds = [_kind(field, column in texts) for field, column in zip(fields, columns, strict=True)]
            check_limit(file.metadata.num_rows * len(columns), MAX_NUMBERS)
            if object in kinds:
                check_texts(file.metadata.num_rows * (len(columns) - 1))
            parts: list[list[Any]] = [[np.empty(0, kind)] for kind in kinds]
            # batches have the file's order of columns
            for batch in file.iter_batches(_BATCH, columns=[field.name for field in fields]):
                for part, field, kind in zip(parts, fields, kinds, strict=True):
                    part.append(_values(batch.column(field.name), kind))
        found = [np.concatenate(part) for part in parts]
        for field, values, kind in zip(fields, found, kinds, strict=True):
            _check_values(field.name, values, kind)
        return found


def _values(column: Any, kind: type) -> Any:
    if kind is float:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    from pyarrow import types

    words = {True: "yes", False: "no", None: None} if types.is_boolean(column.type) else {}
    texts = [words.get(value, value) for value in column.to_pylist()]
    return np.array([(text and text.strip()) or None for text in texts], dtype=object)


def _check_values(name: str, values: Any, kind: type) -> None:
    """Raise TableFault if a column holds infinities or dates."""
    if kind is object:
        if (row := first_date(values)) is not None:
            raise date_fault(f"row {row + 1}, column {quote(name)}: {quote(values[row])}")
    elif (infinite := np.flatnonzero(np.isinf(values))).size:
        row = infinite[0]
        raise TableFault(
            f", row {row + 1}, column {quote(name)}: {values[row]} is infinite. "
            "Numbers must be finite: correct the value or remove the row."
        )


def _kind(field: Any, text: bool) -> type:
    """Return the dtype of a column, float or object; raise TableFault if its type is not supported."""
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_integer(field.type) or types.is_floating(field.type):
        return float
    if text and any(test(kind) for test in (types.is_string, types.is_large_string, types.is_boolean)):
        return object
    if text and types.is_temporal(kind):
        raise date_fault(f"column {quote(field.name)}: the type {field.type}")
    needed = "integers, floating-point numbers, text or booleans" if text else "integers or floating-point numbers"
    raise TableFault(
        f", column {quote(field.name)}: the type is {field.type}. Columns must hold {needed}: "
        "convert or remove the column, or choose other inputs or another target."
    )


@contextmanager
def _open(content: bytes) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise TableFault(describe_missing(" is Parquet; reading it", "pyarrow", command=_INSTALL)) from None
    if int(pyarrow.__version__.partition(".")[0]) < _SAFE:
        raise TableFault(f" is Parquet, and pyarrow {pyarrow.__version__} is not safe; {_INSTALL}")
    try:
        with parquet.ParquetFile(io.BytesIO(content)) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        cause = str(error).partition("\n")[0]
        raise TableFault(f" could not be read as Parquet: {cause}. Write the file again.") from None
