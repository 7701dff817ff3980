"""The columns of a CSV file from its bytes: its delimiter, header and decimal mark are detected, and faults located.

The bytes are decoded once. The text is read in blocks of whole lines: NumPy parses a block that holds only numbers at
once; from the first other block on, each field is parsed separately. Whether `7` is a number or the name of a group is
known only at the end of its column. So the fields of a table with text are kept until then.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from plunit.base.errors import quote
from plunit.data.csv_records import NumberedText, TableFault, decode, find_delimiter, records, text_blocks

Numbers = npt.NDArray[np.float64]
Column = npt.NDArray[Any]
"""An array of numbers, NaN where missing, or of objects: strings, None where missing."""

MAX_COLUMNS = 10_000
MAX_NUMBERS = 2**27  # numbers kept: 1 GiB
MAX_TEXTS = 2**23  # values kept if an input holds text: about 0.5 GiB
_FIELDS = 2**18  # fields held at once

_MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?"}
_INFINITE = re.compile(r"\s*[+-]?inf(?:inity)?\s*", re.IGNORECASE)
# Numbers, by decimal mark. Unlike float(), the patterns reject underscores, non-ASCII digits and words.
_POINT, _COMMA = (
    re.compile(rf"\s*[+-]?(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*") for mark in (r"\.", ",")
)
# "1,234" may be 1234 or 1.234.
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", re.ASCII)
# A number with a unit, a currency or thousands, such as "$1,234.50", "12 %" or "3 kg".
_ALMOST = re.compile(r"\W{0,2}[0-9][0-9.,'\u2019 ]*\W?[^\W\d]{0,3}\W?")
_CODES = 20  # up to this number of distinct ones may be names of groups
_TEXT = 0.1  # a column is text if this fraction of its values are not numbers; fewer are mistakes
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2})"
    rf"|[0-9]{{1,2}}[- ]{_MONTH}[- ,]+[0-9]{{2,4}}|{_MONTH} [0-9]{{1,2}},? [0-9]{{4}})(?:[T ,].*)?"
    r"|[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?(?: ?[ap]m)?",
    re.IGNORECASE,
)

FieldRows = Iterable[tuple[int, Sequence[str]]]
"""The line of each row, and the fields of the chosen columns."""


class _DecimalCommaError(Exception):
    """The file writes 3,5 for 3.5."""


def is_number(field: str, delimiter: str) -> bool:
    """Whether a field holds a number; a decimal comma needs a delimiter other than the comma.

    >>> is_number("3,5", ";"), is_number("1_000", ";"), is_number("0x10", ";")
    (True, False, False)
    """
    return bool(_POINT.fullmatch(field) or (delimiter != "," and _COMMA.fullmatch(field)))


def check_limit(values: int, limit: int, kind: str = "numbers") -> None:
    """Raise TableFault if the chosen columns hold more values than a limit."""
    if values > limit:
        raise TableFault(
            f": the chosen columns hold more than {limit:,} {kind}, which is the limit. "
            "Keep fewer rows, or choose fewer inputs."
        )


def check_texts(values: int) -> None:
    """Raise TableFault if inputs, at least one of which holds text, have more values than the limit."""
    check_limit(values, MAX_TEXTS, "values next to text")


def first_date(texts: Sequence[str | None]) -> int | None:
    """Return the first row with a date or a time if most of the texts are dates or times.

    >>> first_date([None, "2024-01-31", "1.2.2024"]), first_date(["red", "blue", "12:30"])
    (1, None)
    """
    given = [row for row, text in enumerate(texts) if text is not None]
    dates = [row for row in given if _DATE.fullmatch(str(texts[row]))]
    return dates[0] if 2 * len(dates) > len(given) else None


def date_fault(where: str) -> TableFault:
    """Return the TableFault of a column of dates."""
    return TableFault(
        f", {where} is a date or a time. Inputs must be numbers or names of groups: write it as numbers, such as days "
        "since the first date, the month or the hour, or leave the column out of the inputs."
    )


@dataclass(frozen=True)
class CsvTable:
    """The text of a CSV file and its layout; `of` finds it.

    Args:
        text: the text of the file, with a newline at every line end.
        delimiter: the delimiter of the columns.
        names: the column names; "1", "2", ... without a header.
        header: whether the first row gave the names.
        skip: the number of lines before the data.
        comments: the line numbers of skipped comments, added as the rows are read.
    """

    text: str
    delimiter: str
    names: tuple[str, ...]
    header: bool
    skip: int
    comments: set[int]

    @classmethod
    def of(cls, content: bytes) -> CsvTable:
        """Detect the delimiter and the names; raise TableFault if there are none."""
        text = decode(content)
        delimiter = find_delimiter(text)
        comments = set[int]()
        start, end, fields = next(records(text_blocks(text), delimiter, 0, comments))
        if len(fields) > MAX_COLUMNS:
            raise TableFault(
                f", line {start}: {len(fields):,} columns were found, and the limit is {MAX_COLUMNS:,}. "
                "Keep fewer columns, or check the line ends."
            )
        numeric = [is_number(field, delimiter) or _is_infinite(field) for field in fields]
        # A row of numbers with gaps is data: if it were read as a header, the row would be lost.
        if any(numeric) and all(yes or _is_missing(field) for yes, field in zip(numeric, fields, strict=True)):
            return cls(text, delimiter, tuple(str(at) for at in range(1, len(fields) + 1)), False, start - 1, comments)
        names = tuple(field.strip() or f"column {at}" for at, field in enumerate(fields, 1))
        return cls(text, delimiter, names, True, end, comments)

    def numbers(self, columns: Sequence[int], rows: FieldRows | None = None) -> Numbers:
        """Return the numbers [rows, columns], NaN where missing, of the given rows or else of the text."""
        try:
            return self._gather(columns, ".", rows)
        except _DecimalCommaError:
            self._check_decimal_comma(columns, rows)
            return self._gather(columns, ",", rows)

    def first_missing(self, columns: Sequence[int]) -> str:
        """Return the place of the first missing number."""
        return next(self._place(*one) for one in self._fields(columns, self._rows(columns)) if _is_missing(one[2]))

    def columns(self, columns: Sequence[int]) -> list[Column]:
        """Return each column; the last one must hold numbers."""
        try:
            return list(self.numbers(columns).T)
        except TableFault:
            lines, kept = self._keep(columns)
            texts = {column: kept[column] for column in columns if _is_text(kept[column], self.delimiter)}
            if not texts:
                raise
        check_texts(len(lines) * (len(columns) - 1))
        if columns[-1] in texts:
            raise TableFault(
                f": the target {quote(self.names[columns[-1]])} is text, and a target must hold numbers. "
                "Choose another, or for classes use plunit.sklearn.PLUClassifier."
            )
        found = {column: self._group_names(column, fields, lines) for column, fields in texts.items()}
        rest = [column for column in columns if column not in texts]
        rows = list(zip(lines, zip(*(kept[column] for column in rest), strict=True), strict=True))
        found |= dict(zip(rest, self.numbers(rest, rows).T, strict=True))
        return [found[column] for column in columns]

    def _keep(self, columns: Sequence[int]) -> tuple[list[int], dict[int, list[str]]]:
        """Return the line of each row and the fields of each column; stop once the inputs exceed the limit."""
        lines: list[int] = []
        kept: dict[int, list[str]] = {column: [] for column in columns}
        for line, fields in self._rows(columns):
            lines.append(line)
            for column, field in zip(kept.values(), fields, strict=True):
                column.append(field)
            if len(lines) * (len(columns) - 1) > MAX_TEXTS:
                break
        return lines, kept

    def _group_names(self, column: int, fields: Sequence[str], lines: Sequence[int]) -> Column:
        """Return a column of text; raise TableFault if it holds dates."""
        same: dict[str, str] = {}  # equal texts share one object
        texts = [None if _is_missing(field) else same.setdefault(field, field) for field in map(str.strip, fields)]
        if (row := first_date(texts)) is not None:
            raise date_fault(self._place(lines[row], column, str(texts[row])))
        return np.array(texts, dtype=object)

    def _gather(self, columns: Sequence[int], mark: str, rows: FieldRows | None) -> Numbers:
        parts, count = [np.empty((0, len(columns)))], 0
        for part in self._parts(columns, mark) if rows is None else self._convert(rows, columns, mark):
            count += part.size
            check_limit(count, MAX_NUMBERS)
            parts.append(part)
        return np.concatenate(parts)

    def _parts(self, columns: Sequence[int], mark: str) -> Iterator[Numbers]:
        data = text_blocks(self.text, self.skip)
        for line, text in data:
            if (values := _plain(text, self.delimiter, len(self.names), mark)) is None:
                yield from self._convert(self._rows(columns, chain([(line, text)], data)), columns, mark)
            else:
                yield values.take(columns, axis=1)

    def _convert(self, rows: FieldRows, columns: Sequence[int], mark: str) -> Iterator[Numbers]:
        """Yield the numbers of some rows; raise TableFault at the first invalid field."""
        rest = iter(rows)
        while chunk := list(islice(rest, max(1, _FIELDS // len(self.names)))):
            # A field that contains | or a line end changes the shape.
            values = _plain("\n".join("|".join(fields) for _, fields in chunk), "|", len(columns), mark)
            if values is None or len(values) != len(chunk):
                values = np.array(
                    [[self._value(line, *one, mark) for one in zip(columns, row, strict=True)] for line, row in chunk]
                )
            yield values

    def _value(self, line: int, column: int, field: str, mark: str) -> float:
        """Return the number in a field, NaN if it is missing; raise TableFault if the field is anything else."""
        if _is_missing(field):
            return math.nan
        written = (_POINT if mark == "." else _COMMA).fullmatch(field)
        value = float(field.replace(mark, ".")) if written else math.nan
        if math.isfinite(value):
            return value
        where = f", {self._place(line, column, field)}"
        if written or _is_infinite(field):
            rule = "is beyond the largest 64-bit number" if written else "is infinite"
            raise TableFault(f"{where} {rule}. Numbers must be finite: correct the value or remove the row.")
        if not is_number(field, self.delimiter):
            raise TableFault(
                f"{where} is not a number. Write numbers like -1500 or 2.5e3, remove the column, "
                "or choose other inputs or another target."
            )
        if mark == ".":
            raise _DecimalCommaError
        raise TableFault(
            f"{where} has a decimal point, and other numbers have a decimal comma. "
            "Write all numbers with a decimal point."
        )

    def _place(self, line: int, column: int, field: str) -> str:
        return f"line {line}, column {quote(self.names[column])}: {quote(field)}"

    def _rows(self, columns: Sequence[int], data: NumberedText | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the chosen fields of each row; raise TableFault at a row with more or fewer fields."""
        stream, width = data or text_blocks(self.text, self.skip), len(self.names)
        for line, _, fields in records(stream, self.delimiter, width, self.comments):
            if len(fields) != width:
                raise TableFault(
                    f", line {line}: {len(fields)} fields were found, and the first row has {width} "
                    f"(delimiter {self.delimiter!r}). Every row needs the same number of fields: correct the line, "
                    "or put quotes around a field that contains the delimiter."
                )
            yield line, [fields[column] for column in columns]

    def _fields(self, columns: Sequence[int], rows: FieldRows) -> Iterator[tuple[int, int, str]]:
        """Yield (line, column, field) of the chosen columns."""
        return ((line, *one) for line, row in rows for one in zip(columns, row, strict=True))

    def _check_decimal_comma(self, columns: Sequence[int], rows: FieldRows | None) -> None:
        """Raise TableFault if every comma in the file may separate thousands."""
        first = ""
        for line, column, field in self._fields(columns, self._rows(columns) if rows is None else rows):
            if "," in field and _COMMA.fullmatch(field):
                if not _THOUSANDS.fullmatch(field):
                    return
                first = first or self._place(line, column, field)
        raise TableFault(
            f", {first} may have a decimal comma or a comma between thousands. "
            "Write numbers with a decimal point and without such commas."
        )


