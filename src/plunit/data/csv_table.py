"""The columns of a CSV file, from its bytes: delimiter, header and decimal mark are found, and a fault has its place.

The text is read in blocks of whole lines, so that a large file does not fill the memory. A block that holds only
numbers goes to NumPy as a whole. From the first other block on, every field is read by itself.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from plunit.base.errors import quote

Array = npt.NDArray[np.float64]
Column = npt.NDArray[Any]
"""Numbers, NaN where one is missing, or text, which are objects: strings, and None where one is missing."""

MAX_LINE = 2**20  # characters
MAX_COLUMNS = 10_000
MAX_NUMBERS = 2**27  # numbers kept: 1 GiB
MAX_TEXTS = 2**23  # fields of text columns kept: about 0.5 GiB
BLOCK = 2**19  # characters read at once
_FIELDS = 2**18  # fields held at once
_SAMPLE = 50  # lines that choose the delimiter

# In this order, because numbers may hold commas, and texts may hold commas and spaces.
_DELIMITERS = {";": "semicolon", "\t": "tab", ",": "comma", " ": "space"}
_MISSING = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?"}
# The errors of a spreadsheet, such as #N/A in the first column, are not comments.
_COMMENT = re.compile(r"#(?!(?:N/A|DIV/0!|REF!|VALUE!|NAME\?|NUM!|NULL!))", re.IGNORECASE)
_INFINITE = re.compile(r"\s*[+-]?inf(?:inity)?\s*", re.IGNORECASE)
# A number by its decimal mark. Unlike float(), the pattern takes no underscores, no foreign digits and no words.
_POINT, _COMMA = (
    re.compile(rf"\s*[+-]?(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*") for mark in (r"\.", ",")
)
# "1,234" may be 1234 or 1.234.
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", re.ASCII)
# A number with a unit, a currency or thousands, such as "$1,234.50", "12 %" or "3 kg".
_ALMOST = re.compile(r"\W{0,2}[0-9][0-9.,'\u2019 ]*\W?[^\W\d]{0,3}\W?")
_CODES = 20  # up to this number of different ones they may be names of groups
_TEXT = 0.1  # share of other values that makes a column one of text; fewer are taken for slips in a column of numbers
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2})"
    rf"|[0-9]{{1,2}}[- ]{_MONTH}[- ,]+[0-9]{{2,4}}|{_MONTH} [0-9]{{1,2}},? [0-9]{{4}})(?:[T ,].*)?"
    r"|[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?(?: ?[ap]m)?",
    re.IGNORECASE,
)
# NUL, and what Python makes of a byte that is no UTF-8.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")

_SAVE = "Save the table as CSV in UTF-8."

Lines = Iterator[tuple[int, str]]


class TableFault(Exception):
    """What is wrong with a table, as the rest of a sentence that begins with the name of the file."""


class _DecimalCommaError(Exception):
    """The file writes 3,5 for 3.5."""


def is_number(field: str, delimiter: str) -> bool:
    """Whether a field is written as a number; a decimal comma needs a delimiter other than the comma.

    >>> is_number("3,5", ";"), is_number("1_000", ";"), is_number("0x10", ";")
    (True, False, False)
    """
    return bool(_POINT.fullmatch(field) or (delimiter != "," and _COMMA.fullmatch(field)))


def check_size(values: int, limit: int, kind: str = "numbers") -> None:
    """Raise TableFault if the chosen columns hold more values than a limit."""
    if values > limit:
        raise TableFault(
            f": the chosen columns hold more than {limit:,} {kind}, which is the limit. "
            "Keep fewer rows, or choose fewer inputs."
        )


def first_date(texts: Sequence[str | None]) -> int | None:
    """Return the first row with a date or a time, if most of the texts are such.

    >>> first_date([None, "2024-01-31", "1.2.2024"]), first_date(["red", "blue", "12:30"])
    (1, None)
    """
    given = [row for row, text in enumerate(texts) if text is not None]
    dates = [row for row in given if _DATE.fullmatch(str(texts[row]))]
    return dates[0] if 2 * len(dates) > len(given) else None


def date_fault(where: str) -> TableFault:
    """Return the fault of a column of dates."""
    return TableFault(
        f", {where} is a date or a time. Inputs must be numbers or names of groups: write it as numbers, such as days "
        "since the first date, the month or the hour, or leave the column out of the inputs."
    )


@dataclass(frozen=True)
class CsvTable:
    """The bytes of a CSV file and its layout; `of` finds it.

    Args:
        content: the bytes, as they are on the disk.
        delimiter: what separates the columns.
        names: of the columns; without a header "1", "2", ...
        header: whether the first row gave the names.
        skip: lines before the data.
        comments: the numbers of the lines that are skipped as comments, added as the rows are read.
    """

    content: bytes
    delimiter: str
    names: tuple[str, ...]
    header: bool
    skip: int
    comments: set[int]

    @classmethod
    def of(cls, content: bytes) -> CsvTable:
        """Find delimiter and names; raise TableFault if there are none."""
        if not content:
            raise TableFault(" is empty (0 bytes). A table needs rows of numbers.")
        if content.startswith(b"\x1f\x8b"):
            raise TableFault(" is compressed. Unpack it first.")
        lines = (line for _, line in _lines(_blocks(content)))
        sample = list(islice((line for line in lines if line.strip() and not _COMMENT.match(line)), _SAMPLE))
        if not sample:
            raise TableFault(
                " has only blank lines and comments, which begin with #. A table needs rows of numbers; "
                "where the rows begin with #, add a header line."
            )
        delimiter = _find_delimiter(sample)
        comments = set[int]()
        start, end, fields = next(_records(_blocks(content), delimiter, 0, comments))
        if len(fields) > MAX_COLUMNS:
            raise TableFault(
                f", line {start}: {len(fields):,} columns were found, and the limit is {MAX_COLUMNS:,}. "
                "Keep fewer columns, or check the line ends."
            )
        numeric = [is_number(field, delimiter) or _is_infinite(field) for field in fields]
        # A row of numbers with gaps is data too: taken as a header, the row would be lost.
        if any(numeric) and all(yes or _is_missing(field) for yes, field in zip(numeric, fields, strict=True)):
            return cls(
                content, delimiter, tuple(str(at) for at in range(1, len(fields) + 1)), False, start - 1, comments
            )
        names = tuple(field.strip() or f"column {at}" for at, field in enumerate(fields, 1))
        return cls(content, delimiter, names, True, end, comments)

    def numbers(self, columns: Sequence[int]) -> Array:
        """Return the numbers [rows, columns], NaN where missing."""
        try:
            return self._gathered(columns, ".")
        except _DecimalCommaError:
            self._check_decimal_comma(columns)
            return self._gathered(columns, ",")

    def first_missing(self, columns: Sequence[int]) -> str:
        """Return the place of the first missing number."""
        return next(self._place(*one) for one in self._fields(columns) if _is_missing(one[2]))

    def columns(self, columns: Sequence[int]) -> list[Column]:
        """Return each column; the last one must hold numbers."""
        try:
            return list(self.numbers(columns).T)
        except TableFault:
            texts = self._texts(self._of_text(columns))
            if not texts:
                raise
            if columns[-1] in texts:
                raise TableFault(
                    f": the target {quote(self.names[columns[-1]])} is text, and a target must hold numbers. "
                    "Choose another, or for classes use plunit.sklearn.PLUClassifier."
                ) from None
        rest = [column for column in columns if column not in texts]
        found: dict[int, Any] = dict(zip(rest, self.numbers(rest).T, strict=True)) | texts
        return [found[column] for column in columns]

    def _of_text(self, columns: Sequence[int]) -> list[int]:
        """Return the columns that hold names of groups; of others, what is not a number is a fault."""
        given, almost, other = Counter[int](), Counter[int](), Counter[int]()
        different: dict[int, set[str]] = {column: set() for column in columns}
        for _, column, field in self._fields(columns):
            if _is_missing(field):
                continue
            given[column] += 1
            if not is_number(field, self.delimiter) and not _is_infinite(field):
                other[column] += 1
                almost[column] += bool(_ALMOST.fullmatch(field.strip())) and not _DATE.fullmatch(field.strip())
                if len(different[column]) <= _CODES:
                    different[column].add(field)
        units = {column for column in columns if 2 * almost[column] > given[column] and len(different[column]) > _CODES}
        return [at for at in columns if other[at] and other[at] >= _TEXT * given[at] and at not in units]

    def _texts(self, columns: Sequence[int]) -> dict[int, Column]:
        """Return columns of text; raise TableFault if one holds dates."""
        kept: dict[int, list[str | None]] = {column: [] for column in columns}
        known: dict[str, str] = {}
        lines: list[int] = []
        for line, fields in self._rows(columns):
            lines.append(line)
            check_size(len(lines) * len(columns), MAX_TEXTS, "texts")
            for texts, field in zip(kept.values(), map(str.strip, fields), strict=True):
                texts.append(None if _is_missing(field) else known.setdefault(field, field))
        for column, texts in kept.items():
            if (row := first_date(texts)) is not None:
                raise date_fault(self._place(lines[row], column, str(texts[row])))
        return {column: np.array(texts, dtype=object) for column, texts in kept.items()}

    def _gathered(self, columns: Sequence[int], mark: str) -> Array:
        kept, count = [np.empty((0, len(columns)))], 0
        for part in self._parts(columns, mark):
            count += part.size
            check_size(count, MAX_NUMBERS)
            kept.append(part)
        return np.concatenate(kept)

    def _parts(self, columns: Sequence[int], mark: str) -> Iterator[Array]:
        data = _blocks(self.content, self.skip)
        for line, text in data:
            if (values := _plain(text, self.delimiter, len(self.names), mark)) is None:
                yield from self._careful(chain([(line, text)], data), columns, mark)
            else:
                yield values.take(columns, axis=1)

    def _careful(self, data: Lines, columns: Sequence[int], mark: str) -> Iterator[Array]:
        """Yield the numbers of the chosen columns; raise TableFault at the first field that is wrong."""
        rows = self._rows(columns, data)
        while chunk := list(islice(rows, max(1, _FIELDS // len(self.names)))):
            # A field that holds the joint or a line end changes the shape.
            values = _plain("\n".join("|".join(fields) for _, fields in chunk), "|", len(columns), mark)
            if values is None or len(values) != len(chunk):
                values = np.array(
                    [[self._value(line, *one, mark) for one in zip(columns, row, strict=True)] for line, row in chunk]
                )
            yield values

    def _value(self, line: int, column: int, field: str, mark: str) -> float:
        """Return the number in a field, NaN where it is missing; raise where it is anything else."""
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

    def _rows(self, columns: Sequence[int], data: Lines | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the chosen fields of each row; raise TableFault where one has more fields, or fewer."""
        stream, width = data or _blocks(self.content, self.skip), len(self.names)
        for line, _, fields in _records(stream, self.delimiter, width, self.comments):
            if len(fields) != width:
                raise TableFault(
                    f", line {line}: {len(fields)} fields were found, and the first row has {width} "
                    f"(delimiter {self.delimiter!r}). All rows must have as many: correct the line, "
                    "or put quotes around a field that contains the delimiter."
                )
            yield line, [fields[column] for column in columns]

    def _fields(self, columns: Sequence[int]) -> Iterator[tuple[int, int, str]]:
        """Yield (line, column, field) of the chosen columns."""
        return ((line, *one) for line, row in self._rows(columns) for one in zip(columns, row, strict=True))

    def _check_decimal_comma(self, columns: Sequence[int]) -> None:
        """Refuse a file where each comma may separate thousands."""
        first = ""
        for line, column, field in self._fields(columns):
            if "," in field and _COMMA.fullmatch(field):
                if not _THOUSANDS.fullmatch(field):
                    return
                first = first or self._place(line, column, field)
        raise TableFault(
            f", {first} may have a decimal comma or a comma between thousands. "
            "Write numbers with a decimal point and without such commas."
        )


