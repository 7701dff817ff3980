"""Keys of cells: all that determines a result is in them, the source among it, and nothing else."""

import dataclasses
import itertools
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from plunit.lab.cell import PACKAGE, closure, digest, program_of
from plunit.lab.experiment import catalogue

SINE = catalogue()["sine"]
(CELL,) = SINE.cells(["plu"], 8, "numpy")
FAMILIES = ["sine_parametric_surface", "capacity_frequency", "depth", "inverse", "cost", "cifar10", "compare"]
READ_ONLY = [f"{name}.py" for name in ("claims", "pictures", "report", "plan", "running")]


@pytest.mark.parametrize(
    "change",
    [
        {"activation": "tanh"},
        {"first": 1},
        {"last": 9},
        {"engine": "native"},
        {"program": "another"},
        {"spec": dataclasses.replace(SINE.spec, lr=0.02)},
        {"spec": dataclasses.replace(SINE.spec, widths=(1, 4, 3, 1))},
        {"spec": dataclasses.replace(SINE.spec, checkpoints=())},
    ],
    ids=str,
)
def test_all_that_determines_the_result_is_in_the_key(change):
    assert dataclasses.replace(CELL, **change).key != CELL.key


def test_the_version_is_in_the_key_and_the_path_of_a_table_is_not(monkeypatch):
    compare = catalogue()["compare"]
    here, there = (compare.vary({"sha256": "1", "path": path}).cells(["plu"], 1, "numpy") for path in ("a", "b"))
    assert dataclasses.replace(here[0], experiment="") == dataclasses.replace(there[0], experiment="")
    assert "path" not in here[0].describe()["spec"]
    before = CELL.key
    monkeypatch.setattr("plunit.lab.cell.__version__", "9.9.9")
    assert CELL.key != before


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package that may be edited."""
    place = tmp_path_factory.mktemp("copy") / "plunit"
    return Path(shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__", "*.so")))


def unchanged(run, copy, files):
    """Return the files whose change leaves the hash of a module."""
    before, found = digest(run, copy), []
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        found += [file] if digest(run, copy) == before else []
        file.write_bytes(content)
    return found


def test_every_module_of_another_package_is_hashed(tmp_path):
    folder = tmp_path / "mypack" / "inner"
    folder.mkdir(parents=True)
    for name in ("__init__", "helper", "inner/__init__", "inner/helper", "inner/run", "../beside"):
        (tmp_path / "mypack" / f"{name}.py").write_text("SIZE = 1\n")
    hashes = [digest(folder / "run.py")]
    for file in ("mypack/helper.py", "mypack/inner/helper.py", "beside.py"):
        (tmp_path / file).write_text("SIZE = 2\n")
        hashes.append(digest(folder / "run.py"))
    assert [one != other for one, other in itertools.pairwise(hashes)] == [True, True, False]


@pytest.mark.parametrize("family", ["compare", "cifar10"])  # the longer closures of the others take seconds
def test_each_file_of_the_closure_changes_the_key(copy, family):
    run = copy / "lab" / "train" / f"{family}.py"
    files = closure(run, copy)
    assert unchanged(run, copy, files) == []
    assert {run, copy / "lab" / "cell.py"} <= set(files)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_only_reads_leaves_the_key(copy, family):
    readers = [copy / "lab" / name for name in (f"read/{family}.py", *READ_ONLY)]
    assert unchanged(copy / "lab" / "train" / f"{family}.py", copy, readers) == readers


@pytest.mark.parametrize(
    ("family", "needs"),
    [
        (
            "sine_parametric_surface",
            ["programs/csrc/train.cpp", "programs/csrc/activations.h", "ensemble/numpy_steps.py", "learned.py"],
        ),
        ("cifar10", ["torch/csrc/native.cpp", "torch/op.py", "lab/scratch.py", "lab/cifar10_data.py"]),
        (
            "capacity_frequency",
            ["programs/csrc/train.cpp", "ensemble/training.py", "lab/train/sine_parametric_surface.py"],
        ),
        ("cost", ["torch/csrc/native.cpp", "torch/composite.py"]),
    ],
)
def test_the_closure_holds_what_the_program_runs(family, needs):
    names = {str(file.relative_to(PACKAGE)) for file in closure(PACKAGE / "lab" / "train" / f"{family}.py")}
    assert set(needs) <= names


@pytest.mark.parametrize(("engine", "other"), [("native", True), ("numpy", False), ("", False)])
def test_a_program_that_rounds_twice_has_another_key(monkeypatch, engine, other):
    keys = []
    for fused in (True, False):
        monkeypatch.setattr("plunit.lab.experiment.is_fused", lambda fused=fused: fused)
        keys.append(SINE.cells(["plu"], 8, engine)[0].key)
    assert (keys[0] != keys[1]) == other


def test_a_name_that_is_loaded_later_counts_where_it_is_used(tmp_path):
    module = tmp_path / "run.py"
    module.write_text("from plunit.pieces import counts\n")
    files = {path.name for path in closure(module)}
    assert "line_curves.py" in files
    assert not files & {"questions.py", "reading.py"}
    module.write_text("from plunit.pieces import maximum\n")
    assert {"questions.py", "bounding.py", "linear.py"} <= {path.name for path in closure(module)}


@pytest.mark.parametrize(("library", "counts"), [("scipy", True), ("scikit-learn", True), ("matplotlib", False)])
def test_versions_of_all_libraries_that_another_package_imports_are_in_the_key(monkeypatch, tmp_path, library, counts):
    imports = "import os\nimport scipy.stats\nimport sklearn\nimport matplotlib\nimport absent\nimport mine.helper\n"
    (tmp_path / "mine").mkdir()
    for name, text in {"__init__": "", "helper": "", "torch": "", "run": f"{imports}from .torch import x\n"}.items():
        (tmp_path / "mine" / f"{name}.py").write_text(text)
    installed, asked = dict.fromkeys(("scipy", "scikit-learn", "matplotlib", "torch", "mine"), "1.0"), set()

    def version(name):
        asked.add(name)
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr("plunit.lab.cell.metadata.version", version)
    before = digest(tmp_path / "mine" / "run.py")
    installed[library] = "1.1"
    assert (digest(tmp_path / "mine" / "run.py") != before) == counts
    assert asked == {"scipy", "scikit-learn", "absent"}


def test_a_decorated_function_is_found_in_its_own_module():
    assert program_of(catalogue()["depth"].compute) == digest(PACKAGE / "lab" / "train" / "depth.py")
