"""Long experiments through the session: requests, lengths, data that cannot be had, starting anew, Ctrl-C."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from plunit.lab import executors, experiments, plan, scratch, session, store, warp
from plunit.lab.errors import UserError
from plunit.lab.plan import Part


@pytest.fixture
def quick(monkeypatch):
    """A short and small swirl, computed in this process."""
    small = dataclasses.replace(warp.SPECS["warp"], batch=16, depth=1, lines=2, dots=3, points=20)
    monkeypatch.setitem(warp.SPECS, "warp", small)
    monkeypatch.setattr(executors, "processes", lambda workers: executors.here())


@pytest.fixture
def console():
    return Console(record=True, width=200, force_terminal=False)


def test_a_request_takes_steps_and_seeds_of_long_experiments():
    part = session.request(["cifar10"], None, (), "", 500)["cifar10"]
    assert part == Part(1, ("tanh", "relu", "plu", "identity"), "torch", 500)
    assert session.request(["cifar10"], 3, ("gelu",), "")["cifar10"] == Part(3, ("gelu",), "torch", 100_000)
    assert session.request(["sine"], None, (), "eager", quick=True)["sine"].seeds == 64


@pytest.mark.parametrize(
    ("names", "keywords", "said"),
    [
        (["sine"], {"steps": 5}, "the length of sine is fixed"),
        (["cifar10"], {"steps": 0}, "--steps must be 1 or more, got 0"),
        (["cifar10"], {"seeds": 0}, "--seeds must be 1 or more, got 0"),
        (["cifar10"], {"activations": ("elu",)}, "unknown activation 'elu'; cifar10 takes tanh, relu, plu"),
        (["density"], {"activations": ("plu",)}, "density takes gaussian, plain"),
        (["nothing"], {}, "unknown experiment 'nothing'"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line(names, keywords, said):
    arguments = {"seeds": None, "activations": (), "engine": ""} | keywords
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        session.request(names, **arguments)
    assert said in str(error.value)


def test_reproduce_keeps_long_experiments_short_unless_full(tmp_path):
    names = ["sine", "cifar10", "density", "density-wine"]
    short = session.everything(tmp_path, names, 7, "eager", quick=False, full=False)
    assert (short["sine"].seeds, short["cifar10"].seeds, short["density"].seeds) == (7, 1, 5)
    assert (short["cifar10"].steps, short["density"].steps, short["sine"].steps) == (500, 300, 0)
    assert short["density-wine"].steps == 200  # its full length
    full = session.everything(tmp_path, names, None, "eager", quick=False, full=True)
    assert (full["cifar10"].steps, full["density"].steps) == (100_000, 3000)


def test_reproduce_keeps_a_longer_run_that_is_finished(quick, console, tmp_path, monkeypatch):
    monkeypatch.setattr(warp, "SHORT", 2)
    monkeypatch.setattr(warp, "SEEDS", 1)

    def steps():
        return session.everything(tmp_path, ["warp"], None, "", quick=False, full=False)["warp"].steps

    assert steps() == 2
    longer = session.request(["warp"], 1, (), "", 4)
    session.execute(tmp_path, longer, 0, "", console)
    assert steps() == 4
    full = session.everything(tmp_path, ["warp"], None, "", quick=False, full=True)["warp"]
    assert full.steps == warp.SPECS["warp"].steps > 4
    store.path_of(tmp_path, plan.cells(longer)[0]).unlink()  # unfinished: nobody asked for the rest
    assert steps() == 2
    session.execute(tmp_path, session.request(["warp"], 1, ("plu",), "", 4), 0, "", console)
    assert steps() == 2  # an activation short
    wider = session.request(["warp"], 3, (), "", 2)
    session.execute(tmp_path, wider, 0, "", console)
    assert session.everything(tmp_path, ["warp"], None, "", quick=False, full=False) == wider


def test_a_long_run_is_published_and_leaves_nothing_unfinished(quick, console, tmp_path):
    session.execute(tmp_path, session.request(["warp"], 2, ("plu",), "", 3), 0, "", console)
    assert "report:" in console.export_text()
    text = (tmp_path / "report.html").read_text()
    assert "plunit run warp --seeds 2 --steps 3 --activations plu --out runs" in text
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert json.loads((tmp_path / "run.json").read_text())["experiments"]["warp"]["steps"] == 3


def test_fresh_computes_anew_and_resume_does_not(quick, console, tmp_path, monkeypatch):
    wanted = session.request(["warp"], 1, ("plu",), "", 2)
    computed = []
    compute = experiments.compute
    monkeypatch.setattr(experiments, "compute", lambda *given: computed.append(given) or compute(*given))
    session.execute(tmp_path, wanted, 0, "", console)
    session.execute(tmp_path, wanted, 0, "", console)
    assert len(computed) == 1
    (cell,) = plan.cells(wanted)
    scratch.report(scratch.path_of(tmp_path, cell), 0.5)
    session.execute(tmp_path, wanted, 0, "", console, fresh=True)
    assert len(computed) == 2
    assert store.read(tmp_path, cell) is not None


def test_data_that_cannot_be_had_is_an_error_or_a_line(quick, console, tmp_path, monkeypatch):
    def absent(report):
        raise UserError("no data here; do this")

    monkeypatch.setattr(warp, "prepare", absent)
    wanted = session.request(["depth"], 2, ("plu",), "eager") | session.request(["warp"], 1, ("plu",), "", 2)
    with pytest.raises(UserError, match="no data here"):
        session.execute(tmp_path, wanted, 0, "", console)
    session.execute(tmp_path, wanted, 0, "", console, tolerant=True)
    said = console.export_text()
    assert "warp: left out: no data here; do this" in said
    assert "report:" in said


def test_progress_of_unfinished_cells_counts(quick, tmp_path):
    (cell,) = plan.cells(session.request(["warp"], 1, ("plu",), "", 2))
    path = scratch.path_of(tmp_path, cell)
    assert scratch.done(path) == 0
    scratch.report(path, 0.25)
    assert scratch.done(path) == 0.25
    path.with_name(f"{path.name}.progress").write_text("0.2x")
    assert scratch.done(path) == 0
    scratch.clear(tmp_path, cell)
    assert list(path.parent.iterdir()) == []


def heed_ctrl_c():
    """A shell's background job ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_stops_long_cells_at_once(tmp_path):
    command = [sys.executable, "-c", "from plunit.cli import main; main()"]
    command += ["run", "warp", "--steps", "1000000", "--activations", "plu", "--out", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=heed_ctrl_c
    )
    limit = time.monotonic() + 300
    while not list(tmp_path.glob("unfinished/*.progress")):
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped with 1 cells to go" in said
    assert "Traceback" not in said