def _is_missing(field: str) -> bool:
    return field.strip().lower() in _MISSING


def _is_infinite(field: str) -> bool:
    return _INFINITE.fullmatch(field) is not None


def _is_comment(line: str, delimiter: str, width: int) -> bool:
    """Whether a line begins with # and is not a row of `width` fields, such as one that begins with a colour."""
    if not _COMMENT.match(line):
        return False
    try:
        return len(next(_reader(line, (), delimiter)) if '"' in line else _split(line, delimiter)) != width
    except csv.Error:
        return True


def _split(line: str, delimiter: str) -> list[str]:
    return line.split() if delimiter == " " else line.split(delimiter)


def _find_delimiter(sample: list[str]) -> str:
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
    raise TableFault(
        f": only one column was found in {quote(sample[0])}: {cause}. "
        f"Separate the columns by one of {', '.join(_DELIMITERS.values())}."
    )


def _reader(line: str, others: Iterable[str], delimiter: str) -> Any:
    """Return the reader of a record with quotes, which may go on in other lines."""
    # A space at the end of a line is not a delimiter. A line end within quotes belongs to the field.
    texts = chain([line.strip() if delimiter == " " else line], others)
    return csv.reader((text + "\n" for text in texts), delimiter=delimiter, skipinitialspace=True, strict=True)


