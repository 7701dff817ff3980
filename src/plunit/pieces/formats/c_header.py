"""`save_c`: a curve, a network or a network in fixed point as one C99 header, with a bound on its errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plunit.base.files import save_whole
from plunit.pieces.arrays import Floats
from plunit.pieces.boxes import box_array, box_text, labels, many
from plunit.pieces.c_programs import FloatNetwork, Program
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.fixed.error_bounds import error_bound
from plunit.pieces.fixed.integers import FixedLayer, FixedNetwork
from plunit.pieces.float_errors import check_knots, rounding_bound
from plunit.pieces.formats import c_text
from plunit.pieces.formats.c_text import CLayer, Tables, describe_origin, round_to
from plunit.pieces.networks import Network, check_network
from plunit.pieces.proofs.questions import Optimum
from plunit.pieces.proofs.verdicts import Verdict, claims
from plunit.pieces.rewriting import rescale
from plunit.pieces.rounding import EPS, rounded_up

_POINTS = 16
"""The number of points in a self-test."""

_ROUNDED = "(this program with its rounded tables, rounding to nearest, with or without fused multiply-add, against the"
_FITTED = "This does not bound the distance to a formula or data that were fitted."
"""This follows every bound on rounding errors, because a reader may mistake it for the error of the fit."""

_IS_NEAR = """ {{
            const {real} {name}_gap = {name}_result[{name}_j] - {name}_test_y[{name}_point][{name}_j];
            if (!({name}_gap <= {name}_test_error[{name}_j] && -{name}_gap <= {name}_test_error[{name}_j])) return 1;
        }}"""

_IS_EQUAL = "\n            if ({name}_result[{name}_j] != {name}_test_y[{name}_point][{name}_j]) return 1;"

_CURVE = """\
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
"""

_ROUNDED_64 = """\
/* floor(z / 2^bits + 1/2) for |z| < 2^61; the shifted number is never negative. */
static inline int64_t {name}_rounded(int64_t z, int bits) {{
    const int64_t large = (int64_t)1 << 62;
    return ((z + (((int64_t)1 << bits) >> 1) + large) >> bits) - (large >> bits);
}}

"""

_SCALED_32 = """\
/* floor((slope z + intercept) / 2^(16 + bits)) in 32 bits, modulo 2^32; low and high are two parts of the intercept. */
static inline int16_t {name}_scaled(int32_t z, int16_t slope, uint32_t low, uint32_t high, int bits) {{
    low += (uint32_t)(slope * (int32_t)((uint32_t)z & 65535U));
    high += (uint32_t)(slope * (int32_t)((uint32_t)z >> 16 ^ 32768U)) + (low >> 16);
    return (int16_t)((int32_t)(high >> bits) - (int32_t)(2147483648U >> bits));
}}

"""

_SIGNED_32 = """\
/* The number from -2^31 to 2^31 - 1 that is z modulo 2^32. */
static inline int32_t {name}_signed(uint32_t z) {{
    return z < 2147483648U ? (int32_t)z : -(int32_t)(4294967295U - z) - 1;
}}

