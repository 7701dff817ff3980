"""Properties: which pairs (x, y) are in them, and what is refused at construction."""

import numpy as np
import pytest

from plunit.pieces import Case, Condition, Property, network

BOX = [(0.0, 1.0), (-1.0, -1.0)]  # the second input is fixed
NONE = np.zeros((0, 2)), np.zeros(0)


def test_never_is_met_by_all_rows_of_one_condition():
    never = Property.never(BOX, [([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]), ([[-1.0, -1.0]], [-9.0])])
    assert (never.inputs, never.outputs) == (2, 2)
    inside = [never.contains([0.5, -1.0], y) for y in ([1.0, 2.0], [1.1, 2.0], [1.0, 2.1], [5.0, 4.0], [5.0, 3.9])]
    assert inside == [True, False, False, True, False]


def test_always_is_broken_by_one_row_beyond_its_limit():
    always = Property.always(BOX, [[1.0, 0.0], [0.0, -1.0]], [1.0, 2.0])
    assert [always.contains([0.0, -1.0], y) for y in ([1.0, -2.0], [1.1, 0.0], [0.0, -2.1])] == [False, True, True]


@pytest.mark.parametrize("x", [(0.0, -1.0), (1.0, -1.0), (-0.1, -1.0), (1.1, -1.0), (0.5, -0.9)])
def test_the_box_has_its_bounds(x):
    never = Property.never(BOX, [(np.zeros((0, 1)), [])])
    assert never.contains(x, [0.0]) == (0 <= x[0] <= 1 and x[1] == -1)


@pytest.mark.parametrize("make", ["never", "always"])
def test_constraints_on_inputs(make):
    arguments = ([([[0.0]], [1.0])],) if make == "never" else ([[0.0]], [-1.0])
    found = getattr(Property, make)(BOX, *arguments, constraints=([[1.0, 1.0]], [-0.5]))
    assert [found.contains([x, -1.0], [0.0]) for x in (0.5, 0.6)] == [True, False]


def test_a_property_is_any_of_its_cases():
    cases = [Property.never([(low, low + 1)], [([[1.0]], [0.0])]).cases[0] for low in (0, 5)]
    both = Property(cases)
    assert [both.contains([x], [0.0]) for x in (0.5, 2.0, 5.5)] == [True, False, True]


CONDITION = Condition([[1.0]], [0.0])
WRONG = {
    "low above high": (lambda: Property.never([(1, 0)], [([[1.0]], [0.0])]), r"high, got \[1\.0, 0\.0\] for input 0"),
    "an open side": (lambda: Property.never([(0, np.inf)], [([[1.0]], [0.0])]), r"high, got \[0.0, inf\] for input 0"),
    "another input is fixed": (lambda: Property.never([(0, 0), (2, 1)], [([[1.0]], [0.0])]), "for input 1"),
    "no pairs": (lambda: Property.never([0, 1], [([[1.0]], [0.0])]), r"a pair \(low, high\) for each input, got"),
    "no numbers": (lambda: Property.never([("a", 1)], [([[1.0]], [0.0])]), "must be an array of numbers"),
    "limits that do not fit": (
        lambda: Condition([[1.0]], [0.0, 1.0]),
        r"a row for each limit and a column for each output, .* got shapes \(1, 1\) and \(2,\)",
    ),
    "a row that is no list of rows": (
        lambda: Property.always([(0, 1)], rows=[1.0], limits=[3.8]),
        r"as in rows=\[\[1\.0\]\], limits=\[3\.8\]; got shapes \(1,\) and \(1,\)",
    ),
    "columns of inputs": (
        lambda: Property.always([(0, 1)], [[1.0]], [3.8], ([1.0], [1.0])),
        "constraints: rows must have a row for each limit and a column for each input",
    ),
    "a limit that is NaN": (lambda: Condition([[1.0]], [np.nan]), "must be finite, got NaN or inf"),
    "constraints that do not fit": (
        lambda: Case([(0, 1)], *NONE, [CONDITION]),
        r"on 1 inputs need A \[m, 1\], got \(0, 2\)",
    ),
    "no condition": (lambda: Case([(0, 1)] * 2, *NONE, []), "a case needs conditions on the same outputs, got"),
    "other outputs": (
        lambda: Property.never([(0, 1)], [([[1.0]], [0.0]), ([[1.0, 2.0]], [0.0])]),
        r"conditions on the same outputs, got \[1, 2\]",
    ),
    "no case": (lambda: Property([]), "a property needs cases"),
    "other inputs": (
        lambda: Property([Case([(0, 1)], np.zeros((0, 1)), [], [CONDITION]), Case(BOX, *NONE, [CONDITION])]),
        r"cases of the same numbers \(inputs, outputs\), got \[\(1, 1\), \(2, 1\)\]",
    ),
    "another network": (
        lambda: Property.never(BOX, [([[1.0]], [0.0])]).check_fits(network([([[1.0]], [0.0])])),
        "the property has 2 inputs and 1 output, the network has 1 and 1",
    ),
    "another point": (
        lambda: Property.never(BOX, [([[1.0]], [0.0])]).contains([0.0], [0.0]),
        r"x must have shape \(2,\)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(name):
    make, reason = WRONG[name]
    with pytest.raises(ValueError, match=reason):
        make()
