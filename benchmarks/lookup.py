"""Networks of `plunit fit` and lookup tables with linear interpolation at the same error: bytes of values and code.

`python -m benchmarks.lookup` compiles the programs of tables for Cortex-M0 and compares their sizes with those that
`plunit.fitting.lookup_table` has stored. It needs `pip install ziglang unicorn`.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.pieces import random_network
from benchmarks.small_processor import PROCESSORS, compiled, header, instructions, parts
from plunit.fitting import lookup_table
from plunit.fitting.problems import of_expression
from plunit.fitting.solving import FitSettings, fit_problem
from plunit.pieces import Curve, quantize, save_c
from plunit.pieces.formats.c_header import table_bytes

_TYPES = {"int16": ("uint16_t", "int32_t"), "float": ("float", "float"), "double": ("double", "double")}
"""What the program of a table takes and returns."""

_PROGRAM = """
#include <stdint.h>
static const {value} m_values[{count}] = {{{values}}};
static const uint16_t m_nodes[{axes}] = {{{nodes}}};
{ends}
static inline void {call}(const {given} *x, {sum} *y) {{
    {sum} corner[{corners}], part[{axes}];
    unsigned at = 0, step[{axes}];
    for (int i = 0; i < {axes}; i++) {{
        at *= m_nodes[i];
        {place}
    }}
    unsigned stride = 1;
    for (int i = {axes} - 1; i >= 0; i--) {{
        step[i] = stride;
        stride *= m_nodes[i];
    }}
    for (int c = 0; c < {corners}; c++) {{
        unsigned k = at;
        for (int i = 0; i < {axes}; i++)
            if (c >> i & 1) k += step[i];
        corner[c] = m_values[k];
    }}
    for (int i = {axes} - 1; i >= 0; i--)
        for (int c = 0; c < 1 << i; c++)
            corner[c] += {product};
    *y = corner[0];
}}
"""
_INTEGER = """\
const uint32_t z = (uint32_t)x[i] * (m_nodes[i] - 1U);  /* 0 and 65535 are the ends */
        at += z >> 16;
        part[i] = (int32_t)((z & 65535U) >> 1);"""
_REAL = """\
{given} z = (x[i] - m_low[i]) * m_scale[i];
        const int cell = z < 0 ? 0 : z < m_nodes[i] - 2 ? (int)z : m_nodes[i] - 2;
        at += (unsigned)cell;
        part[i] = z - ({given})cell;"""


def table_program(kind: str, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Return a program in C of a table of values [n, ...] on a box, with the name m, or m_fixed for integers."""
    given, total = _TYPES[kind]
    is_integer = kind == "int16"
    scale = (np.array(values.shape) - 1) / (high - low)
    suffix = "f" if kind == "float" else ""
    ends = (
        ""
        if is_integer
        else "".join(
            f"static const {given} m_{name}[{len(low)}] = {{{', '.join(f'{float(v)!r}{suffix}' for v in numbers)}}};\n"
            for name, numbers in (("low", low), ("scale", scale))
        )
    )
    gap = "(corner[c | 1 << i] - corner[c])"
    return _PROGRAM.format(
        value={"int16": "int16_t"}.get(kind, kind),
        count=values.size,
        values=", ".join(str(v) if is_integer else f"{float(v)!r}{suffix}" for v in values.ravel().tolist()),
        axes=values.ndim,
        nodes=", ".join(map(str, values.shape)),
        ends=ends,
        call="m_fixed" if is_integer else "m",
        given=given,
        sum=total,
        corners=2**values.ndim,
        place=_INTEGER if is_integer else _REAL.format(given=given),
        product=f"{gap} * part[i] / 32768" if is_integer else f"part[i] * {gap}",
    )


def measure_code(kind: str, axes: int) -> tuple[int, float]:
    """Return the bytes of a table's program without its values, and the instructions of a call; outputs are checked."""
    rng, box = np.random.default_rng(axes), np.array([[-2.0, 2.0]] * axes)
    shape = tuple(range(4, 4 + axes))
    values = rng.integers(-(2**15) + 1, 2**15, shape) if kind == "int16" else rng.uniform(-1, 1, shape)
    place = rng.uniform(0, 1, (50, axes))
    x = np.rint(place * 65535).astype(np.uint16) if kind == "int16" else (box[:, 0] + place * 4).astype(kind_of(kind))
    y = interpolate(values, (x / 65536.0 if kind == "int16" else (x - box[:, 0]) / 4) * (np.array(shape) - 1))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.h").write_text(table_program(kind, values, *box.T))
        elf = compiled(kind, PROCESSORS["Cortex-M0, no floating point"], Path(folder), _TYPES[kind])
    wanted = y.astype(np.int32) if kind == "int16" else y.astype(kind_of(kind))
    steps = instructions(elf, x, wanted[:, None], atol=axes + 1 if kind == "int16" else 1e-5)
    return parts(elf)[2] - values.size * lookup_table.VALUE_BYTES[kind], steps


