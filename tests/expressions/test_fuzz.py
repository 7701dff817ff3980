"""Random and hostile strings: a value or one clear line; random formulas against Python itself."""

import math
import random
import re
import string

import numpy as np
import pytest

from plunit.expressions import ExpressionError, parse
from plunit.expressions.expression import NAMES, OPERATORS

WORDS = [
    *OPERATORS, *NAMES, *(name + "(" for name in NAMES), "(", ")", ",", " ", "x", "y", "e", "pi", "1", ".5", "1e3",
    "1e-400", "9**9**9", "^", "//", "%", "=", "and", "lambda", "__", "[", "\n", "\x00", "π", "²", "'", "#", "\\", ";",
]  # fmt: skip
WELL_FORMED = ["sin(x) + x/3", "where(x < 0, exp(x), 1 + x)", "2**-x**2", "clip(x, -1, 1) * hypot(x, y)", "-(x - 1)**2"]


def hostile(rng):
    """Return a random text: characters, words, a formula with changes, or a deep one."""
    kind = rng.random()
    if kind < 0.2:
        return "".join(rng.choices(string.printable + "πé²\u2212\ud800\U0001f600", k=rng.randrange(40)))
    if kind < 0.6:
        return "".join(rng.choices(WORDS, k=rng.randrange(16)))
    if kind < 0.95:
        text = list(rng.choice(WELL_FORMED))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(3)] = rng.choice([*WORDS, ""])
        return "".join(text)
    return rng.choice(WORDS) * rng.randrange(1, 3000) + rng.choice(["x", ""]) + ")" * rng.choice([0, 1, 100])


def outcome(text):
    """Return a value or a message; anything else is an exception that fails the test."""
    try:
        f = parse(text)
    except ExpressionError as error:
        return str(error)
    return f(*np.linspace(-2, 2, len(f.names)))


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_every_string_gives_a_value_or_one_clear_line(count):
    rng, values = random.Random(count), 0
    wrong = []
    for _ in range(count):
        text = hostile(rng)
        found = outcome(text)
        values += isinstance(found, np.ndarray)
        fine = found.dtype == np.float64 if isinstance(found, np.ndarray) else found.isprintable() and len(found) < 600
        if not fine:
            wrong.append(text)
    assert wrong == []
    # otherwise the strings would be too wild to reach the arithmetic
    assert values > count / 50


PYTHON = {name: getattr(np, name) for name in NAMES if hasattr(np, name) and name not in ("max", "min")}
PYTHON |= {"max": np.maximum, "min": np.minimum, "pi": np.float64(math.pi), "e": np.float64(math.e), "F": np.float64}
NUMBER = re.compile(r"(?<![A-Za-z0-9.])[0-9]+\.?[0-9]*(e-[0-9]+)?")
"""Numbers become NumPy's, because Python's own raise an error where NumPy has inf or NaN."""
SAFE = ["sin", "cos", "tanh", "abs", "floor", "exp", "sqrt", "arctan", "sign", "log1p", "cbrt", "round", "square"]


def formula(rng, depth):
    """Return a random well-formed number."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["x", "y", "pi", "e", "2.0", "0.5", "3.", "1e-1"])
    sub = [formula(rng, depth - 1) for _ in range(3)]
    space = rng.choice(["", " "])
    return rng.choice([
        f"{sub[0]}{space}{rng.choice('+-*/')}{space}{sub[1]}",
        f"({sub[0]}){space}{rng.choice('+-*/')}{sub[1]}",
        f"{sub[0]}**{rng.choice(['2', '3.0', '-1.0', '0.5', 'x'])}",
        f"{rng.choice('+-')}{sub[0]}",
        f"{rng.choice(SAFE)}({sub[0]})",
        f"{rng.choice(['max', 'min', 'hypot', 'arctan2', 'mod'])}({sub[0]}, {sub[1]})",
        f"where({sub[0]} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {sub[1]}, {sub[2]}, {sub[0]})",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_random_formulas_are_those_of_python(seed):
    rng = random.Random(seed)
    x, y = np.float64(rng.uniform(-3, 3)), np.float64(rng.uniform(-3, 3))
    texts = [formula(rng, rng.randrange(1, 5)) for _ in range(150)]
    with np.errstate(all="ignore"):
        expected = [eval(NUMBER.sub(r"F(\g<0>)", text), {**PYTHON, "x": x, "y": y}) for text in texts]
    found = []
    for text in texts:
        f = parse(text)
        found.append(float(f(*({"x": x, "y": y}[name] for name in f.names))))
    np.testing.assert_allclose(found, np.asarray(expected, dtype=float), rtol=1e-12)
