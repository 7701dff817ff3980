"""VNN-LIB: random formulas against a separate evaluator, hostile files, and refused ones."""

import gzip
import itertools
import operator
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

from plunit.pieces import activation, holds, load_specification, load_vnnlib, network
from plunit.pieces.formats import vnnlib
from plunit.pieces.formats.vnnlib import parse_property
from plunit.pieces.formats.vnnlib_networks import parse_specification

HEAD = "".join(f"(declare-const {name} Real)\n" for name in ("X_0", "X_1", "Y_0", "Y_1"))
BOX = "(assert (<= X_0 1)) (assert (>= X_0 -1)) (assert (and (<= X_1 1) (<= -1 X_1)))"
QUARTERS = np.arange(-5, 6) / 4
POINTS = [np.array(point) for point in itertools.product(QUARTERS[::2], QUARTERS[1::3], QUARTERS[::3], QUARTERS[1::2])]
NETWORKS = "(vnnlib-version <2.0>)\n" + "".join(
    f"(declare-network {name} (declare-input {x} real [1]) (declare-output {y} real [1]))\n"
    for name, x, y in (("f", "X", "Y"), ("g", "U", "V"))
)
SECOND = {"X_0": "X[0]", "X_1": "U[0]", "Y_0": "Y[0]", "Y_1": "V[0]", "=": "=="}
"""The words of VNN-LIB 1.0 in a file of version 2.0 with two networks of one input."""

WORDS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq}


def text_of(tree, words=None):
    if isinstance(tree, list):
        return f"({' '.join(text_of(part, words) for part in tree)})"
    return (words or {}).get(tree, str(tree))


def value(tree, point):
    """Evaluate a tree: and, or, comparisons and terms, without any normal form."""
    if not isinstance(tree, list):
        return point[["X_0", "X_1", "Y_0", "Y_1"].index(tree)] if isinstance(tree, str) else tree
    word, parts = tree[0], [value(part, point) for part in tree[1:]]
    if word in ("and", "or"):
        return all(parts) if word == "and" else any(parts)
    if word in WORDS:
        return WORDS[word](*parts)
    if word == "*":
        return np.prod(parts)
    if word == "+":
        return sum(parts)
    return -parts[0] if len(parts) == 1 else parts[0] - sum(parts[1:])


def random_tree(rng, depth):
    if depth and rng.random() < 0.7:
        parts = [random_tree(rng, depth - 1) for _ in range(rng.integers(1, 4))]
        return [str(rng.choice(["and", "or"])), *parts]
    letter = str(rng.choice(["X", "Y", "Y"]))
    number = float(rng.integers(-4, 5) / 4)
    word = str(rng.choice(list(WORDS), p=[0.3, 0.3, 0.15, 0.15, 0.1]))
    one, other = (f"{letter}_{i}" for i in rng.permutation(2))
    terms = [
        one,
        ["*", float(rng.choice([-2.0, 0.5])), one],
        ["-", one],
        ["+", one, ["*", other, 0.5, 2.0], 0.25],
        ["-", one, other, number],
    ]
    sides = [terms[rng.integers(len(terms))], other if letter == "Y" and rng.random() < 0.3 else number]
    return [word, *(sides if rng.random() < 0.5 else sides[::-1])]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(60))
def test_a_random_formula_has_the_points_that_it_says(seed, version):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 3) for _ in range(rng.integers(1, 4))]
    bounds = [[word, name, end] for name in ("X_0", "X_1") for word, end in (("<=", 1.0), (">=", -1.0))]
    asserted, words = [*bounds, *trees], SECOND if version == 2 else {}
    lines = [f"(assert {text_of(asserted[i], words)}) ; (a comment" for i in rng.permutation(len(asserted))]
    wanted = [all(value(tree, point) for tree in asserted) for point in POINTS]
    if version == 1:
        found = parse_property(HEAD + "\n".join(lines))
    else:
        pytest.importorskip("vnnlib")
        found = parse_specification(NETWORKS + "\n".join(lines)).property
    if found.inputs == 2:  # else the formula says that the two inputs are equal
        assert [found.contains(point[:2], point[2:]) for point in POINTS] == wanted
    else:
        same = [(point, known) for point, known in zip(POINTS, wanted, strict=True) if point[0] == point[1]]
        assert [found.contains(point[:1], point[2:]) for point, _ in same] == [known for _, known in same]


