"""`plunit fit` from the outside: what it prints, what it writes, what it refuses."""

import contextlib
import itertools
import json
import math
import re
import shlex
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import PROGRAM, SHORT, fit
from compilers import compile_c

from plunit import pieces
from plunit.expressions import SupError
from plunit.expressions.expression import FUNCTIONS

pytest.importorskip("typer")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def sine(tmp_path_factory):
    """A function with an error asked for, and all files."""
    folder = tmp_path_factory.mktemp("sine")
    files = ["--save", "sine.h", "--save", "sine.json", "--save", "sine.onnx", "--plot", "sine.png"]
    code, out, err = fit(
        folder, "sin(x)", "--low", "-3", "--high", "3", "--error", "0.02", "--quick", "--no-minimax", *files
    )
    assert code == 0, err
    return folder, out


def test_a_function_within_an_error_has_the_fewest_pieces(sine):
    folder, out = sine
    curve = pieces.load_json(folder / "sine.json")
    x = np.linspace(-3, 3, 100_001)
    assert np.abs(curve(x)[:, 0] - np.sin(x)).max() <= 0.02
    found = re.search(r"the fewest pieces within the error: (\d+) pieces, largest error found .* at most ([\d.]+)", out)
    assert int(found[1]) == curve.pieces
    assert float(found[2]) <= 0.02
    dense = pieces.Curve(
        x[::50], np.sin(x[::50])[:, None], np.diff(np.sin(x[::50]))[:, None] / np.diff(x[::50])[:, None]
    )
    assert pieces.simplify(dense, pieces=curve.pieces - 1).error > 0.02


def test_all_files_are_written_and_say_what_they_are(sine):
    folder, out = sine
    names = {"sine.h", "sine.json", "sine.onnx", "sine.png", "fit.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert all(f"saved {name}" in out for name in names)
    assert "saved sine.h, the curve of " in out
    assert (folder / "sine.png").read_bytes().startswith(b"\x89PNG")
    header = (folder / "sine.h").read_text()
    said = re.match(r"/\* f = sin\(x\): largest error found [\d.]+; proved: at most (\d\.\d+)\.", header)
    assert float(said[1]) <= 0.02
    assert "sine(double x" in header
    page = (folder / "fit.html").read_text()
    assert all(word in page for word in ("<svg", "sin(x)"))
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!#)([^"']+)|<script""", page) == []  # it needs nothing else


@pytest.mark.parametrize(("formula", "others"), [("x*y", ""), ("x*y + z", " at z = ")])
def test_a_formula_is_drawn_beside_its_network_and_the_error(tmp_path, formula, others):
    code, _, err = fit(tmp_path, formula, "--low", "-1", "--high", "1", *SHORT, "--plot", "f.svg")
    assert code == 0, err
    page, plot = (tmp_path / "fit.html").read_text(), (tmp_path / "f.svg").read_text()
    titles = [f"function{others}", f"network{others}", "error (cross: the largest)"]
    assert all(f">{title}" in page and f"<!-- {title}" in plot for title in titles)
    assert (page.count("<svg"), "#010203" in page, page.count("currentColor") > 9) == (3, False, True)


def test_a_formula_names_its_inputs_in_order_and_the_table_that_is_as_close(tmp_path):
    code, out, err = fit(tmp_path, "arctan2(y, x + 3)", "--low", "-2", "--high", "2", *SHORT)
    assert code == 0, err
    assert "\ninputs in order of appearance: x[0] = y, x[1] = x\n" in out
    words = (
        r"interpolation of double values: (\d+) x (\d+) nodes for the same error .*, ([\d,]+) bytes and ([\d,]+) of "
    )
    words += r"code; this network: ([\d,]+) bytes of tables and ([\d,]+) of code. The (table|network) is smaller\n"
    first, second, values, code, tables, program, smaller = re.search(words, out).groups()
    numbers = [int(text.replace(",", "")) for text in (values, code, tables, program)]
    assert numbers[0] == 8 * int(first) * int(second)
    assert (smaller == "table") == (sum(numbers[:2]) <= sum(numbers[2:]))


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e200])
def test_errors_have_the_unit_of_the_function(tmp_path, unit):
    """A factor of the function is a factor of its error; squares of the factor are 0 or infinite."""
    numbers = []
    for factor in (1, unit):
        code, out, err = fit(tmp_path, f"sin(x) * {factor}", "--quick", "--starts", "8", "--no-minimax")
        assert code == 0, err
        numbers.append(re.search(r"random points (\S+), (\S+) % of the standard deviation", out).groups())
    assert float(numbers[1][0]) == pytest.approx(unit * float(numbers[0][0]), rel=0.01)
    assert float(numbers[1][1]) == pytest.approx(float(numbers[0][1]), rel=0.01)


