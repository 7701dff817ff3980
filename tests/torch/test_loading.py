"""Which compiled op is loaded, the package's or the cache's, and the notice where there is none for this PyTorch."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import types
import warnings
from pathlib import Path

import pytest
import torch

import plunit
from plunit.base import cache
from plunit.torch import extension, has_native, native, op, plu

native_only = pytest.mark.skipif(not has_native(), reason="the native op was not built")
SAYS = b"plunit's native op was built with torch %s, this is"
RELEASE = torch.__version__.partition("+")[0].encode()
THIS, OTHER = SAYS % RELEASE, SAYS % b"2.1.7"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The cache folder, which does not exist yet; and no PLUNIT_NATIVE."""
    monkeypatch.delenv("PLUNIT_NATIVE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plunit"


@pytest.fixture
def packaged(monkeypatch, folder, tmp_path):
    """A path for the package's binary, which is not there yet."""
    path = tmp_path / "_native.so"
    spec = types.SimpleNamespace(origin=str(path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if path.exists() else None)
    return path


@pytest.fixture
def cached(folder):
    """The cache's binary."""
    path = cache.private_folder() / native.cache_name()
    cache.write_verified(path, b"compiled here")
    return path


def test_the_package_comes_before_the_cache(packaged, cached):
    packaged.write_bytes(b"code" + THIS + b"code")
    assert list(native.binaries()) == [packaged, cached]


@pytest.mark.parametrize("content", [OTHER, b"no release"], ids=["another release", "no release"])
def test_a_binary_of_another_release_and_a_damaged_one_are_passed_over(packaged, cached, content):
    packaged.write_bytes(content)
    assert list(native.binaries()) == [cached]
    cached.write_bytes(b"damaged")
    assert list(native.binaries()) == []


def test_looking_for_a_binary_makes_no_folder(packaged, folder):
    assert native.load() is None
    assert not folder.parent.exists()


def test_a_binary_that_does_not_open_is_passed_over(packaged, cached, monkeypatch):
    def open_binary(path):
        if path == packaged:
            raise ImportError("undefined symbol")
        return path

    packaged.write_bytes(THIS)
    monkeypatch.setattr(native, "open_binary", open_binary)
    assert native.load() == cached


def test_the_environment_switches_the_native_op_off(packaged, cached, monkeypatch):
    monkeypatch.setattr(native, "open_binary", lambda path: path)
    assert native.load() == cached
    monkeypatch.setenv("PLUNIT_NATIVE", "0")
    assert native.load() is None


@pytest.fixture
def name(monkeypatch, tmp_path):
    """A function that computes the name in the cache, for sources that may be edited."""
    shutil.copytree(extension.CSRC, tmp_path / "csrc")
    monkeypatch.setattr(extension, "CSRC", tmp_path / "csrc")
    yield native.cache_name.__wrapped__
    native.cache_name.cache_clear()


def edit(pattern):
    """Return a change of a source file."""

    def change(monkeypatch):
        path = next(extension.CSRC.glob(pattern))
        path.write_text(path.read_text() + "\n// edited")

    return change


@pytest.mark.parametrize(
    "change",
    [
        edit("*.cpp"),
        edit("*.h"),
        lambda patch: patch.setattr(torch, "__version__", "2.1.7"),
        lambda patch: patch.setattr(torch, "__version__", f"{torch.__version__}.other"),
        lambda patch: patch.setattr(sysconfig, "get_config_var", lambda _: ".cpython-399-riscv-linux-gnu.so"),
        lambda patch: patch.setattr(sysconfig, "get_platform", lambda: "plan9-vax"),
        lambda patch: patch.setattr(extension, "flags", lambda: (["-O1"], [])),
    ],
    ids=["unit", "header", "release", "build of PyTorch", "Python", "platform", "flags"],
)
def test_the_name_in_the_cache_covers(name, monkeypatch, change):
    before = name()
    assert name() == before
    change(monkeypatch)
    assert name() != before


@native_only
@pytest.mark.skipif(sys.platform == "win32", reason="replaces a loaded file")
def test_a_packaged_binary_of_another_release_does_not_end_the_process(folder, tmp_path):
    """Opening both would: the second registers the ops that the first has registered."""
    packages = tmp_path / "packages"
    shutil.copytree(Path(plunit.__file__).parent, packages / "plunit", ignore=shutil.ignore_patterns("__pycache__"))
    binary = Path(op._native.__file__)
    content = binary.read_bytes()
    assert THIS in content  # a binary says its release
    other = packages / "plunit" / "torch" / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    other.write_bytes(content.replace(THIS, SAYS % (b"9" * len(RELEASE))))
    cache.write_verified(cache.private_folder() / native.cache_name(), content)
    script = "import sys, plunit.torch; print(sys.modules['plunit.torch._native'].__file__)"
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert (run.returncode, run.stdout.strip()) == (0, str(folder / native.cache_name())), run.stderr


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
    with pytest.warns(native.MissingNative, match="Build it once: python -m plunit.torch.build.") as found:
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