LARGE = [1e16, -1e16, 1.0, 3.0, -0.1, 0.3, 1e-300, 2.0**-60]


@pytest.mark.parametrize("letter", ["X", "Y"])
@pytest.mark.parametrize("seed", range(30))
def test_numbers_are_added_and_multiplied_exactly(seed, letter):
    """Points at the exact bound, and next to it, of comparisons such as 0.5 v + 1e16 + 1 <= 1e16."""
    rng = np.random.default_rng(seed)
    added, factor = rng.choice(LARGE, rng.integers(1, 4)).tolist(), float(rng.choice([1.0, -0.5, 4.0]))
    right, word = float(rng.choice([0.0, 1e16, 0.1])), str(rng.choice(["<=", ">=", "<", ">"]))
    term = ["+", ["*", factor, f"{letter}_0"], *added]
    limit = (Fraction(right) - sum(map(Fraction, added))) / Fraction(factor)
    box = "(assert (<= X_0 1e20)) (assert (>= X_0 -1e20)) (assert (and (<= X_1 1) (<= -1 X_1)))"
    found = parse_property(f"{HEAD} {box} (assert {text_of([word, term, right])})")
    near = float(limit)
    for one in (near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), near + 1.0, near - 1.0):
        x, y = ([one, 0.0], [0.0, 0.0]) if letter == "X" else ([0.0, 0.0], [one, 0.0])
        exact = Fraction(factor) * Fraction(float(one)) + sum(map(Fraction, added))
        assert found.contains(x, y) == WORDS[word](exact, Fraction(right))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("line", ["(>= (+ Y_0 1e16 1.0) 1e16)", "(>= Y_0 -1.0)", "(>= (- Y_0 1e16) (- -1.0 1e16))"])
def test_equivalent_comparisons_have_one_answer(line, version):
    """Each says y >= -1, of y = x on [-0.9, -0.5]."""
    box = "(assert (and (<= X_0 -0.5) (>= X_0 -0.9)))"
    if version == 1:
        asked = parse_property(f"(declare-const X_0 Real) (declare-const Y_0 Real) {box} (assert {line})")
    else:
        pytest.importorskip("vnnlib")
        head = "(vnnlib-version <2.0>) (declare-network f (declare-input X_0 real []) (declare-output Y_0 real []))"
        plain = line.replace("1e16", "1" + 16 * "0" + ".0")  # 2.0 has no exponents
        asked = parse_specification(f"{head} {box} (assert {plain})").property
    assert holds(network([([[1.0]], [0.0])]), asked).status == "refuted"


OPEN = "(assert (> X_0 0)) (assert (< X_0 1)) (assert (>= X_1 0)) (assert (<= X_1 0))"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("(>= Y_0 0.5)", "refuted"),
        ("(>= Y_0 0.999999)", "refuted"),
        ("(<= Y_0 1e-9)", "refuted"),
        ("(>= Y_0 1)", "undecided"),  # only x = 1 would do
        ("(>= Y_0 1.001)", "proved"),
        ("(and (< (+ X_0 X_1) 0.25) (>= Y_0 0.2))", "refuted"),
        ("(and (< (+ X_0 X_1) 0.25) (>= Y_0 0.25))", "undecided"),
        ("(and (< (+ X_0 X_1) 0.25) (>= Y_0 0.26))", "proved"),
        ("(and (>= X_0 1) (<= Y_0 5))", "proved"),  # no x is below 1 and at least 1
    ],
)
def test_open_bounds_of_inputs_count_as_closed_in_a_proof_and_as_open_for_a_witness(line, status):
    """y_0 = x_0, and 0 < x_0 < 1."""
    asked = parse_property(f"{HEAD} {OPEN} (assert {line})")
    found = holds(network([(np.eye(2), np.zeros(2))]), asked)
    assert found.status == status
    assert found.x is None or (0 < found.x[0] < 1 and asked.contains(found.x, found.y))
    assert ("open bounds" in found.reason) == (status == "undecided")


def test_strict_and_closed_comparisons_of_outputs_mix():
    found = parse_property(f"{HEAD} {BOX} (assert (and (< Y_0 0.5) (<= Y_1 0.5)))")
    points = [(0.25, 0.5), (0.5, 0.5), (0.25, 0.75)]
    assert [found.contains([0, 0], y) for y in points] == [True, False, False]