"""

_FIXED = """\
{helpers}/* y[0..{last_output}] for integers x[0..{last_input}]; x is clipped to the box. */
static inline void {name}_fixed(const int16_t *x, int32_t *y) {{
    int16_t clipped[{inputs}];
{scratch}    for (int i = 0; i < {inputs}; i++)
        clipped[i] = x[i] < {name}_low[i] ? {name}_low[i] : x[i] > {name}_high[i] ? {name}_high[i] : x[i];
{loops}}}

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
"""


def save_c(
    function: Curve | Network | FixedNetwork,
    path: str | Path,
    name: str | None = None,
    *,
    dtype: str = "double",
    box: Any = None,
    names: Sequence[str] = (),
    about: str = "",
    fitted: float | None = None,
    proved: Sequence[Verdict | Optimum] = (),
    **scaling: Any,
) -> None:
    """Write a C99 header without dependencies that defines the function `name`, in double or in float.

    - A Curve becomes `void name(double x, double *y)`, by default with the name curve. Dead kinks are left out.
    - A Network becomes `void name(const double *x, double *y)`, by default with the name network.
    - A FixedNetwork, from `quantize`, becomes the same, and `void name_fixed(const int16_t *x, int32_t *y)`.

    The header has static const tables, no other globals, no malloc and no libm. It compiles as C99 and as C++. Headers
    with different names can be used together, even if only the case differs. A name that ends like a table of another
    header, such as f_weight0, is an error.

    Args:
        function: a curve, a network, or a network in fixed point; for the last, the header states its formats and a
            proved bound on the error.
        path: the file to write.
        name: the name of the C function.
        dtype: "double" or "float", for a curve or a network.
        box: for a network, (low, high) for each input of the C function. The header then states a proved bound on the
            rounding error for all x in the box (see `plunit.pieces.float_errors`) and has a self-test: a program that
            includes it with `name_SELF_TEST` defined gets a main() that returns 0 if the values are right.
        names: the names of the inputs, for the comment at the top.
        about: further lines for that comment, such as the source of the function.
        fitted: a proved bound on the distance between the function and a formula that it was fitted to. The header then
            states the sum, a bound on the distance between the program and the formula.
        proved: answers of `holds`, `maximum` and `minimum` about this program, the FixedNetwork or
            `FloatNetwork(function, dtype)`, for the comment at the top.
        **scaling: `shift`, `scale`, `output_shift`, `output_scale` of `plunit.pieces.rescale`, for raw inputs.
    """
    chosen = name if name is not None else "curve" if isinstance(function, Curve) else "network"
    if not c_text.is_name(chosen):
        raise ValueError(
            "name must be a C identifier, not a keyword of C or C++, a macro of a compiler, a name of <stdint.h> or "
            f"one that another header may define, such as f_fixed; got {chosen!r}"
        )
    options = sorted(scaling) + ["box"] * (box is not None)
    if isinstance(function, Curve):
        if options:
            raise ValueError(f"{', '.join(options)} is for a network, got a curve; save the network instead")
        text = curve_header(function, chosen, dtype, fitted)
    elif isinstance(function, FixedNetwork):
        if options or dtype != "double":
            raise ValueError(
                f"a network in fixed point has no option {', '.join(options or ['dtype'])}; use those of quantize"
            )
        text = fixed_header(function, chosen, fitted)
    else:
        check_network(function)
        net = rescale(function, **scaling) if scaling else function
        text = network_header(net, chosen, dtype, None if box is None else box_array(net, box), fitted)
    named = function.net if isinstance(function, FixedNetwork) else function
    given, lines = labels(1 if isinstance(named, Curve) else named.inputs, names, about)
    lines += [f"{'x' if isinstance(named, Curve) else f'x[{i}]'} = {name}" for i, name in enumerate(given)]
    if proved:
        lines += ["Proved about this program:", *claims(proved, _program(function, dtype, scaling))]
    save_whole(path, (c_text.comment(lines) + "\n" if lines else "") + text)


def _program(function: Any, dtype: str, scaling: Any) -> Program:
    if isinstance(function, Curve) or scaling:
        raise ValueError("proved is for a network or a FixedNetwork without scaling; use rescale or quantize first")
    return function if isinstance(function, Program) else FloatNetwork(function, dtype)


def _against(bound: Floats, fitted: float | None) -> list[str]:
    """Return the lines about the distance between the program and a formula or data."""
    if fitted is None:
        return [_FITTED]
    return [
        f"Against the formula above: at most {_state(np.nextafter(bound + fitted, np.inf))}, the sum of both bounds."
    ]


def network_header(net: Network, name: str, dtype: str, box: Floats | None, fitted: float | None = None) -> str:
    """Return the text of a header that defines `void name(const real *x, real *y)`."""
    layers = _network_layers(net, dtype)
    program = f"""\
