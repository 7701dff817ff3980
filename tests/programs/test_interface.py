"""Between Python and the compiled programs: structs of one layout, arrays that pointers fit, and a lack of memory."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from plunit.ensemble import MLP
from plunit.programs import compiling, interface, loading
from plunit.programs.interface import STRUCTS, address, difference, struct

NETWORK = MLP((1, 3, 1))
ALL = [(program, one.__name__) for program, structs in STRUCTS.items() for one in structs]
X = np.linspace(-1, 1, 9, dtype=np.float32)[:, None]


OTHERS = {"int64_t": "uint64_t", "const float*": "double*"}  # numbers of the same size, and pointers to others
CHANGES = {
    "shifted": lambda kinds: [("added", "int64_t"), *kinds],
    "longer": lambda kinds: [*kinds, ("added", "int64_t")],
    "shorter": lambda kinds: kinds[:-1],
    "swapped": lambda kinds: [kinds[-1], *kinds[1:-1], kinds[0]],
    "retyped": lambda kinds: [(name, OTHERS.get(kind, kind)) for name, kind in kinds],
}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("program", "name"), ALL)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_field_at_another_place_is_found(monkeypatch, program, name, change):
    library, structs = loading.library(program), {one.__name__: one for one in STRUCTS[program]}
    structs[name] = struct(name, dict(change(list(structs[name].kinds.items()))))
    monkeypatch.setitem(interface.STRUCTS, program, tuple(structs.values()))
    assert name in difference(library, program)


def test_a_library_without_a_layout_does_not_fit():
    assert "structs" in difference(ctypes.CDLL(None), "train")


@pytest.fixture
def with_shifted_field(wheel, monkeypatch, tmp_path):
    """A function: C++ of which a struct of a program has one more field than Python knows."""
    monkeypatch.setattr(compiling, "FLAGS", ["-O0" if flag == "-O3" else flag for flag in compiling.FLAGS])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def changed(program):
        csrc = Path(shutil.copytree(compiling.CSRC, tmp_path / "csrc"))
        source, line = csrc / f"{program}.cpp", "  FIELD(int64_t, steps)"
        before, after = source.read_text().split(line)
        source.write_text(f"{before}  FIELD(int64_t, added) {line}{after}")
        monkeypatch.setattr(compiling, "CSRC", csrc)

    return changed


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("program", "name"), [("train", "Task"), ("chain", "ChainTask")])
def test_a_library_of_the_cache_with_a_shifted_field_is_not_used(with_shifted_field, program, name):
    with_shifted_field(program)
    for _ in range(2):  # compiled, and from the cache
        with pytest.raises(compiling.CannotCompile, match=rf"{name}\.added"):
            loading.compile_program(("-march=native",), program)


@pytest.mark.skipif(not compiling.levels(), reason="wheels have no libraries for this processor")
@pytest.mark.usefixtures("compiler")
def test_a_library_of_a_wheel_with_a_shifted_field_is_not_used(with_shifted_field, wheel, monkeypatch):
    with_shifted_field("train")
    with tempfile.TemporaryDirectory() as scratch:
        content = compiling.compiled(compiling.find_compiler(), scratch, compiling.source("train"))
    wheel.mkdir()
    for level in compiling.levels().values():
        (wheel / compiling.file_name(level)).write_bytes(content)
    (wheel / compiling.SOURCES).write_text(compiling.source_hash())
    assert loading.packaged() is None
    monkeypatch.setattr(loading, "difference", lambda *_: "")
    assert loading.packaged() is not None  # nothing else is wrong with it


ARRAY = np.zeros((3, 4), np.float32)
LOCKED = ARRAY.copy()
LOCKED.flags.writeable = False
UNALIGNED = np.zeros(49, np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize(
    ("kind", "wrong", "error", "text"),
    [
        *(
            (kind, np.zeros(4, dtype), TypeError, f"numbers in float32, got {np.dtype(dtype)}")
            for kind in ("float*", "const float*")
            for dtype in (np.float64, ">f4", np.int32)
        ),
        ("float*", ARRAY.T, ValueError, "numbers contiguous and aligned, got strides"),
        ("const float*", ARRAY[:, ::2], ValueError, "contiguous"),
        ("const float*", UNALIGNED, ValueError, "aligned"),
        ("float*", LOCKED, ValueError, "writes to numbers, got an array that is read-only"),
    ],
)
def test_an_array_of_another_dtype_or_layout_has_no_address(kind, wrong, error, text):
    with pytest.raises(error, match=text):
        address(wrong, kind, "numbers")


@pytest.mark.parametrize(
    ("kind", "right", "strided"),
    [
        ("float*", ARRAY, False),
        ("const float*", LOCKED, False),
        ("const float*", ARRAY[1:, ::2], True),
        ("const int64_t*", np.arange(3), False),
        ("float*", np.zeros((0, 4), np.float32), False),
    ],
)
def test_the_address_is_that_of_the_first_number(kind, right, strided):
    assert address(right, kind, "numbers", strided=strided) == right.__array_interface__["data"][0]


# In a process of its own, which an exception that leaves a program would end. No machine has 2^56 bytes.
HUGE = """
import ctypes, dataclasses, threading
import numpy as np
from plunit.densities import Architecture, Sample, start, native_chain as chains
from plunit.densities.chain_state import MemberSteps, begin as begin_member
from plunit.ensemble import MLP, Rows, initial, native_steps as native
from plunit.programs.loading import library
from plunit.programs.interface import Evaluation, called
from plunit.ensemble.runs import Steps, begin, points

