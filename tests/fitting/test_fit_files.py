"""The files of `plunit fit`: their names, the packages they need, and life without PyTorch."""

import csv
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from commands import PROGRAM, SHORT, fit
from compilers import call_c

from plunit import pieces
from plunit.fitting.output import list_pieces, save_first_free
from plunit.fitting.problems import of_table
from plunit.fitting.solving import FitSettings, fit_problem
from plunit.pieces import Curve

pytest.importorskip("typer")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pandas = pytest.importorskip("pandas")


def test_a_new_file_takes_the_first_free_name_however_many_ask(tmp_path):
    names = [tmp_path / name for name in "abcdef"]
    names[0].write_text("mine")
    names[1].symlink_to("nowhere")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: save_first_free(names, text), "1234"))
    assert {path.read_text(): path for path in found} == dict(zip("1234", found, strict=True))
    assert (sorted(found), names[0].read_text()) == (names[2:], "mine")


def test_an_existing_page_is_kept_unless_it_is_named(tmp_path):
    (tmp_path / "fit.html").write_text("mine")
    (tmp_path / "fit-2.html").symlink_to("nowhere")
    code, out, err = fit(tmp_path, "abs(x)", *SHORT)
    assert code == 0, err
    assert "saved fit-3.html" in out
    assert ((tmp_path / "fit.html").read_text(), "<svg" in (tmp_path / "fit-3.html").read_text()) == ("mine", True)
    assert fit(tmp_path, "abs(x)", *SHORT, "--page", "fit.html")[0] == 0
    assert "<svg" in (tmp_path / "fit.html").read_text()


def test_quick_gives_way_to_what_is_given_and_no_more_are_averaged_than_start(tmp_path):
    code, out, err = fit(tmp_path, "abs(x)", "--quick", "--starts", "40", "--best", "99")
    assert code == 0, err
    assert "the mean of the 40 best networks of 40 starts" in out


MISSING = [(["onnx"], ["--save", "m.onnx"]), (["matplotlib"], []), (["jinja2", "matplotlib"], [])]


@pytest.mark.parametrize(("packages", "options"), MISSING)
def test_missing_packages_are_named_before_training(tmp_path, monkeypatch, packages, options):
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    code, out, err = fit(tmp_path, "abs(x)", *SHORT, *options)
    assert (code, out, list(tmp_path.iterdir())) == (2, "", [])
    assert err.startswith("plunit: ")  # not "training 4 starts"
    assert all(package in err for package in packages)
    assert err.endswith("; pip install 'plunit[fit]'")


def by_hand(header, rows):
    """Return inputs of the C function as its comment says, and nothing else; rows are dicts of text."""
    names = re.findall(r"^   x\[\d+\] = (.*?)(?: \*/)?$", header, re.MULTILINE)
    fills = dict(
        re.findall(r"^   where (\w+) is missing: x\[0\] = (\S+) and x\[1\] = 1, otherwise x\[1\]", header, re.M)
    )

    def value(row, name):
        column, _, wanted = name.partition(" is ")
        text = row[column] if row[column] not in ("", "NA") else "missing"
        if not wanted:
            return float(fills[column] if text == "missing" else text)
        if wanted == "other":
            return f"{column} is {text}" not in names
        return text == wanted

    return np.array([[value(row, name) for name in names] for row in rows], dtype=float)