/* y[0..{net.outputs - 1}] = {name}(x[0..{net.inputs - 1}]); x and y must not overlap. */
static inline void {name}(const {dtype} *x, {dtype} *y) {{
{c_text.scratch(layers, dtype)}{c_text.loops(name, layers, "x")}}}
"""
    call = f"Call: {dtype} x[{net.inputs}], y[{net.outputs}]; {name}(x, y);"
    test, lines = "", [f"{name}: a network {_widths(net)} in {dtype}.", call, f"{describe_origin(net)}."]
    if box is None:
        lines.append("No box was given, so no bound on rounding errors is stated.")
    else:
        bound = rounding_bound(net, box, dtype)
        lines += [
            f"For x in {box_text(box)}",
            f"the values differ from exact arithmetic by at most {_state(bound)}",
            _ROUNDED,
            "network of that hash).",
            *_against(bound, fitted),
        ]
        test = _network_test(net, name, dtype, box, bound)
    return c_text.header(name, lines, c_text.layer_tables(layers), program, test)


def _network_layers(net: Network, dtype: str) -> list[CLayer]:
    found = []
    for layer in net.layers:
        parts: dict[str, Any] = {"weight": layer.weight, "bias": layer.bias}
        units = layer.functions
        if units is not None:
            parts |= {"knots": units.knots, "slopes": units.slopes, "intercepts": units.intercepts}
        tables: Tables = {part: (dtype, round_to(array, dtype)) for part, array in parts.items()}
        if units is not None and len(units.knots) > 1:
            tables["kind"] = c_text.kind_table(units.kinds)
        found.append(CLayer(tables, "z" if units is None else "{slope} * z + {intercept}"))
    return found


def _network_test(net: Network, name: str, dtype: str, box: Floats, bound: Floats) -> str:
    rng = np.random.default_rng(0)
    x = round_to(rng.uniform(box[:, 0], box[:, 1], (_POINTS, len(box))), dtype)
    # a number next to the end of the box may be rounded beyond it
    inside = ((x >= box[:, 0]) & (x <= box[:, 1])).all(axis=1)
    x = x[inside] if inside.any() else x[:1]
    y = round_to(net(x), dtype)
    unit = np.finfo(y.dtype).eps
    # the values of the test were computed in double precision, with errors themselves
    own = bound if dtype == "double" else rounding_bound(net, box)
    error = round_to(1.01 * bound + 4 * unit * np.abs(y).max(axis=0) + own, dtype)
    tables = {"x": (dtype, x), "y": (dtype, y), "error": (dtype, error)}
    judge = f"exact arithmetic; returns 0 if all agree to {name}_test_error"
    return c_text.self_test(name, name, tables, judge, _IS_NEAR)


def _widths(net: Network) -> str:
    return " - ".join(map(str, net.widths))


def _state(bound: Floats) -> str:
    """Return bounds as text, rounded up to four digits; their own errors in double are far below 1e-9 of them."""
    return ", ".join(f"{rounded_up(number * (1 + 1e-9)):.3e}" for number in bound)


def curve_header(curve: Curve, name: str, dtype: str, fitted: float | None = None) -> str:
    """Return the text of a header that defines `void name(real x, real *y)`; dead kinks are left out."""
    merged = curve.merge()
    parts = _curve_parts(merged)
    tables = {part: round_to(array, dtype) for part, array in parts.items()}
    check_knots(parts["knots"], tables["knots"].dtype)
    pieces, outputs, domain = len(merged.slopes), merged.values.shape[1], f"[{merged.low}, {merged.high}]"
    bound = _curve_bound(curve, tables)
    about = [
        f"{name}: a piecewise-linear function of one variable, {many(pieces, 'piece')} on {domain}:",
        "y = values[i] + slopes[i] (x - knots[i]), i the last piece that begins at x or before.",
        f"Call: {dtype} x, y[{outputs}]; {name}(x, y);",
        f"For every {dtype} x in {domain}, y differs from exact arithmetic by at most {_state(np.array([bound]))}",
        f"{_ROUNDED} curve",
        "that it was written from).",
        *_against(np.array([bound]), fitted),
        "Beyond the ends the first and the last piece continue.",
    ]
    program = _CURVE.format(name=name, real=dtype, pieces=pieces, outputs=outputs, last=outputs - 1)
    return c_text.header(name, about, {part: (dtype, array) for part, array in tables.items()}, program)


def _curve_parts(merged: Curve) -> dict[str, Floats]:
    return {"knots": merged.knots[:-1], "values": merged.values[:-1], "slopes": merged.slopes}


def _curve_bound(curve: Curve, tables: dict[str, NDArray[Any]]) -> float:
    """Return a bound on |program - curve| for x of the tables' type in the domain, the rounding of the tables included.

    The formula with rounded tables and the curve are linear between the knots of both, so their distance is largest at
    a knot, to its left or right. The formula rounds three times in slope (x - knot) and once in the sum.
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


_SIZES = {"double": 8, "float": 4, "int64_t": 8, "int32_t": 4, "uint32_t": 4, "int16_t": 2, "int8_t": 1}
_SIZES |= {"unsigned char": 1, "unsigned short": 2}


def table_bytes(function: Curve | Network | FixedNetwork, dtype: str = "double") -> int:
    """Return the size in bytes of the tables of a program; in fixed point, of the function for integers."""
    if isinstance(function, Curve):
        tables = _curve_parts(function.merge())
        return _SIZES[dtype] * sum(array.size for array in tables.values())
    if isinstance(function, FixedNetwork):
        layers, ends = _fixed_layers(function, "f"), 2 * _SIZES["int16_t"] * function.net.inputs
    else:
        layers, ends = _network_layers(function, dtype), 0
    return ends + sum(_SIZES[kind] * array.size for kind, array in c_text.layer_tables(layers).values())


