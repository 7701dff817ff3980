"""`plunit prove`: the answer, the exit code and the witness in the form of VNN-COMP; errors are one line."""

import re

import numpy as np
import pytest
from commands import run

from plunit import pieces
from plunit.cli import networks
from plunit.pieces import Verdict, activation, load, load_vnnlib, network, save_json

TENT = network([([[1.0], [1.0]], [0.0, -1.0]), activation.relu(), ([[1.0, -2.0]], [10.0])])
"""10 + x from 0 to 1, then 12 - x; 10 below 0."""


@pytest.fixture
def prover(monkeypatch):
    """Return a function that replaces the prover."""
    return lambda holds: monkeypatch.setattr(pieces, "holds", holds, raising=False)


@pytest.fixture
def files(tmp_path):
    """Write the tent, and properties that hold and do not."""
    save_json(TENT, tmp_path / "net.json")
    head = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (>= X_0 -1)) (assert (<= X_0 3))"
    (tmp_path / "holds.vnnlib").write_text(f"{head} (assert (>= Y_0 11.5))")
    (tmp_path / "fails.vnnlib").write_text(f"{head} (assert (>= Y_0 10.75))")
    (tmp_path / "other.vnnlib").write_text(f"{head} (declare-const Y_1 Real) (assert (>= Y_0 10.75))")
    return tmp_path


def test_unsat(files):
    assert run("prove", "net.json", "holds.vnnlib", "--witness", "w", folder=files) == (0, "unsat\n", "")
    assert (files / "w").read_text() == "unsat\n"


def test_sat_with_the_counterexample(files):
    code, out, err = run("prove", "net.json", "fails.vnnlib", "--witness", "w", folder=files)
    assert (code, err) == (10, "")
    assert (files / "w").read_text() == out
    found = re.fullmatch(r"sat\n\(\(X_0 (\S+)\)\n \(Y_0 (\S+)\)\)\n", out)
    x, y = ([float(word)] for word in found.groups())
    np.testing.assert_allclose(load(files / "net.json")(x), y, rtol=1e-12)
    assert load_vnnlib(files / "fails.vnnlib").contains(x, y)


def test_a_file_that_jumps_by_rounding_has_a_note(files):
    onnx_texts = pytest.importorskip("onnx_texts")
    text = "k = Abs(x); m = Greater(k, c); p = Mul(x, a); s = Sign(x); d = Mul(s, b); q = Add(p, d); y = Where(m, q, x)"
    arrays = {"a": np.float32(0.1), "b": np.float32(0.9), "c": np.float32(1.0)}
    onnx_texts.write(files / "plu.onnx", onnx_texts.graph(text), arrays, ("n", 1))
    code, out, err = run("prove", "plu.onnx", "holds.vnnlib", "--witness", "w", folder=files)
    assert (code, err, (files / "w").read_text()) == (0, "", "unsat\n")
    note = re.fullmatch(r"unsat\nnote: plu.onnx .* at most (\S+)\n", out)
    jump = abs(float(np.float32(0.1)) + float(np.float32(0.9)) - 1)
    assert float(note[1]) == pytest.approx(jump, rel=0.01)
    code, out, err = run("pieces", "plu.onnx", folder=files)
    assert (code, err) == (0, "")
    assert note[0].splitlines()[1] in out.splitlines()


THIRD, HALF = (np.array([[part]]) for part in (1 / 3, 0.5))
FACTORS = {
    "y = Mul(x, a)": False,
    "y = Div(x, d)": True,
    "z = Mul(x, a); y = MatMul(z, b)": True,
    "z = Mul(x, h); y = MatMul(z, b)": False,
    "z = Gemm(x, w); y = ReduceMean<axes=[1]>(z)": True,
    "z = Gemm(x, v); y = ReduceMean<axes=[1]>(z)": False,
}


@pytest.mark.parametrize("text", FACTORS)
def test_a_factor_that_is_rounded_has_a_note(files, text):
    onnx_texts = pytest.importorskip("onnx_texts")
    arrays = {"a": THIRD[0], "b": THIRD, "h": HALF[0], "d": np.array([3.0]), "w": np.ones((1, 3)), "v": np.ones((1, 2))}
    onnx_texts.write(files / "net.onnx", onnx_texts.graph(text), arrays, ("n", 1))
    code, out, err = run("prove", "net.onnx", "holds.vnnlib", folder=files)
    assert (code, err) == (0, "")
    notes = [line for line in out.splitlines() if "rounded to float64" in line]
    assert [line.startswith("note: net.onnx ") for line in notes] == [True] * FACTORS[text]


