"""A curve as a C99 header: values[i] + slopes[i] (x - knots[i]) after a search for i."""

from __future__ import annotations

import re
from pathlib import Path

from plunit.pieces.arrays import Floats
from plunit.pieces.curve import Curve

# no program in C or C++ can define a function with one of these names
_TAKEN = """
    main auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while alignas
    alignof bool complex constexpr false imaginary noreturn nullptr static_assert thread_local true typeof typeof_unqual
    and and_eq asm atomic_cancel atomic_commit atomic_noexcept bitand bitor catch char8_t char16_t char32_t class
    co_await co_return co_yield compl concept consteval constinit const_cast decltype delete dynamic_cast explicit
    export friend mutable namespace new noexcept not not_eq operator or or_eq private protected public reflexpr
    reinterpret_cast requires static_cast synchronized template this throw try typeid typename using virtual wchar_t xor
    xor_eq
"""

_HEADER = """\
/* {name}: a piecewise-linear function of one variable, {pieces} pieces on [{low}, {high}], {outputs} output(s).
   Beyond the ends the first and the last piece go on. */
#ifndef PLUNIT_{name}_H
#define PLUNIT_{name}_H

static const double {name}_knots[{pieces}] = {knots};
static const double {name}_values[{pieces}][{outputs}] = {values};
static const double {name}_slopes[{pieces}][{outputs}] = {slopes};

/* y[0..{last}] = {name}(x) */
static inline void {name}(double x, double *y) {{
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


def save_c(curve: Curve, path: str | Path, name: str = "curve") -> None:
    """Write a C99 header without dependencies that defines `void name(double x, double *y)`; dead kinks are left out.

    Headers with different names can be used together, also if only their case differs.
    """
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII) or name in _TAKEN.split():
        raise ValueError(f"name must be a C identifier and no keyword of C or C++, got {name!r}; take another name")
    merged = curve.merged()
    outputs = merged.values.shape[1]
    text = _HEADER.format(
        name=name,
        pieces=len(merged.slopes),
        outputs=outputs,
        last=outputs - 1,
        low=merged.low,
        high=merged.high,
        knots=_braces(merged.knots[:-1]),
        values=_braces(merged.values[:-1]),
        slopes=_braces(merged.slopes),
    )
    Path(path).write_text(text)


def _braces(array: Floats) -> str:
    if array.ndim == 1:
        return "{" + ", ".join(repr(float(number)) for number in array) + "}"
    return "{" + ",\n    ".join(_braces(row) for row in array) + "}"