def test_fresh_keeps_what_is_finished_until_it_is_replaced(quick, console, tmp_path, monkeypatch):
    wanted = session.request(["warp"], 1, ("plu",), "", 2)
    session.execute(tmp_path, wanted, 0, "", console)

    def absent(report):
        raise UserError("no data here; do this")

    monkeypatch.setattr(warp, "prepare", absent)
    with pytest.raises(UserError, match="no data here"):
        session.execute(tmp_path, wanted, 0, "", console, fresh=True)
    (cell,) = plan.cells(wanted)
    assert store.read(tmp_path, cell) is not None


def test_an_activation_named_twice_is_run_once():
    assert session.request(["warp"], 2, ("plu", "plu"), "", 2)["warp"].activations == ("plu",)


@pytest.mark.parametrize(
    "changes", [{"seeds": "x"}, {"seeds": 0}, {"steps": -5}, {"steps": "x"}, {"activations": ["nosuch"]}]
)
def test_a_plan_edited_into_nonsense_is_one_line(changes, tmp_path):
    part = {"seeds": 1, "activations": ["plu"], "engine": "torch", "steps": 2} | changes
    plan.save(tmp_path, {})
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"experiments": {"warp": part}}))
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        plan.load(tmp_path)
    assert str(path) in str(error.value)
