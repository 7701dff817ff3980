"""Runs that resume, in this process, in others, and on a cluster; what they say and what they leave."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from waiting import wait_until

from plunit.base.errors import UserError
from plunit.lab import plan, running, scratch, store
from plunit.lab.experiment import catalogue
from plunit.lab.plan import Part
from plunit.lab.running import Where

WANTED = {"inverse": Part("inverse", 3, ("relu", "tanh")), "depth": Part("depth", 300, ("plu",))}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small networks, computed in this process."""
    known = catalogue()
    specs = {
        "inverse": dataclasses.replace(known["inverse"].spec, depths=(1,), values=100, points=4),
        "depth": dataclasses.replace(known["depth"].spec, depths=(2, 3)),
        "warp": dataclasses.replace(known["warp"].spec, batch=16, depth=1, lines=2, dots=3, points=20),
    }
    quick = known | {name: dataclasses.replace(known[name], spec=spec) for name, spec in specs.items()}
    monkeypatch.setattr(plan, "catalogue", lambda: quick)
    monkeypatch.setattr(plan, "catalogue", lambda: quick)
    monkeypatch.setattr(running, "processes", lambda workers: running.here())


@pytest.fixture
def console():
    return Console(record=True, width=300, force_terminal=False)


def todo(wanted):
    return {cell: part.experiment() for part in wanted.values() for cell in part.cells()}


def complete(folder, wanted, executor=None, done=lambda cell: None):
    """Compute the missing cells and return all arrays."""
    cells = todo(wanted)
    have = store.read_all(folder, cells, lambda text: None)
    absent = {cell: one for cell, one in cells.items() if cell not in have}
    if executor:
        return have | running.run(folder, absent, executor, done)
    with running.here() as local:
        return have | running.run(folder, absent, local, done)


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    pairs = [(cell, name) for cell in ours for name in ours[cell]]
    different = [
        (cell, name) for cell, name in pairs if not np.array_equal(ours[cell][name], theirs[cell][name], equal_nan=True)
    ]
    assert different == []


def test_only_missing_cells_are_computed(tmp_path):
    before = complete(tmp_path, WANTED)
    cells = list(before)
    store.path_of(tmp_path, cells[3]).unlink()
    computed = []
    assert_same(complete(tmp_path, WANTED, done=computed.append), before)
    assert computed == [cells[3]]
    assert_same(store.read_all(tmp_path, cells, pytest.fail), before)


def test_damaged_cells_are_reported_and_computed_again(tmp_path):
    before = complete(tmp_path, WANTED)
    cells = list(before)
    for cell in (cells[0], cells[5]):
        path = store.path_of(tmp_path, cell)
        path.write_bytes(path.read_bytes()[:-100])
    lines = []
    found = store.read_all(tmp_path, cells, lines.append)
    assert [cell for cell in cells if cell not in found] == [cells[0], cells[5]]
    assert [("has to be computed again" in line, ".npz" in line) for line in lines] == [(True, True)] * 2
    assert_same(complete(tmp_path, WANTED), before)


def test_an_error_in_a_cell_keeps_the_others_and_cancels_the_rest(tmp_path):
    cells = todo(WANTED)
    names = list(cells)

    kind = type(cells[names[2]])

    class Failing(kind):
        @staticmethod
        def compute(cell, scratch):
            if cell == names[2]:
                raise RuntimeError("a fault in the cell")
            return kind.compute(cell, scratch)

    faulty = {cell: Failing(one.name, one.title, one.spec) if type(one) is kind else one for cell, one in cells.items()}
    with running.here() as local, pytest.raises(RuntimeError, match="a fault in the cell"):
        running.run(tmp_path, faulty, local, lambda cell: None)
    kept = list(store.read_all(tmp_path, names, pytest.fail))
    assert kept[:2] == names[:2]
    assert names[2] not in kept
    assert len(kept) < len(names) - 1


def test_a_run_is_published_and_leaves_nothing_unfinished(console, tmp_path):
    running.execute(tmp_path, plan.one(tmp_path, "warp", seeds=2, activations="plu", steps=3), Where(), console)
    assert "report:" in console.export_text()
    assert "plunit run warp --seeds 2 --steps 3 --activations plu --out runs" in (tmp_path / "report.html").read_text()
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert json.loads((tmp_path / "run.json").read_text())["experiments"]["warp"]["steps"] == 3


def test_activations_add_up_in_a_folder(console, tmp_path):
    running.execute(tmp_path, plan.one(tmp_path, "depth", seeds=5, activations="tanh,plu"), Where(), console)
    before = (tmp_path / "summary.csv").read_text().splitlines()
    running.execute(tmp_path, plan.one(tmp_path, "depth", activations="plu,gelu"), Where(), console)
    assert set(before) < set((tmp_path / "summary.csv").read_text().splitlines())
    assert "the tables no longer show" not in console.export_text()
    running.execute(tmp_path, plan.one(tmp_path, "depth", seeds=6, activations="plu"), Where(), console)
    assert "the tables no longer show the results of `plunit run depth --seeds 5" in console.export_text()


