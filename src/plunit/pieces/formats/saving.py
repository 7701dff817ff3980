"""Write a network, or the curve or the cells of it, in the format that a file's ending names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from plunit.pieces.curve import Curve
from plunit.pieces.domains import Box, box_of
from plunit.pieces.drawing import draw_cells, draw_curve
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.csv_table import save_csv
from plunit.pieces.formats.json_text import save_json
from plunit.pieces.formats.nnet_text import save_nnet
from plunit.pieces.formats.onnx_model import save_onnx
from plunit.pieces.formats.safetensors_file import save_safetensors
from plunit.pieces.line import curve
from plunit.pieces.networks import Network, single
from plunit.pieces.polygons import cells

Writer = Callable[[Network, Box, Path], None]


def save(net: Network, path: str | Path, box: Any) -> None:
    """Write a network to a file whose ending is the format: one of those in `WRITERS`.

    .onnx, .safetensors and .nnet hold the whole network. .csv, .json and .h hold its curve on the box, so they need a
    network of one input. .svg holds a picture of its curve or cells there, so it needs one or two inputs.
    """
    single(net)
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ValueError(f"{path} ends in {path.suffix!r}; a file can be saved as one of {', '.join(WRITERS)}")
    WRITERS[path.suffix](net, box_of(net, box), path)


def _of_curve(write: Callable[[Curve, Path], None]) -> Writer:
    def writer(net: Network, box: Box, path: Path) -> None:
        if net.inputs != 1:
            raise ValueError(
                f"{path.suffix} holds a curve, a function of one input, and the network has {net.inputs}; "
                "plunit.pieces.along(net, a, b) takes a line through them"
            )
        write(curve(net, *box[0]), path)

    return writer


def _draw(net: Network, box: Box, path: Path) -> None:
    if net.inputs > 2:
        raise ValueError(f"a picture needs one or two inputs, and the network has {net.inputs}")
    from matplotlib.figure import Figure  # without pyplot, which keeps figures open

    figure = Figure()
    if net.inputs == 1:
        draw_curve(curve(net, *box[0]), figure.add_subplot())
    else:
        draw_cells(cells(net, (box[0], box[1])), figure.add_subplot())
    figure.savefig(path, bbox_inches="tight")


WRITERS: dict[str, Writer] = {
    ".h": _of_curve(save_c),
    ".onnx": lambda net, box, path: save_onnx(net, path),
    ".csv": _of_curve(save_csv),
    ".json": _of_curve(save_json),
    ".svg": _draw,
    ".safetensors": lambda net, box, path: save_safetensors(net, path),
    ".nnet": lambda net, box, path: save_nnet(net, path, box),
}
"""What writes a network to a file of each ending, given the box of its inputs."""
