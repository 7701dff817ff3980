import math
import signal

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from plunit.ensemble import MLP, forward
from plunit.fitting import curves, solving
from plunit.fitting.curves import reduce_pieces, start_from_curve
from plunit.fitting.output import summarize
from plunit.fitting.problems import of_expression, of_table
from plunit.fitting.solving import FitResult, FitSettings, fit_problem
from plunit.pieces import Curve, simplify
from plunit.sklearn import PLURegressor


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

    found = fit_problem(rows, FitSettings(hidden=(4,), starts=16, splits=3), press)
    assert (found.stopped, seen[-1]) == (True, during)
    assert len(found.tests) == {"16 starts": 0, "test 2 of 3": 1}[during]
    assert found.rmse < 1000


def test_a_column_of_one_value_and_gaps_has_a_box_around_it(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{'' if n % 3 else 4},{n},{n}\n" for n in range(12)))
    problem = of_table(tmp_path / "t.csv", "y", [], print)
    assert dict(zip(problem.inputs, problem.box.tolist(), strict=True))["a"] == [0.0, 8.0]


def test_the_curve_of_the_network_is_computed_once(rows, monkeypatch):
    computed, settings, curve = [], FitSettings(hidden=(4,), starts=4, splits=0), PLURegressor.curve_
    monkeypatch.setattr(PLURegressor, "curve_", property(lambda model: computed.append(model) or curve.fget(model)))
    found = fit_problem(rows, settings)
    assert f"the network has {found.curve.pieces} straight piece" in "\n".join(summarize(rows, settings, found))
    assert len(computed) == 1


def test_the_seed_chooses_the_splits(rows, monkeypatch):
    seen, trained = [], solving._train

    def note(problem, settings, chosen, stop, what):
        seen.append(tuple(chosen))
        return trained(problem, settings, chosen, stop, what)

    monkeypatch.setattr(solving, "_train", note)
    for seed in (0, 1, 0):
        fit_problem(rows, FitSettings(hidden=(2,), starts=2, splits=1, seed=seed))
    first, other, again = seen[1::2]
    assert (len(first), first == again, first == other) == (48, True, False)


def test_splits_encode_by_their_own_rows(tables):
    """The same error as a Pipeline of scikit-learn that sees four fifths of the rows."""
    problem = of_table(tables / "mixed.csv", "price", ["temp", "city"], print)
    found = fit_problem(problem, FitSettings(hidden=(4,), starts=4, splits=1, seed=3))
    test, rows = np.split(np.random.default_rng([3, 0]).permutation(300), [60])
    model = make_pipeline(
        ColumnTransformer(
            [
                ("temp", SimpleImputer(strategy="median", add_indicator=True), [0]),
                (
                    "city",
                    OneHotEncoder(max_categories=20, handle_unknown="infrequent_if_exist", sparse_output=False),
                    [1],
                ),
            ]
        ),
        PLURegressor((4,), n_init=4, n_best=1, random_state=3),
    ).fit(problem.table.x[rows], problem.y[rows])
    away = model.predict(problem.table.x[test]) - problem.y[test]
    assert found.tests == (pytest.approx(np.sqrt(np.mean(away**2)), rel=1e-9),)
    assert len(problem.table.x) == 300


def test_what_the_lines_through_a_function_miss_is_taken_off_the_error(monkeypatch):
    monkeypatch.setattr(curves, "KNOTS", 15)  # whose lines are 0.02 away from the sine
    flat = Curve([-3, 3], [[0], [0]], [[0]])
    assert 0.02 < reduce_pieces(of_expression("sin(x)", -3, 3), flat, None, 0.05).bound <= 0.05


def test_a_straight_line_is_one_piece_although_roundings_part_it_from_its_points():
    line = Curve([-6, 6], [[-12], [12]], [[2]])
    assert reduce_pieces(of_expression("2*x", -6, 6), line, None, None).curve.pieces == 1


def test_progress_ends_it():
    found = fit_problem(
        of_expression("sin(x)", -6, 6), FitSettings(hidden=(4,), starts=16), lambda what, done, best: True
    )
    assert found.stopped
    assert found.largest.bound < 1.01 * found.largest.value  # the proof is short, and is not stopped with the training


@pytest.mark.parametrize(("tests", "student"), [(2, 12.706), (3, 4.303), (5, 2.776), (11, 2.228), (31, 2.042)])
def test_the_interval_is_that_of_student_with_the_correction_of_nadeau_and_bengio(tests, student):
    """Quantiles from a printed table; a fifth of the rows tests what four fifths trained."""
    errors = np.random.default_rng(tests).uniform(1, 2, tests)
    mean, half = FitResult(None, 0.0, tuple(errors)).interval()
    assert mean == pytest.approx(errors.mean())
    assert half == pytest.approx(student * errors.std(ddof=1) * (1 / tests + 1 / 4) ** 0.5, rel=3e-4)
    assert np.isnan(FitResult(None, 0.0, (1.0,)).interval()[1])


@pytest.mark.parametrize(("during", "error", "tried"), [("2 x 2", 1e-9, []), ("3 x 3", 1e-9, [(2, 2)])])
def test_a_shape_that_was_not_finished_is_not_listed(during, error, tried):
    problem, settings = of_expression("x * y", -1.0, 1.0, 8), FitSettings(error=error, starts=8)
    found = fit_problem(problem, settings, lambda what, done, best: what.startswith(during))
    assert [shape for shape, _ in found.tried] == tried
    assert found.stopped
    assert found.missed
    assert "NOT proved to be within 1e-09" in "\n".join(summarize(problem, settings, found))


def test_the_root_mean_square_error_of_a_function_is_that_of_fresh_points():
    problem = of_expression("sin(x) * y", -2, 2)
    found = fit_problem(problem, FitSettings(hidden=(4,), starts=4))
    x = np.random.default_rng(8).uniform(-2, 2, (200_000, 2))
    away = found.model.predict(x) - np.sin(x[:, 0]) * x[:, 1]
    assert found.rmse == pytest.approx(np.sqrt(np.mean(away**2)), rel=0.02)
    on_points = np.sqrt(np.mean((found.model.predict(problem.x) - problem.y) ** 2))
    assert found.rmse != on_points


def test_an_error_that_is_not_proved_is_searched_at_the_corners_too():
    problem = of_expression("a*b*c*d*f", -1, 1)
    found = fit_problem(problem, FitSettings(hidden=(4,), starts=2))
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 5), axis=-1).reshape(-1, 5)
    at_corners = np.abs(found.model.predict(corners) - corners.prod(axis=1)).max()
    assert found.largest.bound is None
    assert found.largest.value >= at_corners > 0.9


