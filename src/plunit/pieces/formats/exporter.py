"""`save`: a network, or its curve, in the format that the file's extension names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plunit.base.files import ending
from plunit.pieces.boxes import box_array
from plunit.pieces.exact.line_curves import Curve, curve
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.c_text import is_name
from plunit.pieces.formats.csv_json import save_csv, save_json
from plunit.pieces.formats.onnx_writing import save_onnx
from plunit.pieces.networks import Network, check_network

__all__ = ["Exporter"]


@dataclass(frozen=True)
class Exporter:
    """A format that `save` writes, by the file's extension.

    To add one: write a module with a function `save_NAME(net, path)`, and a line in `EXPORTERS` below. `save`,
    `plunit pieces --save` and `plunit fit --save` take it from there, and tests/pieces/formats/test_exporter.py runs
    the same tests on every format. Check-list:

    - The file is a function of the network, the box, the labels and the file's name alone: the same bytes each time.
    - Numbers keep all their digits (`repr` of a float), or the file says how far off they are.
    - Names of inputs are kept where there is room; they come from tables, and may hold anything that prints.
    - A network that the format cannot hold is a ValueError that names the layer and the remedy.
    - A format that is read, too, has an `Importer` in the same module, and what was written comes back.

    Attributes:
        write: writes the network, or a curve, to the path, its third argument; the second is the box [in, 2], or None.
            `names` of the inputs and a text `about` the network are options.
        only_curves: whether the format holds curves alone: a network then needs one input and a box.
    """

    write: Callable[..., None]
    only_curves: bool = False


def save(
    function: Network | Curve, path: str | Path, box: Any = None, *, names: Sequence[str] = (), about: str = ""
) -> None:
    """Write a network in the format that the extension names: .h, .onnx, .json or .csv, in upper or lower case.

    .h (C), .onnx and .json hold the whole network; with a box, (low, high) for each input, .h also states a bound on
    its rounding errors there. .csv lists the pieces on the box, so it needs a box and one input. A Curve has a domain
    of its own, and needs no box. `load` reads .onnx and .json. `names` of the inputs, and lines `about` the network,
    become comments of C, metadata of ONNX and entries of JSON.
    """
    path = Path(path)
    if not isinstance(function, Curve):
        check_network(function)
    check_ending(path)
    exporter = EXPORTERS[ending(path)]
    if not isinstance(function, Curve):
        if exporter.only_curves and box is None:
            raise ValueError(f"a {path.suffix} file needs a box, (low, high) for each input; give save(net, path, box)")
        if exporter.only_curves and function.inputs != 1:
            raise ValueError(
                f"{path.suffix} holds a function of one input, and the network has {function.inputs}; "
                "see plunit.pieces.along"
            )
        box = None if box is None else box_array(function, box)
    exporter.write(function, box, path, names=names, about=about)


def check_ending(path: Path) -> None:
    """Raise ValueError if no exporter writes files of this extension."""
    if ending(path) not in EXPORTERS:
        raise ValueError(f"{path} ends in {path.suffix!r}; a file can be saved as one of {', '.join(EXPORTERS)}")


_LIBRARY = """
    abort abs acos acosh asctime asin asinh atan atan2 atanh atexit atof atoi atol bsearch calloc cbrt ceil clock
    copysign cos cosh ctime difftime div erf erfc exit exp exp2 expm1 fabs fclose fdim feof fflush fgets floor fma
    fmax fmin fmod fopen fprintf fputs fread free frexp fscanf fseek ftell fwrite getc getchar getenv gmtime hypot
    ilogb isalpha isdigit isspace j0 j1 jn labs ldexp ldiv lgamma llrint localtime log log10 log1p log2 logb lrint
    lround malloc memcmp memcpy memmove memset mktime modf nan nearbyint nextafter perror pow printf putc putchar
    puts qsort raise rand realloc remainder remove remquo rename rewind rint round scalbn scanf setbuf signal sin
    sinh snprintf sprintf sqrt srand sscanf strcat strchr strcmp strcpy strlen strncpy strstr strtod strtok strtol
    system tan tanh tgamma time tmpfile tolower toupper trunc ungetc y0 y1 yn
"""
"""Functions of C's library: a header with such a function could not be included beside <math.h> and the like."""


def c_name(path: Path) -> str:
    """Return the name of the C function: that of the file, if C allows it and its library has no such function."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return name if is_name(name) and name not in _LIBRARY.split() else "network"


def call_note(path: Path) -> str:
    """Return how to call the function of a C header that has not the name of its file; "" for others.

    >>> call_note(Path("exp.h")), call_note(Path("valve.h"))
    ('; call network(x, y)', '')
    """
    return f"; call {name}(x, y)" if ending(path) == ".h" and (name := c_name(path)) != path.stem else ""


def _save_csv(function: Network | Curve, box: Any, path: Path, **_: Any) -> None:
    save_csv(curve(function, *box[0]) if isinstance(function, Network) else function, path)


def _save_c(function: Network | Curve, box: Any, path: Path, **labels: Any) -> None:
    save_c(function, path, c_name(path), box=box, **labels)


EXPORTERS: dict[str, Exporter] = {
    ".h": Exporter(_save_c),
    ".onnx": Exporter(lambda function, box, path, **labels: save_onnx(function, path, **labels)),
    ".csv": Exporter(_save_csv, only_curves=True),
    ".json": Exporter(lambda function, box, path, **labels: save_json(function, path, **labels)),
}
"""The formats that `save` writes, by the file's extension."""
