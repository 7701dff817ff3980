"""Runs that resume, in this process, in others, and on a cluster."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from plunit.lab import executors, experiments, plan, run, store
from plunit.lab.errors import UserError
from plunit.lab.plan import Part


def arrays(folder, wanted):
    return {cell.key: store.read(folder, cell) for cell in plan.cells(wanted)}


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key, found in ours.items():
        for name, array in found.items():
            np.testing.assert_array_equal(array, theirs[key][name])


def complete(folder, wanted, executor=None, done=lambda cell: None):
    todo = run.missing(folder, plan.cells(wanted), lambda text: None)
    if executor:
        run.run(folder, todo, executor, done)
    else:
        with executors.here() as local:
            run.run(folder, todo, local, done)


def test_only_missing_cells_are_computed(tmp_path, small, monkeypatch):
    complete(tmp_path, small)
    before = arrays(tmp_path, small)
    cells = plan.cells(small)
    store.path_of(tmp_path, cells[3]).unlink()
    computed = []
    compute = experiments.compute
    monkeypatch.setattr(experiments, "compute", lambda cell, scratch: computed.append(cell) or compute(cell, scratch))
    complete(tmp_path, small)
    assert computed == [cells[3]]
    assert_same(arrays(tmp_path, small), before)


def test_damaged_cells_are_reported_and_computed_again(tmp_path, small):
    complete(tmp_path, small)
    before = arrays(tmp_path, small)
    cells = plan.cells(small)
    for cell in (cells[0], cells[5]):
        path = store.path_of(tmp_path, cell)
        path.write_bytes(path.read_bytes()[:-100])
    lines = []
    assert run.missing(tmp_path, cells, lines.append) == [cells[0], cells[5]]
    assert all("it is computed again" in line and ".npz" in line for line in lines)
    complete(tmp_path, small)
    assert_same(arrays(tmp_path, small), before)


def test_an_error_in_a_cell_keeps_the_others_and_cancels_the_rest(tmp_path, small, monkeypatch):
    cells = plan.cells(small)
    compute = experiments.compute

    def failing(cell, scratch):
        if cell == cells[4]:
            raise RuntimeError("a fault in the cell")
        return compute(cell, scratch)

    monkeypatch.setattr(experiments, "compute", failing)
    with executors.here() as local, pytest.raises(RuntimeError, match="a fault in the cell"):
        run.run(tmp_path, cells, local, lambda cell: None)
    kept = [cell for cell in cells if store.read(tmp_path, cell) is not None]
    assert kept[:4] == cells[:4]
    assert cells[4] not in kept
    assert len(kept) < len(cells) - 1


def test_processes_give_the_same_table(tmp_path):
    wanted = {"depth": Part(300, ("plu",), "eager")}
    complete(tmp_path / "here", wanted)
    with executors.processes(2) as pool:
        complete(tmp_path / "there", wanted, pool)
    assert_same(arrays(tmp_path / "here", wanted), arrays(tmp_path / "there", wanted))


def start(program, *arguments):
    command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_until(condition, seconds=60.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers on loopback; yields its address and the workers."""
    pytest.importorskip("distributed")
    contact = tmp_path / "scheduler.json"
    quiet = ("--no-dashboard",)
    processes = [start("dask_scheduler", "--host", "tcp://127.0.0.1:0", "--scheduler-file", str(contact), *quiet)]
    try:
        wait_until(lambda: contact.exists() and contact.stat().st_size > 0)
        address = json.loads(contact.read_text())["address"]
        folders = [("--local-directory", str(tmp_path / f"worker{i}")) for i in range(2)]
        workers = [
            start("dask_worker", address, "--nthreads", "1", "--no-nanny", *quiet, *folder) for folder in folders
        ]
        processes += workers
        yield address, workers
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.filterwarnings("ignore")  # Dask's own, about sockets of the worker that was killed
def test_a_cluster_that_loses_a_worker_gives_the_same_table(tmp_path, cluster):
    address, workers = cluster
    wanted = {"depth": Part(1024, ("plu",), "eager")}
    finished = []

    def done(cell):
        finished.append(cell)
        if len(finished) == 1:
            workers[0].kill()

    with executors.cluster(address) as executor:
        complete(tmp_path / "there", wanted, executor, done)
    assert workers[0].wait(10) == -signal.SIGKILL
    assert len(finished) == len(plan.cells(wanted))
    complete(tmp_path / "here", wanted)
    assert_same(arrays(tmp_path / "here", wanted), arrays(tmp_path / "there", wanted))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["bogus", "tcp://host", "host:8786"])
def test_a_cluster_address_has_a_form(address):
    pytest.importorskip("distributed")
    with pytest.raises(UserError, match=r"such as tcp://host:8786, got"), executors.cluster(address):
        pass


def test_a_cluster_that_does_not_answer_is_one_line():
    pytest.importorskip("distributed")
    with (
        pytest.raises(UserError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        executors.cluster("tcp://127.0.0.1:9"),
    ):
        pass
