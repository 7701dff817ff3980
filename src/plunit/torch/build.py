"""`python -m plunit.torch.build`: compile the native op against the installed PyTorch, as `programs` are compiled.

The binary is written to the user's cache, where `plunit.torch.native` finds it, or to a given folder (setup.py uses the
package's). Another process loads and tests it first.
"""

from __future__ import annotations

import contextlib
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import torch

from plunit.base import cache
from plunit.programs import compiling
from plunit.programs.compiling import CannotCompile
from plunit.programs.libraries import cache_library
from plunit.torch import native

_TRY = """
import pathlib, sys, torch
from plunit.torch import native
native.open_binary(pathlib.Path(sys.argv[1]))
y = torch.ops.plunit.plu(torch.tensor([-21.0, 0.5, 21.0]), 0.1, 1.0).tolist()
sys.exit(None if y == [-3.0, 0.5, 3.0] else f"error: PLU of -21, 0.5 and 21 is -3, 0.5 and 3: got {y}")
"""


def main(folder: str | None = None) -> int:
    """Build the native op unless it is built; return 0, or 2 after printing one line that says why it failed."""
    try:
        found = next(native.binaries(), None)
        if found and folder is None:
            print(f"plunit: the native op for torch {torch.__version__} is already built: {found}")
            return 0
        start = time.monotonic()
        print(f"plunit: compiling the native op against torch {torch.__version__}, about a minute", flush=True)
        path = _into_cache() if folder is None else _into(Path(folder))
    except CannotCompile as error:
        print(f"plunit: the native op is not built: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("plunit: stopped; all temporary files are removed", file=sys.stderr)
        return 130
    print(f"plunit: the native op is built, in {time.monotonic() - start:.0f} s: {path}")
    return 0


def _into_cache() -> Path:
    folder = cache.private_folder()
    with contextlib.suppress(RuntimeError):  # the user has no home folder
        if folder == cache.user_cache():
            return cache_library(folder / native.binary_name(), _compile)
    raise CannotCompile("the user's cache cannot be used; set XDG_CACHE_HOME to a folder that only you can write to")


def _into(folder: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix="plunit-") as scratch:
        (folder / native.binary_name()).write_bytes(_compile(scratch))
    return folder / native.binary_name()


def _compile(scratch: str) -> bytes:
    """Compile, load and test the binary, and return its content."""
    compiler, home = compiling.find_compiler(), Path(torch.__file__).parent
    python, headers = Path(sysconfig.get_paths()["include"]), home / "include"
    if not (headers / "ATen" / "ATen.h").exists():
        raise CannotCompile(f"this PyTorch has no headers in {headers}; install it with pip, whose wheels have them")
    if not (python / "Python.h").exists():
        raise CannotCompile(f"Python's headers are not in {python}; install them, with apt: apt install python3-dev")
    includes = [f"-I{folder}" for folder in (headers, headers / "torch" / "csrc" / "api" / "include", python)]
    libraries = [f"-L{home / 'lib'}", *(f"-l{name}" for name in ("c10", "torch", "torch_cpu", "torch_python"))]
    python_is_there = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    options = [*native.OP_FLAGS, *includes, *libraries, *python_is_there]
    content = compiling.compile_library(compiler, scratch, native.CSRC / "native.cpp", options)
    made = Path(scratch, native.binary_name())
    made.write_bytes(content)
    compiling.output([sys.executable, "-c", _TRY, str(made)], PLUNIT_NATIVE="0")
    return content


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
