"""A whole network as a C99 header in float or double: z = W h + b, then slopes[p] z + intercepts[p] beyond p knots."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.formats.c_text import FITTED, box_text, comment, origin, rounded, table
from plunit.pieces.functions import Functions
from plunit.pieces.networks import Layer, Network
from plunit.pieces.rounding import rounding_bound

_HEADER = """\
{comment}
#ifndef PLUNIT_{name}_H
#define PLUNIT_{name}_H

{tables}

/* y[0..{last_output}] = {name}(x[0..{last_input}]); x and y must not overlap. */
static inline void {name}(const {real} *x, {real} *y) {{
{scratch}{body}}}
{self_test}
#endif
"""

_AFFINE = """\
    for (int i = 0; i < {units}; i++) {{
        {real} z = {name}_bias{layer}[i];
        for (int j = 0; j < {inputs}; j++) z += {name}_weight{layer}[i][j] * {source}[j];
{then}    }}
"""

_ACTIVATION = """\
        const {real} *knots = {name}_knots{layer}[{kind}];
        int p = 0;
        while (p < {knots} && z > knots[p]) p++;
        {target}[i] = {name}_slopes{layer}[{kind}][p] * z + {name}_intercepts{layer}[{kind}][p];
"""

_SELF_TEST = """
#ifdef {name}_SELF_TEST
/* {points} points of the box with the values of exact arithmetic; returns 0 if all agree to {name}_test_error. */
{tables}

int main(void) {{
    for (int {name}_point = 0; {name}_point < {points}; {name}_point++) {{
        {real} {name}_result[{outputs}];
        {name}({name}_test_x[{name}_point], {name}_result);
        for (int {name}_j = 0; {name}_j < {outputs}; {name}_j++) {{
            const {real} {name}_gap = {name}_result[{name}_j] - {name}_test_y[{name}_point][{name}_j];
            if (!({name}_gap <= {name}_test_error[{name}_j] && -{name}_gap <= {name}_test_error[{name}_j])) return 1;
        }}
    }}
    return 0;
}}
#endif
"""


def network_header(net: Network, name: str, dtype: str, box: Floats | None, points: int) -> str:
    """Return the text of a header that defines `void name(const real *x, real *y)`, with `points` for its self-test."""
    tables, body = [], []
    for i, layer in enumerate(net.layers):
        tables += _tables(layer, name, dtype, i)
        body.append(_loop(layer, name, dtype, i))
    hidden = max(net.widths[1:-1], default=0)
    bound = None if box is None else rounding_bound(net, box, dtype)
    test = "" if box is None or bound is None or points == 0 else _self_test(net, name, dtype, box, bound, points)
    return _HEADER.format(
        comment=comment(_about(net, name, dtype, box, bound)),
        name=name,
        real=dtype,
        tables="\n".join(tables),
        last_input=net.inputs - 1,
        last_output=net.outputs - 1,
        scratch="".join(f"    {dtype} {array}[{hidden}];\n" for array in ("even", "odd")[: len(net.hidden)]),
        body="".join(body),
        self_test=test,
    )


def _about(net: Network, name: str, dtype: str, box: Floats | None, bound: Floats | None) -> list[str]:
    lines = [f"{name}: a network {' - '.join(map(str, net.widths))} in {dtype}.", f"{origin(net)}."]
    if box is None or bound is None:
        return [*lines, "No box was given, so no bound on rounding errors is stated."]
    return [
        *lines,
        f"For x in {box_text(box)}",
        f"the values differ from exact arithmetic by at most {', '.join(f'{b:.3e}' for b in bound * 1.001)}",
        "(this program with its rounded tables, rounding to nearest, with or without fused multiply-add, against the",
        f"network of that hash). {FITTED}",
    ]


def _tables(layer: Layer, name: str, dtype: str, i: int) -> list[str]:
    found = [
        table(dtype, f"{name}_weight{i}", rounded(layer.weight, dtype)),
        table(dtype, f"{name}_bias{i}", rounded(layer.bias, dtype)),
    ]
    if layer.activation is not None:
        f = Functions.of(layer.activation)
        parts: dict[str, Any] = {"knots": f.knots, "slopes": f.slopes, "intercepts": f.intercepts}
        found += [table(dtype, f"{name}_{part}{i}", rounded(array, dtype)) for part, array in parts.items()]
        if len(f.knots) > 1:
            found.append(table("unsigned short", f"{name}_kind{i}", f.kinds))
    return found


def _loop(layer: Layer, name: str, dtype: str, i: int) -> str:
    """Return the loop over the units of a layer; layers write to `even` and `odd` in turn, the last one to y."""
    units, inputs = layer.weight.shape
    target = ("even", "odd")[i % 2]
    then = "        y[i] = z;\n"
    if layer.activation is not None:
        f = Functions.of(layer.activation)
        kind = f"{name}_kind{i}[i]" if len(f.knots) > 1 else "0"
        then = _ACTIVATION.format(real=dtype, name=name, layer=i, kind=kind, knots=f.knots.shape[1], target=target)
    source = "x" if i == 0 else ("odd", "even")[i % 2]
    return _AFFINE.format(units=units, real=dtype, name=name, layer=i, inputs=inputs, source=source, then=then)


def _self_test(net: Network, name: str, dtype: str, box: Floats, bound: Floats, points: int) -> str:
    """Return a program that compares the function with stored values."""
    rng = np.random.default_rng(0)
    x = rounded(rng.uniform(box[:, 0], box[:, 1], (points, len(box))), dtype)
    # a number next to the end of the box may be rounded to one beyond it
    inside = ((x >= box[:, 0]) & (x <= box[:, 1])).all(axis=1)
    x = x[inside] if inside.any() else x[:1]
    y = rounded(net(x), dtype)
    unit = np.finfo(y.dtype).eps
    error = rounded(1.01 * bound + 4 * unit * np.abs(y).max(axis=0) + rounding_bound(net, box), dtype)
    tables = {"x": x, "y": y, "error": error}
    return _SELF_TEST.format(
        name=name,
        real=dtype,
        points=len(x),
        outputs=net.outputs,
        tables="\n".join(table(dtype, f"{name}_test_{part}", array) for part, array in tables.items()),
    )
