import math
import signal

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from plunit.ensemble import MLP, forward
from plunit.fitting import solving
from plunit.fitting.output import summarize
from plunit.fitting.problems import of_expression, of_table
from plunit.fitting.solving import FitResult, FitSettings, fit_problem, reduce_pieces
from plunit.pieces import Curve
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
    monkeypatch.setattr(solving, "KNOTS", 15)  # whose lines are 0.02 away from the sine
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


@pytest.mark.parametrize(("tests", "student"), [(2, 12.706), (3, 4.303), (5, 2.776), (11, 2.228), (31, 2.042)])
def test_the_interval_is_that_of_student_with_the_correction_of_nadeau_and_bengio(tests, student):
    """Quantiles from a printed table; a fifth of the rows tests what four fifths trained."""
    errors = np.random.default_rng(tests).uniform(1, 2, tests)
    mean, half = FitResult(None, 0.0, tuple(errors)).interval()
    assert mean == pytest.approx(errors.mean())
    assert half == pytest.approx(student * errors.std(ddof=1) * (1 / tests + 1 / 4) ** 0.5, rel=3e-4)
    assert np.isnan(FitResult(None, 0.0, (1.0,)).interval()[1])


def test_the_closest_of_several_networks_is_left_with_its_own_losses(monkeypatch):
    models, kept = [], solving._take_closest

    def note(problem, model):
        members, rows = model.theta_, model.candidates_["chosen"].copy()
        kept(problem, model)
        models.append((problem, members, rows, model))

    monkeypatch.setattr(solving, "_take_closest", note)
    fit_problem(of_expression("x*y", -1, 1), FitSettings(hidden=(4,), starts=12, error=9.0))
    ((problem, members, rows, model),) = models
    worst = []
    for i in range(members.shape[1]):
        away = forward(MLP((2, 4, 1)), members[:, [i]], problem.x.T)[0, :, 0] - problem.y
        worst.append(np.abs(away).max())
    best = int(np.argmin(worst))
    assert members.shape[1] == 8
    assert len(set(worst)) == 8
    np.testing.assert_array_equal(model.theta_, members[:, [best]])
    (place,) = np.flatnonzero(model.candidates_["chosen"])
    assert place == np.flatnonzero(rows)[best]
    assert model.best_loss_ == model.candidates_["validation_loss"][place]
    assert not hasattr(model, "loss_curve_")


@pytest.mark.parametrize(
    ("during", "error", "tried"), [("2 units", 1e-9, []), ("4 units", 1e-9, [(2,)]), ("2 units", 9.0, [(2,)])]
)
def test_a_shape_that_was_not_finished_is_tried_only_if_it_is_proved(monkeypatch, during, error, tried):
    monkeypatch.setattr(solving, "_SHAPES", ((2,), (4,), (5,)))
    monkeypatch.setattr(solving, "LONGER", 200)
    problem, settings = of_expression("x * y", -1.0, 1.0, 8), FitSettings(error=error, starts=8)
    found = fit_problem(problem, settings, lambda what, done, best: what.startswith(during))
    assert [shape for shape, _ in found.tried] == tried
    assert found.stopped
    assert found.missed == (error < 1)
    lines = summarize(problem, settings, found)
    assert ("NOT proved to be within 1e-09" in "\n".join(lines)) == found.missed
    assert ("more starts, a larger network or a smaller range" in "\n".join(lines)) == found.missed


def test_the_finish_of_larger_networks_is_cut_to_its_time(monkeypatch):
    """For an error that is asked for; with a budget of 0, the estimator decides."""
    asked = []

    class Seen(solving.Watched):
        def fit(self, *args, **kwargs):
            asked.append((self.hidden_layer_sizes, self.finish))
            return super().fit(*args, **kwargs)

    monkeypatch.setattr(solving, "Watched", Seen)
    monkeypatch.setattr(solving, "_SHAPES", ((2,), (4,)))
    monkeypatch.setattr(solving, "LONGER", 200)
    monkeypatch.setattr(solving, "FINISH", 8 * 17**2 * (64 + 3 * 17) * 25)  # 25 steps of (4,), which has 17 parameters
    fit_problem(of_expression("x * y", -1.0, 1.0, 8), FitSettings(error=1e-9, starts=8))
    assert asked == [((2,), 100), ((4,), 25)]  # at most 100
    monkeypatch.setattr(solving, "FINISH", 0.0)
    fit_problem(of_expression("x * y", -1.0, 1.0, 8), FitSettings(error=1e-9, starts=8))
    assert [finish for _, finish in asked[2:]] == ["auto", "auto"]
