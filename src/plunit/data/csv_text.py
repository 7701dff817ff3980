"""A user's text file as blocks of whole lines: decompressed, decoded and bounded in size."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from plunit.base.errors import UserError

MAX_TEXT = 2**30  # bytes after decompression
MAX_LINE = 2**20  # characters
BLOCK = 2**20  # bytes read at once

_GZIP = b"\x1f\x8b"


def shown(value: object) -> str:
    r"""Return a value as one line: the text itself, or escaped where it would not print.

    >>> print(shown("a\nb"))
    a\nb
    """
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]


def quoted(value: str) -> str:
    """Return a field or a column name in quotes, shortened to 40 characters.

    >>> quoted("x" * 50)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    return repr(value if len(value) <= 40 else value[:40] + "...")


@contextmanager
def readable(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file for its bytes; what the system refuses becomes a UserError.

    A pipe or a device is refused, because the file is read more than once.
    """
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a pipe or a device"
            raise UserError(f"{shown(path)} is {kind}. A table must be a file: name a CSV or Parquet file.")
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise UserError(f"{shown(path)} does not exist. Check the name and the folder.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{shown(path)} is damaged gzip data: {error}. Compress or download the file again.") from None
    except OSError as error:
        raise UserError(
            f"{shown(path)} could not be read: {error.strerror or error}. Check the file's permissions."
        ) from None


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of the file's bytes, as they are on the disk."""
    digest = hashlib.sha256()
    with readable(path) as file:
        while data := file.read(BLOCK):
            digest.update(data)
    return digest.hexdigest()


def check_size(path: Path) -> None:
    """Refuse an empty file, and a file whose text is larger than MAX_TEXT, in constant memory."""
    size = 0
    with _text_bytes(path) as stream:
        while data := stream.read(BLOCK):
            size += len(data)
            if size > MAX_TEXT:
                raise UserError(
                    f"{shown(path)} holds more than {MAX_TEXT:,} bytes of text, which is the limit. "
                    "Keep fewer rows or columns."
                )
    if not size:
        raise UserError(f"{shown(path)} is empty (0 bytes of text). A table needs rows of numbers.")


def blocks(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield (number of the first line, text of whole lines), counted from 1, with every line end as "\n"."""
    line, rest = 1, ""
    for piece in _pieces(path):
        if (nul := piece.find("\0")) >= 0:
            at = line + piece.count("\n", 0, nul)
            raise UserError(
                f"{shown(path)}, line {at}: a NUL byte was found, so this is not a text file. "
                "Save the table as CSV in UTF-8."
            )
        end = piece.rfind("\n") + 1
        text = rest + piece[:end]
        rest = piece[end:] if end else rest + piece
        _check_lengths(path, line, text)
        if end:
            yield line, text
            line += text.count("\n")
    if rest:
        yield line, rest


def _check_lengths(path: Path, line: int, text: str) -> None:
    if len(text) > MAX_LINE:
        for at, content in enumerate(text.split("\n"), line):
            if len(content) > MAX_LINE:
                raise UserError(
                    f"{shown(path)}, line {at}: the line is longer than {MAX_LINE:,} characters, which is the limit. "
                    "Check that the file has line ends."
                )


@contextmanager
def _text_bytes(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file for the bytes of its text; gzip is known by its first two bytes, whatever the name."""
    with readable(path) as file:
        start = file.read(2)
        file.seek(0)
        if start == _GZIP:
            with gzip.GzipFile(fileobj=file) as stream:
                yield stream
        else:
            yield file


def _pieces(path: Path) -> Iterator[str]:
    """Yield the decoded text piece by piece, without its byte order mark."""
    with _text_bytes(path) as stream:
        data = stream.read(3)  # a byte order mark has two or three bytes
        codec = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(codec)(), translate=True)
        offset = 0
        while True:
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                at = offset - pending + error.start
                wrong = error.object[error.start : error.start + 1].hex()
                raise UserError(
                    f"{shown(path)}: byte {at} of the text is 0x{wrong}, which is not {codec.upper()}. "
                    "Save the table as CSV in UTF-8."
                ) from None
            yield text if offset else text.removeprefix("\ufeff")
            if not data:
                return
            offset += len(data)
            data = stream.read(BLOCK)