def _records(stream: Lines, delimiter: str, width: int, comments: set[int]) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (first line, last line, fields) of each record; a quoted field may span lines.

    The numbers of comments are added to `comments`. A line that begins with # is one unless it has `width` fields.
    """
    lines = _lines(stream)
    for start, line in lines:
        # A line of tabs between missing fields is a row.
        if not line.strip(" " if delimiter == "\t" else None):
            continue
        if _is_comment(line, delimiter, width):
            comments.add(start)
            continue
        if '"' not in line:
            yield start, start, _split(line, delimiter)
            continue
        reader = _reader(line, (text for _, text in lines), delimiter)
        try:
            fields = next(reader)
        except csv.Error as error:
            raise TableFault(
                f", line {start}: the quotes cannot be read ({error}). "
                'Close every quote, and write a quote within quotes as "".'
            ) from None
        yield start, start + reader.line_num - 1, fields


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


def _lines(stream: Lines) -> Lines:
    for start, text in stream:
        yield from enumerate(text.removesuffix("\n").split("\n"), start)


def _blocks(content: bytes, skip: int = 0) -> Lines:
    """Yield (number of the first line, text of whole lines), counted from 1, without the first `skip` lines."""
    file = _opened(content)
    for _ in range(skip):
        file.readline()
    line = skip + 1
    while text := _read_lines(file):
        if ("\0" in text or not text.isascii()) and (wrong := _NO_TEXT.search(text)):
            at, code = line + text.count("\n", 0, wrong.start()), ord(wrong[0])
            cause = f"the byte 0x{code & 0xFF:02x} was found, which is not UTF-8"
            raise TableFault(
                f", line {at}: {cause if code else 'a NUL byte was found, so this is not a text file'}. {_SAVE}"
            )
        for at, one in enumerate(text.split("\n") if len(text) > MAX_LINE else (), line):
            if len(one) > MAX_LINE:
                raise TableFault(
                    f", line {at}: the line is longer than {MAX_LINE:,} characters, which is the limit. "
                    "Check that the file has line ends."
                )
        yield line, text
        line += text.count("\n")


def _opened(content: bytes) -> io.TextIOWrapper:
    """Return the text, with every line end as a newline, and without its byte order mark."""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return io.TextIOWrapper(io.BytesIO(content), "utf-16" if is_wide else "utf-8-sig", "surrogateescape")


def _read_lines(file: io.TextIOWrapper) -> str:
    try:
        return file.read(BLOCK) + file.readline(MAX_LINE + 1)
    except UnicodeDecodeError as error:
        raise TableFault(f" is not UTF-16 to its end ({error.reason}). {_SAVE}") from None
