"""The libraries of a wheel: which one is loaded, when none is, and where the loaded program is from."""

import platform
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from plunit.densities import Architecture, Sample, search
from plunit.ensemble import engine
from plunit.programs import compiling, libraries

HERE = compiling.levels()
CPUINFO = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
FLAGS = set((re.search(r"^flags\s*:(.*)", CPUINFO, re.M) or ["", ""])[1].split())
known = pytest.mark.skipif(not HERE, reason="wheels have no libraries for this processor")


class Loaded:
    """A library whose processor has the level of the file `level` beside it, and no structs."""

    def __init__(self, path):
        self._name = path
        if not Path(path).exists():
            raise OSError(f"{path}: no such file")

    def plunit_level(self):
        return int(Path(self._name).with_name("level").read_text())


def pack(folder, levels, content, program="train"):
    """Fill a folder as setup.py does, with the same content of a program for all levels."""
    folder.mkdir(exist_ok=True)
    for level in levels.values():
        (folder / compiling.file_name(level, program)).write_bytes(content)
    (folder / compiling.SOURCES).write_text(f"{compiling.source_hash()}\n")


@pytest.fixture
def compiled_here(monkeypatch):
    """Instead of compiling, give a name."""
    monkeypatch.setattr(libraries, "compile_program", lambda *_: type("Compiled", (), {"_name": "/cache/train.so"}))


@pytest.fixture(scope="module")
def program(compiler):
    """The content of the compiled program, which runs on this processor."""
    return Path(libraries.compile_program(("-march=native",))._name).read_bytes()


@pytest.mark.parametrize(
    ("machine", "level", "origin"),
    [
        ("x86_64", 1, "packaged x86-64"),
        ("x86_64", 3, "packaged x86-64-v3"),
        ("x86_64", 4, "packaged x86-64-v4"),
        ("x86_64", 5, "compiled here"),
        ("arm64", 1, "packaged armv8-a"),
        ("aarch64", 1, "packaged armv8-a"),
        ("riscv64", 1, "compiled here"),
    ],
)
@pytest.mark.usefixtures("compiled_here")
def test_the_processor_chooses_the_library(wheel, monkeypatch, machine, level, origin):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(libraries.ctypes, "CDLL", Loaded)
    pack(wheel, compiling.levels(), b"")
    (wheel / "level").write_text(str(level))
    assert libraries.origin() == origin
    if level == 4:  # a wheel without the library of this level is no wheel
        (wheel / "train-x86-64-v4.so").unlink()
        libraries.library.cache_clear()
        assert libraries.origin() == "compiled here"


@pytest.mark.skipif(not FLAGS, reason="the features of the processor are not in /proc/cpuinfo")
@pytest.mark.usefixtures("compiler")
def test_the_level_is_the_one_that_the_system_states():
    third = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
    fourth = third | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    expected = 4 if fourth <= FLAGS else 3 if third <= FLAGS else 1
    assert libraries.library().plunit_level() == expected


@known
def test_the_libraries_of_the_wheel_train_without_a_compiler(wheel, monkeypatch, program, compiler):
    """A program whose library is not among them is compiled."""
    x = np.random.default_rng(0).standard_normal((100, 2))
    options = {"starts": 1, "steps": 20, "engine": "native"}
    here = search([Architecture(2, 3)], Sample(x), Sample(x), **options)[0]
    chain = Path(libraries.compile_program(("-march=native",), "chain")._name).read_bytes()
    pack(wheel, HERE, program)
    libraries.library.cache_clear()
    assert Path(libraries.library("chain")._name).parent != wheel
    pack(wheel, HERE, chain, "chain")
    libraries.library.cache_clear()
    monkeypatch.setenv("CXX", "false")
    assert engine() == "native"
    assert libraries.origin() in {f"packaged {level}" for level in HERE.values()}
    assert Path(libraries.library("chain")._name).parent == wheel
    assert np.array_equal(search([Architecture(2, 3)], Sample(x), Sample(x), **options)[0].theta, here.theta)


def test_a_wheel_has_every_program_for_every_level(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    expected = {f"{name}-x86-64{level}.so" for name in ("train", "chain", "prove") for level in ("", "-v3", "-v4")}
    assert set(compiling.file_names()) == expected | {"sources.sha256"}


def spoil(name, content):
    """Return a function that replaces a file of the folder, or removes it."""
    return lambda folder: (folder / name).write_bytes(content) if content else (folder / name).unlink()


BASE = compiling.file_name(HERE.get(1, ""))


@known
@pytest.mark.parametrize(
    "damage",
    [
        spoil(compiling.SOURCES, b"0" * 64),
        spoil(compiling.SOURCES, "ä".encode()),
        spoil(compiling.SOURCES, None),
        spoil(BASE, b"not a library"),
        spoil(BASE, None),
        shutil.rmtree,
    ],
    ids=["stale", "no checksum", "without sources", "not a library", "without the least level", "no folder"],
)
@pytest.mark.usefixtures("compiled_here")
def test_without_a_library_that_fits_the_program_is_compiled(wheel, program, damage):
    pack(wheel, HERE, program)
    damage(wheel)  # before anything is loaded: the system knows a loaded library by its path
    assert libraries.origin() == "compiled here"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have fused multiply-add")
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("level", "fused"), [("x86-64", False), ("x86-64-v3", True)])
def test_only_the_least_level_rounds_twice(wheel, monkeypatch, level, fused):
    monkeypatch.setattr(compiling, "FLAGS", ["-O0" if flag == "-O3" else flag for flag in compiling.FLAGS])
    program = libraries.compile_program((f"-march={level}",))
    monkeypatch.setattr(libraries, "compile_program", lambda target, name: program)
    assert libraries.is_fused() == fused


def test_without_a_program_results_of_other_machines_are_read_as_they_are(wheel, monkeypatch):
    """No program rounds here; those that do have fused multiply-add as a rule."""
    monkeypatch.setenv("CXX", "false")
    assert libraries.is_fused()