def test_minimax_lowers_the_proved_error_and_gives_the_same_bits_twice():
    problem, settings = of_expression("exp(-x**2 - y**2)", -2, 2), FitSettings(hidden=(5, 5), starts=16)
    found, again = (fit_problem(problem, settings) for _ in range(2))
    squares = fit_problem(problem, FitSettings(hidden=(5, 5), starts=16, minimax=False))
    assert found.largest.bound < 0.9 * squares.largest.bound
    assert found.rmse > squares.rmse
    assert found.largest.value <= found.largest.bound < 1.02 * found.largest.value
    np.testing.assert_array_equal(found.model.theta_, again.model.theta_)


@pytest.mark.parametrize("hidden", [(1,), (5,), (4, 1), (1, 4), (8, 8)], ids=str)
@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.4, 2.0)])
def test_the_start_from_a_curve_is_the_closest_curve_with_its_number_of_pieces(hidden, alpha, c):
    box, f = np.array([[-1.0, 3.0]]), lambda x: np.exp(x) - 5 * x
    theta = start_from_curve(MLP((1, *hidden, 1)), f, box, alpha, c)
    x = np.linspace(-1, 3, curves.KNOTS)
    dense = Curve(x, f(x)[:, None], (np.diff(f(x)) / np.diff(x))[:, None])
    closest = simplify(dense, pieces=1 + sum(hidden) - len(hidden)).curve
    found = forward(MLP((1, *hidden, 1)), theta[:, None], x[None], alpha, c)[0, :, 0]
    np.testing.assert_allclose(found, closest(x)[:, 0], atol=1e-10)


@pytest.mark.parametrize("widths", [(2, 4, 1), (1, 4, 4, 4, 1)], ids=str)
def test_other_networks_do_not_start_from_a_curve(widths):
    assert start_from_curve(MLP(widths), np.sin, np.array([[0.0, 1.0]] * widths[0]), 0.1, 1.0) is None
    assert start_from_curve(MLP((1, 4, 1), "tanh"), np.sin, np.array([[0.0, 1.0]]), 0.1, 1.0) is None


def test_a_steep_function_starts_from_its_closest_curve():
    problem, settings = of_expression("sqrt(x)", 0, 4), FitSettings(starts=8)
    found = fit_problem(problem, settings)
    assert found.largest.bound < 0.0105  # of the closest curve with 15 pieces; the starts reach 0.018
    assert "(the closest curve)" in summarize(problem, settings, found)[-1]
    assert found.model.candidates_["start"][0] == -1
    assert found.model.candidates_["weight_decay"][0] == 0


def test_the_search_for_the_smallest_network_proves_what_it_returns():
    found = fit_problem(of_expression("x * y", -1, 1), FitSettings(starts=16, error=0.1))
    assert found.proved <= 0.1
    assert found.model.theta_.shape[0] < MLP((2, 8, 8, 1)).parameters / 2
    assert found.model.widths_[1:-1] in dict(found.tried)


def test_ctrl_c_outside_of_training_keeps_what_earlier_shapes_reached(monkeypatch):
    problem = of_expression("x*y", -1, 1)
    judge, calls = solving._judge, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return judge(*given)

    monkeypatch.setattr(solving, "_judge", interrupted)
    found = solving.fit_problem(problem, solving.FitSettings(starts=2, error=1e-3))
    assert (len(calls), found.stopped, len(found.tried)) == (2, True, 1)
    assert found.proved < np.inf