def fixed_header(fixed: FixedNetwork, name: str, fitted: float | None = None) -> str:
    """Return the text of a header that defines `name` for real numbers and `name_fixed` for integers."""
    inputs, outputs, layers = fixed.net.inputs, fixed.net.outputs, _fixed_layers(fixed, name)
    (low, high), scale = fixed.ends, np.ldexp(1.0, fixed.fraction)
    tables: Tables = {"low": ("int16_t", low), "high": ("int16_t", high), "box": ("double", fixed.box)}
    tables |= {"offset": ("double", fixed.offset), "scale": ("double", scale), **c_text.layer_tables(layers)}
    bound = error_bound(fixed)
    about = [
        f"{name}: a network {_widths(fixed.net)} in fixed point: integers, times the power of 2 that is stated.",
        f"With double: double x[{inputs}], y[{outputs}]; {name}(x, y);",
        f"Without floating point: int16_t q[{inputs}]; int32_t r[{outputs}]; {name}_fixed(q, r);",
        "with inputs rounded to nearest, as the bound assumes:",
        *fixed.formats,
        f"{describe_origin(fixed.net)}.",
        f"For x in {box_text(fixed.box)}",
        f"the values differ from the network in exact arithmetic by at most {_state(bound)}",
        "(this program with its rounded tables, inputs and values, against the network of that hash).",
        *_against(bound, fitted),
        "The bound is proved, as is that no sum overflows. Other inputs are clipped to the box.",
    ]
    loops = c_text.loops(name, layers, "clipped")
    parts = {"rounded": _ROUNDED_64, "scaled": _SCALED_32, "signed": _SIGNED_32}
    helpers = "".join(text.format(name=name) for part, text in parts.items() if f"{name}_{part}(" in loops)
    program = _FIXED.format(
        name=name,
        helpers=helpers,
        inputs=inputs,
        outputs=outputs,
        last_input=inputs - 1,
        last_output=outputs - 1,
        scratch=c_text.scratch(layers, "int16_t"),
        loops=loops,
        unit=float(np.ldexp(1.0, -fixed.layers[-1].fraction)),
    )
    x = np.random.default_rng(0).integers(low, high + 1, (_POINTS, len(low)))
    stored: Tables = {"x": ("int16_t", x), "y": ("int32_t", fixed.integers(x))}
    test = c_text.self_test(name, f"{name}_fixed", stored, "the simulation; returns 0 if all are equal", _IS_EQUAL)
    return c_text.header(name, about, tables, program, test, include="\n#include <stdint.h>\n")


def _fixed_layers(fixed: FixedNetwork, name: str) -> list[CLayer]:
    """Return the layers; sums and activations use 32 bits wherever the proved ranges allow it."""
    found, (low, high) = [], fixed.ends
    for i, layer in enumerate(fixed.layers):
        total = "int64_t" if layer.wide else "int32_t"
        tables: Tables = {"weight": (f"int{fixed.bits}_t", layer.weight), "bias": (total, layer.bias)}
        value = f"(int32_t){f'{name}_rounded(z, {layer.shift})' if layer.shift else 'z'}"
        if i < len(fixed.layers) - 1:
            tables |= {"knots": (total, layer.knots), "slopes": ("int16_t", layer.slopes)}
            if not layer.wide and 16 < layer.shift < 32:
                tables["intercepts"] = ("uint32_t", _halves(layer))
                value = f"{name}_scaled(z, {{slope}}, {{intercept}}[0], {{intercept}}[1], {layer.shift - 16})"
            else:
                tables["intercepts"] = ("int64_t", layer.intercepts)
                value = f"(int16_t){name}_rounded(\n            {{slope}} * (int64_t)z + {{intercept}}, {layer.shift})"
            if len(layer.knots) > 1:
                tables["kind"] = c_text.kind_table(layer.kinds)
        # partial sums may exceed 32 bits although the sum does not
        largest = np.abs(layer.weight) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(layer.bias)
        signed = f"{name}_signed" if not layer.wide and largest.max() >= 2**31 else ""
        found.append(CLayer(tables, value, cast="(int32_t)", signed=signed))
        low, high = layer.low, layer.high
    return found


def _halves(layer: FixedLayer) -> NDArray[Any]:
    """Return two 32-bit parts of each intercept [functions, k + 1, 2], as the function `scaled` of a header adds them.

    With T = slope z + intercept + 2^(shift - 1), a value is floor(T / 2^shift). Let z = 2^16 h + l, 0 <= l < 2^16, and
    intercept + 2^(shift - 1) = 2^16 c + d. Then |slope l + d| < 2^31, and floor(T / 2^16) = slope h + c + floor((slope
    l + d) / 2^16), which has 32 bits because the value has 16. All are shifted by 2^31, h by 2^15, to be positive.
    """
    whole = layer.intercepts + (1 << (layer.shift - 1))
    low = (whole & 0xFFFF) + 2**31
    high = (whole >> 16) - (layer.slopes << 15) - 2**15 + 2**31
    return np.stack([low, high & 0xFFFFFFFF], axis=-1)
