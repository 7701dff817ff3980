"""The library of a compiled program: from the wheel or, failing that, compiled here and stored in the cache.

The wheel has a library for each level of the processor. All levels with fused multiply-add, and programs compiled here,
compute the same bits; without it, on x86-64 before AVX2, products are rounded before they are added.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from plunit.base import cache
from plunit.programs import compiling
from plunit.programs.compiling import CannotCompile

LIB = Path(__file__).with_name("lib")  # in a wheel; setup.py makes it


@functools.cache
def library(program: str = "train") -> ctypes.CDLL:
    """Load a program of `compiling.PROGRAMS`; raise CannotCompile, with the reason, if it cannot be compiled."""
    return load_packaged(program) or compile_program(("-march=native",), program)


def why_not_native(program: str = "train") -> str:
    """Return the reason why a compiled program is not available, or "" if it is."""
    try:
        library(program)
    except CannotCompile as reason:
        return str(reason)
    return ""


def choose_engine(asked: str | None, program: str = "train", *, stacklevel: int = 3) -> str:
    """Return the requested engine, or the fastest available; warn, with the reason, if that is NumPy."""
    if asked not in {None, "native", "numpy"}:
        raise ValueError(f"unknown engine {asked!r}; choose native or numpy")
    if asked is None and (reason := why_not_native(program)):
        warnings.warn(
            f"{reason}. Training runs in NumPy, which is slower. The algorithm is the same, but it rounds differently, "
            "and such differences grow: a single network differs, while statistics over many agree.",
            stacklevel=stacklevel,
        )
        return "numpy"
    return asked or "native"


def origin() -> str:
    """Return the origin of the program, such as "packaged x86-64-v3" or "compiled here"."""
    path = Path(library()._name)
    return f"packaged {path.stem.removeprefix('train-')}" if path.parent == LIB else "compiled here"


def is_fused() -> bool:
    """Return whether the program rounds a * b + c once, which determines its bits; True without a program."""
    return bool(why_not_native() or library().plunit_fused())


def load_packaged(program: str = "train") -> ctypes.CDLL | None:
    """Load the wheel's best library for this processor; None if it has none of the current sources.

    The library "train" of the lowest level runs on every processor and reports the level of this one.
    """
    levels = compiling.levels()
    try:
        if (LIB / compiling.SOURCES).read_text(encoding="ascii").strip() != compiling.source_hash():
            return None
        level = ctypes.CDLL(str(LIB / compiling.file_name(levels[1]))).plunit_level()
        return ctypes.CDLL(str(LIB / compiling.file_name(levels[level], program)))
    except (OSError, ValueError, KeyError):
        return None


def compile_program(target: tuple[str, ...], program: str = "train") -> ctypes.CDLL:
    """Load a program compiled for the given target flags, from the cache if possible.

    The cache key covers the source, the flags and all macros the compiler predefines, among them its version and
    every feature of the processor. A cached library with a wrong checksum is compiled again.
    """
    compiler = [*compiling.find_compiler(), *target]
    macros = compiling.output([*compiler, "-dM", "-E", "-x", "c++", os.devnull])
    parts = [compiling.source_hash().encode(), macros, *map(str.encode, target)]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    path = cache.private_folder() / f"{program}-{key}.so"
    cache_library(path, lambda scratch: compiling.compile_library(compiler, scratch, compiling.source(program)))
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise CannotCompile(f"the compiled program does not load: {error}") from error


def cache_library(path: Path, build: Callable[[str], bytes]) -> Path:
    """Return the path of a library in the cache; if it is not there, `build` makes it in a scratch folder."""
    try:
        if not cache.is_verified(path):
            with cache.part_folder(path.parent) as scratch:
                content = build(scratch)
            cache.write_verified(path, content)
    except OSError as error:
        raise CannotCompile(f"the compiled program cannot be written to {path.parent}: {error}") from error
    return path
