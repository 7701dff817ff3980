import json
import math
import re

import numpy as np
import pytest
from calls import SINE

from plunit.base.errors import UserError
from plunit.expressions import parse
from plunit.lab.train import sine_parametric_surface as run
from plunit.play.targets import Settings, settings_of, task_of

NAMES = {"sine": "sine", "parametric": "curve", "saddle": "saddle"}


def table(rows, header="x,y\n"):
    return {"kind": "csv", "text": header + "".join(",".join(map(str, row)) + "\n" for row in rows)}


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_functions_are_those_of_the_lab(name):
    task = task_of({"kind": "paper", "name": name})
    function, inputs, outputs = run.TARGETS[NAMES[name]]
    assert (task.inputs, task.outputs) == (inputs, outputs)
    np.testing.assert_allclose(task.y.T, function(task.x.T), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(task.scaled[0], task.x.astype(np.float32))  # as in the paper: not scaled


@pytest.mark.parametrize(
    ("text", "names", "function"),
    [("sin(3 * t) / 2", ("t",), lambda t: np.sin(3 * t) / 2), ("a - b ** 2", ("a", "b"), lambda a, b: a - b * b)],
)
def test_an_expression_is_looked_at_on_a_grid_of_its_box(text, names, function):
    task = task_of({"kind": "expression", "text": text, "low": -1, "high": 4})
    assert task.box.tolist() == [[-1, 4]] * len(names)
    np.testing.assert_allclose(task.y[:, 0], function(*task.x.T), rtol=1e-12)
    assert len(task.y) == (100 if len(names) == 1 else 400)
    assert [task.x.min(0).tolist(), task.x.max(0).tolist()] == [[-1] * len(names), [4] * len(names)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2x", "2*x"),
        ("2 x", "2 * x"),
        ("x^2", "x**2"),
        ("-2x^2 + 3(x+1)(x-1)", "-2*x**2 + 3*(x+1)*(x-1)"),
        ("x sin(3x)/2pi", "x * sin(3*x)/2*pi"),
        ("2e^-x + 1e3x", "2*e**-x + 1e3*x"),
        ("x(x + 1) - pi (y)", "x*(x + 1) - pi * (y)"),
        ("where(2x < 1, x y, x2)", "where(2*x < 1, x * y, x2)"),
        ("2*x**2 - sin(x)", ""),
        ("cost * maxx", ""),
    ],
)
def test_a_function_may_be_typed_as_on_paper(text, read):
    written = parse(text).text
    assert written == (read or text)
    if "x2" not in text:
        task = task_of({"kind": "expression", "text": text})
        said = [f"Read as {read}"] if read else []
        said += ["e is the number 2.71828, not a variable"] * bool(re.search(r"\be\b", written))
        assert (task.title, list(task.notes)) == (written, said)


@pytest.mark.parametrize(
    ("text", "column"),
    [("2x +", 5), ("2x^2 + 3$", 9), ("x^", 3), ("2x)", 3), ("3 sn(x)", 3), ("2x sin y", 4), ("x^2 2", 5), ("f(x)", 1)],
)
def test_an_error_is_at_the_column_of_what_was_typed(text, column):
    with pytest.raises(UserError) as error:
        task_of({"kind": "expression", "text": text})
    assert str(error.value).startswith(f"{text!r}, column {column}: ")


SCALED = {
    "expression": {"kind": "expression", "text": "1000 * x - 7", "low": 5, "high": 6},
    "drawn": {"kind": "drawn", "points": [[0, 100], [10, 300], [20, 0]]},
    "table": table([(n, 1e6 * n * n) for n in range(50)]),
}


@pytest.mark.parametrize("target", SCALED.values(), ids=SCALED)
def test_networks_see_the_range_and_the_spread_of_the_papers_sine(target):
    x, y = task_of(target).scaled
    assert (x.min(), x.max()) == pytest.approx((-2 * math.pi, 2 * math.pi), rel=1e-5)
    assert (y.mean(), y.std()) == pytest.approx((0, math.sqrt(0.5)), rel=1e-4, abs=1e-4)


