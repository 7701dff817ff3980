"""Compile the training program with the machine's C++ compiler, once; later processes load the cached library."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from plunit.cache import user_cache

CSRC = Path(__file__).with_name("csrc")
# no contraction to fused multiply-add and no reassociation: every processor computes the same bits
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]


class Unavailable(Exception):
    """The program cannot be compiled here; the text says why."""


@functools.cache
def library() -> ctypes.CDLL:
    """Load the compiled training program; raise Unavailable, with the reason, where it cannot be compiled."""
    return compile_program(("-march=native",))


def compile_program(target: tuple[str, ...]) -> ctypes.CDLL:
    """Compile for the given target flags unless the cache holds the result, and load it.

    The cache key covers the source, the flags and all macros the compiler predefines, among them its version and
    every feature of the processor.
    """
    compiler = find_compiler()
    macros = _output([*compiler, *target, "-dM", "-E", "-x", "c++", os.devnull])
    source = b"".join(path.read_bytes() for path in sorted(CSRC.iterdir()))
    key = hashlib.sha256(b"\0".join([source, macros, *map(str.encode, [*FLAGS, *target])])).hexdigest()[:16]
    path = _cache() / f"train-{key}.so"
    if not path.exists():
        # under another name first: processes that compile at the same time must not see half a file
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder, path.name)
            _output([*compiler, *target, *FLAGS, "-o", str(part), str(CSRC / "train.cpp")])
            part.replace(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"the compiled program does not load: {error}") from error


def find_compiler() -> list[str]:
    """Return the command of the C++ compiler: $CXX, or the first of c++, g++, clang++."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    for command in [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    raise Unavailable("no C++ compiler found" + (f" (CXX is {os.environ['CXX']!r})" if chosen else ""))


def _output(command: list[str]) -> bytes:
    try:
        return subprocess.run(command, check=True, capture_output=True, timeout=300).stdout
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(f"{command[0]} failed: {' '.join(last)}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]} failed: {error}") from error


def _cache() -> Path:
    folder = user_cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return _session_folder()


@functools.cache
def _session_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="plunit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
