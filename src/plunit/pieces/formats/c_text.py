"""Parts of every C header: checked names, tables as text, and the comment with version and hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import plunit
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
    xor_eq int8_t int16_t int32_t int64_t
"""

FITTED = "This does not bound the distance to a formula or data that were fitted."
"""Every bound on rounding errors is followed by this, because a reader may take it for the error of the fit."""

TYPES = {"double": np.float64, "float": np.float32}


def check_name(name: str) -> None:
    """Raise ValueError if no function in C and C++ can have this name."""
    valid = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII)
    if not valid or name in _TAKEN.split():
        raise ValueError(f"name must be a C identifier and not a keyword of C or C++, got {name!r}; take another name")


def rounded(array: Any, dtype: str) -> NDArray[Any]:
    """Return the numbers in `dtype`; ValueError if one is too large for it."""
    if dtype not in TYPES:
        raise ValueError(f"dtype must be one of {', '.join(TYPES)}, got {dtype!r}")
    with np.errstate(over="ignore", under="ignore"):
        found: NDArray[Any] = np.asarray(array).astype(np.float64).astype(TYPES[dtype])
    if not np.isfinite(found).all():
        raise ValueError(f"a number of the tables is too large for {dtype}; take dtype='double' or scale the weights")
    return found


def table(kind: str, name: str, array: NDArray[Any]) -> str:
    """Return `static const kind name[...] = {...};`; decimals that give the same bits when they are read."""
    shape = "".join(f"[{length}]" for length in array.shape)
    return f"static const {kind} {name}{shape} = {_braces(array)};"


def literal(number: Any) -> str:
    """Return a number of NumPy as C writes it: 0.1f for a float, 0.1 for a double, 3 for an integer."""
    if isinstance(number, np.integer):
        return str(int(number))
    return f"{np.format_float_scientific(number, trim='0')}f" if number.dtype == np.float32 else repr(float(number))


def _braces(array: NDArray[Any]) -> str:
    if array.ndim == 1:
        return "{" + ", ".join(literal(number) for number in array) + "}"
    return "{" + ",\n    ".join(_braces(row) for row in array) + "}"


def comment(lines: Iterable[str]) -> str:
    """Return a comment of C."""
    return "/* " + "\n   ".join(lines) + " */"


def origin(net: Network) -> str:
    """Return plunit's version and a hash of the network's numbers."""
    digest = hashlib.sha256()
    alone = net.alone
    arrays = [*(layer.weight for layer in alone.layers), *(layer.bias for layer in alone.layers)]
    arrays += [part for _, f in alone.hidden for part in (f.knots, f.slopes, f.at_zero)]
    for array in arrays:
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
    return f"plunit {plunit.__version__}; first 32 hex digits of the numbers' SHA-256: {digest.hexdigest()[:32]}"


def box_text(box: Any) -> str:
    """Return a box as [low, high] x [low, high] x ..."""
    return " x ".join(f"[{low!r}, {high!r}]" for low, high in np.asarray(box).tolist())
