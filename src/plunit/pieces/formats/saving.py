"""Write a network, or its curve or polygons, in the format that a file's ending names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plunit.base.files import ending
from plunit.pieces.exact.polygons import Cells, cells
from plunit.pieces.exact_curves import Curve, curve
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.c_text import check_name
from plunit.pieces.formats.csv_table import save_csv
from plunit.pieces.formats.geojson_map import save_geojson
from plunit.pieces.formats.json_text import save_json
from plunit.pieces.formats.nnet_text import save_nnet
from plunit.pieces.formats.obj_mesh import save_obj
from plunit.pieces.formats.onnx_writing import save_onnx
from plunit.pieces.formats.ply_mesh import save_ply
from plunit.pieces.formats.safetensors_file import save_safetensors
from plunit.pieces.formats.svg_picture import save_svg
from plunit.pieces.limits import Pairs, box_pairs
from plunit.pieces.networks import Network, check_network

__all__ = ["Exporter"]


@dataclass(frozen=True)
class Exporter:
    """A format that `save` writes, by the ending of the file.

    To add one: write a module with a function `save_NAME(net, path)`, and a line in `EXPORTERS` below. `save`,
    `plunit pieces --save` and `plunit fit --save` take it from there, and tests/pieces/formats/test_saving.py runs the
    same tests on every format. Check-list:

    - The file is a function of the network, the box and the file's name alone: the same bytes each time.
    - Numbers keep all their digits (`repr` of a float), or the file says how far off they are.
    - A network that the format cannot hold is a ValueError that names the layer and the remedy.
    - A format that is read, too, has an `Importer` in the same module, and what was written comes back.

    Attributes:
        write: writes the network to the path; its second argument is the box, () if none was given.
        inputs: the numbers of inputs that the format takes; () if it takes any number.
        needs_box: whether the box must be given.
    """

    write: Callable[[Network, Pairs, Path], None]
    inputs: tuple[int, ...] = ()
    needs_box: bool = True


def save(net: Network, path: str | Path, box: Any = None) -> None:
    """Write a network to a file whose ending, in letters of any case, is the format: one of those in `EXPORTERS`.

    .h (C, with a bound on its rounding errors in the box), .onnx, .safetensors and .nnet hold the whole network, and so
    does .json; with a box and one input .json holds the curve. .csv holds the curve, so it needs one input. .svg is a
    picture of its curve or polygons there, for one or two inputs; .obj, .ply and .geojson hold its polygons, so they
    need two. All but .h, .json, .onnx and .safetensors need the box, a pair (low, high) for each input.
    """
    check_network(net)
    path = Path(path)
    if ending(path) not in EXPORTERS:
        raise ValueError(f"{path} ends in {path.suffix!r}; a file can be saved as one of {', '.join(EXPORTERS)}")
    exporter = EXPORTERS[ending(path)]
    if box is None and exporter.needs_box:
        raise ValueError(
            f"a {path.suffix} file needs a box, a pair (low, high) for each input; give save(net, path, box)"
        )
    exporter.write(net, () if box is None else box_pairs(net, box), path)


def _of_curve(write: Callable[[Curve, Path], None]) -> Exporter:
    def written(net: Network, box: Pairs, path: Path) -> None:
        if net.inputs != 1:
            raise ValueError(
                f"{path.suffix} holds a curve, a function of one input, and the network has {net.inputs}; "
                "plunit.pieces.along(net, a, b) takes a line through them"
            )
        write(curve(net, *box[0]), path)

    return Exporter(written, inputs=(1,))


def c_name(path: Path) -> str:
    """Return the name of the C function: that of the file, if C allows it."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    try:
        check_name(name)
    except ValueError:
        return "network"
    return name


def _of_polygons(write: Callable[[Cells, Path], None]) -> Exporter:
    def written(net: Network, box: Pairs, path: Path) -> None:
        if net.inputs != 2:
            raise ValueError(
                f"{path.suffix} holds polygons, so it needs two inputs, and the network has {net.inputs}; "
                "plunit.pieces.plane(net, origin, u, v) takes a plane through them"
            )
        write(cells(net, (box[0], box[1])), path)

    return Exporter(written, inputs=(2,))


def _picture(net: Network, box: Pairs, path: Path) -> None:
    if net.inputs > 2:
        raise ValueError(f"a picture needs one or two inputs, and the network has {net.inputs}")
    save_svg(curve(net, *box[0]) if net.inputs == 1 else cells(net, (box[0], box[1])), path)


EXPORTERS: dict[str, Exporter] = {
    ".h": Exporter(lambda net, box, path: save_c(net, path, c_name(path), box=box or None), needs_box=False),
    ".onnx": Exporter(lambda net, box, path: save_onnx(net, path), needs_box=False),
    ".csv": _of_curve(save_csv),
    ".json": Exporter(
        lambda net, box, path: save_json(curve(net, *box[0]) if net.inputs == 1 and box else net, path),
        needs_box=False,
    ),
    ".svg": Exporter(_picture, inputs=(1, 2)),
    ".obj": _of_polygons(save_obj),
    ".ply": _of_polygons(save_ply),
    ".geojson": _of_polygons(save_geojson),
    ".safetensors": Exporter(lambda net, box, path: save_safetensors(net, path), needs_box=False),
    ".nnet": Exporter(lambda net, box, path: save_nnet(net, path, box)),
}
"""The formats that `save` writes, by the file's ending."""
