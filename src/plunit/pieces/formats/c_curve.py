"""A curve as a C99 header: values[i] + slopes[i] (x - knots[i]) after a search for i."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plunit.pieces.curve_data import Curve
from plunit.pieces.formats.c_text import rounded, table

_HEADER = """\
/* {name}: a piecewise-linear function of one variable, {pieces} pieces on [{low}, {high}], {outputs} output(s):
   y = values[i] + slopes[i] (x - knots[i]), i the last piece that begins at x or before.
   On [{low}, {high}] rounding in {real} changes y by at most {bound}.
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


def _rounding(tables: dict[str, NDArray[Any]], high: float) -> float:
    """Return a bound on the error of the formula: three roundings of slope (x - knot) and one of the sum, 1 % more."""
    eps = float(np.finfo(tables["knots"].dtype).eps) / 2
    knots, values, slopes = (tables[part].astype(np.float64) for part in ("knots", "values", "slopes"))
    rise = np.abs(slopes) * np.diff(knots, append=high)[:, None]
    return float(1.01 * eps * (3 * rise + np.abs(values) + rise).max() + np.finfo(tables["knots"].dtype).tiny)


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
        bound=f"{_rounding(tables, merged.high):.3g}",
        tables="\n".join(table(dtype, f"{name}_{part}", array) for part, array in tables.items()),
    )