@pytest.mark.parametrize("line", ["(assert (>= X_0 2))", "(assert (or))", "(assert (<= X_0 -1.5))"])
def test_a_formula_that_no_x_fulfils_holds_of_every_network(line):
    net = network([(np.eye(2), np.zeros(2))])
    found = parse_property(f"{HEAD} {BOX} {line}")
    assert not any(found.contains(point[:2], point[2:]) for point in POINTS)
    assert holds(net, found).status == "proved"


def test_two_networks_read_inputs_that_are_set_equal_as_one(tmp_path):
    """|f - g| >= d somewhere: f = relu, g = x / 2 on [-1, 1], whose distance is 1/2."""
    pytest.importorskip("vnnlib")
    nets = {
        "f": network([([[1.0]], [0.0]), activation.relu(), ([[1.0]], [0.0])]),
        "g": network([([[0.5]], [0.0])]),
    }
    sides = "(assert (and (== X[0] U[0]) (<= X[0] 1.0) (>= U[0] -1.0)))"
    for limit, status in ((0.4, "refuted"), (0.6, "proved")):
        rest = f"(assert (or (>= (- Y[0] V[0]) {limit}) (<= (- Y[0] V[0]) (- {limit}))))"
        (tmp_path / "file.vnnlib").write_text(NETWORKS + sides + rest)
        asked = load_specification(tmp_path / "file.vnnlib")
        assert (asked.inputs, asked.property.inputs) == ({"f": [0], "g": [0]}, 1)
        found = holds(asked.together(nets), asked.property)
        assert found.status == status
        if found.x is not None:
            np.testing.assert_allclose(found.y, [max(found.x[0], 0), found.x[0] / 2])


def test_equal_inputs_of_one_network_stay_two():
    """If they were one input, their weights would be added and rounded."""
    pytest.importorskip("vnnlib")
    text = NETWORKS.replace("X real [1]", "X real [2]") + "(assert (and (== X[0] X[1]) (== X[1] U[0]) (> Y[0] 1.0)))"
    sides = "(assert (and (<= X[0] 1.0) (>= X[0] 0.0) (<= X[1] 1.0) (>= X[1] 0.0)))"
    asked = parse_specification(text + sides)
    assert asked.inputs == {"f": [0, 1], "g": [1]}
    assert len(asked.property.cases[0].limits) == 2


@pytest.mark.parametrize(("slope", "status"), [(0.5, "proved"), (-0.5, "refuted")])
def test_one_network_at_two_points_is_monotone_or_not(slope, status):
    pytest.importorskip("vnnlib")
    net = network([([[1.0]], [0.0]), activation.piecewise([0.0], [slope, 2.0]), ([[1.0]], [0.0])])
    box = "(assert (and (<= X[0] 1.0) (>= X[0] -1.0) (<= U[0] 1.0) (>= U[0] -1.0)))"
    text = NETWORKS.replace("network g", "network g (equal-to f)") + box
    asked = parse_specification(text + "(assert (<= X[0] U[0])) (assert (>= (- Y[0] V[0]) 0.01))")
    assert holds(asked.together({"f": net}), asked.property).status == status


TWO = "(declare-input A real [1]) (declare-input B real [1])"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(assert (<= X[0] 1.0))", "X[0] has no lower bound"),
        ("(assert (<= X[1] 1.0))", "line 4: "),
        ("(assert (<= Z[0] 1.0))", "line 4: "),
        ("(assert (<= X[0] Y[0]))", "a comparison has inputs and outputs: (<= X[0] Y[0])"),
        ("(assert (<= X[0]", "syntax error"),
        (f"(assert {'(and ' * 200_000}(<= X[0] 1.0){')' * 200_000})", "nested deeper than 100"),
        (f"(declare-network h {TWO} (declare-output C real [1]))", "must have one input"),
        ("(assert (<= X[0] 1.0))\0(assert (>= X[0] 99.0))", "a byte 0"),
        (f"(assert (<= X[{9**30}] 1.0))", "exceeds 64 bits"),
        *(
            (f"(declare-network h (declare-input A {kind} [1]) (declare-output C real [1]))", f"got type {short}")
            for kind, short in (("int32", "I32"), ("uint8", "U8"), ("bool", "Bool"), ("string", "Unknown"))
        ),
        ("(declare-network h (declare-input A real [1]) (declare-output C int64 [1]))", "got type I64"),
    ],
)
def test_a_wrong_specification_is_one_line(text, reason, tmp_path):
    pytest.importorskip("vnnlib")
    (tmp_path / "file").write_text(NETWORKS + text + ("(assert (<= X[0] 1.0))" if "declare" in text else ""))
    with pytest.raises(ValueError, match=r"is not a property in VNN-LIB 2\.0") as error:
        load_specification(tmp_path / "file")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_networks_that_are_missing_or_do_not_fit():
    pytest.importorskip("vnnlib")
    asked = parse_specification(NETWORKS + "(assert (and (== X[0] U[0]) (<= X[0] 1.0) (>= X[0] 0.0) (> Y[0] V[0])))")
    line, wide = network([([[1.0]], [0.0])]), network([([[1.0, 1.0]], [0.0])])
    for nets, text in (({"f": line}, r"\['f', 'g'\], got \['f'\]"), ({"f": line, "g": wide}, "network g has 1 inputs")):
        with pytest.raises(ValueError, match=text):
            asked.together(nets)


