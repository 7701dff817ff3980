"""The command as a process: interrupted, killed, run twice at once, on a full disk. Nothing is lost or left running."""

import contextlib
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from commands import PROGRAM
from waiting import wait_until

from plunit.lab import plan

pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc"),
]

LONG = ["run", "nap", "--out"]
QUICK = ["run", "depth", "--seeds", "6", "--activations"]


NAP = """
import dataclasses, time
from plunit.lab.experiment import Experiment
from plunit.lab.scratch import write_progress

@dataclasses.dataclass(frozen=True)
class NapSpec:
    seconds: float = 3600.0

def compute(cell, scratch):
    write_progress(scratch, 0.5)
    time.sleep(cell.spec.seconds)
    return {"seed": []}

class Nap(Experiment):
    activations = choices = ("short", "long")
    compute = staticmethod(compute)
    seeds, side_by_side = 1, True
    def figures(self, runs):
        return ()

EXPERIMENTS = (Nap("nap", "A nap", NapSpec()),)
"""


@pytest.fixture(autouse=True)
def package(tmp_path_factory, monkeypatch):
    """Install a package whose experiment takes an hour in each of two workers."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "naps.py").write_text(NAP)
    info = folder / "naps-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: naps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[plunit.experiments]\nnap = naps\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))


def heed_ctrl_c():
    """A shell's background job ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], preexec_fn=heed_ctrl_c, **pipes, **options)


def family(session):
    """Return the processes of a session that are alive, the first one among them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
            found += [int(stat.parent.name)] if int(own) == session and state not in "ZX" else []
    return found


@pytest.fixture
def training(tmp_path):
    """A long run whose workers are training; nothing of it is left after the test."""
    process = start(*LONG, tmp_path)
    try:
        wait_until(lambda: len(list(tmp_path.glob("unfinished/*.progress"))) == 2, process)
        yield process
    finally:
        for pid in family(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def test_workers_end_with_their_parent_and_a_second_run_waits_for_the_first(training, tmp_path):
    assert len(family(training.pid)) >= 3
    second = start(*QUICK, "plu", "--out", tmp_path)
    line = second.stdout.readline()
    assert line.startswith(f"another `plunit` is running in {tmp_path}; waiting for it")
    os.kill(training.pid, signal.SIGKILL)  # the lock ends with the process
    training.wait(10)
    wait_until(lambda: not family(training.pid), seconds=20)
    said, _ = second.communicate(timeout=120)
    assert second.returncode == 0
    assert "report:" in said


def test_ctrl_c_stops_long_cells_at_once(training):
    os.killpg(training.pid, signal.SIGINT)  # as a terminal does: to all of them
    said, _ = training.communicate(timeout=60)
    assert training.returncode == 130
    stored = "finished cells are stored; the same command continues from there"
    assert said.strip() == f"stopped with 2 cells to go; {stored}"
    wait_until(lambda: not family(training.pid), seconds=20)  # the tracker of resources follows


@pytest.mark.parametrize("processes", [1, 3], ids=["before", "between"])
def test_ctrl_c_while_workers_start_is_one_line(tmp_path, processes):
    process = start(*LONG, tmp_path)
    wait_until((tmp_path / "run.json").exists, process)
    wait_until(lambda: len(family(process.pid)) >= processes, process)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.count("\n") == 1
    assert "the same command continues from there" in said
    wait_until(lambda: not family(process.pid), seconds=20)


def test_two_runs_at_once_lose_nothing(tmp_path):
    processes = [start(*QUICK, activation, "--out", tmp_path) for activation in ("tanh", "plu")]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert set(plan.load(tmp_path)["depth"].activations) == {"tanh", "plu"}
    rows = (tmp_path / "summary.csv").read_text().splitlines()[1:]
    assert {tuple(row.split(",")[1:3]) for row in rows} == {(a, str(s)) for a in ("tanh", "plu") for s in range(6)}
    assert sum(f"another `plunit` is running in {tmp_path}; waiting" in text for text in said) <= 1


def test_a_full_disk_is_one_line_wherever_it_strikes(tmp_path):
    def limited(largest):
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    runs = {  # in run.json, in a figure
        largest: subprocess.Popen(
            [*PROGRAM, *QUICK, "plu,tanh", "--out", tmp_path / str(largest)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # Python keeps a bytecode file cut at the limit
            preexec_fn=lambda largest=largest: limited(largest),
        )
        for largest in (300, 40_000)
    }
    said = {largest: process.communicate(timeout=120)[1].splitlines() for largest, process in runs.items()}
    assert {process.returncode for process in runs.values()} == {2}
    assert [len(lines) for lines in said.values()] == [1] * 2
    assert all(line.startswith("plunit: the disk is full") for (line,) in said.values())
    assert all("run the same command again" in line for (line,) in said.values())
    assert list(tmp_path.rglob(".part-*")) == []
