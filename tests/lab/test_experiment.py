"""The contract: an experiment of a few lines goes all the way; every experiment of the catalogue keeps to it."""

import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from plunit.base.ranges import Range
from plunit.lab import experiment, plan, running, store
from plunit.lab.claims import SECTIONS, Claim
from plunit.lab.experiment import Experiment, Statistic, catalogue
from plunit.lab.intervals import mean
from plunit.lab.pictures import Picture

CONFTEST = Path(__file__).parents[2] / "conftest.py"


# An experiment in 30 lines: from here ...
@dataclasses.dataclass(frozen=True)
class CoinSpec:
    """Throws of a coin."""

    throws: typing.Annotated[int, Range(1, 1000)] = 100


def throw(cell, scratch):
    generators = [np.random.default_rng(seed) for seed in cell.seeds]
    heads = np.array([generator.integers(2, size=cell.spec.throws).mean() for generator in generators])
    return {"seed": np.array(cell.seeds), "heads": heads if cell.activation == "fair" else 1 - heads}


class Coin(Experiment):
    """How often heads come."""

    activations = choices = ("fair", "turned")
    columns = ("heads",)
    compute = staticmethod(throw)
    seeds, chunk = 8, 3

    claims = (Claim("", "coin", "fair", Range(0.4, 0.6), sentence="Heads come half the time."),)

    def statistics(self, runs):
        if "fair" in runs:  # a user may have run only the other one
            yield Statistic("fair", "mean share of heads", mean(runs["fair"]["heads"]))

    def figures(self, runs):
        figure = Figure(figsize=(3, 2))
        figure.subplots().plot(np.stack([arrays["heads"] for arrays in runs.values()], axis=1))
        yield Picture("coin", "Heads.", "A line around one half.", figure)


EXPERIMENTS = (Coin("coin", "A coin", CoinSpec()),)
# ... to here.


@pytest.fixture
def coin(monkeypatch):
    """The one line in the list of modules."""
    monkeypatch.setitem(sys.modules, "coin_module", sys.modules[__name__])
    monkeypatch.setattr(experiment, "MODULES", (*experiment.MODULES, "coin_module"))
    catalogue.cache_clear()
    yield
    catalogue.cache_clear()


FAIR = [np.random.default_rng(seed).integers(2, size=100).mean() for seed in range(8)]
HEADS = [*FAIR, *(1 - share for share in FAIR)]


def lines_of_the_coin():
    source = inspect.getsource(sys.modules[__name__])
    return source.partition("from here ...\n")[2].partition("# ... to here.")[0].strip().splitlines()


def test_an_experiment_of_forty_lines_goes_through_run_resume_claims_figure_and_report(coin, console, tmp_path):
    assert len(lines_of_the_coin()) <= 40
    wanted = plan.for_run(tmp_path, "coin")
    running.execute(tmp_path, wanted, console)
    page = (tmp_path / "report.html").read_text()
    assert "Heads come half the time." in page
    assert "A line around one half." in page
    rows = (tmp_path / "summary.csv").read_text().splitlines()
    assert [float(row.rpartition(",")[2]) for row in rows[1:]] == HEADS
    cells = wanted["coin"].cells()
    store.path_of(tmp_path, cells[4]).unlink()
    running.execute(tmp_path, wanted, console)
    assert "5 of 6 cells are already stored" in console.export_text()
    assert (tmp_path / "summary.csv").read_text().splitlines() == rows


