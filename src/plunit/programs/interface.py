"""The interface between Python and the compiled programs: structs, pointers to arrays, and calls.

The structs are read from their tables in C++ (csrc/interface.h); `libraries.py` loads only libraries of the same
sources. The type of a pointer determines the dtype and layout of its array; any other array raises.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from plunit.programs.compiling import CSRC, PROGRAMS

Array = np.ndarray[Any, Any]

_NUMBERS: dict[str, Any] = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
_TEXT = "const char*"


class Struct(ctypes.Structure):
    """A C++ struct. Pointers are given as arrays, which are kept alive by the struct, or as None."""

    kinds: ClassVar[Mapping[str, Any]] = {}
    """The type of each field: its C++ name, or another struct."""

    strided: ClassVar[bool] = False
    """Whether the fields include the strides of its array; otherwise arrays must be contiguous."""

    def __init__(self, **values: Any) -> None:
        self._held = values
        super().__init__(
            **{
                name: address(value, self.kinds[name], name, self.strided) if isinstance(value, np.ndarray) else value
                for name, value in values.items()
            }
        )


def struct(title: str, kinds: Mapping[str, Any], *, strided: bool = False) -> type[Struct]:
    """Return the class of a C++ struct with this name and these fields.

    >>> Pair = struct("Pair", {"count": "int64_t", "values": "const float*"})
    >>> Pair.values.offset, Pair(count=3).count
    (8, 3)
    """
    fields = [(name, _ctype(kind)) for name, kind in kinds.items()]
    about = {"kinds": kinds, "strided": strided, "__doc__": f"The C++ struct {title}."}
    return type(title, (Struct,), {"_fields_": fields, **about})


def _ctype(kind: Any) -> Any:
    if not isinstance(kind, str):
        return kind
    pointer = ctypes.c_char_p if kind == _TEXT else ctypes.c_void_p
    return pointer if kind.endswith("*") else _NUMBERS[kind]


_FILES = {path.name: path.read_text(encoding="utf-8") for path in (*CSRC.glob("*.h"), *CSRC.glob("*.cpp"))}
if lacking := [f"{program}.cpp" for program in PROGRAMS if f"{program}.cpp" not in _FILES]:
    raise ImportError(f"{', '.join(lacking)} is missing in {CSRC}; reinstall plunit")
_TABLES = {
    title: {name: kind for kind, name in re.findall(r"FIELD\(([^,]+), (\w+)\)", fields)}
    for text in _FILES.values()
    for fields, title in re.findall(r"#define \w+\(FIELD\)(.*?)\nSTRUCT\((\w+),", text, re.DOTALL)
}


@functools.cache
def declare(title: str) -> type[Struct]:
    """Return the class of a struct that the C++ files declare."""
    kinds = {name: declare(kind) if kind in _TABLES else kind for name, kind in _TABLES[title].items()}
    return struct(title, kinds, strided=title == "Source")


Source, RowSources, Task, Evaluation, Squares = map(declare, ("Source", "RowSources", "Task", "Evaluation", "Squares"))
SampleArrays, ChainTask = map(declare, ("SampleArrays", "ChainTask"))
ProofTask, ProofNodes, SignTask = map(declare, ("ProofTask", "ProofNodes", "SignTask"))


def address(array: Array, kind: str, name: str, strided: bool = False) -> int:
    """Return the address of an array; raise TypeError or ValueError unless a pointer of type `kind` may point to it.

    `kind` is a type such as "const float*", messages call the array `name`, and `strided` allows strides of whole
    elements.
    """
    wanted = np.dtype(_NUMBERS[kind.removeprefix("const ").removesuffix("*")])
    if array.dtype != wanted:
        raise TypeError(
            f"the compiled program needs {name} in {wanted}, got {array.dtype}; convert it with astype(np.{wanted})"
        )
    whole = strided and not any(stride % array.itemsize for stride in array.strides)
    if not (array.flags.aligned and (whole or array.flags.c_contiguous)):
        raise ValueError(
            f"the compiled program needs {name} contiguous and aligned, got strides {array.strides}; pass "
            f"np.array({name}, order='C')"
        )
    if not (kind.startswith("const ") or array.flags.writeable):
        raise ValueError(f"the compiled program writes to {name}, got a read-only array; pass a copy")
    return int(array.ctypes.data)


def run_on_threads(work: Callable[[], object], threads: int) -> None:
    """Call `work` on up to `threads` threads, this one and others; return or raise when all have ended."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    others: list[threading.Thread] = []
    try:
        with contextlib.suppress(RuntimeError):  # the system is out of threads
            for _ in range(1, threads):
                other = threading.Thread(target=guarded)
                other.start()
                others.append(other)
        guarded()
    finally:
        for other in others:
            other.join()
    if failed:
        raise failed[0]


def call_program(function: Any, *arguments: Any) -> int:
    """Call a program, without Python's lock, and return its result; raise MemoryError if it ran out of memory."""
    function.restype = ctypes.c_int64
    result = int(function(*arguments))
    if result < 0:
        raise MemoryError("the compiled program ran out of memory; use smaller networks, or fewer at a time")
    return result
