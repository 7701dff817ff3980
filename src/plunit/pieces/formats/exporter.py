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
    `plunit pieces --save` and `plunit fit --save` then offer it, and tests/pieces/formats/test_exporter.py runs the
    same tests on every format. Check-list:

    - The file depends only on the network, the box, the labels and the file's name: the same bytes each time.
    - Numbers keep all their digits (`repr` of a float), or the file states their error.
    - Names of inputs are stored if the format can; they come from tables and may contain any printable character.
    - A network that the format cannot represent raises a ValueError that names the layer and the remedy.
    - A format that `load` also reads has an `Importer` in the same module, and the network survives the round trip.

    Attributes:
        write: writes a network or a curve; arguments: the function, the box [in, 2] or None, and the path. `names` of
            the inputs and a text `about` the function are options.
        only_curves: whether the format holds only curves, so that a network needs one input and a box.
    """

    write: Callable[..., None]
    only_curves: bool = False


def save(
    function: Network | Curve, path: str | Path, box: Any = None, *, names: Sequence[str] = (), about: str = ""
) -> None:
    """Write a network in the format that the extension names: .h, .onnx, .json or .csv, in upper or lower case.

    .h (C), .onnx and .json hold the whole network; with a box, (low, high) for each input, .h also states a bound on
    its rounding errors there. .csv lists the pieces on the box, so it needs a box and one input. A Curve has a domain,
    so it needs no box. `load` reads .onnx and .json. `names` of the inputs and lines `about` the network become
    comments in C, metadata in ONNX and entries in JSON.
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
                f"a {path.suffix} file holds a function of one input, but the network has {function.inputs}; save "
                "plunit.pieces.along(net, a, b)"
            )
        box = None if box is None else box_array(function, box)
    exporter.write(function, box, path, names=names, about=about)


def check_ending(path: Path) -> None:
    """Raise ValueError if no exporter writes files of this extension."""
    if ending(path) not in EXPORTERS:
        raise ValueError(f"{path} has the extension {path.suffix!r}; use one of {', '.join(EXPORTERS)}")


_LIBRARY = """
    abort abs access acos acosh alarm asctime asin asinh assert atan atan2 atanh atexit atof atoi atol atoll bsearch
    calloc cbrt ceil clock close copysign cos cosh crypt ctime daemon difftime div double_t drem dup erf erfc errno exit
    exp exp2 expm1 fabs fclose fdim feof ferror fflush fgetc fgetpos fgets finite float_t floor fma fmax fmin fmod fopen
    fork fpclassify fprintf fputc fputs fread free freopen frexp fscanf fseek fsetpos fsync ftell fwrite gamma getc
    getchar getenv getline gmtime hypot ilogb index isalnum isalpha iscntrl isdigit isfinite isgraph isgreater
    isgreaterequal isinf isless islessequal islessgreater islower isnan isnormal isprint ispunct isspace isunordered
    isupper isxdigit j0 j1 jn kill labs ldexp ldiv lgamma lgamma_r link llabs lldiv llrint llround localtime log log10
    log1p log2 logb longjmp lrint lround malloc math_errhandling memchr memcmp memcpy memmove memset mktime modf nan
    nearbyint nextafter nexttoward nice offsetof pause perror pipe pow printf putc putchar puts qsort raise rand random
    read realloc remainder remove remquo rename rewind rint round scalb scalbln scalbn scanf select setbuf setenv setjmp
    setvbuf signal signbit signgam significand sin sinh sleep snprintf sprintf sqrt srand srandom sscanf stderr stdin
    stdout strcat strchr strcmp strcoll strcpy strcspn strdup strerror strftime strlen strncat strncmp strncpy strpbrk
    strrchr strspn strstr strtod strtok strtol strtold strtoll strtoul strtoull strxfrm sync system tan tanh tgamma time
    tmpfile tmpnam tolower toupper trunc truncate ungetc unlink va_arg va_copy va_end va_start vfprintf vprintf
    vsnprintf vsprintf write y0 y1 yn EOF NULL NAN INFINITY HUGE_VAL
"""
"""Names in the C library: a header that defines one conflicts with <math.h> or another standard header."""

_IN_LIBRARY = re.compile(rf"({'|'.join(_LIBRARY.split())})(f|l|f_r|l_r|F|L)?|(M|FP|MATH)_\w+")


def c_name(path: Path) -> str:
    """Return the name of the C function in a file: the file's name, followed by _network if C or its library uses it.

    >>> [c_name(Path(name)) for name in ("valve.h", "exp.h", "valve_low.h", "1.h")]
    ['valve', 'exp_network', 'valve_low_network', 'network']
    """
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    if is_name(name) and not _IN_LIBRARY.fullmatch(name):
        return name
    return f"{name}_network" if is_name(f"{name}_network") else "network"


def call_note(path: Path) -> str:
    """Return how to call the function in a C header if its name is not the file's, and "" otherwise.

    >>> call_note(Path("exp.h")), call_note(Path("valve.h"))
    ('; call exp_network(x, y)', '')
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
