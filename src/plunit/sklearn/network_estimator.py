"""The base of `PLURegressor` and `PLUClassifier`: their parameters, and the preparation of the search for networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from plunit.base.progress import Progress, ProgressLine, TwoParts, interruption
from plunit.base.ranges import as_count
from plunit.ensemble import ACTIVATIONS, MLP, Rows
from plunit.ensemble.arrays import Array, Scale
from plunit.ensemble.halving import Candidate, estimate_work, finish_operations, places, search_networks
from plunit.ensemble.levenberg_marquardt import square_losses
from plunit.ensemble.minimax import BEGINNERS, Target, lower_largest_errors
from plunit.ensemble.mlp import in_units
from plunit.sklearn.base import (
    FRACTION,
    NOT_NEGATIVE,
    POSITIVE,
    AtomicFit,
    check_count,
    check_flag,
    check_memory,
    check_name,
    check_number,
)
from plunit.sklearn.fitted import FittedModel
from plunit.sklearn.folds import box, drop_weightless, make_rows, merge, split

LOOKS = 100  # the number of validations

AVERAGE = 0.1
"""The running mean of the parameters over about this fraction of the steps is validated and kept: it is less noisy."""

_SHAPES = ((16,), (32,), (16, 16), (32, 16))
"""The hidden layers that "auto" searches."""

MANY_ROWS = 600
"""From this number of rows on, the default is wider layers and fewer starts, in about the same time."""

_FEW, _WIDE = ((16, 16), 128), ((32, 32), 64)
"""The default hidden layers and number of starts, for few rows and for many."""

DECAYS = (0.0, 0.1, 0.3, 1.0)
"""The weight decays that the starts use in turn for "auto"."""

MINIMAX_TIME, MOST_OPERATIONS = 6.0, 1e12
"""The maximum time of a minimax fit as a multiple of the finish's, and its maximum number of multiplications, which
take about three minutes."""

_ADAM_SHARE = 0.1  # the approximate fraction of the time of a minimax fit that Adam takes

FARTHEST = 1e18
"""The largest number allowed after scaling: in float32, squares of larger numbers overflow."""


@dataclass(eq=False, repr=False)
class PLUEstimator(AtomicFit, FittedModel):
    """Trains `n_init` starts at once, repeatedly drops the worse half, and keeps the `n_best` best."""

    hidden_layer_sizes: Any = None
    activation: str = "plu"
    _: KW_ONLY
    alpha: float = 0.1
    c: float = 1.0
    n_init: int | None = None
    n_best: int = 16
    max_iter: int | None = None
    learning_rate_init: float = 0.025
    weight_decay: Any = "auto"
    batch_size: Any = "auto"
    early_stopping: bool = True
    validation_fraction: float = 0.15
    n_iter_no_change: int | None = None
    tol: float = 0.0
    random_state: Any = None
    verbose: bool = False

    def _check(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        check_name("activation", self.activation, ACTIVATIONS)
        for name, *unset in (("n_init", None), ("n_best",), ("max_iter", None), ("n_iter_no_change", None)):
            check_count(str(name), getattr(self, str(name)), *unset)
        check_count("batch_size", self.batch_size, "auto")
        for name in ("learning_rate_init", "c"):
            check_number(name, getattr(self, name), *POSITIVE)
        for name in ("alpha", "tol", *(() if self._auto_decay() else ("weight_decay",))):
            check_number(name, getattr(self, name), *NOT_NEGATIVE)
        check_number("validation_fraction", self.validation_fraction, *FRACTION)
        for name in ("early_stopping", "verbose"):
            check_flag(name, getattr(self, name), count=name == "verbose")

    def _train(self, x: Array, y: Array, weight: Array, loss: str, held: tuple[Array, Array] | None) -> str:
        """Search on the rows x [n, in], y [n, out]; `held` are the user's validation rows, if any.

        Return the text of a warning, or "".
        """
        self._check()
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        x, y, weight = merge(x, y, weight)
        x, y, weight = drop_weightless(x, y, weight * self._factors(y, weight))
        share = self.validation_fraction if self.early_stopping and held is None else 0.0
        shapes, starts = self._shapes_and_starts(len(x))
        best = min(self.n_best, starts)
        most = min(best, max(1, starts // len(DECAYS)))
        order, size, folds = split(y, share, most, rng, classes=loss != "square")
        x, y, weight = x[order], y[order], weight[order]
        if held is not None:
            size, folds = len(held[0]), 1
            x, y = np.concatenate([held[0], x]), np.concatenate([held[1], y])
            weight = np.concatenate([np.ones(size), weight])
        learned = slice(size if folds == 1 else 0, None)
        scales = [Scale.of(x[learned], weight[learned]), self._target_scale(y[learned], weight[learned])]
        steps, every = self._steps(len(x) - size)
        networks = [MLP((x.shape[1], *hidden, y.shape[1]), self.activation) for hidden in shapes]
        for network in networks:
            work = f"hidden layers {network.widths[1:-1]} with n_init = {starts} and {steps} steps"
            check_memory(starts * (network.parameters + steps), work, "smaller layers, fewer starts or steps")
        looks = {"every": every, "average": AVERAGE}
        if self.n_iter_no_change is not None:
            looks |= {"patience": math.ceil(self.n_iter_no_change / every), "tolerance": self.tol}
        scaled = _scale("X", scales[0], x), _scale("y", scales[1], y)
        dealt = np.arange(starts) // len(DECAYS) % max(folds, 1)  # each fold gets all weight decays
        rows, validation = make_rows(*scaled, weight, size, dealt.tolist(), self._batch(), looks)
        decays = np.resize(DECAYS if self._auto_decay() else float(self.weight_decay), starts)
        pressed: list[None] = []
        keep, minimax = max(best, min(2 * best, starts // 4)), getattr(self, "minimax", False)
        parts = TwoParts(self._progress(len(networks) * starts), _ADAM_SHARE if minimax else 1.0)
        found = search_networks(
            networks,
            rows,
            validation,
            starts=starts,
            steps=steps,
            keep=keep,
            finish=0 if minimax else getattr(self, "finish", 0),
            finishers=max(2, best),
            seed=seed,
            alpha=self.alpha,
            c=self.c,
            progress=parts.first,
            interrupted=lambda: pressed.append(None),
            loss=loss,
            lr=self.learning_rate_init,
            decay=decays,
        )
        chosen = _best_shape(found, max(best, BEGINNERS) if minimax else best)
        if minimax and not (parts.asked or pressed):
            adam = estimate_work([network.parameters for network in networks for _ in range(starts)], steps, keep)
            with threadpool_limits(1):  # the bits of BLAS may depend on its number of threads
                chosen = self._lower_errors(chosen, scaled, scales, best, adam, parts.second, pressed)
            numbers = {(one.network, one.start) for one in chosen}
            found = [*chosen, *(one for one in found if (one.network, one.start) not in numbers)]
            parts.progress(1.0, chosen[0].loss)
        else:
            chosen = _best_shape(found, best)
        self._keep(found, chosen, decays, scales, box(x, scales[0]))
        kept = f"the mean of the best {self.theta_.shape[1]} so far"
        return interruption(max(one.steps for one in found), steps, kept) if pressed else ""

    def _lower_errors(
        self,
        members: list[Candidate],
        scaled: tuple[Array, Array],
        scales: Sequence[Scale],
        best: int,
        work: float,
        progress: Progress,
        pressed: list[None],
    ) -> list[Candidate]:
        """Return the best members after steps that lower their largest errors on all rows."""
        network, (x, y) = members[0].network, scaled
        lowered = lower_largest_errors(
            network,
            np.stack([one.theta for one in members], axis=1),
            x,
            y,
            operations=min(MINIMAX_TIME * finish_operations(work, min(self._batch(), len(x))), MOST_OPERATIONS),
            best=best,
            formula=self._formula(network, scales),
            alpha=self.alpha,
            c=self.c,
            progress=progress,
            interrupted=lambda: pressed.append(None),
        )
        losses = square_losses(network, lowered.theta, Rows(x, y), alpha=self.alpha, c=self.c).tolist()
        begin = dict(enumerate(members)) | {-1: replace(members[0], start=-1)}
        return [
            replace(begin[number], theta=theta, loss=loss)
            for number, theta, loss in zip(lowered.number.tolist(), lowered.theta.T, losses, strict=True)
        ]

    def _formula(self, network: MLP, scales: Sequence[Scale]) -> Target | None:
        """Return the function of the targets, in scaled inputs and outputs, if it is known."""
        return None

    def _own_validation(self, x: Any, y: Any, targets: Callable[[Array], Array]) -> tuple[Array, Array] | None:
        """Return the user's validation rows, with `targets` of y, or None."""
        if x is None and y is None:
            return None
        if x is None or y is None:
            raise ValueError("X_val and y_val must be given together; give both or neither")
        x = validate_data(self, x, reset=False, dtype=np.float64)
        y = check_array(y, ensure_2d=False, dtype=None)
        check_consistent_length(x, y)
        return x, targets(y)

    def _progress(self, starts: int) -> Progress:
        """Return the callback of the search; the search stops if it returns true."""
        return ProgressLine(starts) if self.verbose else lambda done, best: None

    def _batch(self) -> int:
        return 64 if self.batch_size == "auto" else int(self.batch_size)

    def _auto_decay(self) -> bool:
        return isinstance(self.weight_decay, str) and self.weight_decay == "auto"

    def _shapes_and_starts(self, rows: int) -> tuple[Sequence[tuple[int, ...]], int]:
        """Return the hidden layers to search, and the number of starts of each."""
        shape, starts = _WIDE if self.hidden_layer_sizes is None and rows >= MANY_ROWS else _FEW
        starts = starts if self.n_init is None else int(self.n_init)
        return [shape] if self.hidden_layer_sizes is None else self._shapes(), starts

    def _shapes(self) -> Sequence[tuple[int, ...]]:
        if isinstance(self.hidden_layer_sizes, str) and self.hidden_layer_sizes == "auto":
            return _SHAPES
        sizes = np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=object))
        return [tuple(as_count('each of hidden_layer_sizes, if not "auto",', size, 1, math.inf) for size in sizes)]

    def _steps(self, rows: int) -> tuple[int, int]:
        """Return the number of steps, and of steps between validations."""
        passes = 400 * rows / min(self._batch(), rows)
        steps = int(min(max(passes, 2000), 12_000)) if self.max_iter is None else int(self.max_iter)
        every = max(1, steps // LOOKS)
        return steps // every * every, every

    def _keep(
        self, found: list[Candidate], best: list[Candidate], decays: Array, scales: list[Scale], box: Array
    ) -> None:
        network = best[0].network
        theta = np.stack([one.theta for one in best], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            theta = in_units(network, theta, *scales)
        if not np.isfinite(theta).all():
            raise ValueError("the weights overflow double precision in the units of the data; scale X and y first")
        self.theta_ = theta
        self.widths_ = network.widths
        self.activation_ = self.activation
        self.alpha_and_c_ = (float(self.alpha), float(self.c))
        self.box_ = box
        self.loss_curve_ = best[0].history.astype(np.float64)
        self.best_loss_ = _mean_over_folds(best)
        self.n_iter_ = best[0].steps
        self.n_layers_ = len(network.widths)
        starts = np.array([one.start for one in found])
        self.candidates_ = {
            "hidden_layer_sizes": np.array([",".join(map(str, one.network.widths[1:-1])) for one in found]),
            "start": starts,
            "fold": np.unique([one.first_held for one in found], return_inverse=True)[1],
            "weight_decay": np.where(starts < 0, 0.0, decays[starts]),
            "validation_loss": np.array([one.loss for one in found]),
            "best_iter": np.array([one.best_step for one in found]),
            "n_iter": np.array([one.steps for one in found]),
            "chosen": np.array([any(one is other for other in best) for one in found]),
        }
        self.validation_scores_ = self._scores(best[0].looks.astype(np.float64))

    def _scores(self, losses: Array) -> Array:
        return -losses

    def _factors(self, y: Array, weight: Array) -> Any:
        """Return the factors of the row weights for these targets."""
        return 1.0

    def _target_scale(self, y: Array, weight: Array) -> Scale:
        return Scale(np.zeros(y.shape[1]), np.ones(y.shape[1]))


def _scale(name: str, scale: Scale, values: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scale(values)
    far = ~(np.abs(scaled) <= FARTHEST)
    if far.any():
        value = values[np.unravel_index(far.argmax(), far.shape)]
        raise ValueError(
            f"{name} has the value {value:.3g}, too far from the other rows for single precision; correct or drop the "
            "row, or scale the columns"
        )
    return scaled


def _best_shape(found: list[Candidate], count: int) -> list[Candidate]:
    """Return the best members, equally many of each fold, of the shape for which their mean loss is lowest."""
    shapes: dict[tuple[int, ...], list[Candidate]] = {}
    for one in found:
        if math.isfinite(one.loss):
            shapes.setdefault(one.network.widths, []).append(one)
    best = min((_choose(some, count) for some in shapes.values()), key=_mean_loss, default=[])
    if not best:
        raise ValueError(
            "no start gave a finite loss; use a smaller learning_rate_init, and look for huge values in X and y"
        )
    return best


def _choose(members: list[Candidate], count: int) -> list[Candidate]:
    losses = np.array([one.loss for one in members])
    place = places(losses, np.array([one.first_held for one in members]))
    order = np.lexsort([losses, place])[:count]
    return [members[i] for i in np.sort(order)]


def _mean_over_folds(members: list[Candidate]) -> float:
    """Return the mean over folds of the members' mean loss in each; the lowest loss would favour a lucky fold."""
    folds: dict[int, list[float]] = {}
    for one in members:
        folds.setdefault(one.first_held, []).append(one.loss)
    return float(np.mean([np.mean(losses) for losses in folds.values()]))


def _mean_loss(members: list[Candidate]) -> tuple[int, float]:
    return -len(members), float(np.mean([one.loss for one in members]))