def test_a_far_knot_is_no_witness(files):
    save_json(network([([[1.0]], [0.0]), activation.hardtanh(-1e20, 0.1), ([[1.0]], [0.0])]), files / "far.json")
    head = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (>= X_0 0.2)) (assert (<= X_0 1))"
    (files / "low.vnnlib").write_text(f"{head} (assert (<= Y_0 0.2))")
    code, out, err = run("prove", "far.json", "low.vnnlib", folder=files)
    assert (code, err) == (10, "")
    assert re.search(r"\(Y_0 (\S+?)\)", out)[1] == "0.1"


def test_two_networks_by_their_names(files):
    pytest.importorskip("vnnlib")
    save_json(network([([[1.0]], [10.0])]), files / "line.json")
    sides = "(assert (and (== X[0] U[0]) (<= X[0] 3.0) (>= X[0] 0.0)))"
    declared = "(declare-network {} (declare-input {} real [1]) (declare-output {} real [1]))"
    text = f"(vnnlib-version <2.0>) {declared.format(*'fXY')} {declared.format(*'gUV')} {sides}"
    (files / "two.vnnlib").write_text(f"{text} (assert (<= Y[0] (- V[0] 3.5)))")
    words = ("two.vnnlib", "--network", "f=net.json", "--network", "g=line.json")
    code, out, err = run("prove", *words, folder=files)
    assert (code, err) == (10, "")
    found = dict(re.findall(r"\((\w\[0\]) (\S+?)\)", out))
    x, u, y, v = (float(found[f"{letter}[0]"]) for letter in "XUYV")
    assert x == u
    assert y <= v - 3.5
    np.testing.assert_allclose([y, v], [TENT([x])[0], 10 + x])
    assert run("prove", *words[:3], folder=files)[0] == 2


def test_unknown_with_the_reason(files, prover):
    prover(lambda *_, **__: Verdict("undecided", None, None, 2.0, "the time limit of 2 s is over"))
    code, out, err = run("prove", "net.json", "fails.vnnlib", "--witness", "w", folder=files)
    assert (code, out, err) == (30, "unknown\nthe time limit of 2 s is over\n", "")
    assert (files / "w").read_text() == "unknown\n"


@pytest.mark.parametrize(
    ("words", "limit"), [((), 60.0), (("--time-limit", "2.5"), 2.5), (("--time-limit", "0"), None)]
)
def test_the_prover_is_told_the_limit_and_shows_how_far_it_is(words, limit, files, prover):
    calls = []

    def holds(net, unwanted, *, time_limit, progress):
        progress(0.5, "half")
        calls.append((net.widths, unwanted.inputs, time_limit))
        return Verdict("proved", None, None, 0.0)

    prover(holds)
    assert run("prove", "net.json", "holds.vnnlib", *words, folder=files)[0] == 0
    assert calls == [((1, 2, 1), 1, limit)]


def test_ctrl_c_is_one_line_and_writes_nothing(files, prover):
    def holds(*_, **__):
        raise KeyboardInterrupt

    prover(holds)
    assert run("prove", "net.json", "holds.vnnlib", "--witness", "w", folder=files) == (130, "", "plunit: stopped\n")
    assert not (files / "w").exists()


