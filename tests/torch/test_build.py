"""`python -m plunit.torch.build`: what it says and leaves behind. It takes a minute; `make dist` compiles with it."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension
from waiting import wait_until_ended

import plunit
from plunit.base import cache
from plunit.torch import build, native

on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
# what stands in for the compiling process: its scratch folder is its only argument
COMPILES = "import sys, pathlib; pathlib.Path(sys.argv[1], 'native').write_bytes(b'compiled')"
FAILS = """
import sys
print("In file a.h:\\na.h:1:9: fatal error: no b.h\\ncompilation terminated.\\nerror: command c++ failed")
sys.exit(1)
"""
HANGS = """
import pathlib, subprocess, sys, time
compiler = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
folder = pathlib.Path(sys.argv[1]).parent
folder.joinpath("new").write_text(str(compiler.pid))
folder.joinpath("new").rename(folder / "pid")
time.sleep(60)
"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The cache folder; a compiler and headers are there, a native op is not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "binaries", lambda: iter(()))
    monkeypatch.setattr(build, "check_tools", lambda: None)
    monkeypatch.setattr(build, "_CHILD", COMPILES)
    return tmp_path / "cache" / "plunit"


def test_the_result_is_in_the_cache_with_its_checksum(folder, capsys):
    assert build.main() == 0
    path = folder / native.cache_name()
    assert path.read_bytes() == b"compiled"
    assert cache.verified(path)
    assert sorted(folder.iterdir()) == [path, path.with_name(f"{path.name}.sha256")]
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"plunit: compiling the native op against torch {torch.__version__}, a minute or two"
    assert re.fullmatch(rf"plunit: the native op is built, in \d+ s: {re.escape(str(path))}", last)


def test_what_is_there_is_not_built_again(folder, capsys, monkeypatch):
    monkeypatch.setattr(native, "binaries", lambda: iter([Path("/there/_native.so")]))
    monkeypatch.setattr(build, "_CHILD", FAILS)
    assert build.main() == 0
    said = f"plunit: the native op for torch {torch.__version__} is already built: /there/_native.so\n"
    assert capsys.readouterr().out == said


def failed(capsys, code=2):
    """Run the command and return the one line it ends in."""
    assert build.main() == code
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("plunit: ")


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        (FAILS, "a.h:1:9: fatal error: no b.h"),
        ("raise SystemExit(3)", "nothing"),
        ("raise ImportError('undefined symbol')", "ImportError: undefined symbol"),
    ],
)
def test_a_failed_compilation_is_one_line_and_leaves_nothing(folder, capsys, monkeypatch, child, reason):
    monkeypatch.setattr(build, "_CHILD", child)
    assert failed(capsys) == f"the native op does not compile: {reason}"
    assert list(folder.iterdir()) == []


@pytest.fixture
def compiler(folder, monkeypatch):
    """A process that compiles for ever; a function waits until it has ended, and says whether nothing is left."""

    def leaves_nothing():
        pid = folder / "pid"
        wait_until_ended(pid.read_text())
        pid.unlink()
        return list(folder.iterdir()) == []

    monkeypatch.setattr(build, "_CHILD", HANGS)
    return leaves_nothing


@on_linux
def test_a_compiler_that_hangs_is_ended(compiler, capsys, monkeypatch):
    monkeypatch.setattr(build, "_SECONDS", 2)
    assert failed(capsys) == "the native op does not compile: the compiler did not end within 2 s"
    assert compiler()


def no_home(patch):
    patch.delenv("XDG_CACHE_HOME")
    patch.setattr(Path, "home", raising(RuntimeError("Could not determine home directory.")))


def raising(error):
    def function(*args):
        raise error

    return function


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (no_home, 2, "the user has no home folder; set XDG_CACHE_HOME to a folder for the native op"),
        (lambda patch: patch.setattr(cache, "write_verified", raising(OSError(28, "No space"))), 2, "No space"),
        (lambda patch: patch.setattr(cache, "write_verified", raising(KeyboardInterrupt())), 130, "nothing is left"),
    ],
)
def test_a_place_that_cannot_be_written_and_ctrl_c_are_one_line(folder, capsys, monkeypatch, change, code, said):
    change(monkeypatch)
    assert said in failed(capsys, code)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes here")
def test_a_folder_that_others_can_write_is_not_used(folder, capsys):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match="run: chmod 700"):
        assert failed(capsys).startswith(f"{folder} cannot be used as a cache folder; ")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda patch: patch.setattr(importlib.util, "find_spec", lambda name: None), "setuptools is not installed "),
        (
            lambda patch: patch.setattr(cpp_extension, "include_paths", lambda: ["/no/headers"]),
            "this PyTorch has no headers in /no/headers; ",
        ),
        (
            lambda patch: patch.setattr(sysconfig, "get_paths", lambda: {"include": "/no/headers"}),
            "Python's headers are not in /no/headers; ",
        ),
        (lambda patch: patch.setenv("CXX", "no-such-compiler"), "there is no C++ compiler no-such-compiler; install"),
    ],
    ids=["setuptools", "headers of PyTorch", "headers of Python", "compiler"],
)
def test_what_is_missing_is_one_line(capsys, monkeypatch, tmp_path, change, reason):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "binaries", lambda: iter(()))
    change(monkeypatch)
    assert failed(capsys).startswith(reason)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("command", [["-m", "plunit.torch.build"], ["-c", "import plunit.torch"]], ids=" ".join)
def test_without_pytorch_the_last_line_says_what_to_install(tmp_path, command):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    paths = os.pathsep.join([str(tmp_path), str(Path(plunit.__file__).parents[1])])
    run = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    lines = run.stderr.splitlines()
    assert run.returncode == 1
    assert "ModuleNotFoundError: PyTorch is not installed: pip install 'plunit[torch]'" in lines[-1]
    assert (len(lines) == 1) == (command[0] == "-m")
