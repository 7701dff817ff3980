"""Runs that resume, in this process, in others, and on a cluster; what they say and what they leave."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from waiting import wait_until

from plunit.base.errors import UserError
from plunit.base.machine import processors
from plunit.lab import plan, running, scratch, store
from plunit.lab.experiment import catalogue
from plunit.lab.plan import Part
from plunit.lab.train import depth

PROCESSES = running.processes  # which a fixture replaces
WANTED = {"inverse": Part("inverse", 3, ("plu", "tanh")), "depth": Part("depth", 300, ("plu",))}


@pytest.fixture(autouse=True)
def in_this_process(quick_lab, monkeypatch):
    """Small networks, computed in this process."""
    monkeypatch.setattr(running, "processes", lambda workers: running.here())


def todo(wanted):
    return {cell: part.experiment() for part in wanted.values() for cell in part.cells()}


def complete(folder, wanted, say=pytest.fail):
    """Compute the missing cells; return all arrays, and the cells that were computed."""
    cells = todo(wanted)
    have = store.read_all(folder, cells, say)
    with running.here() as local:
        new = running.run(folder, {cell: one for cell, one in cells.items() if cell not in have}, local)
    return have | new, [*new]


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    pairs = [(cell, name) for cell in ours for name in ours[cell]]
    different = [
        (cell, name) for cell, name in pairs if not np.array_equal(ours[cell][name], theirs[cell][name], equal_nan=True)
    ]
    assert different == []


def test_missing_and_damaged_cells_are_computed_again_and_damage_is_reported(tmp_path):
    before, cells = complete(tmp_path, WANTED)
    store.path_of(tmp_path, cells[3]).unlink()
    for cell in (cells[0], cells[5]):
        path = store.path_of(tmp_path, cell)
        path.write_bytes(path.read_bytes()[:-100])
    lines = []
    after, computed = complete(tmp_path, WANTED, lines.append)
    assert_same(after, before)
    assert set(computed) == {cells[0], cells[3], cells[5]}
    assert [("has to be computed again" in line, ".npz" in line) for line in lines] == [(True, True)] * 2
    assert_same(store.read_all(tmp_path, cells, pytest.fail), before)


def test_an_error_in_a_cell_keeps_the_others_and_cancels_the_rest(tmp_path):
    cells = todo({"inverse": WANTED["inverse"]})
    names, begun, over = list(cells), [], threading.Event()

    class Failing(type(cells[names[0]])):
        @staticmethod
        def compute(cell, scratch):
            begun.append(cell)
            if cell == names[2]:
                raise RuntimeError("a fault in the cell")
            return cells[cell].compute(cell, scratch) if cell in names[:2] else {"over": np.array([over.wait(60)])}

    faulty = {cell: Failing(one.name, one.title, one.spec) for cell, one in cells.items()}
    with running.here() as local:
        with pytest.raises(RuntimeError, match="a fault in the cell"):
            running.run(tmp_path, faulty, local)
        over.set()
    assert list(store.read_all(tmp_path, names, pytest.fail)) == names[:2]
    assert begun in (names[:3], names[:4])


def compute_in_parts(cell, place):
    """Leave a note of the progress first."""
    scratch.write_progress(place, 0.5)
    assert list(place.parent.iterdir())
    return depth.compute(cell, place)


def test_a_run_is_published_and_leaves_nothing_unfinished(console, tmp_path, monkeypatch):
    monkeypatch.setattr(type(catalogue()["depth"]), "compute", staticmethod(compute_in_parts))
    running.execute(
        tmp_path, plan.for_run(tmp_path, "depth", seeds=2, activations="plu", assignments=["depths=2,3"]), console
    )
    assert "report:" in console.export_text()
    command = f"plunit run depth --set depths=2,3 --seeds 2 --activations plu --out {tmp_path}"
    assert command in (tmp_path / "report.html").read_text()
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert plan.load(tmp_path)["depth+depths=2x3"].changes == {"depths": (2, 3)}


def test_activations_add_up_in_a_folder(console, tmp_path):
    running.execute(tmp_path, plan.for_run(tmp_path, "depth", seeds=5, activations="tanh,plu"), console)
    before = (tmp_path / "summary.csv").read_text().splitlines()
    running.execute(tmp_path, plan.for_run(tmp_path, "depth", activations="plu,gelu"), console)
    assert set(before) < set((tmp_path / "summary.csv").read_text().splitlines())
    assert "the tables no longer show" not in console.export_text()
    running.execute(tmp_path, plan.for_run(tmp_path, "depth", seeds=6, activations="plu"), console)
    assert "the tables no longer show the results of `plunit run depth --seeds 5" in console.export_text()


def absent(report):
    raise UserError("no data here; do this")


def test_data_that_cannot_be_had_is_an_error_or_a_line(console, tmp_path, monkeypatch):
    monkeypatch.setattr(type(catalogue()["inverse"]), "prepare", staticmethod(absent))
    wanted = plan.for_run(tmp_path, "depth", seeds=2, activations="plu")
    wanted |= plan.for_run(tmp_path, "inverse", seeds=1, activations="plu", assignments=["points=2"])
    with pytest.raises(UserError, match="no data here"):
        running.execute(tmp_path, wanted, console)
    running.execute(tmp_path, wanted, console, tolerant=True)
    said = console.export_text()
    assert "inverse+points=2: left out: no data here; do this" in said
    assert "report:" in said


def test_progress_of_unfinished_cells_counts(tmp_path):
    path = tmp_path / "unfinished" / "cell"
    assert scratch.read_progress(path) == 0
    scratch.write_progress(path, 0.25)
    assert scratch.read_progress(path) == 0.25
    path.with_name(f"{path.name}.progress").write_text("0.2x")
    assert scratch.read_progress(path) == 0
    scratch.clear(path)
    assert list(path.parent.iterdir()) == []


def test_a_full_disk_in_a_cell_is_raised_and_leaves_the_others(tmp_path, monkeypatch):
    write, written = store.write, []

    def full(folder, cell, arrays):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device", "somewhere")
        written.append(cell)
        write(folder, cell, arrays)

    monkeypatch.setattr(store, "write", full)
    with pytest.raises(OSError, match="No space left"):
        complete(tmp_path, WANTED)
    assert set(store.read_all(tmp_path, todo(WANTED), pytest.fail)) == set(written)


def start(program, *arguments):
    command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers on loopback; yields its address and the processes, the scheduler first."""
    pytest.importorskip("distributed")
    contact = tmp_path / "scheduler.json"
    quiet = ("--no-dashboard",)
    processes = [start("dask_scheduler", "--host", "tcp://127.0.0.1:0", "--scheduler-file", str(contact), *quiet)]
    try:
        wait_until(lambda: contact.exists() and contact.stat().st_size > 0)
        address = json.loads(contact.read_text())["address"]
        for i in range(2):
            local = ("--local-directory", str(tmp_path / f"worker{i}"))
            processes.append(start("dask_worker", address, "--nthreads", "1", "--no-nanny", *quiet, *local))
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.filterwarnings("ignore")  # Dask's own, about sockets of those that were killed
def test_a_cluster_may_lose_a_worker_and_without_its_scheduler_the_run_ends_in_one_line(
    tmp_path, cluster, console, monkeypatch
):
    address, (scheduler, lost, _) = cluster
    many = {"depth": Part("depth", 2048, ("plu",))}
    finished = []

    def show(cell, part):
        if part == 1:
            finished.append(cell)
            lost.kill()

    with running.cluster(address) as executor:
        there = running.run(tmp_path / "there", todo(many), executor, show)
    assert lost.wait(10) == -signal.SIGKILL
    assert len(finished) == 8
    assert_same(complete(tmp_path / "here", many)[0], there)
    write = store.write
    monkeypatch.setattr(store, "write", lambda *arguments: (scheduler.kill(), write(*arguments)))
    with pytest.raises(UserError, match=r"^the workers died|^the Dask scheduler"):
        running.execute(tmp_path / "runs", many, console, cluster=address)


