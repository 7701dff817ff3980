"""PLURegressor: y = f(x) by the best of many small networks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, validate_data

from plunit.base.ranges import as_count
from plunit.ensemble.arrays import Array, Scale
from plunit.sklearn.base import check_flag
from plunit.sklearn.fitted import member_mean
from plunit.sklearn.network_estimator import PLUEstimator


@dataclass(eq=False, repr=False)
class PLURegressor(RegressorMixin, PLUEstimator):  # type: ignore[misc]
    """y = f(x) with f the mean of the `n_best` best of `n_init` small networks: one exact piecewise-linear function.

    Inputs and target are scaled inside. All starts are trained at once by a compiled program; after an eighth, a
    quarter and a half of the steps the worse half of them ends. Rows that a start has not learned from decide how good
    it is, and at which step: each start is validated on one fold of the rows, the starts are dealt over the folds, and
    the mean is over the best of each fold, so that together they have learned from all rows. Equal rows are merged
    first (up to 100,000 rows), so that a weight of 2 is a row that occurs twice.

    Args:
        hidden_layer_sizes: units of the hidden layers, or "auto" to search a few shapes. None: (16, 16), from 600 rows
            on (32, 32).
        activation: "plu", "plu_learned" (alpha and c are trained), "relu", "tanh" or another name of
            `plunit.ensemble.ACTIVATIONS`. Only piecewise-linear ones have exact pieces.
        alpha: the outer slope of PLU, the start of a learned one.
        c: the half-width of its inner piece, the start of a learned one.
        n_init: number of starts, of each shape. None: 128, and 64 for layers of 32 that were not asked for.
        n_best: how many of the best are averaged, at most `n_init`. With 1 there is one fold only.
        max_iter: steps of those starts that are trained to the end; None takes 400 passes over the rows, but at least
            2,000 and at most 12,000 steps.
        learning_rate_init: Adam's step size; it falls to 0 by a half cosine.
        weight_decay: a weight w loses learning_rate * weight_decay * w at each step. "auto": the starts take 0, 0.1,
            0.3 and 1 in turn, and the validation rows decide.
        batch_size: rows of each step; "auto" is 64, or all if there are fewer.
        early_stopping: validate each start on rows it does not learn from. False, or fewer than 10 rows: the training
            rows decide.
        validation_fraction: the share of the rows in a fold, at least 10 rows (of fewer than 30, a third) and at most
            4,000. The number of folds is at most `n_best` and `n_init` / 4.
        n_iter_no_change: the number of steps without a gain of `tol` in the validation loss after which a start ends;
            None never ends one.
        tol: see `n_iter_no_change`.
        random_state: the same number gives the same bits, whatever the number of threads.
        verbose: show progress on the terminal.
        finish: steps of Levenberg and Marquardt after Adam's, for the `n_best` best members (two at least). A member
            takes their result if its validation loss is lower. "auto" takes up to 100, which take about 1.9 times as
            long as Adam's, where there is no noise: the validation loss is below 2 % of the variance of y, and the
            first 8 steps lower it by 2 %. 0 takes none.
        minimax: lower the largest error on the rows instead of the mean square error (`plunit.ensemble.minimax`): for
            data without noise. All rows count, those held for validation too, which choose the starts only; sample
            weights do not. `finish` is not used. It takes several times as long.

    Attributes:
        network_: the function as a `plunit.pieces` network in the units of the data, for the piecewise-linear ones.
        curve_: the exact curve, for one input; polygons_: the exact polygons, for two.
        coefs_, intercepts_: the layers of the members side by side, weights [in, out].
        theta_: the parameters of the members [parameters, n_best], for `plunit.ensemble.forward`.
        candidates_: all starts, the best first: shape, number of the start, fold, loss, steps, weight decay, whether it
            was chosen.
        best_loss_: the mean over the folds of the validation loss of the chosen members, in units of the variance of
            y, after the finish. The members were chosen by it, so it is lower than the loss to expect on new rows.
            With `minimax`, the mean square error on all rows.
        loss_curve_: the training loss of the best member, every 16 steps.
        validation_scores_: 1 - the validation loss of the best member at each look, before the finish.
        n_iter_: Adam's steps of the best member; those of the finish do not count.

    >>> from plunit.sklearn import PLURegressor
    >>> x = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    >>> model = PLURegressor(n_init=16, n_best=1, random_state=0).fit(x, x[:, 0] * x[:, 1])
    >>> bool(model.score(x, x[:, 0] * x[:, 1]) > 0.98)
    True
    """

    _: KW_ONLY
    finish: Any = "auto"
    minimax: bool = False

    def _check(self) -> None:
        super()._check()
        check_flag("minimax", self.minimax)
        if not (isinstance(self.finish, str) and self.finish == "auto"):
            as_count('finish, if not "auto",', self.finish)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> PLURegressor:  # noqa: N803
        """Train on rows X [n, in] and y [n] or [n, out]; X_val and y_val are your own validation rows."""
        return self._fit_whole(X, y, sample_weight, X_val, y_val)

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> str:  # noqa: N803
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)  # noqa: N806
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._flat = y.ndim == 1
        self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
        held = self._own_validation(X_val, y_val, self._columns)
        return self._train(X, self._columns(y), weight, "square", held)

    def _columns(self, y: Array) -> Array:
        columns = y.reshape(len(y), -1).astype(np.float64)
        if columns.shape[1] != self.n_outputs_:
            raise ValueError(f"y_val must have as many columns as y, {self.n_outputs_}, got {columns.shape[1]}")
        return columns

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """Return f(X), and with return_std the standard deviation of the members around it."""
        shown = self._of_outputs(X, _mean_and_deviation if return_std else lambda values: member_mean(values)[:, None])
        parts = [part[:, 0] if self._flat else part for part in np.moveaxis(shown, 1, 0)]
        return tuple(parts) if return_std else parts[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _scores(self, losses: Array) -> Array:
        return 1 - losses

    def _target_scale(self, y: Array, weight: Array) -> Scale:
        return Scale.of(y, weight, constant=1e-14)  # so that a constant is predicted


def _mean_and_deviation(values: Array) -> Array:
    """Return mean and standard deviation over the first axis, [n, 2, ...]; squares of huge numbers do not overflow."""
    mean = member_mean(values)
    away = values - mean
    unit = np.ldexp(1.0, np.frexp(np.abs(away).max())[1])  # a power of 2 keeps the bits
    return np.stack([mean, np.sqrt(member_mean((away / unit) ** 2)) * unit], axis=1)
