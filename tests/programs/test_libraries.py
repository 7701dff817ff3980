"""The compiled program: its cache, its bits, and life without a compiler."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from compilers import TARGETS, narrow_program, needs_fma
from waiting import wait_until, wait_until_ended

from plunit.base import cache
from plunit.ensemble import LOSSES, MLP, finish_members, initial, levenberg_marquardt, native_steps, train
from plunit.ensemble.training_data import Rows, Validation, points
from plunit.ensemble.training_state import Steps, initial_state
from plunit.programs import compiling, libraries

X = np.linspace(-5, 7, 50)[None]

# Instead of compiling, copy the file $LIBRARY, as soon as $TOGETHER such commands have left a line in the file $LOG.
COPY = """
import os, pathlib, sys, time
log = pathlib.Path(os.environ["LOG"])
if "-o" in sys.argv:
    with log.open("a") as file:
        file.write("compiled\\n")
    while len(log.read_text().split()) < int(os.environ["TOGETHER"]):
        time.sleep(0.01)
    content = pathlib.Path(os.environ["LIBRARY"]).read_bytes()
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_bytes(content)
"""
TRAIN = """
import numpy as np
from plunit.ensemble import MLP, initial, train
network = MLP((1, 2, 1), "plu")
x = np.linspace(-1, 1, 9)[None]
print(train(network, initial(network, [np.random.default_rng(0)]), (x, np.sin(x)), steps=20).history[-1, 0])
"""
# Instead of compiling, start a process, leave its number in the file $LOG, and hang, as it does.
HANG = """
import os, pathlib, subprocess, sys, time
if "-o" in sys.argv:
    part = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path(os.environ["LOG"]).write_text(f"{part.pid}\\n")
    time.sleep(60)
