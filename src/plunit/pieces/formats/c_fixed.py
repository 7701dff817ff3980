"""A network in fixed point as a C99 header: integers only between its inputs and its outputs."""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedLayer, FixedNetwork
from plunit.pieces.formats.c_text import FITTED, box_text, comment, origin, table

_HEADER = """\
{comment}
#ifndef PLUNIT_{name}_H
#define PLUNIT_{name}_H

#include <stdint.h>

{tables}

/* floor(z / 2^bits + 1/2) for |z| < 2^61: what is shifted is never negative. */
static inline int64_t {name}_rounded(int64_t z, int bits) {{
    const int64_t large = (int64_t)1 << 62;
    return ((z + (((int64_t)1 << bits) >> 1) + large) >> bits) - (large >> bits);
}}

/* y[0..{last_output}] for integers x[0..{last_input}]; x is clipped to the box. */
static inline void {name}_fixed(const int16_t *x, int32_t *y) {{
    int16_t clipped[{inputs}];
{scratch}    for (int i = 0; i < {inputs}; i++)
        clipped[i] = x[i] < {name}_low[i] ? {name}_low[i] : x[i] > {name}_high[i] ? {name}_high[i] : x[i];
{body}}}

/* y[0..{last_output}] = {name}(x[0..{last_input}]) for real numbers; NaN counts as the low end. */
static inline void {name}(const double *x, double *y) {{
    int16_t given[{inputs}];
    int32_t found[{outputs}];
    for (int i = 0; i < {inputs}; i++) {{
        double z = x[i] > {name}_box[i][0] ? x[i] : {name}_box[i][0];
        z = z < {name}_box[i][1] ? z : {name}_box[i][1];
        z = (z - {name}_offset[i]) * {name}_scale[i];
        const int32_t whole = (int32_t)z;
        const double rest = z - (double)whole;
        given[i] = (int16_t)(rest >= 0.5 ? whole + 1 : rest < -0.5 ? whole - 1 : whole);
    }}
    {name}_fixed(given, found);
    for (int i = 0; i < {outputs}; i++) y[i] = found[i] * {unit!r};
}}
{self_test}
#endif
"""

_LAYER = """\
    for (int i = 0; i < {units}; i++) {{
        {sum} z = {name}_bias{layer}[i];
        for (int j = 0; j < {inputs}; j++) z += (int32_t){name}_weight{layer}[i][j] * {source}[j];
{then}    }}
"""

_ACTIVATION = """\
        const {sum} *knots = {name}_knots{layer}[{kind}];
        int p = 0;
        while (p < {knots} && z > knots[p]) p++;
        {target}[i] = (int16_t){name}_rounded(
            {name}_slopes{layer}[{kind}][p] * (int64_t)z + {name}_intercepts{layer}[{kind}][p], {shift});
"""

_SELF_TEST = """
#ifdef {name}_SELF_TEST
/* {points} points of the box with the values of the simulation; returns 0 if all are equal. */
{tables}

int main(void) {{
    for (int {name}_point = 0; {name}_point < {points}; {name}_point++) {{
        int32_t {name}_result[{outputs}];
        {name}_fixed({name}_test_x[{name}_point], {name}_result);
        for (int {name}_j = 0; {name}_j < {outputs}; {name}_j++)
            if ({name}_result[{name}_j] != {name}_test_y[{name}_point][{name}_j]) return 1;
    }}
    return 0;
}}
#endif
"""


