"""Compile the training program with the machine's C++ compiler, once; later processes load the cached library."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

from plunit import cache

CSRC = Path(__file__).with_name("csrc")
# only what csrc/vector.h fuses is fused, and nothing is reassociated: every processor that has fused multiply-add
# computes the same bits
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
_SECONDS = 300  # a compiler that takes longer is stuck


class Unavailable(Exception):
    """The program cannot be compiled here; the text says why."""


@functools.cache
def library() -> ctypes.CDLL:
    """Load the compiled training program; raise Unavailable, with the reason, where it cannot be compiled."""
    return compile_program(("-march=native",))


def compile_program(target: tuple[str, ...]) -> ctypes.CDLL:
    """Compile for the given target flags unless the cache holds the result, and load it.

    The cache key covers the source, the flags and all macros the compiler predefines, among them its version and
    every feature of the processor. A cached library that does not fit its checksum is compiled again.
    """
    compiler = find_compiler()
    macros = _output([*compiler, *target, "-dM", "-E", "-x", "c++", os.devnull])
    source = b"".join(path.read_bytes() for path in sorted(CSRC.iterdir()))
    key = hashlib.sha256(b"\0".join([source, macros, *map(str.encode, [*FLAGS, *target])])).hexdigest()[:16]
    path = cache.private_folder() / f"train-{key}.so"
    try:
        if not cache.verified(path):
            cache.write_verified(path, _compiled([*compiler, *target], path.parent))
    except OSError as error:
        raise Unavailable(f"the compiled program cannot be written to {path.parent}: {error}") from error
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"the compiled program does not load: {error}") from error


def find_compiler() -> list[str]:
    """Return the command of the C++ compiler: $CXX, or the first of c++, g++, clang++."""
    try:
        chosen = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise Unavailable(f"CXX={os.environ['CXX']} is not a command ({error}); set CXX to a C++ compiler") from error
    for command in [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    raise Unavailable("no C++ compiler found" + (f" (CXX is {os.environ['CXX']!r})" if chosen else ""))


def _compiled(compiler: list[str], folder: Path) -> bytes:
    """Return the library; whatever the compiler writes is in a part of `folder`."""
    with cache.part_folder(folder) as scratch:
        made = Path(scratch, "train.so")
        _output([*compiler, *FLAGS, "-o", str(made), str(CSRC / "train.cpp")], TMPDIR=scratch)
        content = made.read_bytes() if made.exists() else b""
    if not content:
        raise _failure(compiler, "ended without an error but wrote no library")
    return content


def _output(command: list[str], **environment: str) -> bytes:
    """Run a command of the compiler and return what it prints."""
    try:
        run = subprocess.run(command, capture_output=True, timeout=_SECONDS, env={**os.environ, **environment})
    except subprocess.TimeoutExpired as error:
        raise _failure(command, f"did not end within {_SECONDS} s") from error
    except OSError as error:
        raise _failure(command, f"could not be run ({error})") from error
    if run.returncode:
        lines = run.stderr.decode(errors="replace").strip().splitlines()
        # the last line of a compiler is often a summary, such as "compilation terminated."
        said = next((line for line in lines if "error:" in line), lines[-1] if lines else "nothing")
        raise _failure(command, f"ended with exit code {run.returncode} and printed {said}")
    return run.stdout


def _failure(command: list[str], what: str) -> Unavailable:
    chosen = os.environ.get("CXX")
    name = f"CXX={chosen}" if chosen else command[0]
    return Unavailable(f"{name}: the command {what}; set CXX to a C++ compiler")
