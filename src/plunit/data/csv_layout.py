"""How a CSV file is laid out: its delimiter, its header, and the fields of its records."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from plunit.base.errors import UserError
from plunit.data.csv_text import blocks, quoted, shown

MAX_COLUMNS = 10_000

# In this order, because numbers may hold commas, and texts may hold commas and spaces.
_DELIMITERS = {";": "semicolon", "\t": "tab", ",": "comma", " ": "space"}
_SAMPLE = 50  # lines that choose the delimiter

_MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?"}
# The errors of a spreadsheet, such as #N/A in the first column, are not comments.
_COMMENT = re.compile(r"#(?!(?:N/A|DIV/0!|REF!|VALUE!|NAME\?|NUM!|NULL!))", re.IGNORECASE)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)


def _number(mark: str) -> re.Pattern[str]:
    return re.compile(rf"\s*[+-]?(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")


# A number by its decimal mark. Unlike float(), the pattern takes no underscores, no foreign digits and no words.
NUMBER = {".": _number(r"\."), ",": _number(",")}


@dataclass(frozen=True)
class CsvLayout:
    """The delimiter of a file, the names of its columns, whether a header gave them, and the lines before the data."""

    delimiter: str
    names: tuple[str, ...]
    header: bool
    skip: int


def is_missing(field: str) -> bool:
    """Say whether a field stands for a missing value."""
    return field.strip().lower() in _MISSING


def is_infinite(field: str) -> bool:
    """Say whether a field is a word for infinity."""
    return _INFINITE.fullmatch(field.strip()) is not None


def is_number(field: str, delimiter: str) -> bool:
    """Say whether a field is written as a number; a decimal comma needs a delimiter other than the comma.

    >>> is_number("3,5", ";"), is_number("1_000", ";"), is_number("0x10", ";")
    (True, False, False)
    """
    return any(NUMBER[mark].fullmatch(field) for mark in ".," if mark != delimiter)


def find_layout(path: Path) -> CsvLayout:
    """Find the delimiter and the names of the columns; without a header the names are "1", "2", ..."""
    content = (line for _, line in _lines(blocks(path)) if not _is_skipped(line))
    sample = list(islice(content, _SAMPLE))
    if not sample:
        raise UserError(f"{shown(path)} has only blank lines and comments. A table needs rows of numbers.")
    delimiter = _find_delimiter(path, sample)
    start, end, fields = next(records(path, blocks(path), delimiter))
    if len(fields) > MAX_COLUMNS:
        raise UserError(
            f"{shown(path)}, line {start}: {len(fields):,} columns were found, and the limit is {MAX_COLUMNS:,}. "
            "Keep fewer columns, or check the line ends."
        )
    numeric = [is_number(field, delimiter) or is_infinite(field) for field in fields]
    # A row of numbers with gaps is data too: taken as a header, the row would be lost.
    if any(numeric) and all(yes or is_missing(field) for yes, field in zip(numeric, fields, strict=True)):
        return CsvLayout(delimiter, tuple(str(at) for at in range(1, len(fields) + 1)), header=False, skip=start - 1)
    names = (field.strip() or f"column {at}" for at, field in enumerate(fields, 1))
    return CsvLayout(delimiter, tuple(names), header=True, skip=end)


def records(path: Path, stream: Iterator[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (first line, last line, fields) of each record; a quoted field may span lines."""
    lines = _lines(stream)
    for start, line in lines:
        if _is_skipped(line, delimiter):
            continue
        if '"' not in line:
            yield start, start, _split(line, delimiter)
            continue
        # A space at the end of a line is not a delimiter. A line end within quotes belongs to the field.
        texts = chain([line.strip() if delimiter == " " else line], (text for _, text in lines))
        reader = csv.reader((text + "\n" for text in texts), delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            fields = next(reader)
        except csv.Error as error:
            raise UserError(
                f"{shown(path)}, line {start}: the quotes cannot be read ({shown(error)}). "
                'Close every quote, and write a quote within quotes as "".'
            ) from None
        yield start, start + reader.line_num - 1, fields


def _lines(stream: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for start, text in stream:
        yield from enumerate(text.removesuffix("\n").split("\n"), start)


def _is_skipped(line: str, delimiter: str = " ") -> bool:
    """Say whether a line is a comment or blank; a line of tabs between missing fields is a row."""
    return _COMMENT.match(line) is not None or not line.strip(" " if delimiter == "\t" else None)


def _split(line: str, delimiter: str) -> list[str]:
    return line.split() if delimiter == " " else line.split(delimiter)


def _find_delimiter(path: Path, sample: list[str]) -> str:
    """Return the first delimiter that splits half of the lines as it splits the first line, else any that splits it."""
    # Quoted parts may hold any delimiter and line ends.
    bare = re.sub(r'"[^"]*(?:"|$)', "q", "\n".join(sample)).split("\n")
    splitting = []
    for delimiter in _DELIMITERS:
        first, *others = (len(_split(line, delimiter)) for line in bare)
        if first > 1:
            splitting.append(delimiter)
            if 2 * others.count(first) >= len(others):
                return delimiter
    if splitting:
        return splitting[0]
    other = next((mark for mark in "|:/" if mark in bare[0]), None)
    cause = f"{other!r} is not a delimiter here" if other else "a table needs a target and an input"
    raise UserError(
        f"{shown(path)}: only one column was found in {quoted(sample[0])}: {cause}. "
        f"Separate the columns by one of {', '.join(_DELIMITERS.values())}."
    )
