"""What a text means, against the same formula in Python; and what is refused, with its column and its remedy."""

import numpy as np
import pytest

from plunit.expressions import ExpressionError, finite_values, parse
from plunit.expressions.expression import FUNCTIONS, OPERATORS, OTHER_NAMES, SIGNS
from plunit.expressions.intervals import IMAGES
from plunit.expressions.parsing import _DEPTH, _STEPS

X = np.linspace(-2.5, 2.5, 41)
Y = np.linspace(0.25, 3.0, 41)

ONE = {
    "x": lambda x: x,
    "3": lambda x: 3.0 + 0 * x,
    ".5 + 1e-3 + 2.E+1 + 7.": lambda x: 27.501 + 0 * x,
    "-x**2": lambda x: -(x**2),
    "(-x)**2": lambda x: (-x) ** 2,
    "2**-x**2": lambda x: 2 ** (-(x**2)),
    "2**3**0.5": lambda x: 2 ** (3**0.5) + 0 * x,
    "x - 1 - 2": lambda x: x - 1 - 2,
    "8 / 4 / 2 * x": lambda x: 8 / 4 / 2 * x,
    "1 - -+-x": lambda x: 1 - x,
    "1 + 2 * x**3 / 4 - 5": lambda x: 1 + 2 * x**3 / 4 - 5,
    "-2 * -x": lambda x: 2 * x,
    "2 * pi * e": lambda x: 2 * np.pi * np.e + 0 * x,
    "where(x < 0, -x, x**2)": lambda x: np.where(x < 0, -x, x**2),
    "where(x + 1 <= 2 * x, 1, 0)": lambda x: np.where(x + 1 <= 2 * x, 1.0, 0.0),
    "where(x == 0, 1, 2) + where(x != 0, 1, 2)": lambda x: 3.0 + 0 * x,
    "where(x > 1, 1, where(x >= -1, 2, 3))": lambda x: np.where(x > 1, 1.0, np.where(x >= -1, 2.0, 3.0)),
    "where((x < 0), 1, 2)": lambda x: np.where(x < 0, 1.0, 2.0),
    " sin ( x )\n+\tcos(x) ": lambda x: np.sin(x) + np.cos(x),
    "max(x, 0) + min(x, 1) + clip(x, -1, 1)": lambda x: np.maximum(x, 0) + np.minimum(x, 1) + np.clip(x, -1, 1),
    "atan2(x, -1) + hypot(x, 1)": lambda x: np.arctan2(x, -1) + np.hypot(x, 1),
    "mod(x, 0.7) + heaviside(x, 0.5)": lambda x: np.mod(x, 0.7) + np.heaviside(x, 0.5),
    "asin(x / 3) + acos(x / 3) + atan(x)": lambda x: np.arcsin(x / 3) + np.arccos(x / 3) + np.arctan(x),
    "asinh(x) + acosh(x + 4) + atanh(x / 3)": lambda x: np.arcsinh(x) + np.arccosh(x + 4) + np.arctanh(x / 3),
    "ln(x + 3) - log(x + 3)": lambda x: 0 * x,
    "2x^2(1 - x)x + 3 sin(2x)pi": lambda x: 2 * x**2 * (1 - x) * x + 3 * np.sin(2 * x) * np.pi,
    "9**9**9**9 - x": lambda x: np.inf - x,
    "0 / 0 + x": lambda x: np.nan + x,
}


@pytest.mark.parametrize("text", ONE)
def test_a_text_means_what_python_means(text):
    np.testing.assert_allclose(parse(text)(X), ONE[text](X), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", [name for name, item in FUNCTIONS.items() if len(item.arguments) == 1])
def test_functions_of_one_argument_are_numpys(name):
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(X)
    np.testing.assert_array_equal(parse(f"{name}(t)")(X), expected)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("b + a * b - c", ("b", "a", "c")),
        ("pi * e", ()),
        ("x_1 + X_1 + _", ("x_1", "X_1", "_")),
        ("e1 + pie", ("e1", "pie")),
        ("in + 007 * lambda - None", ("in", "lambda", "None")),
    ],
)
def test_names_come_in_the_order_of_their_appearance(text, names):
    assert parse(text).names == names


