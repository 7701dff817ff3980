"""Values given by name: types, ranges, and the messages of all that use them."""

from typing import Annotated, Any, Literal

import pytest

from plunit.base.errors import UserError
from plunit.base.fields import check_value, construct, match_name, parse_value
from plunit.base.ranges import Range

SHARE = Annotated[float, Range(0, 1)]
FEW = Annotated[int, Range(1, 9)]
WIDTHS = Annotated[tuple[int, ...], Range(1, 9)]
WORD = Annotated[str, Range(0, 3)]


def function(x: SHARE, widths: WIDTHS = (1,), other: Any = None):
    return x, widths, other


def test_a_function_is_called_with_checked_values():
    assert construct("it", function, {"x": 1, "widths": [2, 3], "other": [None]}) == (1.0, (2, 3), [None])
    assert isinstance(construct("it", function, {"x": 1})[0], float)


@pytest.mark.parametrize(("hint", "low", "high", "step"), [(FEW, 1, 9, 1), (SHARE, 0, 1, 1e-6)])
def test_ends_are_allowed_and_what_is_beyond_is_not(hint, low, high, step):
    assert [check_value("x", end, hint) for end in (low, high)] == [low, high]
    for beyond in (low - step, high + step):
        with pytest.raises(UserError):
            check_value("x", beyond, hint)


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [(" 1e-2 ", SHARE, 0.01), ("3", FEW, 3), ("1, 8,1", WIDTHS, (1, 8, 1)), ("a", Literal["a", "b"], "a")],
)
def test_texts_become_values(text, hint, value):
    found = parse_value("x", text, hint)
    assert found == value
    assert type(found) is type(value)
    assert check_value("x", found, hint) == value


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: construct("it", function, []), "it must be an object, got list"),
        (lambda: construct("it", function, {}), "it needs a field 'x'"),
        (
            lambda: construct("it", function, {"x": 1, "y": 2}),
            "unknown field 'y' of it; valid fields: x, widths, other",
        ),
        (lambda: construct("it", function, {"x": "1"}), "x must be a number (0 to 1), got '1'"),
        (lambda: check_value("x", True, SHARE), "x must be a number (0 to 1), got True"),
        (lambda: check_value("x", float("nan"), SHARE), "got nan"),
        (lambda: check_value("x", {}, SHARE), "got {}"),
        (lambda: check_value("x", 2.0, FEW), "x must be a whole number (1 to 9), got 2.0"),
        (lambda: check_value("x", 10**400, FEW), "got 1000"),
        (lambda: check_value("x", 3, WIDTHS), "x must be a list of whole numbers (1 to 9), got 3"),
        (lambda: check_value("x", [], WIDTHS), "x must be a list of whole numbers"),
        (lambda: check_value("x", ["a", ["b"]], tuple[str, ...]), "x must be a list of names, got a,['b']"),
        (lambda: check_value("x", 1, bool), "x must be true or false, got 1"),
        (lambda: check_value("x", [], dict[str, Any]), "x must be an object"),
        (lambda: check_value("x", "four", WORD), "x must be a string of at most 3 characters, got 4 characters"),
        (lambda: check_value("x", 3, WORD), "x must be a string of at most 3 characters, got 3"),
        (lambda: check_value("x", "\ud800", WORD), "x contains '\\ud800', which is not UTF-8; remove it"),
        (lambda: parse_value("x", "fast", SHARE), "x must be a number (0 to 1), got 'fast'"),
        (lambda: parse_value("x", "2.5", FEW), "x must be a whole number (1 to 9), got '2.5'"),
        (lambda: parse_value("x", "1,x,1", WIDTHS), "x must be a list of whole numbers (1 to 9), got 1,x,1"),
        (lambda: parse_value("x", "c", Literal["a", "b"]), "x must be a or b, got 'c'"),
        (
            lambda: match_name("name", "sin", ["sine", "warp"]),
            "unknown name 'sin'; choose one of sine, warp; did you mean sine?",
        ),
        (lambda: match_name("name", ["sine"], ["sine"]), "unknown name \"['sine']\"; choose one of sine"),
    ],
)
def test_messages(call, said):
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        call()
    assert said in str(error.value)
