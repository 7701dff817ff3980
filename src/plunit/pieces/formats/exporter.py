"""`save`: a network, or its curve, in the format that the file's ending names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plunit.base.files import ending
from plunit.pieces.exact_curves import Curve, curve
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.c_text import is_name
from plunit.pieces.formats.csv_json import save_csv, save_json
from plunit.pieces.formats.onnx_writing import save_onnx
from plunit.pieces.limits import box_array
from plunit.pieces.networks import Network, check_network

__all__ = ["Exporter"]


@dataclass(frozen=True)
class Exporter:
    """A format that `save` writes, by the ending of the file.

    To add one: write a module with a function `save_NAME(net, path)`, and a line in `EXPORTERS` below. `save`,
    `plunit pieces --save` and `plunit fit --save` take it from there, and tests/pieces/formats/test_exporter.py runs
    the same tests on every format. Check-list:

    - The file is a function of the network, the box, the labels and the file's name alone: the same bytes each time.
    - Numbers keep all their digits (`repr` of a float), or the file says how far off they are.
    - Names of inputs are kept where there is room; they come from tables, and may hold anything that prints.
    - A network that the format cannot hold is a ValueError that names the layer and the remedy.
    - A format that is read, too, has an `Importer` in the same module, and what was written comes back.

    Attributes:
        write: writes the network to the path; its second argument is the box [in, 2], or None, and the last ones are
            `names` of the inputs and a text `about` the network, or nothing.
        inputs: the numbers of inputs that the format takes; () if it takes any number.
        needs_box: whether the box must be given.
    """

    write: Callable[..., None]
    inputs: tuple[int, ...] = ()
    needs_box: bool = False


def save(net: Network, path: str | Path, box: Any = None, *, names: Sequence[str] = (), about: str = "") -> None:
    """Write a network in the format of the file's ending: .h, .onnx, .json or .csv; case does not matter.

    .h (C, with a bound on its rounding errors in the box) and .onnx hold the whole network. .csv holds the curve on the
    box, so it needs one input and a box. .json holds the curve if the network has one input and a box is given, else
    the whole network; `load` reads both. A box is a pair (low, high) for each input. `names` of the inputs, and lines
    `about` the network, become comments of C, metadata of ONNX and entries of JSON; .csv has no place for them.
    """
    check_network(net)
    path = Path(path)
    if ending(path) not in EXPORTERS:
        raise ValueError(f"{path} ends in {path.suffix!r}; a file can be saved as one of {', '.join(EXPORTERS)}")
    exporter = EXPORTERS[ending(path)]
    if box is None and exporter.needs_box:
        raise ValueError(f"a {path.suffix} file needs a box, (low, high) for each input; give save(net, path, box)")
    if exporter.inputs and net.inputs not in exporter.inputs:
        raise ValueError(
            f"{path.suffix} holds a function of one input, and the network has {net.inputs}; see plunit.pieces.along"
        )
    exporter.write(net, None if box is None else box_array(net, box), path, names=names, about=about)


def save_curve(curve: Curve, path: Path, **labels: Any) -> None:
    """Write a curve in the format of the file's ending, one of those of `save`, with `names` and `about` as there."""
    match ending(path):
        case ".h":
            save_c(curve, path, c_name(path), **labels)
        case ".onnx":
            save_onnx(curve, path, **labels)
        case ".json":
            save_json(curve, path, **labels)
        case _:
            save_csv(curve, path)


def c_name(path: Path) -> str:
    """Return the name of the C function: that of the file, if C allows it."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return name if is_name(name) else "network"


def _save_c(net: Network, box: Any, path: Path, **labels: Any) -> None:
    save_c(net, path, c_name(path), box=box, **labels)


def _save_json(net: Network, box: Any, path: Path, **labels: Any) -> None:
    save_json(net if box is None or net.inputs > 1 else curve(net, *box[0]), path, **labels)


EXPORTERS: dict[str, Exporter] = {
    ".h": Exporter(_save_c),
    ".onnx": Exporter(lambda net, box, path, **labels: save_onnx(net, path, **labels)),
    ".csv": Exporter(lambda net, box, path, **_: save_csv(curve(net, *box[0]), path), inputs=(1,), needs_box=True),
    ".json": Exporter(_save_json),
}
"""The formats that `save` writes, by the file's ending."""