small, huge = MLP((1, 3, 1)), MLP((1, 2**25, 2**25, 1))
theta = initial(small, [np.random.default_rng(seed) for seed in range(64)])
x = np.ones((9, 1), np.float32)


def values():
    native.values(huge, theta, x.T)

def outputs():
    task = Evaluation(members=0, depth=1, widths=np.array([2**50, 1]), activation=b"plu", rows=0)
    called(library().plunit_outputs, ctypes.byref(task))

def train(threads=1):
    native.processors = lambda: threads
    state = begin(small, theta, steps=1)
    steps = Steps(0, np.ones(1), points(Rows(x, x), 1, small, theta))
    shape = {name: np.ones((2, 64), np.float32) for name in ("alpha", "c")}
    native.advance([(dataclasses.replace(state, network=huge, **shape), steps)])

def train_on_threads():
    train(4)

def chain():
    form = Architecture(2, 2, "plu")
    member = begin_member(start(form, np.random.default_rng(0)), 0, 1)
    before = member.theta.copy()
    try:
        chains.advance([member], MemberSteps(np.ones(1), Sample(np.ones((9, 2), np.float32)), batch=2**59))
    finally:
        assert member.steps == 0 and np.array_equal(member.theta, before)


for entry in (values, outputs, train, train_on_threads, chain):
    try:
        entry()
    except MemoryError as error:
        print(entry.__name__, threading.active_count())
"""


@pytest.mark.usefixtures("compiler")
def test_a_lack_of_memory_is_an_error_of_python():
    done = subprocess.run([sys.executable, "-c", HUGE], capture_output=True, text=True, timeout=120)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.split() == ["values", "1", "outputs", "1", "train", "1", "train_on_threads", "1", "chain", "1"]


def test_files_that_are_not_ours_are_not_read(tmp_path):
    """A copy of the package whose folder of C++ has a binary file, and then lacks a program."""
    package = shutil.copytree(compiling.CSRC.parents[1], tmp_path / "plunit", ignore=shutil.ignore_patterns("torch"))
    csrc = package / "programs" / "csrc"
    (csrc / ".DS_Store").write_bytes(b"\xff\x00")
    command = [sys.executable, "-c", "import plunit.programs.interface"]
    options = {
        "cwd": tmp_path,
        "env": {**os.environ, "PYTHONPATH": str(tmp_path)},
        "capture_output": True,
        "text": True,
    }
    assert subprocess.run(command, **options).returncode == 0
    (csrc / "chain.cpp").unlink()
    assert "ImportError: chain.cpp is missing in " in subprocess.run(command, **options).stderr
