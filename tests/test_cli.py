"""The command line: a whole run, its errors, and runs that are stopped."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path

import pytest
from commands import PROGRAM, run

import plunit
from plunit.cli import lab
from plunit.lab import running


@pytest.mark.parametrize(
    ("words", "kept"),
    [(["list"], False), (["report"], False), (["reproduce"], True), (["run", "sine"], True)],
)
def test_only_commands_that_store_work_say_so_when_they_are_stopped(monkeypatch, tmp_path, words, kept):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    importlib.import_module("plunit.lab.plan")  # so that it keeps the real catalogue
    for place in ("experiment.catalogue", "running.publish", "running.execute"):
        monkeypatch.setattr(f"plunit.lab.{place}", stop)
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (130, "", 1)
    assert ("stored" in err) == kept


def test_ctrl_c_after_the_last_line_ends_with_130_and_no_traceback():
    press = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    program = f"import sys; sys.argv[1:] = ['--version']; {PROGRAM[-1]}; {press}"
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # a background job's children would not
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, preexec_fn=heed)
    assert (done.returncode, done.stdout, done.stderr) == (130, f"{plunit.__version__}\n", "")


def test_version_and_the_list_of_experiments():
    assert run("--version") == (0, f"{plunit.__version__}\n", "")
    code, out, _ = run("list")
    names = {line.split()[0] for line in out.splitlines() if line}
    assert code == 0
    assert {"sine", "parametric", "surface", "reach", "depth"} <= names
    assert "plu_learned" in out
    assert "; steps=2048; stride=16; target=sine; widths=1,3,3,1\n" in out


def test_the_list_says_what_old_cells_take_and_how_to_remove_them(tmp_path):
    for seeds in (2, 3):
        lab.run("depth", seeds=seeds, activations="plu", out=tmp_path / "my runs")
    code, out, err = run("list", "my runs", folder=tmp_path)
    assert (code, err) == (0, "")
    last = out.splitlines()[-1]
    assert last.startswith("my runs: 1 file, ")
    assert "`plunit clean 'my runs'` removes" in last
    assert run("clean", "my runs", folder=tmp_path)[0] == 0
    assert run("list", "my runs", folder=tmp_path)[1] == out.removesuffix(f"{last}\n")


def test_the_list_is_shown_whatever_the_folder_of_results_is(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run.json").write_text("{}")
    code, out, err = run("list", folder=tmp_path)
    assert (code, err, out.splitlines()[-1]) == (
        0,
        "",
        "runs/run.json was not written by plunit; choose another folder",
    )


@pytest.mark.parametrize("command", ["", "reproduce", "run", "report", "list", "clean", "pieces", "data", "compare"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(command, option):
    code, out, _ = run(*([command] if command else []), option)
    assert (code, "Usage: plunit" in out) == (0, True)


def test_without_a_command_the_list_of_them_is_shown():
    code, _, err = run()
    assert (code, "Usage: plunit" in err, "reproduce" in err) == (2, True, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "nope"], "unknown experiment 'nope'; choose one of capacity, capacity-curve, frequency, sine"),
        (["run", "sine", "--activations", "plu,swish"], "unknown activation 'swish'"),
        (["run", "sine", "--engine", "turbo"], "unknown engine 'turbo'; choose one of native, numpy"),
        (["reproduce", "--seeds", "0"], "seeds must be a whole number (1 to 100000), got 0"),
        (
            ["run", "depth", "--out", "/dev/null/here"],
            "/dev/null/here: Not a directory; correct that",
        ),
        (["report", "/no/such/folder"], "/no/such/folder holds no results"),
        (["clean", "/no/such/folder"], "/no/such/folder holds no results"),
        (["clean", "old"], "old holds results of plunit 0.0.1, this is"),
        (["run", "sine", "--out", "old"], "old holds results of plunit 0.0.1, this is"),
        (["report", "pipe"], "pipe/run.json was not written by plunit; choose another folder"),
        (["run"], "Missing argument 'name'; see plunit run --help"),
        (["run", "sine", "--seeds", "many"], "Invalid value for '--seeds'"),
        (["run", "sine", "--nope"], "No such option: --nope"),
        (["nope"], "No such command 'nope'; see plunit --help"),
        (["run", "\x1b[31m"], r"unknown experiment '\x1b[31m'"),
    ],
)
def test_a_user_s_error_is_one_line_and_exit_code_2(tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    for folder in ("old", "pipe"):
        Path(folder).mkdir()
    Path("old/run.json").write_text(json.dumps({"plunit": "0.0.1", "experiments": {}}))
    os.mkfifo("pipe/run.json")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("plunit: ")
    assert err.removesuffix("\n").isprintable()  # so it is one line
    assert text in err


@pytest.mark.parametrize(
    ("command", "extra", "package"),
    [
        *(("report", "lab", name) for name in ("typer", "rich", "torch", "matplotlib", "jinja2")),
        ("play", "play", "typer"),
        *(("fit", "fit", name) for name in ("typer", "sklearn", "scipy")),
        *((command, "fit", "rich") for command in ("pieces", "prove")),
    ],
)
def test_a_missing_package_is_one_line_with_the_remedy(command, extra, package, tmp_path):
    program = f"import sys; sys.modules[{package!r}] = None; sys.argv[1:] = [{command!r}, 'x']; {PROGRAM[-1]}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert (
        run.stderr == f"plunit: this command needs {package}, which is not installed; pip install 'plunit[{extra}]'\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit none.csv --target y", "none.csv does not exist."),
        ("fit table.csv --target y --hidden 8,x", "--hidden must be"),
        ("fit table.csv --target y --bits 9", "--bits must be 8 or 16"),
        ("compare none.csv --target y", "none.csv does not exist."),
        ("pieces none.onnx", "none.onnx: No such file"),
        ("pieces net.onnx --box a", "--box needs numbers"),
        ("pieces net.onnx --save net.txt", "net.txt has the extension '.txt'"),
        ("prove none.onnx none.vnnlib", "none.onnx: No such file"),
        ("prove net.onnx none.vnnlib", "none.vnnlib: No such file"),
        ("prove net.onnx net.vnnlib --witness no/file", "--witness no/file must be"),
    ],
)
def test_a_wrong_name_or_option_is_reported_before_heavy_packages_are_imported(words, said, tmp_path):
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{i},{i}\n" for i in range(20)))
    for name in ("net.onnx", "net.vnnlib"):
        (tmp_path / name).write_bytes(b"\x08\x07")
    heavy = ("sklearn", "matplotlib", "torch", "onnx", "jinja2", "pandas")
    program = f"import sys; sys.argv[1:] = {words.split()}\ntry: {PROGRAM[-1]}\n"
    program += f"finally: print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "\n")
    assert done.stderr.startswith(f"plunit: {said}")


def test_a_missing_dask_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("run", "sine", "--seeds", "1", "--out", tmp_path, "--cluster", "tcp://127.0.0.1:1")
    text = "a cluster needs distributed, which is not installed; pip install 'plunit[cluster]'"
    assert (code, err) == (2, f"plunit: {text}\n")


@pytest.mark.parametrize("loss", [BrokenExecutor, CancelledError])
def test_workers_that_die_are_one_line(tmp_path, monkeypatch, loss):
    def lose(*arguments):
        raise loss

    monkeypatch.setattr(running, "run", lose)
    code, out, err = run("run", "depth", "--seeds", "1", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert err == "plunit: the workers died with 3 cells to go; the same command continues from there\n"


def test_a_run_ends_with_a_table_and_the_path_of_the_report(tmp_path, capsys):
    folder = tmp_path / "[red]"  # brackets are printed as they are
    lab.run("depth", seeds=8, out=folder)
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"report: {folder / 'report.html'}"
    assert "statements of the paper: " in out
    assert (folder / "summary.csv").exists()
    lab.report(folder)
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(
    ("compiler", "more", "code", "said"),
    [
        ("no-such-compiler", [], 0, "no C++ compiler found (CXX is 'no-such-compiler'): training runs in NumPy"),
        ("false", ["--engine", "native"], 2, "plunit: the native engine is not available: "),
    ],
)
def test_without_a_compiler_one_line_says_so(tmp_path, compiler, more, code, said):
    command = [*PROGRAM, "run", "sine", "--seeds", "1", "--activations", "relu", *more, "--out", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CXX": compiler})
    lines = (run.stderr or run.stdout).splitlines()
    assert (run.returncode, lines[0].startswith(said)) == (code, True)
    assert lines[-1] == f"report: {tmp_path / 'report.html'}" if not code else "CXX=false" in run.stderr


def finished(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.npz")}


@pytest.mark.kills
def test_a_run_killed_again_and_again_ends_with_the_same_table(tmp_path):
    """Kill -9 and Ctrl-C, at moments of the run's own; then to the end."""
    experiment = ["run", "sine", "--seeds", "1000", "--set", "steps=400"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for goal, sign in ((1, signal.SIGKILL), (3, signal.SIGINT)):
        before = finished(killed)
        process = subprocess.Popen(
            [*PROGRAM, *experiment, "--out", str(killed)],
            stdout=subprocess.PIPE,
            text=True,
            # a shell's background job ignores SIGINT, and so would its children
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while len(finished(killed)) < goal and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(sign)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == (130 if sign == signal.SIGINT else -signal.SIGKILL)
        assert sign != signal.SIGINT or re.search(r"stopped with \d+ cells to go; .* the same command continues", out)
        after = finished(killed)
        assert goal <= len(after) < 16
        assert before.items() <= after.items()
    before = finished(killed)
    for folder in (killed, whole):
        subprocess.run([*PROGRAM, *experiment, "--out", str(folder)], check=True, capture_output=True)
    assert before.items() <= finished(killed).items()
    assert len(finished(killed)) == 16
    tables = "summary.csv", "claims.csv"
    assert [(killed / name).read_bytes() for name in tables] == [(whole / name).read_bytes() for name in tables]
