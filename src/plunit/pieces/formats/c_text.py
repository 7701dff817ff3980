"""The text of C programs: checked names, tables, the loops over layers, self-tests, and the frame of every header.

A layer is z = W h + b, then slopes[p] z + intercepts[p] above p knots. Floating and fixed point differ only in types.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import plunit
from plunit.pieces.boxes import many
from plunit.pieces.float_errors import numpy_type
from plunit.pieces.networks import Network

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

# macros that compilers define in their own dialects of C
_MACROS = """
    unix linux i386 arm mips sparc sun sgi hpux vax hppa m68k m88k mc68000 ns32000 pdp11 pyr clipper ia64 powerpc PPC
    rs6000 spu svr4 AVR MIPSEB MIPSEL R3000 R4000 LANGUAGE_C WIN32 WIN64 WINNT MSDOS
"""

# names that <stdint.h> defines, or that C reserves for it
_INTEGERS = r"u?int\w*_t|(U?INT\w*|PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)_(MIN|MAX|C|WIDTH)"

# the header of NAME defines functions, tables and macros NAME_ENDING with these endings
_ENDINGS = r"""
    fixed|rounded|scaled|signed|low|high|box|offset|scale|values|(knots|slopes)\d*|(weight|bias|intercepts|kind)\d+|test_(x|y|error)|
    SELF_TEST
"""
_NOT_NAMES = re.compile(rf"{_INTEGERS}|\w+_({_ENDINGS})|PLUNIT_\w+_H".replace("\n", "").replace(" ", ""))


Tables = dict[str, tuple[str, NDArray[Any]]]
"""The C type and the numbers of each table; the keys are names without that of the function."""


def is_name(name: str) -> bool:
    """Whether a function in C and C++ can have this name, next to <stdint.h> and headers with other names."""
    is_identifier = re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII) is not None
    return is_identifier and name not in (_TAKEN + _MACROS).split() and not _NOT_NAMES.fullmatch(name)


def round_to(array: Any, dtype: str) -> NDArray[Any]:
    """Return the numbers in `dtype`; ValueError if one is too large for it."""
    kind = numpy_type(dtype)
    try:
        with np.errstate(over="ignore", under="ignore"):
            found: NDArray[Any] = np.asarray(array).astype(np.float64).astype(kind)
    except OverflowError:  # a Fraction beyond the largest double
        found = np.array(np.inf)
    if not np.isfinite(found).all():
        raise ValueError(f"a number of the tables is too large for {dtype}; use dtype='double' or scale the weights")
    return found


def tables_text(name: str, tables: Tables) -> str:
    """Return `static const kind name_part[...] = {...};` for each table, with decimals that read back to the bit."""
    lines = []
    for part, (kind, array) in tables.items():
        shape = "".join(f"[{length}]" for length in array.shape)
        lines.append(f"static const {kind} {name}_{part}{shape} = {_braces(array)};")
    return "\n".join(lines)


def _braces(array: NDArray[Any]) -> str:
    if array.ndim == 1:
        return "{" + ", ".join(_literal(number) for number in array) + "}"
    return "{" + ",\n    ".join(_braces(row) for row in array) + "}"


def _literal(number: Any) -> str:
    """Return a NumPy number as a C literal: 0.1f for a float, 0.1 for a double, 3 for an integer."""
    if isinstance(number, np.integer):
        return str(int(number))
    return f"{np.format_float_scientific(number, trim='0')}f" if number.dtype == np.float32 else repr(float(number))


def comment(lines: Iterable[str]) -> str:
    """Return a C comment; no text can end it, begin another comment, or be a trigraph.

    >>> print(comment(["x[0] = */ /*", "x[1] = ??/"]))
    /* x[0] = * / / *
       x[1] = ? ?/ */
    """
    safe = (re.sub(r"\?(?=\?)", "? ", line.replace("*/", "* /").replace("/*", "/ *")) for line in lines)
    return "/* " + "\n   ".join(safe) + " */"


def describe_origin(net: Network) -> str:
    """Return plunit's version and a hash of the network's numbers."""
    digest, alone = hashlib.sha256(), net.alone
    arrays = [layer.weight for layer in alone.layers] + [layer.bias for layer in alone.layers]
    for array in arrays + [part for _, f in alone.hidden for part in (f.knots, f.slopes, f.at_zero)]:
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
    return f"plunit {plunit.__version__}; first 32 hex digits of the numbers' SHA-256: {digest.hexdigest()[:32]}"


@dataclass(frozen=True)
class CLayer:
    """One layer as tables.

    Attributes:
        tables: `weight` and `bias`, which has the type of the sum z; if an activation follows, `knots`, `slopes` and
            `intercepts` of each kind of unit and, if there are several, the `kind` of every unit.
        value: the expression for the value of a unit: of z in the last layer, else of {slope}, z and {intercept}.
        cast: the conversion of a weight before the multiplication.
        signed: the function that turns a sum modulo 2^32 into z, where partial sums may exceed 32 bits.
    """

    tables: Tables
    value: str
    cast: str = ""
    signed: str = ""


def kind_table(kinds: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the table of the kinds of the units, in the smallest C type that holds them."""
    return "unsigned char" if kinds.max() < 256 else "unsigned short", kinds


