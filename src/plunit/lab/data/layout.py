"""CIFAR-10 as its authors publish it: six files of records, each one byte of label and 3 x 32 x 32 bytes of image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, NamedTuple

import numpy as np

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
        """Say whether this is the file's content, to the byte."""
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


def pack(labels: Sequence[int] | Labels, images: Bytes) -> bytes:
    """Return the records of labels [n] and images [n, 3, 32, 32], as in the published files."""
    column = np.asarray(labels, dtype=np.uint8)[:, None]
    return np.concatenate([column, images.reshape(len(column), RECORD - 1)], axis=1).tobytes()


def unpack(contents: Sequence[bytes]) -> tuple[Bytes, Labels]:
    """Return images [n, 3, 32, 32] and labels [n] of the records of some files."""
    records = [np.frombuffer(content, dtype=np.uint8).reshape(-1, RECORD) for content in contents]
    images = np.concatenate([part[:, 1:] for part in records]).reshape(-1, *IMAGE)
    return images, np.concatenate([part[:, 0] for part in records]).astype(np.int64)


def described(content: bytes) -> File:
    """Return the description a content matches: for data sets other than the published one."""
    return File(sha1(content, usedforsecurity=False).hexdigest(), len(content) // RECORD)
