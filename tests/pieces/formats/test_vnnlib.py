"""VNN-LIB: random formulas against an evaluator of their own, hostile files, and what is refused."""

import gzip
import itertools
import operator
import time

import numpy as np
import pytest

from plunit.pieces import load_vnnlib
from plunit.pieces.formats import vnnlib
from plunit.pieces.formats.vnnlib import parse

HEAD = "".join(f"(declare-const {name} Real)\n" for name in ("X_0", "X_1", "Y_0", "Y_1"))
BOX = "(assert (<= X_0 1)) (assert (>= X_0 -1)) (assert (and (<= X_1 1) (<= -1 X_1)))"
QUARTERS = np.arange(-5, 6) / 4
POINTS = [np.array(point) for point in itertools.product(QUARTERS[::2], QUARTERS[1::3], QUARTERS[::3], QUARTERS[1::2])]
WORDS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq}


def text_of(tree):
    return f"({' '.join(map(text_of, tree))})" if isinstance(tree, list) else str(tree)


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
    # strict comparisons of outputs are all strict in one case, see REFUSED
    word = str(rng.choice(["<=", ">=", "="], p=[0.45, 0.45, 0.1]))
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


@pytest.mark.parametrize("seed", range(60))
def test_a_random_formula_has_the_points_that_it_says(seed):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 3) for _ in range(rng.integers(1, 4))]
    bounds = [[word, name, end] for name in ("X_0", "X_1") for word, end in (("<=", 1.0), (">=", -1.0))]
    asserted = [*bounds, *trees]
    text = HEAD + "\n".join(f"(assert {text_of(asserted[i])}) ; (a comment" for i in rng.permutation(len(asserted)))
    wanted = [all(value(tree, point) for tree in asserted) for point in POINTS]
    try:
        found = parse(text)
    except ValueError:
        assert not any(wanted)
        return
    assert [found.contains(point[:2], point[2:]) for point in POINTS] == wanted


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
    found = parse(f"{HEAD} {BOX} (assert ({word} Y_0 0.5))")
    assert [found.contains([0, 0], [y, 0]) for y in (0.25, 0.5, 0.75)] == [word == "<", False, word == ">"]


def test_parts_with_the_same_inputs_are_one_case():
    boxes = [f"(and (<= X_0 {i}) (>= X_0 {i - 1}) (<= X_1 0) (>= X_1 0) ({{}} Y_0 Y_1))" for i in range(3)]
    parts = [box.format(word) for box in boxes for word in ("<=", ">=")]
    found = parse(f"{HEAD} (assert (or {' '.join(parts)}))")
    assert [len(case.conditions) for case in found.cases] == [2, 2, 2]
    assert [case.box[0].tolist() for case in found.cases] == [[-1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]


def test_a_part_without_inputs_is_left_out():
    found = parse(f"{HEAD} {BOX} (assert (or (>= X_0 2) (<= Y_0 1)))")
    assert len(found.cases) == len(found.cases[0].conditions) == 1


def test_files_may_be_packed(tmp_path):
    text = f"; a comment\n{HEAD.replace('const X_0', 'fun X_0 ()')} {BOX} (assert (<= Y_0 0.5))"
    (tmp_path / "plain").write_text(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    for name in ("plain", "packed"):
        assert load_vnnlib(tmp_path / name).contains([0, 0], [0.5, 0])


def test_a_thousand_boxes_take_no_time():
    part = "(and (>= X_0 {0}) (<= X_0 {0}.5) (>= X_1 0) (<= X_1 1) (<= Y_0 {0}))"
    text = f"{HEAD} (assert (or {' '.join(part.format(i) for i in range(4000))}))"
    begun = time.monotonic()
    assert len(parse(text).cases) == 4000
    assert time.monotonic() - begun < 10


OR = "(or (<= Y_0 0) (<= Y_1 0))"
HOSTILE = {
    "deep": "(assert " + "(or " * 10**5 + "(<= Y_0 0)" + ")" * 10**5 + ")",
    "deep terms": "(assert (<= " + "(- " * 90 + "Y_0" + ")" * 90 + " 0))" + "(" * 200,
    "2^40 cases": f"(assert {OR})" * 40,
    "2^40 cases inside": f"(assert (and {' '.join([OR] * 40)}))",
    "many comparisons": f"(assert (or {' '.join(['(<= Y_0 0)'] * 3000)}))" + "(assert (<= Y_1 0))" * 1000,
    "only open": "(" * 50,
    "only closed": ")" * 50,
    "a long word": "(assert " + "Y" * 10**6 + ")",
    "a long number": "(assert (<= Y_0 " + "9" * 10**5 + "))",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_line_at_once(name, tmp_path):
    (tmp_path / "file").write_text(f"{HEAD} {BOX} {HOSTILE[name]}")
    begun = time.monotonic()
    with pytest.raises(ValueError, match="is no property in VNN-LIB") as error:
        load_vnnlib(tmp_path / "file")
    assert len(str(error.value).replace(str(tmp_path), "")) < 300
    assert "\n" not in str(error.value)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_file_is_not_read(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(vnnlib, "BYTES", 10_000)
    content = b" " * 10_001
    (tmp_path / "file").write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ValueError, match="it has more than 10,000 bytes"):
        load_vnnlib(tmp_path / "file")


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
    "(assert ())": "an assertion must be a comparison, and or or, got ()",
    "(assert Y_0)": "an assertion must be a comparison, and or or, got Y_0",
    "(assert (not (<= Y_0 0)))": "known are and, or, and <=, >=, <, >, = of two terms, got (not (<= Y_0 0))",
    "(assert (<= Y_0))": "of two terms, got (<= Y_0)",
    "(assert (<= Y_0 nan))": "nan is neither a number nor",
    "(assert (<= Y_0 1_0))": "1_0 is neither a number nor",
    "(assert (<= Y_0 1e999))": "its numbers are too large",
    "(assert (<= Y_0 ()))": "a term is a number, a variable, or +, - or * of terms, got ()",
    "(assert (<= (* Y_0 Y_1) 0))": "two variables are multiplied, and terms must be linear: (* Y_0 Y_1)",
    "(assert (<= (/ Y_0 2) 0))": "a term is a number, a variable, or +, - or * of terms, got (/ Y_0 2)",
    "(assert (<= Y_0 X_0))": "a comparison has inputs and outputs: (<= Y_0 X_0)",
    "(assert (<= 1 2))": "a comparison has no variable: (<= 1 2)",
    "(assert (< X_0 1))": "inputs have closed bounds, got (< X_0 1)",
    "(assert (and (< Y_0 1) (<= Y_1 1)))": "a case has < and <= on outputs together",
    "(assert (>= X_0 2))": "no x fulfils it: X_0 must be at least 2.0 and at most 1.0",
    "(assert (or))": "no x fulfils it",
    "(assert (<= Y_0 0)": "1 parentheses are not closed at its end",
    "(assert (<= Y_0 0)))": "it closes a parenthesis that is not open",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_understood_is_one_line(line, tmp_path):
    (tmp_path / "file").write_text(f"{HEAD} {BOX} {line}")
    with pytest.raises(ValueError, match="is no property in VNN-LIB") as error:
        load_vnnlib(tmp_path / "file")
    assert REFUSED[line] in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\x1f\x8b broken", gzip.compress(b"(" * 999)[:-9]], ids=repr)
def test_what_is_no_text_is_one_line(content, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="is no property in VNN-LIB"):
        load_vnnlib(tmp_path / "file")


def test_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        load_vnnlib(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_vnnlib(tmp_path / "none")