"""
COMPILE = """
import signal
from plunit.programs import libraries
signal.signal(signal.SIGINT, signal.default_int_handler)
libraries.compile_program(())
"""
on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture
def fresh(wheel, monkeypatch):
    """No library is loaded, and none is in a wheel."""
    return monkeypatch


def trained(program, activation, loss, batch):
    """Train 40 members with decay, weights, rows drawn and patience; return all that they carry."""
    rng = np.random.default_rng(0)
    network = MLP((2, 5, 3, 2), activation)
    theta = initial(network, [np.random.default_rng(seed) for seed in range(40)])
    x, y = rng.standard_normal((90, 2)), rng.dirichlet([1, 1], 90)
    rows = Rows(x[:70], y[:70], rng.random(70), batch, range(40) if batch else ())
    tests = Validation(x[70:], y[70:], every=3, patience=3)
    state = initial_state(network, theta, loss=loss, lr=0.03, decay=0.01, stride=8, steps=60, every=3)
    given, looked = (points(part, 1, network, theta) for part in (rows, tests.rows()))
    native_steps.advance([(state, Steps(0, np.linspace(1, 0.5, 60), given, looked, tests))], program)
    return state


@needs_fma
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("activation", "batch"), [("tanh", 16), ("plu", 0), ("gelu", 16), ("plu_learned", 100), ("elu", 16)]
)
def test_every_processor_computes_the_same_bits(target, loss, activation, batch):
    one, other = (trained(p, activation, loss, batch) for p in (narrow_program(target, "train"), libraries.library()))
    carried = ("theta", "history", "best", "best_loss", "best_step", "mark", "waited")
    np.testing.assert_equal([getattr(one, name) for name in carried], [getattr(other, name) for name in carried])
    assert np.isfinite([one.best_loss, one.mark]).all()
    assert (one.waited >= 3).any()  # out of patience
    assert len(np.unique(one.best_step)) > 1


@needs_fma
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
@pytest.mark.parametrize("activation", ["tanh", "plu", "plu_learned", "silu", "elu"])
def test_every_processor_takes_the_same_second_order_steps(monkeypatch, target, activation):
    rng, network = np.random.default_rng(0), MLP((2, 7, 5, 2), activation)
    theta = initial(network, [np.random.default_rng(seed) for seed in range(3)])
    rows = Rows(rng.standard_normal((90, 2)), rng.standard_normal((90, 2)), rng.random(90))
    found = []
    for program in (narrow_program(target, "train"), libraries.library()):
        monkeypatch.setattr(levenberg_marquardt, "library", lambda program=program: program)
        found.append(finish_members(network, theta, rows, steps=20, engine="native"))
    np.testing.assert_array_equal(found[0].theta, found[1].theta)
    assert (found[0].steps > 5).all()


@pytest.fixture
def copying(fresh, tmp_path):
    """An empty cache, and a compiler that copies the real library; return the cache folder."""
    (tmp_path / "copy.py").write_text(COPY)
    (tmp_path / "log").touch()
    fresh.setenv("CXX", shlex.join([sys.executable, "-S", "-E", str(tmp_path / "copy.py")]))
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fresh.setenv("LIBRARY", str(tmp_path / "library.so"))
    fresh.setenv("LOG", str(tmp_path / "log"))
    fresh.setenv("TOGETHER", "1")
    fresh.setattr(cache, "_session_folder", lambda: tmp_path / "session")
    (tmp_path / "session").mkdir()
    (tmp_path / "library.so").write_bytes(b"the library" * 999)
    return tmp_path / "cache" / "plunit"


@pytest.fixture
def load(monkeypatch):
    """Instead of loading a library, read it: a damaged one would end this process."""
    monkeypatch.setattr(libraries.ctypes, "CDLL", lambda path: Path(path).read_bytes())
    return lambda: libraries.compile_program(("-march=native",))


def compilations(folder):
    return (folder.parent.parent / "log").read_text().split()


def cached(folder):
    """Return the library and its checksum, which are all that the folder holds."""
    library, checksum = sorted(folder.iterdir())
    assert checksum.name == f"{library.name}.sha256"
    return library, checksum


def test_a_damaged_library_is_compiled_again(copying, load):
    """tests/base/test_cache.py has all kinds of damage."""
    good = load()
    cached(copying)[0].write_bytes(good[:4096])
    assert [load(), load()] == [good, good]
    assert compilations(copying) == ["compiled"] * 2
    assert cached(copying)[0].read_bytes() == good


def test_other_sources_are_compiled_again(copying, load, monkeypatch, tmp_path):
    load()
    monkeypatch.setattr(compiling, "CSRC", Path(shutil.copytree(compiling.CSRC, tmp_path / "csrc")))
    load()
    assert compilations(copying) == ["compiled"]
    with (compiling.CSRC / "rows.h").open("a") as file:
        file.write("// changed")
    load()
    assert compilations(copying) == ["compiled"] * 2


def test_a_compilation_leaves_nothing_else_behind(copying, load, monkeypatch):
    load()
    library, checksum = cached(copying)
    library.unlink()
    monkeypatch.setenv("LIBRARY", str(copying / "missing"))
    with pytest.raises(
        libraries.CannotCompile, match=r"ended with exit code 1 and printed .*No such file or directory"
    ):
        load()
    assert list(copying.iterdir()) == [checksum]


@pytest.fixture(scope="session")
def real_library(compiler):
    """The content of the compiled program."""
    return Path(libraries.library()._name).read_bytes()


def test_two_processes_may_compile_at_once(real_library, copying, load, monkeypatch, tmp_path):
    """Both find a library that is truncated, which would end a process that loads it."""
    (tmp_path / "library.so").write_bytes(real_library)
    load()
    cached(copying)[0].write_bytes(real_library[:4096])
    monkeypatch.setenv("TOGETHER", "3")
    command = [sys.executable, "-W", "error", "-c", TRAIN]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    (first, second) = [(*process.communicate(timeout=120), process.returncode) for process in processes]
    assert first == second
    assert first[1:] == (b"", 0)
    assert compilations(copying) == ["compiled"] * 3
    assert cached(copying)[0].read_bytes() == real_library
    assert cache.is_verified(cached(copying)[0])


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("no-such-compiler", "no C++ compiler found (CXX is 'no-such-compiler')"),
        ("false", "CXX=false: the command ended with exit code 1 and printed nothing; set CXX to a C++ compiler"),
        ("true", "CXX=true: the command ended without an error but wrote no library; set CXX to a C++ compiler"),
        ("'c++", "CXX='c++ is not a command (No closing quotation); set CXX to a C++ compiler"),
    ],
)
def test_without_a_compiler_training_runs_in_numpy_and_says_so(fresh, tmp_path, compiler, reason):
    fresh.setenv("CXX", compiler)
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    network = MLP((1, 2, 1), "plu")
    start = initial(network, [np.random.default_rng(0)])
    with pytest.warns(UserWarning, match=rf"^{re.escape(reason)}\. Training runs in NumPy, "):
        slow = train(network, start, (X, np.sin(X)), steps=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(slow.theta, train(network, start, (X, np.sin(X)), steps=20, engine="numpy").theta)


def test_a_compiler_that_hangs_is_given_up(fresh, tmp_path):
    (tmp_path / "hang.py").write_text("import time\ntime.sleep(60)")
    fresh.setenv("CXX", shlex.join([sys.executable, str(tmp_path / "hang.py")]))
    fresh.setattr(compiling, "_SECONDS", 0.2)
    with pytest.raises(libraries.CannotCompile, match=r"did not end within 0\.2 s; set CXX to a C\+\+ compiler"):
        libraries.library()


@on_linux
def test_an_interrupt_of_python_alone_ends_the_compiler(copying, tmp_path):
    (tmp_path / "copy.py").write_text(HANG)
    command = [sys.executable, "-W", "default", "-c", COMPILE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        wait_until(lambda: (tmp_path / "log").read_text().endswith("\n"), process)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0]
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert "ResourceWarning" not in said
    wait_until_ended(int((tmp_path / "log").read_text()))
    assert list(copying.iterdir()) == []