def test_a_variant_is_kept_beside_the_usual_one(coin, console, tmp_path):
    running.execute(tmp_path, plan.for_run(tmp_path, "coin"), console)
    usual = (tmp_path / "summary.csv").read_text().splitlines()
    running.execute(tmp_path, plan.for_run(tmp_path, "coin", assignments=["throws=7"]), console)
    both = (tmp_path / "summary.csv").read_text().splitlines()
    assert both[: len(usual)] == usual
    assert {row.partition(",")[0] for row in both[len(usual) :]} == {"coin+throws=7"}
    assert json.loads((tmp_path / "run.json").read_text())["experiments"]["coin+throws=7"]["changes"] == {"throws": 7}
    page = (tmp_path / "report.html").read_text()
    assert "A coin, throws = 7" in page
    assert "The same experiments with other settings." in page
    running.publish(tmp_path, console)
    assert "A coin, throws = 7" in (tmp_path / "report.html").read_text()
    assert "plunit run coin --set throws=7 --seeds 8 --activations fair,turned" in page


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package with the coin; return a function that edits its module."""
    imports = "import dataclasses, typing\nimport numpy as np\nfrom matplotlib.figure import Figure\n"
    ours = ("experiment import Experiment, Statistic", "claims import Claim", "intervals import mean")
    ours += ("pictures import Picture",)
    imports += "".join(f"from plunit.lab.{line}\n" for line in ours) + "from plunit.base.ranges import Range\n"
    module = tmp_path / "coins.py"
    module.write_text(imports + "\n".join(lines_of_the_coin()))
    info = tmp_path / "coins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: coins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[plunit.experiments]\ncoin = coins\n")
    monkeypatch.syspath_prepend(tmp_path)
    catalogue.cache_clear()
    yield lambda old, new: module.write_text(module.read_text().replace(old, new, 1))
    sys.modules.pop("coins", None)
    catalogue.cache_clear()


def test_an_installed_package_brings_its_experiment(package, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "plunit.cli", "run", "coin", "--workers", "1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "runs" / "summary.csv").read_text().splitlines()
    assert [float(row.rpartition(",")[2]) for row in rows[1:]] == HEADS  # as in this process


def test_tests_do_not_see_the_experiments_of_packages_that_were_installed_before(package):
    hide = f"import runpy; runpy.run_path({str(CONFTEST)!r})['pytest_configure']()"
    show = "from plunit.lab.experiment import catalogue; print(*catalogue())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for code, seen in ((show, True), (f"{hide}; {show}", False)):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert ("coin" in done.stdout.split(), "sine" in done.stdout.split()) == (seen, True)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("import dataclasses", "import absent_package", "ModuleNotFoundError: No module named 'absent_package'"),
        ("import dataclasses, typing", "raise SystemExit(3)", "SystemExit: 3"),
        ("EXPERIMENTS = (", "NAMELESS = (", "AttributeError: module 'coins' has no attribute 'EXPERIMENTS'"),
        ("EXPERIMENTS = (", "EXPERIMENTS = (5, ", "TypeError: 5 is not an Experiment"),
        ('Coin("coin"', 'Coin("sine"', "ValueError: the name 'sine' is in use"),
        ('Coin("coin"', 'Coin("../../x"', "ValueError: the name '../../x' is in use, or has characters besides"),
        ('Coin("coin"', 'Coin(""', "ValueError: the name '' is in use, or has characters besides"),
        ("CoinSpec())", "CoinSpec(), '9')", "ValueError: coin has section '9'"),
        ('Claim("", "coin"', 'Claim("half", "coin"', "UserError: a claim of coin is about 'half'"),
        ('Claim("", "coin"', 'Claim("dead", "coin"', "ValueError: a claim of coin must name it"),
        ('Claim("", "coin"', 'Claim("", "sine"', "ValueError: a claim of coin must name it"),
    ],
)
def test_a_broken_package_is_left_out_with_its_reason(package, old, new, reason):
    package(old, new)
    with pytest.warns(UserWarning, match=re.escape(f"coins is left out, because coins fails: {reason}")):
        found = catalogue()
    assert "sine" in found
    assert "coin" not in found


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_experiment_keeps_to_the_contract(name):
    one = catalogue()[name]
    assert one.name == name
    assert one.title
    assert one.section in SECTIONS
    assert set(one.activations) <= set(one.choices)
    assert dataclasses.is_dataclass(one.spec)
    assert hash(one.spec) == hash(dataclasses.replace(one.spec))
    assert json.loads(json.dumps(dataclasses.asdict(one.spec)))
    assert not one.short or 0 < one.short <= one.spec.steps
    assert one.compute.__module__.startswith("plunit.lab.train.")
    assert type(one).__module__.startswith("plunit.lab.read.")
    assert list(inspect.signature(one.compute).parameters) == ["cell", "scratch"]
    documented = "".join(kind.__doc__ for kind in type(one.spec).__mro__)
    undocumented = [f.name for f in dataclasses.fields(one.spec) if f"        {f.name}: " not in documented]
    assert undocumented == []


@pytest.mark.parametrize(
    ("name", "assignments", "changes"),
    [
        ("sine", [" lr = 1e-2 ", "alpha=0.25"], {"lr": 0.01, "alpha": 0.25}),
        ("sine", ["widths=1,8,8,1", "target=sine"], {"widths": (1, 8, 8, 1), "target": "sine"}),
        ("sine", ["steps=10", "steps=20"], {"steps": 20}),
        ("frequency", ["lr=0.5", "steps=3", "frequencies=1.0,2.0"], {"lr": 0.5, "steps": 3, "frequencies": (1.0, 2.0)}),
    ],
)
def test_changes_are_parsed_written_and_read_again(name, assignments, changes):
    spec = catalogue()[name].spec
    assert experiment.parse_changes(spec, assignments) == changes
    assert experiment.parse_changes(spec, experiment.options(changes)[1::2]) == changes
    assert experiment.check_changes(spec, json.loads(json.dumps(changes))) == changes
    plain = dataclasses.asdict(experiment.change(spec, changes))
    assert {key: plain[key] for key in changes} == changes


def test_a_variant_has_a_name_of_its_own_but_other_steps_of_a_long_experiment_make_none():
    sine, cifar10 = catalogue()["sine"], catalogue()["cifar10"]
    varied = sine.vary({"widths": (1, 8, 1), "lr": 0.003})
    assert (varied.name, varied.variant) == ("sine+lr=0.003+widths=1x8x1", "lr = 0.003, widths = 1x8x1")
    assert sine.vary({}) == sine
    assert sine.vary({"steps": 5}).name == "sine+steps=5"
    short = cifar10.vary({"steps": 5})
    assert (short.name, short.variant, short.spec.steps) == ("cifar10", "", 5)