def kind_of(kind: str) -> type:
    """Return NumPy's type of a floating-point number in C."""
    return np.float32 if kind == "float" else np.float64


def interpolate(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the values between nodes at places [n, axes], counted in cells: the sum over all corners of a cell."""
    cell = np.minimum(np.floor(at).astype(int), np.array(values.shape) - 2)
    found = np.zeros(len(at))
    for corner in np.ndindex(*(2,) * values.ndim):
        weight = np.where(np.array(corner) == 1, at - cell, 1 - (at - cell)).prod(axis=1)
        found += weight * values[tuple((cell + corner).T)]
    return found


def measure_networks() -> dict[str, list[int]]:
    """Return the bytes of the programs of networks without their tables, by kind: 2 - 8 - 8 - 1 to 5 - 16 - 16 - 1."""
    found: dict[str, list[int]] = {}
    for inputs, width in ((2, 8), (2, 16), (3, 16), (5, 16)):
        net = random_network(inputs, width, width, 1)
        for kind in ("int16", "int8", "float", "double"):
            with tempfile.TemporaryDirectory() as folder:
                header(net, [(-2, 2)] * inputs, kind, Path(folder))
                elf = compiled(kind, PROCESSORS["Cortex-M0, no floating point"], Path(folder))
            function = quantize(net, [(-2, 2)] * inputs, int(kind[3:])) if kind.startswith("int") else net
            found.setdefault(kind, []).append(parts(elf)[2] - table_bytes(function, kind))
    return found


def measure_curve() -> int:
    """Return the bytes of the program of a curve in double without its tables."""
    x = np.linspace(-3, 3, 12)
    curve = Curve(x, np.sin(x)[:, None], (np.diff(np.sin(x)) / np.diff(x))[:, None])
    with tempfile.TemporaryDirectory() as folder:
        save_c(curve, Path(folder) / "c.h", "c")
        call = '#include "c.h"\nstatic inline void m(const double *x, double *y) { c(*x, y); }\n'
        (Path(folder) / "m.h").write_text(call)
        elf = compiled("double", PROCESSORS["Cortex-M0, no floating point"], Path(folder))
    return parts(elf)[2] - table_bytes(curve)


def code() -> None:
    """Print the measured bytes of code beside those that are stored."""
    print("Cortex-M0, -Os: bytes of code, measured and stored")
    for kind in lookup_table.CODE:
        for axes in range(1, 5):
            size, steps = measure_code(kind, axes)
            print(f"table {axes} {kind:7} {size:6,} {lookup_table.CODE[kind][axes - 1]:6,} {steps:8,.0f} instructions")
    print(f"curve {measure_curve():,} {lookup_table.CURVE_CODE:,}")
    for kind, sizes in measure_networks().items():
        print(f"network {kind:7} {sizes} median {statistics.median(sizes):.0f} {lookup_table.NETWORK_CODE[kind]:6,}")


def compare(formulas: Sequence[tuple[str, float]], hidden: tuple[int, ...] = (16, 16), starts: int = 64) -> None:
    """Print a row for each formula with the end of its variables, and medians for each number of inputs.

    The network in int16 is that of `plunit fit --bits 16`, and the table has int16 values and the error that is proved
    of the network. Bytes are those of tables and code.
    """
    print(f"{'formula':40} {'proved':>9} {'network':>8} {'nodes':>16} {'table':>9} {'network / table':>16}")
    ratios: dict[int, list[float]] = {}
    for text, end in formulas:
        problem = of_expression(text, 0.0 if len(text) > 80 else -end, end)
        found = fit_problem(problem, FitSettings(hidden=hidden, starts=starts, bits=16))
        assert problem.expression is not None
        assert found.fixed is not None
        table = lookup_table.find_table(problem.expression, problem.box, found.proved, "int16")
        own = table_bytes(found.fixed.network) + lookup_table.network_code(found.fixed.network)
        other = math.inf if table is None else table.size + table.code
        nodes = "too many" if table is None else " x ".join(map(str, table.nodes))
        ratios.setdefault(len(problem.inputs), []).append(own / other)
        print(f"{text[:40]:40} {found.proved:9.4g} {own:8,} {nodes:>16} {other:9,.0f} {own / other:16.3f}", flush=True)
    for inputs, values in ratios.items():
        print(f"{inputs} inputs: median of {len(values)} {statistics.median(values):.3f}")


def main() -> None:
    """Compare networks with tables, and print the sizes of code where a cross-compiler is installed."""
    from benchmarks.guarantee import PLANE, SPACE

    for hidden in ((8, 8), (16, 16)):
        print(f"\nhidden layers {hidden}")
        compare([*PLANE, *SPACE], hidden)
    if missing := [name for name in ("ziglang", "unicorn") if find_spec(name) is None]:
        print(f"bytes of code: not measured; pip install {' '.join(missing)}")
    else:
        code()


if __name__ == "__main__":
    main()