def connected(address):
    pytest.importorskip("distributed")
    with running.cluster(address):
        pytest.fail("there is none")


def executed(folder, console, cluster, workers=0):
    running.execute(folder, WANTED, console, workers=workers, cluster=cluster)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda *where: executed(*where, "tcp://a:1", workers=2), "choose either workers or a cluster"),
        (lambda folder, console: running.publish(folder / "new", console), "holds no results; `plunit reproduce`"),
        (lambda folder, console: running.publish(folder, console), "has no finished experiment; `plunit reproduce`"),
        *(
            (lambda *where, one=one: executed(*where, one), "such as tcp://host:8786")
            for one in ("bogus", "tcp://h", "h:86")
        ),
        (lambda *_: connected("tcp://127.0.0.1:9"), "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_messages(call, said, console, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "PATIENCE", 0.2)
    plan.save(tmp_path, {})
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        call(tmp_path, console)
    assert said in str(error.value)


def test_clean_removes_what_the_report_does_not_use(tmp_path, console):
    running.execute(tmp_path, {"inverse": Part("inverse", 2, ("plu", "tanh"))}, console)
    for seeds in (3, 4):
        running.execute(tmp_path, {"depth": Part("depth", seeds, ("plu",))}, console)
    pages = {path.name: path.read_bytes() for path in tmp_path.glob("*.csv")}
    cells = set((tmp_path / "cells").iterdir())
    old = {store.path_of(tmp_path, cell) for cell in Part("depth", 3, ("plu",)).cells()}
    running.clean(tmp_path, console)
    assert cells - set((tmp_path / "cells").iterdir()) == old
    assert "1 file, " in console.export_text().splitlines()[-1]
    running.publish(tmp_path, console)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.csv")} == pages


def test_clean_waits_for_a_run_and_refuses_a_plan_that_it_cannot_read(tmp_path, console):
    running.execute(tmp_path, {"depth": Part("depth", 3, ("plu",))}, console)
    other = tmp_path / "cells" / f"depth-plu-0-{'0' * 32}.npz"
    other.touch()
    cleaner = threading.Thread(target=running.clean, args=(tmp_path, console), daemon=True)
    with store.lock(tmp_path, "run", pytest.fail):
        cleaner.start()
        wait_until(lambda: "another `plunit` is running in" in console.export_text(clear=False))
        assert other.exists()
    cleaner.join(60)
    assert not other.exists()
    other.touch()
    (tmp_path / "run.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError):
            running.clean(folder, console)
    assert other.exists()


def test_a_worker_has_one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with PROCESSES(1) as workers:
        assert [workers.submit(count).result() for count in (processors, torch.get_num_threads)] == [1, 1]
    assert processors() == 3