def test_tiny_numbers_leave_a_page(tmp_path):
    rows = np.random.default_rng(0).uniform(0.1, 1, (60, 3)) * [1e-300, 1e-300, 1e-302]
    np.savetxt(tmp_path / "tiny.csv", rows, delimiter=",", header="a,b,y", comments="")
    code, out, err = fit(tmp_path, "tiny.csv", "--target", "y", "--quick", "--starts", "8")
    assert code == 0, err
    assert "saved fit.html" in out


def test_ctrl_c_while_files_are_written_says_what_is_there(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("plunit.fitting.output._page", interrupted)
    code, out, err = fit(tmp_path, "sin(x)", *SHORT, "--save", "f.json")
    assert code == 130
    assert "stopped while files were written; run the command again for those that are missing" in err
    assert "saved f.json" in out
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_the_header_is_the_network_of_a_function_of_two_variables(tmp_path):
    code, out, err = fit(tmp_path, "x*y", "--low", "-1", "--high", "1", *SHORT, "--save", "f.onnx")
    assert code == 0, err
    net = pieces.load(tmp_path / "f.onnx")
    grid = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    error = np.abs(net(grid)[:, 0] - grid[:, 0] * grid[:, 1]).max()
    told, most = map(
        float, re.search(r"largest error found ([\d.]+) at x = \S+, y = \S+; proved: at most ([\d.]+)", out).groups()
    )
    assert 0.3 * told < error <= told * 1.001 <= most * 1.001 < told * 1.01


def test_a_name_that_c_has_taken_gets_an_ending_and_is_said(tmp_path):
    files = ["double.h", "3d-model.h", "exp.h", "my-f.h", "f.h"]
    code, out, err = fit(tmp_path, "x*y", *SHORT, *(part for name in files for part in ("--save", name)))
    assert code == 0, err
    calls = re.findall(r"^saved (\S+), the network(?:; call (\w+)\(x, y\))?$", out, re.MULTILINE)
    assert calls == list(zip(files, ["double_network", "network", "exp_network", "my_f", ""], strict=True))
    call = "int main(void) { double x[2] = {1, 2}, y[1]; exp_network(x, y); return 0; }"
    program = f'#include <math.h>\n#include "exp.h"\n{call}\n'
    compile_c(program, tmp_path, flags=[f"-I{tmp_path}"])
    header = (tmp_path / "f.h").read_text()
    assert header.startswith("/* y[0] approximates f = x*y.\n")
    assert "\n   x[1] = the formula's y, in [-6.0, 6.0] */\n" in header


def test_a_smooth_network_has_no_bound_and_the_reason_is_said(tmp_path):
    code, out, err = fit(tmp_path, "sin(x)", "--activation", "tanh", *SHORT)
    assert code == 0, err
    assert "random points; no bound; it needs a piecewise-linear network and at most 4" in " ".join(out.split())


def test_an_error_of_two_variables_is_proved_and_stays_so_in_fixed_point(tmp_path):
    wanted = ["--range", "y=0:3", "--low", "-1", "--high", "1", "--error", "0.2", "--starts", "16", "--bits", "16"]
    code, out, err = fit(tmp_path, "x*y", *wanted, "--save", "f.h", "--save", "f.json")
    assert code == 0, err
    assert re.search(r"proved to be within 0\.2; proved errors of the networks tried: .*3 x 2 units 0\.1", out)
    header = " ".join((tmp_path / "f.h").read_text().split())
    network_, program, total = (
        float(re.search(words, header)[1])
        for words in (
            r"against this formula: largest error found \S+ at x = \S+, y = \S+; proved: at most (\S+)\. ",
            r"the values differ from the network in exact arithmetic by at most (\S+)",
            r"Against the formula above: at most (\S+), the sum of both bounds",
        )
    )
    assert network_ + program == pytest.approx(total, rel=2e-3)
    assert total <= 0.2
    net, box = pieces.load(tmp_path / "f.json"), [(-1, 1), (0, 3)]
    x = np.random.default_rng(0).uniform(*np.array(box, float).T, (100_000, 2))
    assert np.abs(net(x)[:, 0] - x[:, 0] * x[:, 1]).max() <= network_
    assert np.abs(pieces.quantize(net, box)(x)[:, 0] - x[:, 0] * x[:, 1]).max() <= total


def test_an_error_that_is_not_reached_leaves_the_best_with_its_bound_and_the_reason(tmp_path):
    wanted = ["x*y*z", "--error", "1e-9", "--hidden", "4", "--starts", "4", "--save", "f.h"]
    code, out, err = fit(tmp_path, *wanted)
    assert code == 30, err
    bound = re.search(r"NOT proved to be within 1e-09; proved errors of the networks tried: 4 units (\S+)", out)[1]
    assert "allow a larger error" in out
    assert f"   Asked for: within 1e-09. NOT proved; the bound is {bound}.\n" in (tmp_path / "f.h").read_text()


def test_a_curve_without_a_bound_is_not_within_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("plunit.expressions.sup_error", lambda *_, **__: SupError(0.001, (), None, 0, "no reason"))
    code, out, err = fit(tmp_path, "sin(x)", "--error", "0.1", *SHORT, "--save", "f.h")
    assert code == 30, err
    assert "NOT proved to be within 0.1\nthe best is kept; allow a larger error, or use a smaller range\n" in out
    assert "   Asked for: within 0.1. NOT proved; no bound is known. */" in (tmp_path / "f.h").read_text()


def test_the_header_of_a_table_says_what_was_seen(tables, tmp_path):
    table = str(tables / "three.csv")
    code, out, err = fit(tmp_path, table, "--target", "z", *SHORT, "--splits", "1", "--save", "f.h")
    assert code == 0, err
    seen = re.search(r"largest error on unseen rows (\S+) \(observed, not a bound\)", out)[1]
    header = " ".join((tmp_path / "f.h").read_text().split())
    rmse = re.search(r"root mean square error on unseen rows (\S+) \(1 split\)", out)[1]
    tested = "Tested by fitting to four fifths of the rows, once: on the other rows"
    assert f"{tested} root mean square error {rmse}, largest error {seen} (observed, not a bound)." in header
    assert "This does not bound the distance to a formula or data that were fitted." in header


def test_a_table_of_one_input_finds_its_segments(tables, tmp_path):
    code, out, err = fit(tmp_path, str(tables / "one.csv"), "--target", "y", "--quick")
    assert code == 0, err
    assert "y = f(x), 300 rows: the best network of 32 starts" in out
    assert re.search(r"the best curve through the rows: 3 pieces, root mean square error 0\.0[45]", out)
    assert re.search(r"root mean square error on unseen rows 0\.0\d+ \(2 splits, too few for an interval\)", out)


def test_the_first_error_of_a_table_is_that_on_unseen_rows_and_the_page_shows_them(tmp_path):
    rng = np.random.default_rng(0)
    dates = [f"2024-01-{day:02d}" for day in range(1, 31)] * 2
    rows = zip(dates, rng.normal(size=60), rng.normal(size=60), rng.normal(size=60), strict=True)
    (tmp_path / "t.csv").write_text("date,a,b,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    code, out, err = fit(tmp_path, "t.csv", "--target", "y", "--exclude", "date", "--starts", "8")
    assert code == 0, err
    head, unseen, largest, training = out.splitlines()[:4]
    assert head.startswith("y = f(a, b), 60 rows")
    found = re.fullmatch(r"root mean square error on unseen rows \S+ \+- \S+ \(95 % interval, 5 overlapping .*", unseen)
    assert found
    assert largest.startswith("largest error on unseen rows ")
    assert training.startswith("root mean square error on training rows ")
    page = (tmp_path / "fit.html").read_text()
    assert (">unseen rows<" in page, ">training rows<" in page) == (True, False)


@pytest.mark.parametrize("pieces_", ["2", "5"])
def test_pieces_of_a_table_are_as_many_as_asked_for(tables, tmp_path, pieces_):
    table = str(tables / "one.csv")
    code, _, err = fit(tmp_path, table, "--target", "y", *SHORT, "--pieces", pieces_, "--save", "c.json")
    assert code == 0, err
    assert pieces.load_json(tmp_path / "c.json").pieces == int(pieces_)


def test_an_error_from_the_network_is_kept(tables, tmp_path):
    table = str(tables / "one.csv")
    code, out, err = fit(tmp_path, table, "--target", "y", *SHORT, "--error", "0.3")
    assert code == 0, err
    assert float(re.search(r"pieces, ([\d.]+) from the network at most", out)[1]) <= 0.3


def test_inputs_and_the_mean_of_several_networks(tables, tmp_path):
    table = str(tables / "three.csv")
    wanted = ["--target", "z", "--inputs", "a,b,c", "--quick", "--best", "4", "--splits", "0", "--save", "m.h"]
    code, out, err = fit(tmp_path, table, *wanted)
    assert code == 0, err
    assert "z = f(a, b, c), 300 rows: the mean of the 4 best networks of 32 starts, 16 x 16 plu units" in out
    assert "not tested on unseen rows" in out
    assert re.search(r"validation error of the 4 chosen starts .*: mean [\d.e-]+ over 4 folds; median", out)
    assert (tmp_path / "m.h").exists()


def test_the_same_seed_gives_the_same_file(tmp_path):
    contents = set()
    for i in range(2):
        assert fit(tmp_path, "abs(x)", *SHORT, "--save", f"{i}.json", "--error", "0.1")[0] == 0
        contents.add(json.dumps(json.loads((tmp_path / f"{i}.json").read_text())))
    assert len(contents) == 1


@pytest.mark.parametrize("few", [[], ["--pieces", "6"]])
def test_the_case_of_endings_does_not_matter(tmp_path, few):
    (tmp_path / "ROWS.CSV").write_text("x,y\n" + "".join(f"{i},{abs(i - 20)}\n" for i in range(40)))
    files = ["F.H", "f.Json", "f.Csv"]
    saved = [option for name in files for option in ("--save", name)]
    code, _, err = fit(tmp_path, "ROWS.CSV", "--target", "y", *SHORT, "--plot", "f.PNG", *saved, *few)
    assert code == 0, err
    assert {path.name for path in tmp_path.iterdir()} == {"ROWS.CSV", "fit.html", "f.PNG", *files}
    assert (tmp_path / "f.PNG").read_bytes().startswith(b"\x89PNG")
    found = pieces.load_json(tmp_path / "f.Json")
    assert found.pieces <= 6 if few else isinstance(found, pieces.Network)


def test_ctrl_c_keeps_the_best_so_far(tmp_path, monkeypatch):
    pressed = []

    @contextlib.contextmanager
    def watched(console):
        def press(what, done, best):
            if math.isfinite(best) and not pressed:
                pressed.append(what)
                signal.raise_signal(signal.SIGINT)
            return False

        yield press

    monkeypatch.setattr("plunit.cli.fit._watch", watched)
    code, out, err = fit(tmp_path, "sin(3*x)*exp(-y*y)", "--starts", "64", "--save", "f.onnx")
    assert (code, pressed) == (0, ["64 starts"]), err
    assert "stopped before the end: this is the best so far" in out
    assert pieces.load(tmp_path / "f.onnx").inputs == 2


REFUSED = {
    "an error without minimax": (
        ["x*y", "--error", "0.1", "--no-minimax"],
        "--error needs the largest error; leave out --no-minimax",
    ),
    "no column": (["{one}"], "is a table: name the column to learn, as in --target y"),
    "wrong column": (["{one}", "--target", "why"], "has no column 'why'"),
    "no such file": (["none.csv"], "none.csv does not exist"),
    "no such file of another kind": (["runs/my-table_2.xlsx"], "runs/my-table_2.xlsx does not exist"),
    "a name that is both": (["x-2.ab+"], "'x-2.ab+', column 8"),
    "inputs and excluded": (["{one}", "--target", "y", "--inputs", "x", "--exclude", "x"], "leave out --exclude"),
    "nothing left": (["{one}", "--target", "y", "--exclude", "x"], "no column is left besides the target"),
    "target excluded": (["{one}", "--target", "y", "--exclude", "y"], "'y' is among the excluded columns"),
    "unknown excluded": (["{one}", "--target", "y", "--exclude", "date"], "has no column 'date'"),
    "excluded of a function": (["sin(x)", "--exclude", "x"], "--exclude, --drop-missing and --splits are for tables"),
    "target of a function": (
        ["sin(x)", "--target", "y"],
        "--target, --inputs, --exclude, --drop-missing and --splits are for tables",
    ),
    "not a function": (["sin(x", "--quick"], "sin(x"),
    "code": (["__import__('os').system('true')"], "1"),
    "no variable": (["1 + 2"], "is a constant; use at least one variable"),
    "not finite": (["log(x)"], "at x = -6.0; choose a domain on which it is finite, or give another value there with"),
    "ends": (["x", "--low", "3", "--high", "3"], "low and high must be finite, and low below high, got 3.0 and 3.0"),
    "low end": (["x", "--low=-1e308"], "must be between -1e+150 and 1e+150, got -1e+308 and 6.0"),
    "close ends": (["x", "--low=1", "--high=1.0000000000000002"], "their difference must be at least 1e-09"),
    "pole": (["1/x", "--low", "-1", "--high", "1"], "'1/x' is too large or infinite at x = 0.0; choose a domain"),
    "huge": (["1e300*x"], "'1e300*x' reaches 6e+300; the limit is 1e+250: divide the function by"),
    "an option of typer": (["x", "--seed", "a"], "Invalid value for '--seed'"),
    "a control character": (["\x1b[31mx"], r"\x1b"),
    "a control character in a table": (["{esc}", "--target", "why"], r"'\x1b[31mx'"),
    **{f"missing {name}": ([name, "--target", "y"], name) for name in ("m.CSV", "m.PQ")},
    "both": (["x", "--pieces", "3", "--error", "0.1"], "give --pieces or --error, not both"),
    "pieces of two": (["x*y", "--pieces", "3"], "--pieces is for one input, there are 2"),
    "error of a wide table": (
        ["{three}", "--target", "z", "--error", "1"],
        "are for one input of a table, there are 3",
    ),
    "error of five": (["a+b+c+d+x", "--error", "1"], "--error is for up to 4 variables, there are 5; leave it out"),
    "error of tanh": (["x*y", "--error", "1", "--activation", "tanh"], "need a piecewise-linear activation"),
    "pieces of text": (
        ["{mixed}", "--target", "price", "--inputs", "sex", "--pieces", "3"],
        "more inputs: sex is m. Choose another column with --inputs, or add --drop-missing",
    ),
    "error of a column with gaps": (
        ["{mixed}", "--target", "price", "--inputs", "temp", "--error", "1"],
        "more inputs: temp, temp is missing. Choose",
    ),
    "too many pieces": (
        ["{few}", "--target", "y", "--pieces", "9"],
        "--pieces must be below the number of different values of x, 4; got 9",
    ),
    "a column with the name of an indicator": (
        ["{twice}", "--target", "y"],
        "two inputs would be named 'a is missing', because text and missing values become inputs",
    ),
    "a value with the name of the rest": (
        ["{other}", "--target", "y"],
        "two inputs would be named 'c is other'",
    ),
    "bits": (["x*y", "--bits", "12", "--save", "f.h"], "--bits must be 8 or 16, got 12"),
    "bits of no file": (["x*y", "--bits", "16", "--save", "f.onnx"], "--bits writes C; name the file"),
    "bits of a curve": (["x", "--bits", "16", "--pieces", "3", "--save", "f.h"], "--bits is for networks"),
    "bits of tanh": (["x*y", "--bits", "8", "--save", "f.h", "--activation", "tanh"], "needs a piecewise-linear"),
    "no range": (["x*y", "--range", "x=1"], "--range must be a variable with its ends, as in x=-1:1; got 'x=1'"),
    "range twice": (["x*y", "--range", "x=0:1", "--range", "x=0:2"], "--range gives two ranges of 'x'"),
    "range of another": (
        ["x*y", "--range", "z=0:1"],
        "'z' has a range but is not a variable of 'x*y'; its variables are x, y",
    ),
    "empty range": (["x*y", "--range", "x=1:0"], "finite, and low below high, got 1.0 and 0.0 for x"),
    "negative error": (["x", "--error", "-1"], "--error must be positive, got -1.0"),
    "tiny error": (["sin(x)", "--error", "1e-12", "--quick"], "an error of 1e-12 is too small"),
    "hidden": (["x", "--hidden", "8,x"], "--hidden must be numbers of units from 1 to 256"),
    "hidden, a comma too many": (["x", "--hidden", "8,"], "as in 8,8; got '8,'"),
    "hidden, 5,000 digits": (["x", "--hidden", "1" * 5000], "--hidden must be numbers of units from 1 to 256"),
    "activation": (["x", "--activation", "swish"], "unknown activation 'swish'; choose one of tanh, relu"),
    "missing values of a function": (["x", "--drop-missing"], "--drop-missing and --splits are for tables"),
    "inputs": (["{one}", "--target", "y", "--inputs", " , "], "--inputs must name columns"),
    "ending": (["x", "--save", "model.xyz"], "model.xyz must end in one of .h"),
    "folder": (["x", "--save", "none/model.h"], "the folder none does not exist; create it first"),
    "csv of two": (["x*y", "--save", "f.csv"], "f.csv: a .csv file holds a function of 1 input, got 2 (x, y); .h"),
    "csv of gaps": (
        ["{mixed}", "--target", "price", "--inputs", "temp", "--save", "f.csv"],
        "got 2 (temp, temp is missing); .h, .onnx and .json hold any number; or drop rows",
    ),
    "text to learn": (
        ["{mixed}", "--target", "colour"],
        ": the target 'colour' is text, and a target must hold numbers. Choose another, or for classes use "
        "plunit.sklearn.PLUClassifier.",
    ),
    "file of tanh": (
        ["x", "--activation", "tanh", "--save", "f.h"],
        "a file of the model needs a piecewise-linear activation",
    ),
    "the table": (["{one}", "--target", "y", "--save", "{one}"], "is named twice, or is the table itself"),
    "one name twice": (["x", "--save", "a.json", "--plot", "a.svg", "--save", "a.json"], "a.json is named twice"),
    "a folder": (["x", "--page", "."], ". is a folder; name a file"),
    "page": (["x", "--page", "none/p.html"], "the folder none does not exist; create it first"),
    "range of a table": (["{one}", "--target", "y", "--low", "0"], "--low, --high and --range are for functions"),
    "starts": (["x", "--starts", "1000000000"], "(n_init is --starts)"),
    "infinity": (["inf"], "column 1: 'inf' is not finite and cannot be a variable"),
    "long": (["x" + " + x" * 300, "--plot", "a.doc"], "a.doc must end in one of .png"),
    "plot": (["x", "--plot", "a.doc"], "a.doc must end in one of .png"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_one_line(tables, tmp_path, name):
    arguments, words = REFUSED[name]
    code, out, err = fit(
        tmp_path, *(part.format(**{path.stem: path for path in tables.iterdir()}) for part in arguments)
    )
    assert (code, out) == (2, "")
    late = name in ("tiny error", "starts")  # all else is said before training
    assert ("starts; Ctrl-C keeps the best so far plunit: " in err) == late
    assert words in err.partition("plunit: ")[2]
    assert ("Traceback" in err, err.isprintable()) == (False, True)
    assert list(tmp_path.iterdir()) == []


WILD = {"ends": ["sin(x)", "--low", "-1e150", "--high", "1e150"]}
WILD["spike"] = ["where(abs(x-0.33333)<1e-7,100,0)", "--low", "-1", "--high", "1"]


@pytest.mark.parametrize("arguments", WILD.values(), ids=WILD)
def test_a_curve_that_cannot_be_found_and_is_not_asked_for_is_left_out(tmp_path, arguments):
    code, out, err = fit(tmp_path, *arguments, *SHORT, "--save", "f.json")
    assert code == 0, err
    assert "no curve with the fewest pieces was found: a curve of 2000 pieces through the function is" in out
    assert "--error" not in out + err
    assert re.search(r"the network has \d+ straight pieces", out)
    assert "saved f.json, the network\n" in out
    assert (tmp_path / "fit.html").exists()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2x", ["2*x, 2,000 points", "Read as 2*x", "1 piece, largest error"]),
        ("-x", ["-x, 2,000 points", "1 piece, largest error", "validation error of the best starts (mean"]),
        ("sinx - ab + a - b", ["function write sin(x)\n", "ab is one variable; for a product write a*b\n"]),
        ("e*x^2", ["e*x**2, 2,000 points", "Read as e*x**2", "e is the number 2.71828"]),
    ],
)
def test_a_function_may_be_typed_as_on_paper(tmp_path, text, read):
    code, out, err = fit(tmp_path, text, *SHORT, "--activation", "identity")
    assert code == 0, err
    assert [words for words in read if words not in out] == []


@pytest.mark.parametrize("page", ["README.md", "docs/fit.md"])
def test_the_commands_of_the_pages_run(tables, tmp_path, page):
    """With fewer starts; the tables of the pages are others."""
    text = (Path(__file__).parents[2] / page).read_text()
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^\$? ?plunit (fit .*)$", text, re.MULTILINE)]
    assert commands
    (tmp_path / "data.csv").write_bytes((tables / "one.csv").read_bytes())
    (tmp_path / "cars.csv").write_bytes((tables / "mixed.csv").read_bytes())
    ended = [
        fit(tmp_path, *command[1:], "--quick", *(["--starts", "16"] if "--error" in command else SHORT))
        for command in commands
    ]
    assert [code for code, _, _ in ended] == [0] * len(commands), ended
    saved = [name for command in commands for flag, name in itertools.pairwise(command) if flag == "--save"]
    assert all((tmp_path / name).exists() for name in saved)


def test_the_page_lists_all_functions():
    text = (Path(__file__).parents[2] / "docs/fit.md").read_text()
    named = set(re.search(r"`(abs sign [^`]*)`", text)[1].split())
    assert named == set(FUNCTIONS)


def test_names_and_texts_are_no_formulas_and_no_commands(tmp_path):
    texts = ["*/ #error", '"<i>\n"', "\x1b[2J", "[bold]$x_{$"]
    rows = "\n".join(f"{i},{texts[i % 4]},{i * i}" for i in range(40))
    (tmp_path / "odd.csv").write_text(f"$x_{{$,[red]*/,\x1b[31m<b>y</b>\n{rows}\n")
    code, out, err = fit(tmp_path, "odd.csv", "--target", "-1", *SHORT, "--save", "m.json", "--save", "m.h")
    assert code == 0, err
    assert r"\x1b[31m<b>y" in out
    assert (out + err).count("[red]*/ is text with 4 values; for any other value, all of its inputs are 0") == 1
    content = out + err + "".join(path.read_text() for path in tmp_path.iterdir() if path.suffix != ".csv")
    assert "\x1b" not in content
    values = ["*/ #error", "<i>", "[bold]$x_{$", r"\x1b[2J"]
    names = json.loads((tmp_path / "m.json").read_text())["inputs"]
    assert sorted(names) == sorted(["$x_{$", *(f"[red]*/ is {value}" for value in values)])
    compile_c('#include "m.h"\nint main(void) { return 0; }\n', tmp_path, flags=[f"-I{tmp_path}"])
    page = (tmp_path / "fit.html").read_text()
    assert ("<b>y" in page, "<i>" in page, "&lt;b&gt;y" in page) == (False, False, True)
    assert fit(tmp_path, "odd.csv", "--target", "-1", *SHORT, "--inputs", "1")[0] == 0  # its name is that of an axis


def test_files_are_written_though_nobody_reads_the_output(tmp_path):
    command = shlex.join([*PROGRAM, "fit", "abs(x)", *SHORT, "--save", "f.json"])
    subprocess.run(f"{command} | true", shell=True, cwd=tmp_path, check=False, capture_output=True, timeout=200)
    assert {path.name for path in tmp_path.iterdir()} == {"f.json", "fit.html"}
