"""A curve as a C99 header: values[i] + slopes[i] (x - knots[i]) after a search for i."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plunit.pieces.exact.layer import EPS
from plunit.pieces.exact_curves import Curve
from plunit.pieces.formats.c_text import FITTED, rounded, table

_HEADER = """\
/* {name}: a piecewise-linear function of one variable, {pieces} pieces on [{low}, {high}], {outputs} output(s):
   y = values[i] + slopes[i] (x - knots[i]), i the last piece that begins at x or before.
   For every {real} x in [{low}, {high}], y differs from exact arithmetic by at most {bound}
   (this program with its rounded tables, rounding to nearest, with or without fused multiply-add, against the curve
   that it was written from). {fitted}
   Beyond the ends the first and the last piece go on. */
#ifndef PLUNIT_{name}_H
#define PLUNIT_{name}_H

{tables}

/* y[0..{last}] = {name}(x) */
static inline void {name}({real} x, {real} *y) {{
    int low = 0, high = {pieces} - 1;
    while (low < high) {{
        int middle = (low + high + 1) / 2;
        if (x >= {name}_knots[middle]) low = middle;
        else high = middle - 1;
    }}
    for (int i = 0; i < {outputs}; i++)
        y[i] = {name}_values[low][i] + {name}_slopes[low][i] * (x - {name}_knots[low]);
}}

#endif
"""


def _bound(curve: Curve, tables: dict[str, NDArray[Any]]) -> float:
    """Return a bound on |program - curve| for x of the tables' type in the domain, the rounding of the tables included.

    With rounded tables, the formula and the curve are straight between the knots of both. So their distance is largest
    at a knot, on its left or right. The formula rounds three times in slope (x - knot) and once in the sum.
    """
    info = np.finfo(tables["knots"].dtype)
    knots, values, slopes = (tables[part].astype(np.float64) for part in ("knots", "values", "slopes"))
    x = np.unique(np.concatenate([curve.knots, np.clip(knots, curve.low, curve.high)]))
    exact, size = curve(x), (np.abs(curve.values[1:]) + np.abs(curve.values[:-1]))[curve.piece(x)]
    found = []
    for side in ("left", "right"):
        piece = np.searchsorted(knots[1:], x, side=side)
        start, rise = values[piece], slopes[piece] * (x - knots[piece])[:, None]
        terms = np.abs(start) + np.abs(rise)
        # the last term is for the rounding of this sum itself
        gap = np.abs((start - exact) + rise) + 3 * EPS * (terms + size)
        found.append(gap + 1.01 * float(info.eps) / 2 * (terms + 3 * np.abs(rise)))
    return float(np.max(found) + info.tiny)


def curve_header(curve: Curve, name: str, dtype: str) -> str:
    """Return the text of a header that defines `void name(real x, real *y)`; dead kinks are left out."""
    merged = curve.merged()
    parts = {"knots": merged.knots[:-1], "values": merged.values[:-1], "slopes": merged.slopes}
    tables = {part: rounded(array, dtype) for part, array in parts.items()}
    if (np.diff(tables["knots"]) <= 0).any():
        raise ValueError("pieces of this curve are too short for float; take dtype='double'")
    outputs = merged.values.shape[1]
    return _HEADER.format(
        name=name,
        real=dtype,
        pieces=len(merged.slopes),
        outputs=outputs,
        last=outputs - 1,
        low=merged.low,
        high=merged.high,
        bound=f"{1.001 * _bound(curve, tables):.3e}",
        fitted=FITTED,
        tables="\n".join(table(dtype, f"{name}_{part}", array) for part, array in tables.items()),
    )
