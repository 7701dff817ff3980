"""How the programs are compiled: for this machine at first use, or for a wheel.

setup.py calls `python -m plunit.programs.compiling FOLDER`, in an environment with only Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CSRC = Path(__file__).with_name("csrc")
PROGRAMS = ("train", "chain", "prove")  # networks; density networks; bounds of networks
# only csrc/vector.h and wide.h fuse operations, and nothing is reassociated: every processor with fused multiply-add
# computes the same bits
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
# A wheel has a library for each level, in separate files: a linker would merge the inline functions of several levels,
# and an old processor might run those of a new one. The lowest level has the key 1.
LEVELS = {
    "x86_64": {1: "x86-64", 3: "x86-64-v3", 4: "x86-64-v4"},
    "aarch64": {1: "armv8-a"},
    "arm64": {1: "armv8-a"},
}
SOURCES = "sources.sha256"  # next to the libraries of a wheel: the hash of their sources and flags
# the C++ library is linked in and hidden, so that only the C library is needed
_PORTABLE = ["-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-s"]
_SECONDS = 900  # a compiler that takes longer is stuck


class CannotCompile(Exception):
    """Raised, with the reason, if a program cannot be compiled here."""


def levels() -> dict[int, str]:
    """Return the instruction-set levels of this architecture and the compiler's names for them; {} if unknown."""
    return LEVELS.get(platform.machine(), {})


def file_name(level: str, program: str = "train") -> str:
    """Return the name of the library of a program for a level, such as "train-x86-64-v3.so"."""
    return f"{program}-{level}.so"


def file_names() -> list[str]:
    """Return the names of all files in the library folder of a wheel."""
    return [*(file_name(level, program) for level in levels().values() for program in PROGRAMS), SOURCES]


def source(program: str) -> Path:
    """Return the C++ file of a program."""
    return CSRC / f"{program}.cpp"


def source_hash() -> str:
    """Return the SHA-256 of the sources and the flags."""
    parts = [path.read_bytes() for path in sorted(CSRC.iterdir())]
    return hashlib.sha256(b"\0".join([*parts, *map(str.encode, FLAGS)])).hexdigest()


def write_libraries(folder: Path) -> None:
    """Compile all programs for every level into a folder; raise CannotCompile, and leave no folder, if one fails."""
    compiler = find_compiler()
    if not levels():
        raise CannotCompile(f"no instruction-set levels are known for {platform.machine()}")
    wanted = [(level, program) for level in levels().values() for program in PROGRAMS]
    with ThreadPoolExecutor() as pool:
        contents = list(pool.map(lambda pair: _portable_library([*compiler, f"-march={pair[0]}"], pair[1]), wanted))
    folder.mkdir(parents=True)
    for pair, content in zip(wanted, contents, strict=True):
        (folder / file_name(*pair)).write_bytes(content)
    (folder / SOURCES).write_text(f"{source_hash()}\n", encoding="ascii")


def find_compiler() -> list[str]:
    """Return the command of the C++ compiler: $CXX, or the first of c++, g++, clang++."""
    try:
        chosen = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise CannotCompile(f"CXX={os.environ['CXX']} is not a command ({error}); set CXX to a C++ compiler") from error
    for command in [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    raise CannotCompile("no C++ compiler found" + (f" (CXX is {os.environ['CXX']!r})" if chosen else ""))


def compile_library(compiler: list[str], scratch: str, source: Path, options: Sequence[str] = ()) -> bytes:
    """Return the library of a C++ file; all temporary files are in the folder `scratch`."""
    path = Path(scratch, f"{source.stem}.so")
    output([*compiler, *FLAGS, "-o", str(path), str(source), *options], TMPDIR=scratch)
    content = path.read_bytes() if path.exists() else b""
    if not content:
        raise _failure(compiler, "ended without an error but wrote no library")
    return content


def _portable_library(compiler: list[str], program: str) -> bytes:
    """Return a library for other machines; on Linux the C++ library is linked in, if the compiler can do that."""
    with tempfile.TemporaryDirectory(prefix="plunit-") as scratch:
        if sys.platform == "linux":
            with contextlib.suppress(CannotCompile):
                return compile_library([*compiler, *_PORTABLE], scratch, source(program))
        return compile_library(compiler, scratch, source(program))


def output(command: list[str], **environment: str) -> bytes:
    """Run a compiler command and return its output."""
    try:
        done = run_group(command, timeout=_SECONDS, env={**os.environ, **environment})
    except subprocess.TimeoutExpired as error:
        raise _failure(command, f"did not end within {_SECONDS} s") from error
    except OSError as error:
        raise _failure(command, f"could not be run ({error})") from error
    if done.returncode:
        said = first_error(done.stderr.decode(errors="replace"))
        raise _failure(command, f"ended with exit code {done.returncode} and printed {said}")
    return done.stdout


def run_group(command: list[str], *, timeout: float, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command as `subprocess.run` does, in a process group that is killed on an error or Ctrl-C."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, env=env, **pipes) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # on macOS, if the group has just ended
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
            process.wait()
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def first_error(log: str) -> str:
    r"""Return the line of a compiler's log that says why it failed: the first error, else the last line.

    >>> first_error("a.cpp:1: error: no such file\ncompilation terminated.\n")
    'a.cpp:1: error: no such file'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line.lower()), lines[-1] if lines else "nothing")


def _failure(command: list[str], what: str) -> CannotCompile:
    chosen = os.environ.get("CXX")
    name = f"CXX={chosen}" if chosen else command[0]
    return CannotCompile(f"{name}: the command {what}; set CXX to a C++ compiler")


if __name__ == "__main__":
    try:
        write_libraries(Path(sys.argv[1]))
    except CannotCompile as reason:
        print(f"plunit: the compiled programs were not built ({reason})", file=sys.stderr)
