"""`save_c`: a curve or a network as one C99 header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plunit.base.files import save_whole
from plunit.pieces.exact_curves import Curve
from plunit.pieces.fixed.integers import FixedNetwork
from plunit.pieces.fixed.proving import error_bound
from plunit.pieces.formats.c_curve import curve_header
from plunit.pieces.formats.c_fixed import fixed_header
from plunit.pieces.formats.c_network import network_header
from plunit.pieces.formats.c_text import check_name, comment
from plunit.pieces.limits import box_array
from plunit.pieces.networks import Network, check_network
from plunit.pieces.rewriting import rescaled


def save_c(
    function: Curve | Network | FixedNetwork,
    path: str | Path,
    name: str | None = None,
    *,
    dtype: str = "double",
    box: Any = None,
    self_test: int = 16,
    about: str = "",
    **scaling: Any,
) -> None:
    """Write a C99 header without dependencies that defines the function `name`, in double or in float.

    - A Curve becomes `void name(double x, double *y)`, by default with the name curve. Dead kinks are left out.
    - A Network becomes `void name(const double *x, double *y)`, by default with the name network.
    - A FixedNetwork becomes the same, and `void name_fixed(const int16_t *x, int32_t *y)` for integers.

    The header has static const tables, no other globals, no malloc and no libm. It compiles as C99 and as C++. Headers
    with different names can be used together, also if only their case differs.

    Args:
        function: a curve, or a single network of any number of inputs, with any activation for each unit, or what
            `quantize` made of one. In fixed point the header states its formats and a proved bound on the error.
        path: the file to write.
        name: the name of the function in C.
        dtype: "double" or "float", of a curve or a network.
        box: for a network, ((low, high), ...) of the inputs that the function takes. With it the header states a proved
            bound on the rounding error for all x in the box (see `plunit.pieces.rounding`), and has a self-test.
        self_test: the number of points that the self-test stores; 0 for none. A program that includes the header with
            `name_SELF_TEST` defined has a main() that returns 0 if the values at these points are right.
        about: a line for the comment at the top, such as what the function was made from.
        **scaling: `shift`, `scale`, `output_shift`, `output_scale`, as `plunit.pieces.rescaled` takes them: the
            function takes raw inputs x, gives the network (x - shift) / scale, and returns
            output_shift + output_scale y.
    """
    chosen = name if name is not None else "curve" if isinstance(function, Curve) else "network"
    check_name(chosen)
    if isinstance(self_test, bool) or not isinstance(self_test, int) or self_test < 0:
        raise ValueError(f"self_test must be a number of points, 0 or more, got {self_test!r}")
    options = sorted(scaling) + ["box"] * (box is not None)
    if isinstance(function, Curve):
        if options:
            raise ValueError(f"a curve takes no {', '.join(options)}; a network does")
        text = curve_header(function, chosen, dtype)
    elif isinstance(function, FixedNetwork):
        if options or dtype != "double":
            raise ValueError(f"a network in fixed point takes no {', '.join(options or ['dtype'])}; quantize has them")
        text = fixed_header(function, chosen, error_bound(function), self_test)
    else:
        check_network(function)
        net = rescaled(function, **scaling) if scaling else function
        text = network_header(net, chosen, dtype, None if box is None else box_array(net, box), self_test)
    first = comment([" ".join(about.replace("*/", "* /").split())]) + "\n" if about else ""
    save_whole(path, first + text)
