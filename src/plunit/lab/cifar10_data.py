"""CIFAR-10 as its authors publish it: six files of records, each one byte of label and 3 x 32 x 32 bytes of image.

They are found in a folder, into which `plunit.lab.cifar10_fetch` puts them, and verified once in each process, or again
if they change.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plunit.base.cache import user_cache
from plunit.base.errors import UserError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Labels = np.ndarray[Any, np.dtype[np.int64]]

IMAGE = (3, 32, 32)  # channel, row, column
RECORD = 1 + 3 * 32 * 32
TEST = "test_batch.bin"


class File(NamedTuple):
    """What a file must be: the SHA-1 of its content and its number of records."""

    sha1: str
    records: int

    @property
    def size(self) -> int:
        """Return the length in bytes."""
        return self.records * RECORD

    def matches(self, content: bytes) -> bool:
        """Whether this is the file's content, to the byte."""
        return sha1(content, usedforsecurity=False).hexdigest() == self.sha1


Files = Mapping[str, File]

FILES: dict[str, File] = {
    "data_batch_1.bin": File("aadd24acce27caa71bf4b10992e9e7b2d74c2540", 10_000),
    "data_batch_2.bin": File("c0ba65cce70568cd57b4e03e9ac8d2a5367c1795", 10_000),
    "data_batch_3.bin": File("1dd00a74ab1d17a6e7d73e185b69dbf31242f295", 10_000),
    "data_batch_4.bin": File("aab85764eb3584312d3c7f65fd2fd016e36a258e", 10_000),
    "data_batch_5.bin": File("26e2849e66a845b7f1e4614ae70f4889ae604628", 10_000),
    TEST: File("67eb016db431130d61cd03c7ad570b013799c88c", 10_000),
}


_VERIFIED: set[tuple[Path, int, int, File]] = set()
"""Files whose checksum this process has compared, as they were then."""


def pack(labels: Sequence[int] | Labels, images: Bytes) -> bytes:
    """Return the records of labels [n] and images [n, 3, 32, 32], as in the published files."""
    column = np.asarray(labels, dtype=np.uint8)[:, None]
    return np.concatenate([column, images.reshape(len(column), RECORD - 1)], axis=1).tobytes()


def unpack(contents: Sequence[bytes]) -> tuple[Bytes, Labels]:
    """Return images [n, 3, 32, 32] and labels [n] of the records of some files."""
    records = [np.frombuffer(content, dtype=np.uint8).reshape(-1, RECORD) for content in contents]
    images = np.concatenate([part[:, 1:] for part in records]).reshape(-1, *IMAGE)
    return images, np.concatenate([part[:, 0] for part in records]).astype(np.int64)


def describe(content: bytes) -> File:
    """Return the description of a file with this content; for data sets other than the published one."""
    return File(sha1(content, usedforsecurity=False).hexdigest(), len(content) // RECORD)


@dataclass(frozen=True)
class Cifar10:
    """Images, uint8 [n, 3, 32, 32], and labels, int64 [n] of 0 to 9: 50,000 for training and 10,000 for tests."""

    train_images: Bytes
    train_labels: Labels
    test_images: Bytes
    test_labels: Labels


def folder(base: Path | None = None) -> Path:
    """Return the folder of the six files: `cifar10` in a base folder, $PLUNIT_DATA or the user's cache by default."""
    return (base or Path(os.environ.get("PLUNIT_DATA") or user_cache())).expanduser() / "cifar10"


def load(place: Path | None = None, files: Files | None = None) -> Cifar10:
    """Return the data set of a folder, `folder()` by default; `files` describes another one in the same format."""
    place, files = place or folder(), FILES if files is None else files
    contents = read_verified(place, files)
    if absent := [name for name in files if name not in contents]:
        raise UserError(f"{', '.join(absent)} of CIFAR-10 is missing or damaged in {place}; run `plunit data cifar10`")
    train = unpack([contents[name] for name in files if name != TEST])
    return Cifar10(*train, *unpack([contents[TEST]]))


def read_verified(place: Path, files: Files) -> dict[str, bytes]:
    """Return the contents of those files of a folder that exist and match their descriptions."""
    contents = {}
    for name, file in files.items():
        with contextlib.suppress(OSError):  # a file of another size, or a pipe, is not read
            about = (place / name).stat()
            if about.st_size != file.size:
                continue
            content, stamp = (place / name).read_bytes(), (place / name, about.st_ino, about.st_mtime_ns, file)
            if stamp in _VERIFIED or file.matches(content):
                _VERIFIED.add(stamp)
                contents[name] = content
    return contents