def test_a_header_says_how_to_call_it_for_a_table_as_it_is(tables, tmp_path):
    code, out, err = fit(tmp_path, str(tables / "mixed.csv"), "--target", "price", *SHORT, "--save", "m.h")
    assert code == 0, err
    assert "price = f(temp, colour, sex, city), 300 rows" in out
    assert "temp is text" not in out + err
    header = (tmp_path / "m.h").read_text()
    assert all(f" = {name}\n" in header for name in ("temp", "temp is missing", "colour is red", "colour is missing"))
    assert all(f" = {name}\n" not in header for name in ("sex is f", "city is once upon a time"))
    assert len(re.findall(" = city is ", header)) == 20
    rows = list(csv.DictReader((tables / "mixed.csv").read_text().splitlines()))
    frame = pandas.DataFrame(rows).replace({"": None, "NA": None}).astype({"temp": float})
    for at, (column, said) in enumerate(
        {"city": ", and other for all the rest", "sex": "any other value counts as f", "colour": "inputs are 0"}.items()
    ):
        assert re.search(rf"^   {column} is text with \d+ values.*{said}$", header, re.MULTILINE)
        frame.loc[at, column] = rows[at][column] = "a text that nobody has heard of"
    problem = of_table(tables / "mixed.csv", "price", [], print)
    found = fit_problem(problem, FitSettings(starts=4, splits=0))
    raw = frame[["temp", "colour", "sex", "city"]].astype(object).to_numpy()
    raw[frame["temp"].isna(), 0] = np.nan
    with pytest.warns(UserWarning, match="unknown categories"):
        expected = found.model.predict(problem.encoder.transform(raw))
    y = call_c("m", by_hand(header, rows), 1, tmp_path)
    np.testing.assert_allclose(y[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize(("inputs", "drawn"), [("sex", "yes"), ("sex,temp", "sex is m: yes"), ("temp", "no")])
def test_a_picture_of_an_indicator_has_two_groups(tables, tmp_path, inputs, drawn):
    mixed = [str(tables / "mixed.csv"), "--target", "price", *SHORT, "--inputs", inputs]
    code, _, err = fit(tmp_path, *mixed, *["--drop-missing"] * (inputs == "sex,temp"))
    assert code == 0, err
    page = (tmp_path / "fit.html").read_text()
    assert f">{'temp is missing: ' * (inputs == 'temp')}{drawn}<" in page
    assert (">network: " in page, "where temp is missing" in page) == (False, inputs == "temp")


WITHOUT_TORCH = """
import importlib.metadata, sys
class Blocked:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in ("torch", "jax", "keras", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
real = importlib.metadata.distribution
def distribution(name):
    if name == "torch":
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)
importlib.metadata.distribution = distribution
from plunit.cli import main
main()
"""


@pytest.mark.parametrize("source", [["abs(x)"], ["{three}", "--target", "z"], ["{mixed}", "--target", "price"]])
def test_all_of_it_works_without_pytorch_and_pandas(tables, tmp_path, source):
    given = [part.format(three=tables / "three.csv", mixed=tables / "mixed.csv") for part in source]
    files = ["--save", "m.h", "--save", "m.json", "--save", "m.onnx", "--plot", "m.png"]
    command = [sys.executable, "-c", WITHOUT_TORCH, "fit", *given, *SHORT, *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"m.h", "m.json", "m.onnx", "m.png", "fit.html"}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are any bytes on Linux only")
def test_names_that_are_not_utf_8(tables, tmp_path):
    odd = {kind: os.fsdecode(b"caf\xe9." + kind.encode()) for kind in ("csv", "h", "json", "onnx", "svg", "html")}
    (tmp_path / odd["csv"]).write_bytes((tables / "one.csv").read_bytes())
    saved = [part for kind in ("h", "json", "onnx") for part in ("--save", odd[kind])]
    named = [odd["csv"], "--target", "y", *SHORT, *saved, "--plot", odd["svg"], "--page", odd["html"]]
    done = subprocess.run([*PROGRAM, "fit", *named], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == set(odd.values())
    assert done.stdout.count(rb"saved caf\udce9.") == 5
    assert "caf\\udce9.csv" in (tmp_path / odd["html"]).read_text(encoding="utf-8")
    assert pieces.load_json(tmp_path / odd["json"]).inputs == 1


def test_a_formula_has_the_value_at_the_left_end_and_the_slope():
    tent = Curve([-1, 0.5, 2], [[0], [3], [0]], [[2], [-2]])
    assert list_pieces(tent, "x") == [("-1", "0.5", "0 + 2 (x + 1)"), ("0.5", "2", "3 - 2 (x - 0.5)")]
