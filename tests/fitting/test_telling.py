from plunit.fitting.output import formula
from plunit.pieces import Curve


def test_a_formula_has_the_value_at_the_left_end_and_the_slope():
    tent = Curve([-1, 0.5, 2], [[0], [3], [0]], [[2], [-2]])
    assert formula(tent, "x") == [("-1", "0.5", "0 + 2 (x + 1)"), ("0.5", "2", "3 - 2 (x - 0.5)")]
