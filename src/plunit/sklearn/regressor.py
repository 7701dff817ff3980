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
    """y = f(x), the mean of the `n_best` best of `n_init` small networks: one exact piecewise-linear function.

    Inputs and target are scaled internally. A compiled program trains all starts at once and drops the worse half after
    an eighth, a quarter and a half of the steps. Each start is validated on one fold of the rows, from which it does
    not learn; this selects its best step and the best starts. The starts are divided among the folds, and the mean is
    over the best of each fold, so that together they have learned from all rows. Equal rows are merged first (in tables
    of up to 100,000 rows), so a row of weight 2 is the same as a row that occurs twice.

    Args:
        hidden_layer_sizes: units of the hidden layers, or "auto" to search a few shapes; None means (16, 16), or
            (32, 32) from 600 rows on.
        activation: "plu", "plu_learned" (alpha and c are trained), "relu", "tanh" or another name of
            `plunit.ensemble.ACTIVATIONS`. Only piecewise-linear ones have exact pieces.
        alpha: the outer slope of PLU; its initial value if it is learned.
        c: the half-width of its inner piece; its initial value if it is learned.
        n_init: the number of starts of each shape; None means 128, or 64 for the default layers of 32.
        n_best: the number of best starts that are averaged, at most `n_init`. With 1 there is only one fold.
        max_iter: steps of the starts that are trained to the end; None means 400 passes over the rows, but at least
            2,000 and at most 12,000 steps.
        learning_rate_init: Adam's step size; it falls to 0 by a half cosine.
        weight_decay: a weight w loses learning_rate * weight_decay * w at each step. With "auto" the starts use 0, 0.1,
            0.3 and 1 in turn, and the validation rows select.
        batch_size: rows per step; "auto" means 64, or all if there are fewer.
        early_stopping: validate each start on rows that it does not learn from. If False, or with fewer than 10 rows,
            the training rows validate.
        validation_fraction: the fraction of the rows in a fold, at least 10 rows (a third of fewer than 30) and at most
            4,000. The number of folds is at most `n_best` and `n_init` / 4.
        n_iter_no_change: a start stops after this number of steps without a gain of `tol` in the validation loss; None
            turns this off.
        tol: see `n_iter_no_change`.
        random_state: the same number gives the same bits, whatever the number of threads.
        verbose: show progress on the terminal.
        finish: the number of Levenberg-Marquardt steps after Adam's, for the `n_best` best members (at least two); the
            result is used if it lowers the validation loss. "auto" means up to 100, in about 1.9 times Adam's time, but
            only without noise: if the validation loss is below 2 % of the variance of y, and 8 steps lower it by 2 %.
        minimax: lower the largest error on the rows instead of the mean square error (`plunit.ensemble.minimax`), for
            data without noise. It uses all rows, including validation rows, which only select the starts, and ignores
            sample weights and `finish`. It takes several times as long.

    Attributes:
        network_: the function as a `plunit.pieces` network in the units of the data, if it is piecewise linear.
        curve_: the exact curve, for one input; polygons_: the exact polygons, for two.
        coefs_, intercepts_: the layers of all members side by side, weights [in, out].
        theta_: the parameters of the members [parameters, n_best], for `plunit.ensemble.forward`.
        candidates_: all starts, the best first: shape, number of the start, fold, loss, steps, weight decay, whether it
            was chosen.
        best_loss_: the validation loss of the chosen members after the finish, averaged over the folds, in units of the
            variance of y. It selected the members, so it is lower than the loss to expect on new rows. With `minimax`,
            the mean square error on all rows.
        loss_curve_: the training loss of the best member, every 16 steps.
        validation_scores_: 1 - the validation loss of the best member at each validation, before the finish.
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
            raise ValueError(
                f"y_val and y must have the same number of columns, {self.n_outputs_}, got {columns.shape[1]}"
            )
        return columns

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """Return f(X), and with return_std also the standard deviation of the members around it."""
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
        return Scale.of(y, weight, constant=1e-14)  # so that a constant target is predicted


def _mean_and_deviation(values: Array) -> Array:
    """Return mean and standard deviation over the first axis, [n, 2, ...], without overflow of squares."""
    mean = member_mean(values)
    away = values - mean
    unit = np.ldexp(1.0, np.frexp(np.abs(away).max())[1])  # a power of 2 keeps the bits
    return np.stack([mean, np.sqrt(member_mean((away / unit) ** 2)) * unit], axis=1)