@pytest.mark.parametrize("call", [lambda f, *x: f(*x), finite_values])
def test_inputs_are_broadcast(call):
    found = call(parse("a * x + b"), np.ones((3, 1)), np.arange(4), 2)
    np.testing.assert_array_equal(found, np.arange(4) + np.full((3, 1), 2.0))
    assert found.dtype == np.float64


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (40_000,)], ids=str)
def test_every_shape_is_kept(shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    assert parse("7")(x).shape == shape
    np.testing.assert_array_equal(parse("2 * x + 1")(x), 2.0 * x + 1, strict=True)


WRONG = {
    "real numbers": [lambda value=value: parse("x")(np.array([value])) for value in (1j, "1", None)],
    r"2 \(x, y\), got 1": [lambda: parse("x + y")(1)],
    "must be a string": [lambda text=text: parse(text) for text in (None, 3, b"x")],
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_types(said):
    for call in WRONG[said]:
        with pytest.raises(TypeError, match=said):
            call()


REFUSED = {
    **{f"x + {name}": (5, f"'{name}' is not finite") for name in ("inf", "nan", "Infinity", "NaN", "INF")},
    "x 2": (3, r"write \* to multiply"),
    "2x^2 3": (6, r"write \* to multiply"),
    "2x(x < 1)": (4, r"write where\(a < b, 1, 0\)"),
    "sin x": (1, r"write sin\(x\)"),
    "sin(x": (4, "never closed"),
    "2 * sin (x": (9, "never closed"),
    "(1 + sin(x)": (1, "never closed"),
    "x)": (2, "closes no parenthesis"),
    "where(x < 1, 2)": (15, r"where\(condition, a, b\)"),
    "max(1, 2, 3)": (12, r"needs 2 arguments, got 3: max\(a, b\)"),
    "x < 1": (1, r"write where\(condition, 1, 0\)"),
    "x <\n1": (1, r"write where\(condition, 1, 0\)"),
    "where(a < b < c, 1, 2)": (15, "has two sides"),
    "1 + (x < 2)": (6, r"write where\(a < b, 1, 0\)"),
    "-(x < 2)": (3, r"write where\(a < b, 1, 0\)"),
    "sin(x < 2)": (5, r"write where\(a < b, 1, 0\)"),
    "where((x < 2) == (x < 3), 1, 0)": (8, r"write where\(a < b, 1, 0\)"),
    "where(x, 1, 2)": (7, "needs a comparison"),
    "where(x < 0, x < 1, 2)": (14, r"write where\(a < b, 1, 0\)"),
    "": (1, "the end of the text"),
    "()": (2, "is needed here"),
    "sin()": (5, "is needed here"),
    "x +": (4, "the end of the text"),
    "* x": (1, "is needed here"),
    "arcsine(x)": (1, r"did you mean arcsin, arcsinh or asin\?$"),
    "cosinus(x)": (1, r"did you mean cos, arcsin or sin\?$"),
    "x * y(3)": (5, "unknown function 'y'"),
    "x // 2": (3, r"floor\(a / b\)"),
    "x % 2": (3, r"mod\(a, b\)"),
    "where(x = 2, 1, 0)": (9, "write =="),
    "x =": (3, "write =="),
    "y = x^2": (3, r"write only the right-hand side: 'x\^2'$"),
    " f (x, y)= x\n+ y": (10, r"only the right-hand side: 'x\\n\+ y'$"),
    "|x|": (1, r"for the absolute value write abs\(x\)"),
    "x | y": (3, r"for a or b where\(a, 1, where\(b, 1, 0\)\)$"),
    "1 + relu (x)": (5, r"unknown function 'relu'; write max\(x, 0\)$"),
    "x^^2": (3, r"found '\^', but"),
    "x****2": (4, r"found '\*\*', but"),
    "x and y": (3, "for a and b"),
    "not x": (1, "swap a and b"),
    "1e999": (1, "too large"),
    "1,5": (2, "between arguments"),
    "(1,5)": (3, r"in numbers, write \."),
    "1.2.3": (4, "found '.3'"),
    "x.real": (2, "is not allowed"),
    "x[0]": (2, r"write \( and \)"),
    "π": (1, "write pi"),
    "é": (1, "ASCII"),
    "x\x00": (2, "is not allowed"),
    "\ud800": (1, "is not allowed"),
    "x in y": (3, "found 'in'"),
    "__import__('os')": (1, "unknown function '__import__'"),
    "lambda: 0": (7, "is not allowed"),
    "(" * 10_000: (_DEPTH + 1, "parentheses are open"),
    "(" * 10_001: (10_001, "the limit is 10,000"),
    "sin(" * 2000: (4 * _DEPTH + 1, "parentheses are open"),
    "-" * 9_999 + "x": (_STEPS + 1, "2,000"),
    "+".join("x" * 4_000): (_STEPS + 1, "2,000"),
    "2**" * 3_000 + "2": (3 * _STEPS // 2 + 1, "2,000"),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:20]))
def test_what_is_refused_has_a_column_and_a_remedy(text):
    column, remedy = REFUSED[text]
    with pytest.raises(ExpressionError, match=remedy) as error:
        parse(text)
    assert str(error.value).startswith(f"column {column}: ")
    assert str(error.value).isprintable()


@pytest.mark.parametrize("text", ["(" * _DEPTH + "x" + ")" * _DEPTH, "-" * (_STEPS - 2) + "x", "1**" * 900 + "x"])
def test_the_limits_themselves_are_allowed(text):
    assert abs(parse(text)(-1.0)) == 1


def test_a_full_stack_is_no_crash():
    """Deep in the stack of a caller Python's parser may have no room left for a text at the limits."""

    def deeper(frames):
        return deeper(frames - 1) if frames else parse("-" * (_STEPS - 2) + "x")

    try:
        assert deeper(600)(-1.0) == -1
    except ExpressionError as error:
        assert "nested too deeply" in str(error)  # noqa: PT017 - it depends on the version of Python


@pytest.mark.parametrize(
    ("text", "place", "kind"),
    [
        ("1 / x", "x = 0.0", "infinite"),
        ("sqrt(x - 1)", "x = -2.0", "not a real number"),
        ("exp(1000 * x)", "x = 1.0", "too large"),
        ("(-1) ** 0.5", "every point", "not a real number"),
    ],
)
def test_a_value_that_is_not_finite_is_refused_with_its_place(text, place, kind):
    with pytest.raises(ValueError, match=f"{kind}.* at {place}"):
        finite_values(parse(text), np.array([-2.0, 0.0, 1.0, 2.0]) if "x" in text else 0.0)


def test_every_function_has_its_rules():
    assert set(IMAGES) == {*FUNCTIONS, *OPERATORS, *(f"sign {sign}" for sign in SIGNS)}
    assert set(OTHER_NAMES.values()) <= set(FUNCTIONS)
