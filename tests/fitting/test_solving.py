import math
import signal

import numpy as np
import pytest

from plunit.fitting.problems import of_expression, of_table
from plunit.fitting.solving import FitSettings, Found, solve


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(60)))
    return of_table(path, "y", [], print)


@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler, reason="Ctrl-C is not Python's here"
)
@pytest.mark.parametrize("during", ["16 starts", "test 2 of 3"])
def test_ctrl_c_ends_all_of_it_with_the_best_so_far(rows, during):
    seen, pressed = [], []

    def press(what, done, best):
        seen.append(what)
        if what == during and math.isfinite(best) and not pressed:
            pressed.append(what)
            signal.raise_signal(signal.SIGINT)
        return False

    found = solve(rows, FitSettings(hidden=(4,), starts=16, splits=3), press)
    assert (found.stopped, seen[-1]) == (True, during)
    assert len(found.tests) == {"16 starts": 0, "test 2 of 3": 1}[during]
    assert found.rmse < 1000


def test_progress_ends_it():
    found = solve(of_expression("sin(x)", -6, 6), FitSettings(hidden=(4,), starts=16), lambda what, done, best: True)
    assert found.stopped


@pytest.mark.parametrize(("tests", "student"), [(2, 12.706), (3, 4.303), (5, 2.776), (11, 2.228), (31, 2.042)])
def test_the_interval_is_that_of_student(tests, student):
    """Quantiles from a printed table."""
    errors = np.random.default_rng(tests).uniform(1, 2, tests)
    mean, half = Found(None, 0.0, tuple(errors)).interval()
    assert mean == pytest.approx(errors.mean())
    assert half == pytest.approx(student * errors.std(ddof=1) / tests**0.5, rel=3e-4)
    assert np.isnan(Found(None, 0.0, (1.0,)).interval()[1])
