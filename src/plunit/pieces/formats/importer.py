"""The contract of importers: a format recognises its files by their content, and reads them as a `Network`."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.graphs import Room, check_bytes
from plunit.pieces.networks import LayerLike, Network, network

__all__ = ["Importer"]

_HEAD = 2**16


@dataclass(frozen=True)
class Importer:
    """A format that `load` reads.

    To add one: write a module with an `Importer`, and add it to `IMPORTERS` in `loading.py`. Add a function that makes
    a file, with values from another program, to `WRITERS` of tests/support/model_files.py; then the tests in
    tests/pieces/formats/test_importers.py run on it, too. Check-list:

    - `recognises` looks at content alone, never at the file's ending. It is true for one format only. It needs no
      other package, so that a file's format is named even if the package that reads it is missing.
    - `read` executes nothing that a file holds: no pickle, no lambda, no import by a name in the file.
    - `read` checks sizes before it reserves memory: no part of a file and no array has more than `LIMIT` bytes, and all
      arrays together, counted by one `Room`, at most twice that. A small file can name a large array, or one many
      times.
    - Whatever `read` does not understand is an error that names the layer, never a layer left out.
    - `read` makes its network with `build`, which checks the sizes of the layers.
    - Weights keep their values: float32 becomes float64 without rounding.
    - A package that `read` needs is imported in `read`, not above. Then an error names it. The package goes into
      `EXTRAS` of `plunit.base.errors`, and into `PACKAGES` of test_importers.py.

    Attributes:
        name: what the file is, with its article: "an ONNX model".
        recognises: whether the content is of this format.
        read: returns the network; any exception becomes one line with the file, the name and the remedy. A text is the
            reason why files of a known format are not read.
        remedy: how to make a file that can be read.
        takes_shape: whether `read` takes the shape of the input, too, because the format has convolutions.
    """

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[..., Network] | str
    remedy: str
    takes_shape: bool = False


@dataclass(frozen=True)
class Content:
    """What `recognises` looks at: the first bytes, the size, and the names in a zip archive, () for other files."""

    path: Path
    head: bytes
    size: int
    members: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> Content:
        """Look into a file; OSError if there is none."""
        with path.open("rb") as file:
            head = file.read(_HEAD)
        try:
            with zipfile.ZipFile(path) as archive:
                members = tuple(archive.namelist())
        # a zip archive is recognised by its end, and any file may begin like one
        except Exception:
            members = ()
        return cls(path, head, path.stat().st_size, members)

    def text(self) -> str:
        """Return the first bytes as text, "" if they are not text."""
        try:
            # the last character may be cut
            return self.head.decode("utf-8-sig", errors="strict" if self.size <= _HEAD else "ignore")
        except UnicodeDecodeError:
            return ""


class JumpWarning(UserWarning):
    """A file jumps where its constants are rounded, and the network that was read is continuous.

    bound: [out], the largest difference between each output of the file, in real arithmetic, and of the network.
    """

    def __init__(self, path: Path, bound: Floats) -> None:
        self.bound = bound
        super().__init__(
            f"{path} jumps where its rounded constants do not meet, and the network is continuous; their outputs "
            f"differ by at most {self.bound.max():.3g}"
        )


def build(layers: Sequence[LayerLike], room: Room | None = None) -> Network:
    """Return the network of these layers; ValueError if one of them is too wide, or if all need too much memory.

    `room` is that of the file, if other arrays were made of it.

    A small file can name a large width, and a layer of that width may need a square matrix: between two activations,
    and as the product of two affine layers.
    """
    room, before, units = room or Room(), 0, 0
    for layer in layers:
        if isinstance(layer, Activation):
            room.take(f"a layer of {units:,} units", 8 * units * before)
            before = units
        elif len(np.shape(layer[0])) == 2:
            units, inputs = np.shape(layer[0])
            check_bytes(f"a layer of {max(units, inputs):,} units", 8 * max(units, inputs) ** 2)
            before = before or inputs
    return network(layers)
