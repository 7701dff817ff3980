import math

import pytest

from plunit.ensemble import MLP
from plunit.fitting.smallest import WIDTHS, SizeSearch


def search(error, law, inputs=2, quick=1.3):
    """Search with fits whose errors are law(shape); quick ones are worse."""
    tried = []

    def attempt(shape, thorough):
        tried.append((shape, thorough))
        return law(shape) * (1 if thorough else quick)

    return SizeSearch(attempt, inputs, error).run(), tried


def square(n):
    return max(1, n) ** -2.0


@pytest.mark.parametrize("needed", [2, 3, 5, 7, 8, 11, 20, 31, 32])
@pytest.mark.parametrize("quick", [1.0, 1.3])
def test_the_least_width_is_found(needed, quick):
    """One layer of units is worth nothing here, and of two layers the narrower one decides."""
    law = lambda shape: square(min(shape)) if len(shape) == 2 else 1.0  # noqa: E731
    found, tried = search(square(needed), law, quick=quick)
    assert found.smallest == (needed, needed)
    assert len(tried) < len(WIDTHS) + 12


def test_a_narrower_second_layer_is_found():
    found, _ = search(square(8), lambda shape: square(shape[0] - (shape[1] < 5) if len(shape) == 2 else 1))
    assert found.smallest == (8, 5)


def test_one_layer_is_found_where_it_has_fewer_weights():
    found, _ = search(square(8), lambda shape: square(min(shape)))
    assert found.smallest == (8,)
    least = MLP((2, 8, 1)).parameters
    assert found.weights(found.smallest) == least


@pytest.mark.parametrize("error", [3e-4, 1e-5])
def test_an_error_out_of_reach_ends_early_and_says_what_it_would_take(error):
    found, tried = search(error, lambda shape: 0.75 * square(min(shape)) if len(shape) == 2 else 1, quick=1 / 0.75)
    assert found.smallest is None
    assert found.needed == pytest.approx((0.75 / error) ** 0.5, rel=0.01)
    assert (len(tried) < 6) == (error < 1e-4)


def test_errors_that_do_not_fall_need_a_network_without_end():
    for law in (lambda shape: 0.5, lambda shape: math.inf):
        found, tried = search(0.1, law)
        assert (found.smallest, found.needed) == (None, math.inf)
        assert len(tried) <= 4


def test_an_attempt_that_was_stopped_ends_the_search():
    found, tried = search(1e-3, lambda shape: math.nan if shape == (4, 4) else 1 / min(shape))
    assert set(found.known) == {(2, 2), (3, 3)}
    assert tried[-1] == ((4, 4), False)


def test_the_width_that_would_do_is_larger_than_those_that_did_not():
    search = SizeSearch(lambda shape, thorough: (34.6 if thorough else 38.4) / shape[0], 2, 1.0).run()
    assert search.smallest is None
    assert search.needed == 33
