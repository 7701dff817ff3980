"""Between Python and the compiled programs: structs, arrays that pointers fit, and a lack of memory."""

import ctypes
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from plunit.programs import compiling, interface
from plunit.programs.interface import Struct, address

STRUCTS = {
    "train": ("Source", "RowSources", "Task", "Evaluation", "Squares"),
    "chain": ("SampleArrays", "ChainTask"),
    "prove": ("ProofTask", "ProofNodes", "SignTask"),
}


def test_every_struct_of_the_programs_is_compared():
    classes = {name for name, one in vars(interface).items() if isinstance(one, type) and issubclass(one, Struct)}
    assert classes - {"Struct"} == {name for names in STRUCTS.values() for name in names}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("program", compiling.PROGRAMS)
def test_fields_are_where_the_compiler_has_them(program, tmp_path):
    lines = ["#include <cstddef>", f'#include "{compiling.source(program)}"']
    for name in STRUCTS[program]:
        one = getattr(interface, name)
        lines.append(f'static_assert(sizeof({name}) == {ctypes.sizeof(one)}, "{name}");')
        for field in one.kinds:
            place = getattr(one, field)
            lines.append(f'static_assert(offsetof({name}, {field}) == {place.offset}, "{name}.{field}");')
            lines.append(f'static_assert(sizeof({name}::{field}) == {place.size}, "{name}.{field}");')
    (tmp_path / "layout.cpp").write_text("\n".join(lines))
    command = [*compiling.find_compiler(), "-std=c++17", "-fsyntax-only", str(tmp_path / "layout.cpp")]
    assert compiling.output(command) == b""


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
        ("float*", LOCKED, ValueError, "writes to numbers, got a read-only array"),
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
from plunit.densities import Architecture, Sample, start, chain as chains
from plunit.densities.chain import MemberSteps, initial_member
from plunit.ensemble import MLP, Rows, initial, native_steps as native
from plunit.programs.libraries import library
from plunit.programs.interface import Evaluation, call_program
from plunit.ensemble.training_data import points
from plunit.ensemble.training_state import Steps, initial_state

small, huge = MLP((1, 3, 1)), MLP((1, 2**25, 2**25, 1))
theta = initial(small, [np.random.default_rng(seed) for seed in range(64)])
x = np.ones((9, 1), np.float32)


def values():
    native.values(huge, theta, x.T)

def outputs():
    task = Evaluation(members=0, depth=1, widths=np.array([2**50, 1]), activation=b"plu", rows=0)
    call_program(library().plunit_outputs, ctypes.byref(task))

def train(threads=1):
    native.processors = lambda: threads
    state = initial_state(small, theta, steps=1)
    steps = Steps(0, np.ones(1), points(Rows(x, x), 1, small, theta))
    shape = {name: np.ones((2, 64), np.float32) for name in ("alpha", "c")}
    native.advance([(dataclasses.replace(state, network=huge, **shape), steps)])

def train_on_threads():
    train(4)

def chain():
    form = Architecture(2, 2, "plu")
    member = initial_member(start(form, np.random.default_rng(0)), 0, 1)
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