def fixed_header(fixed: FixedNetwork, name: str, bound: Floats, points: int) -> str:
    """Return the text of a header that defines `name` for real numbers and `name_fixed` for integers."""
    inputs, outputs = fixed.net.inputs, fixed.net.outputs
    hidden = max((len(layer.bias) for layer in fixed.layers[:-1]), default=0)
    return _HEADER.format(
        comment=comment(_about(fixed, name, bound)),
        name=name,
        tables="\n".join(_tables(fixed, name)),
        inputs=inputs,
        outputs=outputs,
        last_input=inputs - 1,
        last_output=outputs - 1,
        scratch="".join(f"    int16_t {array}[{hidden}];\n" for array in ("even", "odd")[: len(fixed.layers) - 1]),
        body="".join(_loop(fixed, name, i) for i in range(len(fixed.layers))),
        unit=float(np.ldexp(1.0, -fixed.layers[-1].fraction)),
        self_test=_self_test(fixed, name, points) if points else "",
    )


def _about(fixed: FixedNetwork, name: str, bound: Floats) -> list[str]:
    stated = ", ".join(f"{number:.3e}" for number in bound * 1.001)
    widths = [fixed.net.inputs, *(len(layer.bias) for layer in fixed.layers)]
    return [
        f"{name}: a network {' - '.join(map(str, widths))} in fixed point; the integer q stands for q 2^-f.",
        f"{origin(fixed.net)}.",
        *fixed.formats,
        f"For x in {box_text(fixed.box)}",
        f"the values differ from the network in exact arithmetic by at most {stated}",
        f"(this program with its rounded tables, inputs and values, against the network of that hash). {FITTED}",
        "The bound is proved, as is that no sum overflows. Other inputs are clipped to the box.",
    ]


def _tables(fixed: FixedNetwork, name: str) -> list[str]:
    low, high = fixed.ends
    found = [
        table("int16_t", f"{name}_low", low),
        table("int16_t", f"{name}_high", high),
        table("double", f"{name}_box", fixed.box),
        table("double", f"{name}_offset", fixed.offset),
        table("double", f"{name}_scale", np.ldexp(1.0, fixed.fraction)),
    ]
    for i, layer in enumerate(fixed.layers):
        found.append(table(f"int{fixed.bits}_t", f"{name}_weight{i}", layer.weight))
        found.append(table(_sum(layer), f"{name}_bias{i}", layer.bias))
        if i < len(fixed.layers) - 1:
            found.append(table(_sum(layer), f"{name}_knots{i}", layer.knots))
            found.append(table("int16_t", f"{name}_slopes{i}", layer.slopes))
            found.append(table("int64_t", f"{name}_intercepts{i}", layer.intercepts))
            if len(layer.knots) > 1:
                found.append(table("unsigned short", f"{name}_kind{i}", layer.kinds))
    return found


def _sum(layer: FixedLayer) -> str:
    return "int64_t" if layer.wide else "int32_t"


def _loop(fixed: FixedNetwork, name: str, i: int) -> str:
    """Return the loop over the units of a layer; layers write to `even` and `odd` in turn, the last one to y."""
    layer = fixed.layers[i]
    units, inputs = layer.weight.shape
    then = f"        y[i] = (int32_t){f'{name}_rounded(z, {layer.shift})' if layer.shift else 'z'};\n"
    if i < len(fixed.layers) - 1:
        then = _ACTIVATION.format(
            sum=_sum(layer),
            name=name,
            layer=i,
            kind=f"{name}_kind{i}[i]" if len(layer.knots) > 1 else "0",
            knots=layer.knots.shape[1],
            target=("even", "odd")[i % 2],
            shift=layer.shift,
        )
    source = "clipped" if i == 0 else ("odd", "even")[i % 2]
    return _LAYER.format(units=units, sum=_sum(layer), name=name, layer=i, inputs=inputs, source=source, then=then)


def _self_test(fixed: FixedNetwork, name: str, points: int) -> str:
    """Return a program that compares the function with stored values."""
    low, high = fixed.ends
    x = np.random.default_rng(0).integers(low, high + 1, (points, len(low)))
    tables = [
        table("int16_t", f"{name}_test_x", x),
        table("int32_t", f"{name}_test_y", fixed.integers(x)),
    ]
    return _SELF_TEST.format(name=name, points=points, outputs=fixed.net.outputs, tables="\n".join(tables))
