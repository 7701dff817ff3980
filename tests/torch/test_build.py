"""The binary of the native op: how it is built, which one is loaded, and the notice where there is none.

tests/programs/test_libraries.py has what the compiler can do wrong: it is called there as here. `make dist`
compiles the op.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest
import torch

import plunit
from plunit.base import cache
from plunit.programs import compiling
from plunit.torch import build, has_native, native, op, plu

native_only = pytest.mark.skipif(not has_native(), reason="the native op was not built")
# a compiler whose library Python cannot load
WRITE = "import pathlib, sys; pathlib.Path(sys.argv[sys.argv.index('-o') + 1]).write_text('no library')"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The cache folder, which does not exist yet; and no binary in the package, and no PLUNIT_NATIVE."""
    monkeypatch.delenv("PLUNIT_NATIVE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "__file__", str(tmp_path / "native.py"))
    return tmp_path / "cache" / "plunit"


@pytest.fixture
def packaged(folder, tmp_path):
    """A path for the package's binary, which is not there yet."""
    return tmp_path / native.binary_name()


@pytest.fixture
def cached(folder):
    """The cache's binary."""
    path = cache.private_folder() / native.binary_name()
    cache.write_verified(path, b"compiled here")
    return path


@pytest.fixture
def compiled(folder, monkeypatch):
    """Nothing is compiled: the binary is a word."""
    monkeypatch.setattr(build, "_compile", lambda scratch: b"compiled")
    return folder / native.binary_name()


def test_the_result_is_in_the_cache_with_its_checksum_and_not_built_again(compiled, capsys, monkeypatch):
    assert build.main() == 0
    assert cache.is_verified(compiled)
    assert list(native.binaries()) == [compiled]
    first, last = capsys.readouterr().out.splitlines()
    assert torch.__version__ in first
    assert last.endswith(str(compiled))
    monkeypatch.setattr(build, "_compile", None)
    assert build.main() == 0
    said = f"plunit: the native op for torch {torch.__version__} is already built: {compiled}\n"
    assert capsys.readouterr().out == said


def test_a_folder_gets_the_binary_alone(compiled, tmp_path):
    (tmp_path / "torch").mkdir()
    assert build.main(str(tmp_path / "torch")) == 0
    assert [path.read_bytes() for path in (tmp_path / "torch").iterdir()] == [b"compiled"]
    assert (tmp_path / "torch" / compiled.name).exists()


def failed(capsys, code=2):
    """Run the command and return the one line it ends in."""
    assert build.main() == code
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("plunit: ").removeprefix("the native op is not built: ")


def raising(error):
    def function(*args):
        raise error

    return function


def no_home(patch):
    patch.delenv("XDG_CACHE_HOME")
    patch.setattr(Path, "home", raising(RuntimeError("Could not determine home directory.")))


def elsewhere(patch):
    patch.setattr(sysconfig, "get_paths", lambda: {"include": "/no/headers"})


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (no_home, 2, "the user's cache cannot be used; set XDG_CACHE_HOME"),
        (lambda patch: patch.setattr(build, "_compile", raising(OSError(28, "No space"))), 2, "No space"),
        (
            lambda patch: patch.setattr(build, "_compile", raising(KeyboardInterrupt())),
            130,
            "stopped; all temporary",
        ),
        (
            lambda patch: patch.setattr(torch, "__file__", "/no/__init__.py"),
            2,
            "this PyTorch has no headers in /no/inc",
        ),
        (elsewhere, 2, "Python's headers are not in /no/headers; "),
        (lambda patch: patch.setenv("CXX", "no-such-compiler"), 2, "no C++ compiler found"),
        (lambda patch: None, 2, "ended with exit code 1 and printed ImportError: "),
    ],
    ids=["home", "disk", "Ctrl-C", "headers of PyTorch", "headers of Python", "compiler", "a library that cannot load"],
)
def test_what_is_missing_is_one_line_and_nothing_is_left(folder, capsys, monkeypatch, tmp_path, change, code, said):
    (tmp_path / "write.py").write_text(WRITE)
    monkeypatch.setenv("CXX", shlex.join([sys.executable, "-S", str(tmp_path / "write.py")]))
    change(monkeypatch)
    assert said in failed(capsys, code)
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes here")
def test_a_folder_that_others_can_write_is_not_used(compiled, capsys):
    compiled.parent.mkdir(parents=True)
    compiled.parent.chmod(0o777)
    with pytest.warns(UserWarning, match="run: chmod 700"):
        assert "cache cannot be used" in failed(capsys)
    assert list(compiled.parent.iterdir()) == []


