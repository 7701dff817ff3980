"""Read wanted members of an untrusted .tar.gz stream: into memory, within limits, and never onto the disk."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, cast

LIMIT = 2**28  # bytes of an archive, before and after decompression; those of CIFAR-10 have 0.6 to 0.7 of it
_DAMAGE = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error)


class SourceFailed(Exception):
    """A source could not give the data; the text says why."""


class Metered:
    """A readable stream that reports the bytes as they are read and refuses to go on after LIMIT of them."""

    def __init__(self, stream: Any, advance: Callable[[int], object] = lambda count: None) -> None:
        self._stream, self._advance, self._count = stream, advance, 0

    def read(self, size: int = -1) -> bytes:
        """Read from the stream."""
        content = cast(bytes, self._stream.read(size))
        self._count += len(content)
        if self._count > LIMIT:
            raise SourceFailed(f"the archive is larger than {LIMIT} bytes")
        self._advance(len(content))
        return content


def members(
    stream: IO[bytes], sizes: Mapping[str, range], advance: Callable[[int], object] = lambda count: None
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the wanted members, in the archive's order; raise SourceFailed unless all come.

    `sizes` maps the wanted names to the lengths they may have. Others are skipped, and names serve for comparison only.
    """
    absent = dict(sizes)
    try:
        # the inner limit holds for headers too, because an archive can declare any length
        with (
            gzip.GzipFile(fileobj=cast(IO[bytes], Metered(stream, advance))) as plain,
            tarfile.open(fileobj=cast(IO[bytes], Metered(plain)), mode="r|") as archive,
        ):
            for member in archive:
                if member.name in absent:
                    yield member.name, _content(archive, member, absent.pop(member.name))
                if not absent:
                    return
    except _DAMAGE as error:
        raise SourceFailed(f"the archive cannot be read: {error}") from error
    raise SourceFailed(f"the archive lacks {', '.join(absent)}")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, sizes: range) -> bytes:
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise SourceFailed(f"{member.name} in the archive is not a plain file")
    if member.size not in sizes:
        raise SourceFailed(f"{member.name} in the archive has {member.size} bytes")
    file = archive.extractfile(member)
    assert file is not None  # `member` is a plain file
    return file.read()
