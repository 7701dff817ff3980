"""The contract of importers: a format recognises its files by their content and reads them as a `Model`."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.graphs import Budget, check_bytes
from plunit.pieces.networks import LayerLike, Network, network

__all__ = ["Importer"]

_HEAD = 2**16
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Importer:
    """A format that `load` reads.

    To add one: write a module with an `Importer`, and add it to `IMPORTERS` in `reading.py`. Add a function that writes
    a file, with values from another program, to `WRITERS` of tests/support/model_files.py; then the tests in
    tests/pieces/formats/test_importers.py also run on it. Check-list:

    - `recognises` looks only at the content, never at the extension, and is true for only one format. It needs no
      other package, so that an error can name the format even if the package that reads it is missing.
    - `read` executes nothing from a file: no pickle, no lambda, no import by a name in the file.
    - `read` checks sizes before it reserves memory: no part of a file and no array has more than `LIMIT` bytes, and all
      arrays together, counted by one `Budget`, at most twice that. A small file can declare a large array, or use one
      many times.
    - An unknown layer is an error that names it; no layer is skipped.
    - `read` builds its network with `build`, which checks the sizes of the layers.
    - Weights keep their values: float32 becomes float64 without rounding.
    - A package that `read` needs is imported inside `read`, so that an error names it. The package also goes into
      `EXTRAS` of `plunit.base.errors` and `PACKAGES` of test_importers.py.

    Attributes:
        name: the kind of file, with its article: "an ONNX model".
        recognises: whether the content has this format.
        read: returns the model; any exception becomes one line with the file, the name and the remedy.
        remedy: how to make a file that can be read.
        takes_shape: whether `read` also takes the shape of the input, because the format has convolutions.
    """

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[..., Model]
    remedy: str
    takes_shape: bool = False


@dataclass(frozen=True, eq=False)
class Model:
    """The network in a file, how it differs from the file, and the box of its inputs.

    jump: [out], a bound on the difference between each output of the file and of the network, if the file jumps because
    its constants are rounded; else None. rounded: whether factors and shifts, such as those of a BatchNorm, were joined
    with a layer and rounded. box: [in, 2], the range of each input, if the file states it.
    """

    network: Network
    jump: Floats | None = None
    rounded: bool = False
    box: Floats | None = None

    def notes(self, path: Path) -> list[str]:
        """Return sentences that say how the network differs from the file."""
        found = []
        if self.jump is not None:
            found.append(_describe_jump(path, self.jump))
        if self.rounded:
            found.append(
                f"{path} has factors, such as those of a BatchNorm or of a mean, that were rounded to float64; the "
                "answer is about the network with the rounded weights"
            )
        return found


def _describe_jump(path: Path, bound: Floats) -> str:
    return (
        f"{path} jumps where its rounded constants do not meet, but the network is continuous; their outputs differ by "
        f"at most {bound.max():.3g}"
    )


class JumpWarning(UserWarning):
    """A file jumps where its rounded constants do not meet, and the network read from it is continuous.

    bound: [out], a bound on the difference between each output of the file, in real arithmetic, and of the network.
    """

    def __init__(self, path: Path, bound: Floats) -> None:
        self.bound = bound
        super().__init__(_describe_jump(path, bound))


@dataclass(frozen=True)
class Content:
    """The data that `recognises` reads: the first bytes, the size, and the names in a zip archive, () otherwise."""

    path: Path
    head: bytes
    size: int
    members: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> Content:
        """Return the content of a file; OSError if there is none."""
        with path.open("rb") as file:
            head = file.read(_HEAD)
        return cls(path, head, path.stat().st_size, _names_in_zip(path) if head.startswith(_ZIP) else ())

    def text(self) -> str:
        """Return the first bytes as text, or "" if they are not text."""
        try:
            # the last character may be incomplete
            return self.head.decode("utf-8-sig", errors="strict" if self.size <= _HEAD else "ignore")
        except UnicodeDecodeError:
            return ""


def _names_in_zip(path: Path) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(archive.namelist())
    # any file may begin like an archive
    except Exception:
        return ()


def build(layers: Sequence[LayerLike], budget: Budget | None = None) -> Network:
    """Return the network of these layers; ValueError if one of them is too wide, or if all need too much memory.

    `budget` is that of the file, if other arrays have been counted already. A small file can declare a large width, and
    a layer of that width may need a square matrix: between two activations, and as the product of two affine layers.
    """
    budget, before, units = budget or Budget(), 0, 0
    for layer in layers:
        if isinstance(layer, Activation):
            budget.take(f"a layer of {units:,} units", 8 * units * before)
            before = units
        elif len(np.shape(layer[0])) == 2:
            units, inputs = np.shape(layer[0])
            check_bytes(f"a layer of {max(units, inputs):,} units", 8 * max(units, inputs) ** 2)
            before = before or inputs
    return network(layers)
