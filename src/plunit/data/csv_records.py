"""The records of a CSV file from its bytes: decoding, the delimiter, comments, and the fields of each line."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from plunit.base.errors import quote

MAX_LINE = 2**20  # characters
_BLOCK = 2**19  # characters read at once
_SAMPLE = 50  # lines from which the delimiter is chosen

# In this order, because numbers may contain commas, and text may contain commas and spaces.
_DELIMITERS = {";": "semicolon", "\t": "tab", ",": "comma", " ": "space"}
# A spreadsheet's error values, such as #N/A in the first column, are not comments.
_COMMENT = re.compile(r"#(?!(?:N/A|DIV/0!|REF!|VALUE!|NAME\?|NUM!|NULL!))", re.IGNORECASE)
# NUL, and the surrogates into which Python decodes bytes that are not UTF-8.
_NO_TEXT = re.compile("[\0\udc80-\udcff]")
_SAVE = "Save the table as CSV in UTF-8."

NumberedText = Iterator[tuple[int, str]]
"""Lines, or blocks of whole lines, each with the number of its first line, counted from 1."""


class TableFault(Exception):
    """A fault of a table; the message completes a sentence that begins with the name of the file."""


def decode(content: bytes) -> str:
    """Return the text of a file, with a newline at every line end and without a byte order mark."""
    if not content:
        raise TableFault(" is empty (0 bytes). A table needs rows of numbers.")
    if content.startswith(b"\x1f\x8b"):
        raise TableFault(" is compressed. Unpack it first.")
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig", "surrogateescape")
    except UnicodeDecodeError as error:
        raise TableFault(f" is not valid UTF-16 ({error.reason}). {_SAVE}") from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if ("\0" in text or not text.isascii()) and (wrong := _NO_TEXT.search(text)):
        at, code = 1 + text.count("\n", 0, wrong.start()), ord(wrong[0])
        cause = f"the byte 0x{code & 0xFF:02x} was found, which is not UTF-8"
        raise TableFault(
            f", line {at}: {cause if code else 'a NUL byte was found, so this is not a text file'}. {_SAVE}"
        )
    return text


def text_blocks(text: str, skip: int = 0) -> NumberedText:
    """Yield the text in blocks of whole lines, without the first `skip` lines."""
    start, line = 0, skip + 1
    for _ in range(skip):
        start = text.find("\n", start) + 1 or len(text)
    while start < len(text):
        end = text.find("\n", start + _BLOCK) + 1 or len(text)
        block = text[start:end]
        for at, one in enumerate(block.split("\n") if len(block) > MAX_LINE else (), line):
            if len(one) > MAX_LINE:
                raise TableFault(
                    f", line {at}: the line is longer than {MAX_LINE:,} characters, which is the limit. "
                    "Check that the file has line ends."
                )
        yield line, block
        line += block.count("\n")
        start = end


def find_delimiter(text: str) -> str:
    """Return the first delimiter that splits half of the lines into as many fields as the first line.

    If there is none, return the first one that splits the first line.
    """
    lines = (line for _, line in _lines(text_blocks(text)))
    sample = list(islice((line for line in lines if line.strip() and not _COMMENT.match(line)), _SAMPLE))
    if not sample:
        raise TableFault(
            " has only blank lines and comments, which begin with #. A table needs rows of numbers; "
            "if its rows begin with #, add a header line."
        )
    # Quoted fields may contain delimiters and line ends.
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


def records(
    stream: NumberedText, delimiter: str, width: int, comments: set[int]
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (first line, last line, fields) of each record; a quoted field may span lines.

    The line numbers of comments are added to `comments`. A line that begins with # is a comment unless it has `width`
    fields.
    """
    lines = _lines(stream)
    for start, line in lines:
        # A line with nothing but tabs is a row of missing fields.
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


def _lines(stream: NumberedText) -> NumberedText:
    for start, text in stream:
        yield from enumerate(text.removesuffix("\n").split("\n"), start)


def _split(line: str, delimiter: str) -> list[str]:
    return line.split() if delimiter == " " else line.split(delimiter)


def _is_comment(line: str, delimiter: str, width: int) -> bool:
    """Whether a line begins with # and is not a row of `width` fields, such as one that begins with a colour."""
    if not _COMMENT.match(line):
        return False
    try:
        return len(next(_reader(line, (), delimiter)) if '"' in line else _split(line, delimiter)) != width
    except csv.Error:
        return True


def _reader(line: str, others: Iterable[str], delimiter: str) -> Any:
    """Return a reader of a record with quotes, which may continue on other lines."""
    # A space at the end of a line does not delimit a field. A line end within quotes belongs to the field.
    texts = chain([line.strip() if delimiter == " " else line], others)
    return csv.reader((text + "\n" for text in texts), delimiter=delimiter, skipinitialspace=True, strict=True)