def _is_text(fields: Sequence[str], delimiter: str) -> bool:
    """Whether a column holds names of groups; in any other column, a field that is not a number is a fault."""
    given = [field for field in fields if not _is_missing(field)]
    other = [field.strip() for field in given if not is_number(field, delimiter) and not _is_infinite(field)]
    if not other or len(other) < _TEXT * len(given):
        return False
    almost = sum(bool(_ALMOST.fullmatch(field)) and not _DATE.fullmatch(field) for field in other)
    return 2 * almost <= len(given) or len(set(other)) <= _CODES


def _is_missing(field: str) -> bool:
    return field.strip().lower() in _MISSING


def _is_infinite(field: str) -> bool:
    return _INFINITE.fullmatch(field) is not None


def _plain(text: str, delimiter: str, width: int, mark: str) -> Numbers | None:
    """Return the numbers [rows, width] of a text that holds only finite numbers, else None."""
    plain = f"0123456789+-eE \t\n{mark}{delimiter}".encode()
    if not text.strip() or text.encode().translate(None, plain):
        return None
    lines = text.replace(mark, ".").split("\n")
    try:
        values = np.loadtxt(lines, delimiter=delimiter.strip(" ") or None, comments=None, ndmin=2)
    except ValueError:
        return None
    return values if values.shape[1] == width and np.isfinite(values).all() else None