WRONG = {
    "no network": (("none.json", "holds.vnnlib"), "none.json: No such file or directory; give the file of a network"),
    "no property": (("net.json", "none.vnnlib"), "none.vnnlib: No such file or directory; give a .vnnlib file"),
    "another file": (("holds.vnnlib", "holds.vnnlib"), "holds.vnnlib has no known format"),
    "no formula": (("net.json", "net.json"), "net.json is not a property in VNN-LIB 1.0"),
    "swapped": (
        ("p.vnnlib.gz", "net.json"),
        "the network comes first: plunit prove net.json p.vnnlib.gz",
    ),
    "other outputs": (("net.json", "other.vnnlib"), "do not match: the property has 1 input and 2 outputs"),
    "no network at all": (("holds.vnnlib",), "give a network and a property, or a property and --network"),
    "a name for 1.0": (("holds.vnnlib", "--network", "f=net.json"), "VNN-LIB 1.0 names no networks; give NET"),
    "a network without a name": (("holds.vnnlib", "--network", "net.json"), "--network net.json must be NAME=NET"),
    "no folder": (("net.json", "holds.vnnlib", "--witness", "no/w"), "--witness no/w must be a file in a folder"),
    "a folder": (("net.json", "holds.vnnlib", "--witness", "."), "--witness . must be a file"),
    "a file that is read": (("net.json", "holds.vnnlib", "--witness", "net.json"), "would replace an input file"),
    "a limit below 0": (("net.json", "holds.vnnlib", "--time-limit", "-1"), "Invalid value for '--time-limit'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_found_before_any_work(name, files, prover):
    prover(lambda *_, **__: pytest.fail("it began to work"))
    words, reason = WRONG[name]
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    code, out, err = run("prove", *words, folder=files)
    assert (code, out) == (2, "")
    assert reason in " ".join(err.split())
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_an_error_of_the_prover_is_one_line(files, prover):
    def holds(*_, **__):
        raise ValueError("the box is too large; take a smaller one")

    prover(holds)
    code, out, err = run("prove", "net.json", "holds.vnnlib", folder=files)
    assert (code, out, err) == (2, "", "plunit: the box is too large; take a smaller one\n")


def test_the_help_has_the_exit_codes():
    _, out, _ = run("prove", "--help")
    for status, code in networks.CODES.items():
        assert f"{code}: {networks.WORDS[status]}" in " ".join(out.split())


RANGE = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (>= X_0 -1)) (assert (<= X_0 3))"


@pytest.mark.parametrize("options", [["--bits", "16"], ["--bits", "8"], ["--float"], ["--double"]])
def test_the_program_is_asked(files, options):
    kind = options[0].removeprefix("--")
    net = load(files / "net.json")
    program = pieces.quantize(net, [(-1, 3)], int(options[1])) if kind == "bits" else pieces.FloatNetwork(net, kind)
    assert run("prove", "net.json", "holds.vnnlib", *options, folder=files) == (0, "unsat\n", "")
    code, out, err = run("prove", "net.json", "fails.vnnlib", *options, folder=files)
    assert (code, err) == (10, "")
    found = re.match(r"sat\n\(\(X_0 (\S+)\)\n \(Y_0 (\S+)\)\)\n", out)
    x, y = ([float(word)] for word in found.groups())
    assert program(x) == y
    integers = program.integers_at(program.nearest(np.array(x) - program.offset))
    note = "" if integers is None else f"note: the program reads the integers {integers.tolist()} for this input\n"
    assert out.removeprefix(found[0]) == note


def test_the_program_differs_from_the_network(files):
    save_json(network([([[0.1]], [0.0])]), files / "tenth.json")
    (files / "tenth.vnnlib").write_text(f"{RANGE} (assert (>= Y_0 0.3000000044))")
    codes = [run("prove", "tenth.json", "tenth.vnnlib", *more, folder=files)[0] for more in ([], ["--float"])]
    assert codes == [0, 10]


def test_the_box_of_the_program_is_an_option(files):
    (files / "point.vnnlib").write_text(RANGE.replace("3", "-1") + " (assert (>= Y_0 11))")
    code, out, err = run("prove", "net.json", "point.vnnlib", "--bits", "16", folder=files)
    assert (code, out) == (2, "")
    assert "the property fixes input 0 at -1.0; give the box of the program with --box" in err
    assert run("prove", "net.json", "point.vnnlib", "--bits", "16", "--box", "-2", "2", folder=files)[0] == 0
    together = "give only one of --bits, --float and --double; --box LOW HIGH goes with --bits"
    for wrong, reason in (
        (["--bits", "16", "--float"], together),
        (["--box", "-2", "2"], together),
        (["--bits", "12"], "--bits must be 16 or 8, got 12"),
    ):
        code, out, err = run("prove", "net.json", "holds.vnnlib", *wrong, folder=files)
        assert (code, out) == (2, "")
        assert reason in err
