"""`python -m plunit.torch.build`: compile the packaged sources of the native op against the installed PyTorch.

The result goes into the user's cache, where `plunit.torch.native` finds it. It is loaded and tried in the process that
compiles it before it gets there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import torch

from plunit.base import cache
from plunit.base.errors import UserError
from plunit.base.machine import own_group
from plunit.programs.compiling import first_error
from plunit.torch import extension, native

_SECONDS = 1800  # a compiler that takes longer is stuck
_CHILD = "import sys; from plunit.torch.build import compile_into; compile_into(sys.argv[1])"


def main() -> int:
    """Build the native op unless it is built; return 0, or 2 after one line that says what is missing."""
    try:
        found = next(native.binaries(), None)
        if found:
            print(f"plunit: the native op for torch {torch.__version__} is already built: {found}")
        else:
            build_into_cache()
    except UserError as error:
        print(f"plunit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("plunit: stopped; nothing is left behind", file=sys.stderr)
        return 130
    return 0


def build_into_cache() -> Path:
    """Compile the native op into the user's cache and return its path."""
    check_tools()
    folder = _cache_folder()
    path = folder / native.cache_name()
    start = time.monotonic()
    try:
        with cache.part_folder(folder) as scratch:
            _run([sys.executable, "-c", _CHILD, scratch], scratch)
            content = Path(scratch, "native").read_bytes()
        cache.write_verified(path, content)
    except OSError as error:
        raise UserError(f"the native op cannot be written to {folder}: {error}") from error
    print(f"plunit: the native op is built, in {time.monotonic() - start:.0f} s: {path}")
    return path


def check_tools() -> None:
    """Raise UserError where setuptools, headers or a compiler are missing."""
    if importlib.util.find_spec("setuptools") is None:
        raise UserError("setuptools is not installed and PyTorch compiles with it; run: pip install 'setuptools>=77'")
    from torch.utils import cpp_extension

    includes = [Path(folder) for folder in cpp_extension.include_paths()]
    if not any((folder / "torch" / "version.h").exists() for folder in includes):
        raise UserError(f"this PyTorch has no headers in {includes[0]}; install it with pip, whose wheels have them")
    python = Path(sysconfig.get_paths()["include"])
    if not (python / "Python.h").exists():
        raise UserError(f"Python's headers are not in {python}; install them, with apt: apt install python3-dev")
    compiler = cpp_extension.get_cxx_compiler()  # type: ignore[no-untyped-call]
    if not shutil.which(compiler):
        raise UserError(f"there is no C++ compiler {compiler}; install one, such as g++, or set CXX to its path")


def _cache_folder() -> Path:
    folder = cache.private_folder()
    try:
        wanted = cache.user_cache()
    except RuntimeError:
        raise UserError("the user has no home folder; set XDG_CACHE_HOME to a folder for the native op") from None
    if folder != wanted:
        raise UserError(f"{wanted} cannot be used as a cache folder; make it yours to write, or set XDG_CACHE_HOME")
    return folder


def compile_into(folder: str) -> None:
    """Compile the native op to the file `native` of a folder, load it and try it."""
    from setuptools import Distribution
    from torch.utils.cpp_extension import BuildExtension

    command = BuildExtension(Distribution({"name": "plunit", "ext_modules": [extension.native_op(extension.CSRC)]}))
    command.build_lib, command.build_temp = os.path.join(folder, "lib"), os.path.join(folder, "objects")
    command.ensure_finalized()
    command.run()
    made = Path(command.get_ext_fullpath(extension.NAME))
    native.open_binary(made)
    y = torch.ops.plunit.plu(torch.tensor([-21.0, 0.5, 21.0]), 0.1, 1.0)
    if y.tolist() != [-3.0, 0.5, 3.0]:
        raise SystemExit(f"error: PLU of -21, 0.5 and 21 is -3, 0.5 and 3, the compiled op gives {y.tolist()}")
    shutil.copyfile(made, Path(folder, "native"))


def _run(command: list[str], scratch: str) -> None:
    """Run the process that compiles; on a terminal, count the seconds."""
    text = f"plunit: compiling the native op against torch {torch.__version__}, a minute or two"
    print(text, end="" if sys.stdout.isatty() else "\n", flush=True)
    environment = {**os.environ, "TMPDIR": scratch, "PLUNIT_NATIVE": "0"}
    log = Path(scratch, "log")
    with log.open("wb") as output, own_group(command, stdout=output, stderr=output, env=environment) as process:
        for second in range(_SECONDS):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
                break
            if sys.stdout.isatty():
                print(f"\r{text}: {second + 1} s", end="", flush=True)
        ended = process.poll() is not None
    if sys.stdout.isatty():
        print()
    if process.returncode:
        reason = (
            first_error(log.read_text(errors="replace")) if ended else f"the compiler did not end within {_SECONDS} s"
        )
        raise UserError(f"the native op does not compile: {reason}")


if __name__ == "__main__":
    sys.exit(main())
