"""Ctrl-C during `fit`: the best networks so far are kept, and a warning says after how many steps."""

import math
import os
import signal
import threading

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from plunit.densities import Architecture, Sample
from plunit.sklearn import PLUClassifier, PLUDensity, PLURegressor
from plunit.sklearn.density.columns import Columns
from plunit.sklearn.density.splits import BestStart, WhitenedSplit, best_starts, make_splits, mean_losses

pytestmark = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler, reason="Ctrl-C is not Python's here"
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = {PLURegressor: X[:, 0] * X[:, 1], PLUClassifier: X[:, 0] * X[:, 1] > 0, PLUDensity: None}
SMALL = {"hidden_layer_sizes": (8,), "n_init": 16, "n_best": 4, "random_state": 0}
FORMS = {
    PLURegressor: {**SMALL, "max_iter": 4000},
    PLUClassifier: {**SMALL, "max_iter": 4000},
    PLUDensity: {"n_blocks": (1, 4), "max_iter": 4000, "random_state": 0},
}


HEARD = threading.Event()


@pytest.fixture(autouse=True)
def _interrupts():
    """As Python does, raise KeyboardInterrupt in the main thread, and say that it is on its way."""

    def hear(*frame):
        HEARD.set()
        signal.default_int_handler(*frame)

    before = signal.signal(signal.SIGINT, hear)
    yield
    signal.signal(signal.SIGINT, before)


def pressing(kind, when, times=1):
    """Return an estimator of a kind whose user presses Ctrl-C, so many times, once `when(done, best)`."""

    class Pressed(kind):
        pressed = 0

        def _progress(self, starts):
            def press(done, best):
                if when(done, best) and Pressed.pressed < times:
                    Pressed.pressed += 1
                    HEARD.clear()
                    os.kill(os.getpid(), signal.SIGINT)
                    HEARD.wait(60)  # a density trains in other threads; the main one hears it

            return press

        @classmethod
        def _get_param_names(cls):
            return kind._get_param_names()

    return Pressed(**FORMS[kind])


def known(done, best):
    return math.isfinite(best)


def steps_of(warning):
    words = str(warning).split()
    return int(words[words.index("after") + 1]), int(words[words.index("of") + 1])


@pytest.mark.parametrize("kind", FORMS)
def test_before_anything_is_known_it_raises(kind, monkeypatch):
    monkeypatch.setattr("plunit.sklearn.density.splits.processors", lambda: 1)  # so that no other split knows something
    model = pressing(kind, lambda done, best: not math.isfinite(best))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y[kind])
    assert not hasattr(model, "theta_")


@pytest.mark.parametrize("kind", FORMS)
def test_the_best_so_far_are_kept_and_a_second_ctrl_c_raises(kind, monkeypatch):
    monkeypatch.setattr("plunit.sklearn.density.splits.processors", lambda: 1)  # so that presses come one by one
    model = pressing(kind, known)
    with pytest.warns(UserWarning, match="Training interrupted by user after") as caught:
        assert model.fit(X, Y[kind]) is model
    taken, of = steps_of(caught[0].message)
    assert 0 < taken < of == 4000
    assert (model.n_iter_, caught[0].filename) == (taken, __file__)
    assert math.isfinite(model.score(X, Y[kind]))
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    type(model).pressed = -1  # twice from now
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y[kind])
    assert vars(model).keys() >= before.keys()
    assert all(getattr(model, name) is value for name, value in before.items())


@pytest.mark.parametrize("kind", FORMS)
def test_networks_are_kept_where_warnings_are_errors(kind):
    model = pressing(kind, known)
    with pytest.raises(UserWarning, match="interrupted"):  # pytest makes errors of warnings
        model.fit(X, Y[kind])
    assert math.isfinite(model.score(X, Y[kind]))


@pytest.mark.parametrize("kind", FORMS)
def test_in_a_loop_over_fits_it_ends_one_of_them(kind):
    """As scikit-learn's own MLPRegressor does."""
    with pytest.warns(UserWarning, match="interrupted") as caught:
        scores = cross_val_score(pressing(kind, known), X, Y[kind], cv=2)
    assert len(caught) == 1
    assert np.isfinite(scores).all()


def test_a_size_that_was_not_trained_has_no_loss(monkeypatch):
    """On one thread the search is stopped during the first of two splits."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    columns = Columns(*np.array([[-np.inf] * 2, [np.inf] * 2]), np.zeros(2), np.zeros(2, bool), np.zeros(2))
    splits = make_splits(X, np.ones(300), columns, 0.25, 2, np.random.RandomState(0))
    sizes, options = [Architecture(2, 0), Architecture(2, 4)], {"starts": 2, "steps": 4000, "every": 40}
    (normal, trained), interrupted = best_starts(splits, sizes, lambda done, best: True, **options)
    assert all(math.isfinite(one.loss) for one in normal)
    assert [one.steps for one in trained] == [40, 0]
    assert [math.isnan(one.loss) for one in trained] == [False, True]
    assert not interrupted


def test_sizes_are_compared_on_the_splits_they_have():
    """The second split is hard for all. The size that has no result there must not win by that."""
    rows = [Sample(np.array([[math.sqrt(square)]])) for square in (2.0, 20.0)]  # normal losses 1 and 10
    splits = [WhitenedSplit(None, one, one, 0, 0.0) for one in rows]
    losses = [[0.9, math.nan], [0.5, 9.0], [math.nan] * 2]
    found = [[BestStart(None, None, loss, np.empty(0), 0, 0) for loss in of_size] for of_size in losses]
    means = mean_losses(found, splits)
    assert means == pytest.approx([5.5 - 0.1, 5.5 - 0.75, math.inf])
    assert mean_losses(found[1:2], splits).tolist() == [4.75]