def test_fresh_computes_anew_and_resume_does_not(console, tmp_path):
    wanted = plan.one(tmp_path, "depth", seeds=2, activations="plu")
    (cell,) = wanted["depth"].cells()
    path = store.path_of(tmp_path, cell)
    running.execute(tmp_path, wanted, Where(), console)
    written = path.stat().st_mtime_ns
    running.execute(tmp_path, wanted, Where(), console)
    assert path.stat().st_mtime_ns == written
    scratch.write_progress(scratch.path_of(tmp_path, path.stem), 0.5)
    running.execute(tmp_path, wanted, Where(), console, fresh=True)
    assert path.stat().st_mtime_ns > written
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_reproduce_keeps_a_longer_run_that_is_finished(console, tmp_path, monkeypatch):
    kind = type(catalogue()["warp"])
    monkeypatch.setattr(kind, "short", 2)
    monkeypatch.setattr(kind, "seeds", 1)

    def asked(**options):
        return plan.everything(tmp_path, ["warp"], **options)["warp"]

    assert asked().steps == 2
    longer = plan.one(tmp_path, "warp", seeds=1, steps=4)
    running.execute(tmp_path, longer, Where(), console)
    assert asked().steps == 4
    assert asked(full=True).steps == 3000
    store.path_of(tmp_path, longer["warp"].cells()[0]).unlink()  # unfinished: nobody asked for the rest
    assert asked().steps == 2
    wider = plan.one(tmp_path, "warp", seeds=3, steps=2)
    running.execute(tmp_path, wider, Where(), console)
    assert asked() == wider["warp"]


def absent(report):
    raise UserError("no data here; do this")


def test_data_that_cannot_be_had_is_an_error_or_a_line(console, tmp_path, monkeypatch):
    monkeypatch.setattr(type(catalogue()["warp"]), "prepare", staticmethod(absent))
    wanted = plan.one(tmp_path, "depth", seeds=2, activations="plu")
    wanted |= plan.one(tmp_path, "warp", seeds=1, activations="plu", steps=2)
    with pytest.raises(UserError, match="no data here"):
        running.execute(tmp_path, wanted, Where(), console)
    running.execute(tmp_path, wanted, Where(), console, tolerant=True)
    said = console.export_text()
    assert "warp: left out: no data here; do this" in said
    assert "report:" in said


def test_fresh_keeps_what_is_finished_until_it_is_replaced(console, tmp_path, monkeypatch):
    wanted = plan.one(tmp_path, "warp", seeds=1, activations="plu", steps=2)
    running.execute(tmp_path, wanted, Where(), console)
    monkeypatch.setattr(type(catalogue()["warp"]), "prepare", staticmethod(absent))
    with pytest.raises(UserError, match="no data here"):
        running.execute(tmp_path, wanted, Where(), console, fresh=True)
    assert len(store.read_all(tmp_path, wanted["warp"].cells(), pytest.fail)) == 1


def test_progress_of_unfinished_cells_counts(tmp_path):
    path = scratch.path_of(tmp_path, "cell")
    assert scratch.done(path) == 0
    scratch.write_progress(path, 0.25)
    assert scratch.done(path) == 0.25
    path.with_name(f"{path.name}.progress").write_text("0.2x")
    assert scratch.done(path) == 0
    scratch.clear(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ((-1, ""), "--workers must be a whole number from 0"),
        ((10**11, ""), "to 1,024, got 1000"),
        ((2, "tcp://a:1"), "either"),
    ],
)
def test_places_that_are_none(where, said):
    with pytest.raises(UserError, match=said):
        Where(*where)


@pytest.mark.parametrize("folder", ["new", "empty"])
def test_a_report_of_nothing_is_one_line(console, tmp_path, folder):
    if folder == "empty":
        plan.save(tmp_path / folder, {})
    with pytest.raises(UserError, match="plunit reproduce --out"):
        running.publish(tmp_path / folder, console)


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


MANY = {"depth": Part("depth", 2048, ("plu",))}


@pytest.mark.filterwarnings("ignore")  # Dask's own, about sockets of the worker that was killed
def test_a_cluster_that_loses_a_worker_gives_the_same_table(tmp_path, cluster):
    address, (_, lost, _) = cluster
    finished = []

    def done(cell):
        finished.append(cell)
        if len(finished) == 1:
            lost.kill()

    with running.cluster(address) as executor:
        there = complete(tmp_path / "there", MANY, executor, done)
    assert lost.wait(10) == -signal.SIGKILL
    assert len(finished) == 8
    assert_same(complete(tmp_path / "here", MANY), there)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_whose_scheduler_dies_is_one_line(tmp_path, cluster, console):
    address, (scheduler, *_) = cluster
    store_write = store.write

    def dying(*arguments):
        scheduler.kill()
        store_write(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", dying)
        with pytest.raises(UserError, match=r"^the workers died|^the Dask scheduler"):
            running.execute(tmp_path / "runs", MANY, Where(cluster=address), console)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["bogus", "tcp://host", "host:8786"])
def test_a_cluster_address_has_a_form(address):
    pytest.importorskip("distributed")
    with pytest.raises(UserError, match=r"such as tcp://host:8786, got"), running.cluster(address):
        pass


def test_a_cluster_that_does_not_answer_is_one_line():
    pytest.importorskip("distributed")
    with (
        pytest.raises(UserError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        running.cluster("tcp://127.0.0.1:9"),
    ):
        pass