def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vnnlib", None)
    with pytest.raises(ImportError, match="needs vnnlib, which is not installed; pip install vnnlib"):
        parse_specification(NETWORKS)


def test_enough_of_the_random_formulas_have_points():
    """Most of the trees above are neither always true nor never."""
    counts = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        trees = [random_tree(rng, 3) for _ in range(rng.integers(1, 4))]
        counts.append(np.mean([all(value(tree, point) for tree in trees) for point in POINTS]))
    assert np.mean([0 < count < 1 for count in counts]) > 0.4


@pytest.mark.parametrize("word", ["<", ">"])
def test_a_strict_comparison_is_open(word):
    found = parse_property(f"{HEAD} {BOX} (assert ({word} Y_0 0.5))")
    assert [found.contains([0, 0], [y, 0]) for y in (0.25, 0.5, 0.75)] == [word == "<", False, word == ">"]


def test_parts_with_the_same_inputs_are_one_case():
    boxes = [f"(and (<= X_0 {i}) (>= X_0 {i - 1}) (<= X_1 0) (>= X_1 0) ({{}} Y_0 Y_1))" for i in range(3)]
    parts = [box.format(word) for box in boxes for word in ("<=", ">=")]
    found = parse_property(f"{HEAD} (assert (or {' '.join(parts)}))")
    assert [len(case.conditions) for case in found.cases] == [2, 2, 2]
    assert [case.box[0].tolist() for case in found.cases] == [[-1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]


@pytest.mark.parametrize("word", ["<=", ">="])
def test_a_bound_that_is_no_float_is_rounded_outward_and_is_exact_for_a_witness(word):
    case = parse_property(f"{HEAD} {BOX} (assert ({word} (* 3 X_0) 0.5)) (assert (<= Y_0 0))").cases[0]
    low, high = map(Fraction, case.box[0])
    assert high > Fraction(1, 6) if word == "<=" else low < Fraction(1, 6)
    end, inward = (case.box[0, 1], -1) if word == "<=" else (case.box[0, 0], 1)
    assert [case.contains(np.array([x, 0.0])) for x in (end, np.nextafter(end, inward))] == [False, True]


def test_a_part_without_inputs_is_left_out():
    found = parse_property(f"{HEAD} {BOX} (assert (or (>= X_0 2) (<= Y_0 1)))")
    assert len(found.cases) == len(found.cases[0].conditions) == 1


def test_files_may_be_packed(tmp_path):
    text = f"; a comment\n{HEAD.replace('const X_0', 'fun X_0 ()')} {BOX} (assert (<= Y_0 0.5))"
    (tmp_path / "plain").write_text(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    for name in ("plain", "packed"):
        assert load_vnnlib(tmp_path / name).contains([0, 0], [0.5, 0])


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_file_is_not_read(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(vnnlib, "BYTES", 10_000)
    content = b" " * 10_001
    (tmp_path / "file").write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ValueError, match="the content has more than 10,000 bytes"):
        load_vnnlib(tmp_path / "file")


OR = "(or (<= Y_0 0) (<= Y_1 0))"
REFUSED = {
    "(assert (<= Y_0 Y_7))": "Y_7 is neither a number nor a variable that is declared",
    "(declare-const Z_0 Real)": "variables are X_0, X_1, ... and Y_0, Y_1, ..., got Z_0",
    "(declare-const X_0 Real)": "X_0 is declared twice",
    "(declare-const Y_3 Real)": "Y_2 is not declared",
    "(declare-const X_2 Int)": "a line must be declare-const or assert, got (declare-const X_2 Int)",
    "(declare-const X_2 Real)": "X_2 has no lower bound in a case",
    "(check-sat)": "a line must be declare-const or assert, got (check-sat)",
    "check-sat": "a line must be declare-const or assert, got check-sat",
    "()": "a line must be declare-const or assert, got ()",
    "(assert)": "a line must be declare-const or assert, got (assert)",
    "(assert ())": "an assertion must be a comparison, `and` or `or`, got ()",
    "(assert Y_0)": "an assertion must be a comparison, `and` or `or`, got Y_0",
    "(assert (not (<= Y_0 0)))": "an assertion is `and`, `or`, or <=, >=, <, >, = of two terms, got (not (<= Y_0 0))",
    "(assert (<= Y_0))": "of two terms, got (<= Y_0)",
    "(assert (<= Y_0 nan))": "nan is neither a number nor",
    "(assert (<= Y_0 1_0))": "1_0 is neither a number nor",
    "(assert (<= Y_0 1e999))": "numbers are too large",
    "(assert (<= Y_0 ()))": "a term is a number, a variable, or +, - or * of terms, got ()",
    "(assert (<= (* Y_0 Y_1) 0))": "terms must be linear, but two variables are multiplied: (* Y_0 Y_1)",
    "(assert (<= (/ Y_0 2) 0))": "a term is a number, a variable, or +, - or * of terms, got (/ Y_0 2)",
    "(assert (<= Y_0 X_0))": "a comparison has inputs and outputs: (<= Y_0 X_0)",
    "(assert (<= 1 2))": "a comparison has no variable: (<= 1 2)",
    "(assert (<= (* 0.1 3 Y_0) 1))": "write each factor as one number",
    "(assert (<= (+ Y_0 (* 1e-30 Y_0)) 1))": "write each factor as one number",
    f"(assert (<= (* {'1e-300 ' * 10**5} Y_0) 1))": "a product of numbers has more than 8,192 bits",
    "(assert (<= (* 1e300 1e300 Y_0) 1))": "numbers are too large",
    "(assert (<= Y_0 0)": "1 parentheses are not closed at the end",
    "(assert (<= Y_0 0)))": "a parenthesis is closed that is not open",
    # hostile ones
    "(assert " + "(or " * 10**5 + "(<= Y_0 0)" + ")" * 10**5 + ")": "nested deeper than 100",
    "(assert (<= " + "(- " * 90 + "Y_0" + ")" * 90 + " 0))" + "(" * 200: "nested deeper than 100",
    f"(assert {OR})" * 40: "the limits are 100,000 and 2,000,000",
    f"(assert (and {' '.join([OR] * 40)}))": "the limits are 100,000 and 2,000,000",
    f"(assert (or {' '.join(['(<= Y_0 0)'] * 3000)}))" + "(assert (<= Y_1 0))" * 1000: "3,000 cases with 3,012,000",
    "(" * 50: "50 parentheses are not closed",
    "(assert " + "Y" * 10**6 + ")": "got YYYY",
    "(assert (<= Y_0 " + "9" * 10**5 + "))": "numbers are too large",
}
BROKEN = [b"", b"\xff\xfe", b"\x1f\x8b broken", gzip.compress(b"(" * 999, mtime=0)[:-9]]
CASES = [
    *((content, "") for content in BROKEN),
    *((f"{HEAD} {BOX} {line}".encode(), REFUSED[line]) for line in REFUSED),
]


@pytest.mark.parametrize(("content", "reason"), CASES, ids=[f"{i} {why[:40]}" for i, (_, why) in enumerate(CASES)])
def test_what_is_not_understood_is_one_line_at_once(content, reason, tmp_path):
    (tmp_path / "file").write_bytes(content)
    begun = time.monotonic()
    with pytest.raises(ValueError, match="is not a property in VNN-LIB") as error:
        load_vnnlib(tmp_path / "file")
    text = str(error.value).replace(str(tmp_path), "")
    assert reason in text
    assert "\n" not in text
    assert len(text) < 300
    assert time.monotonic() - begun < 10


def test_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        load_vnnlib(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_vnnlib(tmp_path / "none")