def test_a_drawing_is_followed_in_straight_lines_and_equal_x_are_averaged():
    task = task_of({"kind": "drawn", "points": [[2, 1], [0, 0], [1, 4], [1, 0]]})
    expected = [2 * x if x < 1 else 2 - (x - 1) for x in task.x[:, 0]]
    np.testing.assert_allclose(task.y[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("columns", [2, 3])
def test_a_table_keeps_its_rows(columns):
    rows = [(n, n % 5, n * n)[3 - columns :] for n in range(20)]
    task = task_of(table(rows, header=",".join("abc"[3 - columns :]) + "\n"))
    assert sorted(map(tuple, np.column_stack([task.x, task.y]).tolist())) == sorted(rows)
    assert task.target == "c"


def test_a_character_beyond_16_bits_is_whole():
    target = json.loads(json.dumps({**table([(n, n * n) for n in range(10)]), "name": "\U0001d53d.csv"}))
    assert task_of(target).title == "\U0001d53d.csv"


def test_no_name_of_a_table_opens_a_file(tmp_path):
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    content = table([(n, n * n) for n in range(10)])
    task = task_of({**content, "name": str(tmp_path / "other.parquet")})
    assert (task.title, len(task.y)) == (str(tmp_path / "other.parquet"), 10)


WRONG = {
    "a text": ("sin(x)", "a target must be an object such as {'kind': 'expression', 'text': 'sin(x)'}"),
    "unknown kind": ({"kind": "os.system"}, "unknown kind of target 'os.system'"),
    "long text": ({"kind": "expression", "text": "x" * 10_001}, "text must be a string of at most 10,000 characters"),
    "code": ({"kind": "expression", "text": "__import__('os').system('true')"}, "column 1"),
    "constant": ({"kind": "expression", "text": "3"}, "is a constant; use at least one variable"),
    "three variables": ({"kind": "expression", "text": "a + b * d"}, "one or two variables; 'a + b * d' has a, b, d"),
    "ends": (
        {"kind": "expression", "text": "x", "low": 2, "high": 2},
        "low and high must be finite, and low below high, got 2.0",
    ),
    "undefined": ({"kind": "expression", "text": "log(x)"}, "undefined or not a real number"),
    "tiny": ({"kind": "expression", "text": "1e-165*sin(x)"}, "the target varies by 2e-165, less than 1e-30"),
    "huge": ({"kind": "expression", "text": "exp(50 * x)"}, "more than 1e30; scale it"),
    "unknown of the paper": ({"kind": "paper", "name": "cosine"}, "unknown function of the paper 'cosine'"),
    "no points": ({"kind": "drawn", "points": {}}, "a drawing is a list of at most 1,000,000 points"),
    "one place": ({"kind": "drawn", "points": [[1, 1], [1, 2]]}, "at least two different x, got 1"),
    "infinite points": ({"kind": "drawn", "points": [[0, 0], [1, 1e999]]}, "pairs [x, y] of numbers"),
    "too many points": ({"kind": "drawn", "points": [0] * 1_000_001}, "at most 1,000,000 points"),
    "empty table": ({"kind": "csv", "text": ""}, "is empty"),
    "one column": ({"kind": "csv", "text": "x\n1\n2\n"}, "only one column"),
    "few rows": (table([(1, 2), (2, 3)]), "At least 10 are needed"),
    "a word": (table([*[(n, n) for n in range(10)], (3, "three")]), "'three' is not a number"),
    "four columns": (table([(n, n * n, n**3, -n) for n in range(10)], "a,b,c,d\n"), "has 3 inputs that vary"),
    "Parquet": ({"kind": "csv", "text": "PAR1" + "x" * 100}, "the table is a Parquet file; save it as CSV"),
    "NUL": ({"kind": "csv", "text": "x,y\n1,\x002\n"}, "a NUL byte was found"),
    "half a character": ({"kind": "csv", "text": "x,y\n" + "1,\ud800\n" * 12}, "which is not UTF-8"),
    "short": ({"kind": "expression", "text": "x", "low": 1, "high": 1 + 1e-12}, "low 1.0 and high 1.000000000001 are"),
    "constant target": ({**table([(n, 1) for n in range(12)]), "name": "mine.txt"}, "mine.txt: the target 'y' is 1.0"),
    "no inputs": ({**table([(1, n) for n in range(12)]), "name": "m\n.csv"}, "m\\n.csv: no input column is left."),
}


@pytest.mark.parametrize(("target", "message"), WRONG.values(), ids=WRONG)
def test_messages(target, message):
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        task_of(target)
    assert message in str(error.value)
    assert "--" not in str(error.value)  # a page has no options


def test_settings_have_defaults_and_what_is_said_is_taken():
    assert settings_of({"target": SINE}) == Settings(SINE)
    numbers = {"depth": 1, "width": 7, "alpha": 0, "c": 2.5, "lr": 0.1, "networks": 9, "seed": 3}
    given = {"target": SINE, "paused": True, "method": "second order", "activations": ["relu", "plu"], **numbers}
    found = settings_of(given)
    assert {**vars(found), "activations": list(found.activations)} == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lr": "0.1"}, "lr must be a number (1e-05 to 1), got '0.1'"),
        ({"networks": 4097}, "networks must be a whole number (1 to 4096), got 4097"),
        ({"activations": []}, "activations must be a list of names"),
        ({"activations": ["plu", "os"]}, "unknown activation 'os'; choose one of tanh, relu"),
        ({"activations": ["plu", "plu"]}, "each activation can be named once, got plu, plu"),
        ({"activations": ["plu_learned"], "alpha": 0}, "learned PLU needs 0 < alpha < 1"),
    ],
)
def test_messages_of_settings(given, said):
    with pytest.raises(UserError, match=re.escape(said)):
        settings_of({"target": SINE, **given})