@pytest.mark.parametrize("command", [["-m", "plunit.torch.build"], ["-c", "import plunit.torch"]], ids=" ".join)
def test_without_pytorch_the_last_line_says_what_to_install(tmp_path, command):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    paths = os.pathsep.join([str(tmp_path), str(Path(plunit.__file__).parents[1])])
    run = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    lines = run.stderr.splitlines()
    assert run.returncode == 1
    text = "plunit.torch needs torch, which is not installed; pip install 'plunit[torch]'"
    assert f"ModuleNotFoundError: {text}" in lines[-1]
    assert (len(lines) == 1) == (command[0] == "-m")


def test_the_package_comes_before_the_cache_and_a_damaged_binary_is_passed_over(packaged, cached, monkeypatch):
    packaged.touch()
    assert list(native.binaries()) == [packaged, cached]

    def open_binary(path):
        if path == packaged:
            raise ImportError("undefined symbol")
        return path

    monkeypatch.setattr(native, "open_binary", open_binary)
    assert native.load() == cached
    monkeypatch.setenv("PLUNIT_NATIVE", "0")
    assert native.load() is None
    packaged.unlink()
    cached.write_bytes(b"damaged")
    assert list(native.binaries()) == []


def test_looking_for_a_binary_makes_no_folder(folder):
    assert native.load() is None
    assert not folder.parent.exists()


@pytest.fixture
def name(monkeypatch, tmp_path):
    """A function that computes the name of the binary, for sources that may be edited."""
    shutil.copytree(native.CSRC, tmp_path / "csrc")
    monkeypatch.setattr(native, "CSRC", tmp_path / "csrc")
    return native.binary_name.__wrapped__


def edit(pattern):
    """Return a change of a source file."""

    def change(monkeypatch):
        path = next(native.CSRC.glob(pattern))
        path.write_text(path.read_text() + "\n// edited")

    return change


@pytest.mark.parametrize(
    "change",
    [
        edit("*.cpp"),
        edit("*.h"),
        lambda patch: patch.setattr(torch.version, "git_version", "0" * 40),
        lambda patch: patch.setattr(sysconfig, "get_config_var", lambda _: ".cpython-399-riscv-linux-gnu.so"),
        lambda patch: patch.setattr(sysconfig, "get_platform", lambda: "plan9-vax"),
        lambda patch: patch.setattr(native, "OP_FLAGS", ["-O1"]),
        lambda patch: patch.setattr(compiling, "FLAGS", ["-O1"]),
    ],
    ids=["unit", "header", "PyTorch", "Python", "platform", "flags", "flags of programs"],
)
def test_the_name_of_the_binary_covers(name, monkeypatch, change):
    before = name()
    assert name() == before
    change(monkeypatch)
    assert name() != before


@pytest.fixture
def unsaid(monkeypatch, folder):
    """No native op, and a process that has not said so."""
    monkeypatch.setattr(op, "_native", None)
    native.notice.cache_clear()
    yield monkeypatch
    native.notice.cache_clear()


def said(call):
    """Return the notices that a call gives."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in found if warning.category is native.MissingNative]


def cpu():
    return plu(torch.ones(3))


def test_the_first_plu_on_the_processor_says_how_to_build_the_native_op(unsaid):
    with pytest.warns(native.MissingNative, match="CPU kernel is not .* python -m plunit.torch.build") as found:
        cpu()
    assert found[0].filename == __file__  # it points at the caller
    assert said(cpu) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: plu(torch.ones(3, device="meta")),
        lambda: torch.compile(plu, backend="eager", fullgraph=True)(torch.ones(3)),
        lambda: os.environ.update(PLUNIT_NATIVE="0") or cpu(),
    ],
    ids=["other devices", "compilers", "who switched it off"],
)
def test_no_notice_for(unsaid, call):
    unsaid.setenv("PLUNIT_NATIVE", "1")  # given back after the test
    assert said(call) == []


@native_only
def test_no_notice_with_the_native_op(unsaid):
    unsaid.undo()
    native.notice.cache_clear()
    assert said(lambda: plu(torch.ones(3), alpha=0.0)) == []