def layer_tables(layers: Sequence[CLayer]) -> Tables:
    """Return the tables of all layers, their names followed by the number of the layer."""
    return {f"{part}{i}": pair for i, layer in enumerate(layers) for part, pair in layer.tables.items()}


def scratch(layers: Sequence[CLayer], kind: str) -> str:
    """Return the arrays between the layers, as long as the widest layer; layers alternate between `even` and `odd`."""
    width = max((len(layer.tables["bias"][1]) for layer in layers[:-1]), default=0)
    return "".join(f"    {kind} {array}[{width}];\n" for array in ("even", "odd")[: len(layers) - 1])


def loops(name: str, layers: Sequence[CLayer], source: str) -> str:
    """Return a loop over the units for each layer; the first reads `source`, the last writes y."""
    text = ""
    for i, layer in enumerate(layers):
        (units, inputs), real = layer.tables["weight"][1].shape, layer.tables["bias"][0]
        product = f"{layer.cast}{name}_weight{i}[i][j] * {source}[j]"
        text += f"""\
    for (int i = 0; i < {units}; i++) {{
"""
        if layer.signed:
            text += f"""\
        uint32_t sum = (uint32_t){name}_bias{i}[i];
        for (int j = 0; j < {inputs}; j++) sum += (uint32_t)({product});
        const {real} z = {layer.signed}(sum);
"""
        else:
            text += f"""\
        {real} z = {name}_bias{i}[i];
        for (int j = 0; j < {inputs}; j++) z += {product};
"""
        value, source = layer.value, ("even", "odd")[i % 2]
        if "knots" in layer.tables:
            kind = f"{name}_kind{i}[i]" if "kind" in layer.tables else "0"
            slope, intercept = (f"{name}_{part}{i}[{kind}][p]" for part in ("slopes", "intercepts"))
            value = value.format(slope=slope, intercept=intercept)
            text += f"""\
        const {real} *knots = {name}_knots{i}[{kind}];
        int p = 0;
        while (p < {layer.tables["knots"][1].shape[1]} && z > knots[p]) p++;
"""
        text += f"        {'y' if i == len(layers) - 1 else source}[i] = {value};\n    }}\n"
    return text


def self_test(name: str, function: str, tables: Tables, judge: str, check: str) -> str:
    """Return a program that calls `function` at the points of table x; `check` compares the results with table y."""
    (real, y), stored = tables["y"], {f"test_{part}": pair for part, pair in tables.items()}
    return f"""
#ifdef {name}_SELF_TEST
/* {many(len(y), "point")} of the box with the values of {judge}. */
{tables_text(name, stored)}

int main(void) {{
    for (int {name}_point = 0; {name}_point < {len(y)}; {name}_point++) {{
        {real} {name}_result[{y.shape[1]}];
        {function}({name}_test_x[{name}_point], {name}_result);
        for (int {name}_j = 0; {name}_j < {y.shape[1]}; {name}_j++){check.format(name=name, real=real)}
    }}
    return 0;
}}
#endif
"""


def header(name: str, about: Iterable[str], tables: Tables, program: str, test: str = "", include: str = "") -> str:
    """Return a complete header: comment, guard, tables, functions, self-test."""
    return f"""\
{comment(about)}
#ifndef PLUNIT_{name}_H
#define PLUNIT_{name}_H
{include}
{tables_text(name, tables)}

{program}{test}
#endif
"""
