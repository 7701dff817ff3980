"""PLUDensity: the density of x by small invertible networks."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from plunit.base.progress import Progress, ProgressLine, interruption
from plunit.base.ranges import as_count
from plunit.densities import Architecture, DensityNetwork
from plunit.densities.density_network import LEARNED
from plunit.ensemble.arrays import ROUNDING, Array
from plunit.ensemble.outputs import row_blocks
from plunit.programs.libraries import choose_engine
from plunit.sklearn import folds
from plunit.sklearn.base import (
    FRACTION,
    POSITIVE,
    AtomicFit,
    check_count,
    check_flag,
    check_memory,
    check_name,
    check_number,
)
from plunit.sklearn.density.columns import ColumnLabels, Columns, inspect
from plunit.sklearn.density.splits import (
    BestStart,
    WhitenedSplit,
    Whitening,
    best_starts,
    make_splits,
    mean_losses,
    normal_network,
    repeat,
)

if TYPE_CHECKING:
    from plunit.invertible import Flow

BLOCKS = (0, 1, 2, 4, 8, 16, 32)
"""The numbers of blocks that "auto" tries."""

MOST_PARAMETERS = 10_000  # of networks that "auto" tries; they also have no more parameters than X has numbers
LARGEST_VALUE = 1e300  # differences and sums of larger values overflow
START, STEP = 1000, 8  # numbers in memory for a start in addition to its parameters, and for each step

MOST_SAMPLED = 2**30  # the maximum number of values in a sample: 8 GiB

MixturePart = tuple[Whitening, DensityNetwork, float]
"""A term weight p(v) |det dv/du| of p(u), where v is the whitened u, and p is the density of the network."""

VALIDATIONS, MOST_WITHOUT_PROGRESS = 100, 30
"""The number of validations, and of those without an improvement after which a start stops."""


@dataclass(eq=False, repr=False)
class PLUDensity(AtomicFit, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """p(x) = mean of N(z; 0, 1) |det dz/dx| over `n_best` small invertible networks z = F(x).

    Columns are scaled internally; densities are in the units of the data. Rows are split into training and validation
    rows in `n_best` ways. On each split a compiled program trains `n_init` starts of every number of blocks. The number
    of blocks with the lowest mean validation loss wins; 0 blocks are a normal density.

    Args:
        n_blocks: the number of blocks of an affine map and an activation, several to choose from, or "auto" for those
            of 0, 1, 2, 4, 8, 16 and 32 with no more parameters than X has numbers, and at most 10,000.
        activation: "smooth" (SmoothPLU with a learned rounding), "plu" (exact) or "leaky".
        bounds: (low, high) of all columns, a list of such pairs, or a dict from columns to pairs; None means no bound.
            Columns with two bounds are mapped by a logit, those with one by a logarithm. A bound farther from all
            values than 1e6 times their range is ignored, as `bounds_` shows.
        integers: the integer columns; "auto" for all that hold only integers, None for none. Their values are spread
            evenly over value +- 1/2, and `score_samples` returns the log-probability of the integer.
        n_init: the number of starts for each number of blocks and split.
        n_best: the number of splits, and so of averaged networks.
        max_iter: steps of the starts that are trained to the end; None for 3 per row, at least 4,000 and at most
            20,000.
        learning_rate_init: Adam's step size; it falls to 0 by a half cosine.
        batch_size: rows per step.
        validation_fraction: the fraction of validation rows in each split.
        random_state: the same number gives the same bits, whatever the number of threads.
        verbose: show progress on the terminal.

    Attributes:
        n_blocks_: the chosen number of blocks.
        n_parameters_: the number of parameters of one network.
        candidates_: the best start of each number of blocks on each split: loss, steps, whether the size was chosen.
        best_loss_: minus the mean log-likelihood of the validation rows, averaged over the splits.
        validation_scores_: the mean log-likelihood of the best network's validation rows during training.
        n_iter_: the steps of the longest training.
        normal_share_: the weight of a normal density in the mean, 1 / rows, so that no row is much less probable than
            under a normal density; 0 for n_best=1.

    >>> from plunit.sklearn import PLUDensity
    >>> x = np.random.default_rng(0).normal(5, 2, (400, 1))
    >>> model = PLUDensity(random_state=0).fit(x)
    >>> bool(abs(model.score_samples([[5.0]])[0] + np.log(2 * np.sqrt(2 * np.pi))) < 0.2)
    True
    >>> model.sample(3, random_state=0).shape
    (3, 1)
    """

    n_blocks: Any = "auto"
    activation: str = "smooth"
    _: KW_ONLY
    bounds: Any = None
    integers: Any = "auto"
    n_init: int = 4
    n_best: int = 4
    max_iter: int | None = None
    learning_rate_init: float = 0.02
    batch_size: int = 128
    validation_fraction: float = 0.25
    random_state: Any = None
    verbose: bool = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PLUDensity:  # noqa: N803
        """Train on rows X [n, features]; y is not used."""
        return self._fit_whole(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> str:  # noqa: N803
        self._check()
        x = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if (largest := np.abs(x).max()) > LARGEST_VALUE:
            raise ValueError(f"X has values up to {largest:.3g}; the limit is {LARGEST_VALUE:g}: scale its columns")
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        x, weight = folds.drop_negligible(x, weight)
        rows = x
        x, _, weight = folds.merge(x, x[:, :0], weight)
        rng = check_random_state(self.random_state)
        labels = ColumnLabels(x.shape[1], getattr(self, "feature_names_in_", None))
        columns, self.constants_, notes = inspect(x, rows, self.bounds, self.integers, labels)
        for note in notes:
            warnings.warn(note, stacklevel=4)
        self.bounds_ = np.stack([columns.low, columns.high])
        self.steps_, self.integers_, self.margins_ = columns.step, columns.integer, columns.margin
        x = x[:, np.isnan(self.constants_)]
        if columns.step.all():  # equal rows become different points of an interval
            x, weight = repeat(x, weight)
        steps, every = self._steps(len(x))
        sizes = [Architecture(x.shape[1], blocks, self.activation) for blocks in self._sizes(*x.shape)]
        self._check_memory(max(sizes, key=lambda form: form.parameters), steps)
        splits = make_splits(x, weight, columns, self.validation_fraction, self.n_best, rng)
        found, interrupted = best_starts(
            splits,
            sizes,
            self._progress(sum(form.blocks > 0 for form in sizes)),
            starts=self.n_init,
            steps=steps,
            every=every,
            patience=MOST_WITHOUT_PROGRESS,
            batch=min(int(self.batch_size), len(splits[0].training.x)),
            lr=float(self.learning_rate_init),
            anneal=self.activation == "plu",
            engine=choose_engine(None, "chain"),  # here, because Ctrl-C does not reach the training threads
        )
        self._keep(found, splits)
        self.normal_share_ = 1 / len(x) if self.n_blocks_ and self.n_best > 1 else 0.0
        kept = f"the mean of the best {len(self.theta_)} so far"
        taken = max(one.steps for of_size in found for one in of_size)
        return interruption(taken, steps, kept) if interrupted else ""

    def _check(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        check_name("activation", self.activation, LEARNED)
        for name, *unset in (("n_init",), ("n_best",), ("max_iter", None), ("batch_size",)):
            check_count(str(name), getattr(self, str(name)), *unset)
        check_number("learning_rate_init", self.learning_rate_init, *POSITIVE)
        check_number("validation_fraction", self.validation_fraction, *FRACTION)
        check_flag("verbose", self.verbose, count=True)

    def _check_memory(self, largest: Architecture, steps: int) -> None:
        needed = self.n_best * (self.n_init * (largest.parameters + START) + STEP * steps)
        work = f"n_blocks = {largest.blocks} with n_best = {self.n_best}, n_init = {self.n_init} and {steps} steps"
        check_memory(needed, work, "fewer blocks, splits, starts or steps")

    def _sizes(self, rows: int, features: int) -> list[int]:
        """Return the numbers of blocks to search."""
        if isinstance(self.n_blocks, str) and self.n_blocks == "auto":
            room = min(rows * features, MOST_PARAMETERS) if rows >= folds.FEWEST_ROWS else 0
            return [b for b in BLOCKS if b == 0 or Architecture(features, b, self.activation).parameters <= room]
        sizes = np.atleast_1d(np.asarray(self.n_blocks, dtype=object)).tolist()
        if not sizes:
            raise ValueError("n_blocks must hold at least one number of blocks, got none")
        return [as_count('n_blocks, if not "auto",', one, 0, math.inf) for one in sizes]

    def _steps(self, rows: int) -> tuple[int, int]:
        """Return the number of steps, and of steps between validations."""
        steps = min(max(3 * rows, 4000), 20_000) if self.max_iter is None else int(self.max_iter)
        every = max(1, steps // VALIDATIONS)
        return steps // every * every, every

    def _progress(self, sizes: int) -> Progress:
        return ProgressLine(sizes * self.n_best * self.n_init) if self.verbose else lambda done, best: None

    def _keep(self, found: list[list[BestStart]], splits: list[WhitenedSplit]) -> None:
        """Store the networks of the size with the lowest mean loss, as arrays."""
        means = mean_losses(found, splits)
        chosen = int(np.argmin(np.where(np.isfinite(means), means, math.inf)))
        if not math.isfinite(means[chosen]):
            raise ValueError("no start gave a finite loss; use a smaller learning_rate_init")
        trained = [pair for pair in zip(found[chosen], splits, strict=True) if not math.isnan(pair[0].loss)]
        parts = sorted(trained, key=lambda pair: pair[0].loss)
        form, best = parts[0][0].form, parts[0][0]
        self.n_blocks_, self.activation_, self.n_parameters_ = form.blocks, form.activation, form.parameters
        networks, whitenings = [one.network for one, _ in parts], [split.whitening for _, split in parts]
        self.theta_, self.orders_, self.signs_ = (
            np.stack([getattr(one, name) for one in networks]) for name in ("theta", "order", "sign")
        )
        self.means_, self.spreads_, self.lowers_ = (
            np.stack([getattr(one, name) for one in whitenings]) for name in ("mean", "spread", "lower")
        )
        self.best_loss_ = float(means[chosen])
        self.validation_scores_ = -best.looks
        self.n_iter_ = max(1, *(one.steps for of_size in found for one in of_size))
        rows = [
            (one.form.blocks, one.form.parameters, j, one.loss, one.best_step, one.steps, i == chosen)
            for i, of_size in enumerate(found)
            for j, one in enumerate(of_size)
        ]
        names = ("n_blocks", "n_parameters", "split", "validation_loss", "best_iter", "n_iter", "chosen")
        self.candidates_ = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    @property
    def networks_(self) -> list[DensityNetwork]:
        """The networks that are averaged, the best first, as functions of whitened columns."""
        check_is_fitted(self)
        form = Architecture(self.means_.shape[1], self.n_blocks_, self.activation_)
        return [DensityNetwork(form, *parts) for parts in zip(self.theta_, self.orders_, self.signs_, strict=True)]

    @property
    def network_(self) -> DensityNetwork:
        """The best network, as a function of whitened columns."""
        return self.networks_[0]

    def _mixture(self) -> list[MixturePart]:
        """The networks and, with the weight `normal_share_`, the normal densities of their splits."""
        networks, arrays = self.networks_, zip(self.means_, self.spreads_, self.lowers_, strict=True)
        whitenings, count = [Whitening(*parts) for parts in arrays], len(networks)
        if self.normal_share_ == 0:
            return list(zip(whitenings, networks, [1 / count] * count, strict=True))
        weights = np.repeat([1 - self.normal_share_, self.normal_share_], count) / count
        normals = [normal_network(self.means_.shape[1])] * count
        return list(zip(2 * whitenings, networks + normals, weights.tolist(), strict=True))

    def _kinds(self) -> Columns:
        return Columns(self.bounds_[0], self.bounds_[1], self.steps_, self.integers_, self.margins_)

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return log p of the rows X in the units of the data; -inf outside bounds and between integers."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        columns, mixture = self._kinds(), self._mixture()
        nodes, fractions = columns.nodes(), np.zeros(len(columns.low), bool)
        found = np.full(len(x), -math.inf)
        for block in row_blocks(len(x), nodes.size):
            rows, possible = self._varying(x[block])
            fractions |= (rows != np.rint(rows)).any(0)
            possible &= columns.admits(rows).all(1)
            found[block][possible] = _log_prob(columns, mixture, nodes, rows[possible])
        self._warn_of_fractions(self.integers_ & fractions)
        return found

    def _varying(self, x: Array) -> tuple[Array, Array]:
        """Return the varying columns, and whether each row has the constants of the others."""
        varies = np.isnan(self.constants_)
        fixed = self.constants_[~varies]
        return x[:, varies], (np.abs(x[:, ~varies] - fixed) <= 2 * ROUNDING * np.spacing(np.abs(fixed))).all(1)

    def _warn_of_fractions(self, odd: Array) -> None:
        if odd.any() and isinstance(self.integers, str):
            where = np.flatnonzero(np.isnan(self.constants_))[odd].tolist()
            warnings.warn(
                f"columns {where} held only integers in fit, so other values get the density 0; fit with "
                "integers=None, or list the integer columns",
                stacklevel=3,
            )

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean of log p over the rows X, as GaussianMixture does."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows [n_samples, features] from the density."""
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        if n_samples * len(self.constants_) > MOST_SAMPLED:
            raise ValueError(
                f"n_samples times {len(self.constants_)} columns must be at most {MOST_SAMPLED}, got n_samples = "
                f"{n_samples}; draw the samples in parts"
            )
        varies = np.isnan(self.constants_)
        x = np.tile(self.constants_, (n_samples, 1))
        mixture, rng = self._mixture(), check_random_state(random_state)
        z = rng.standard_normal((n_samples, int(varies.sum())))
        whose = rng.choice(len(mixture), size=n_samples, p=[weight for _, _, weight in mixture])
        u = np.empty_like(z)
        for i, (whitening, network, _) in enumerate(mixture):
            u[whose == i] = whitening.inverse(network.inverse(z[whose == i].T)[0].T)
        x[:, varies] = self._kinds().from_line(u)
        return x

    def to_torch(self) -> Flow:
        """Return the density of the best network as a `plunit.invertible.Flow` in float64, in the units of the data.

        For n_best=1 it is the estimator's density, otherwise one of the averaged densities.
        """
        import torch

        from plunit.invertible import LU, Chain, Flow
        from plunit.invertible.conversions import to_chain

        check_is_fitted(self)
        if self.integers_.any() or np.isfinite(self.bounds_).any() or not np.isnan(self.constants_).all():
            raise ValueError("to_torch does not support bounds, integers and constant columns; fit without them")
        whitening, network, _ = self._mixture()[0]
        matrix = torch.linalg.solve(*map(torch.from_numpy, (whitening.lower, np.diag(1 / whitening.spread))))
        first = LU.from_matrix(matrix, -matrix @ torch.from_numpy(whitening.mean))
        return Flow(Chain(first, to_chain(network))).double()


def _log_prob(columns: Columns, mixture: list[MixturePart], nodes: Array, x: Array) -> Array:
    """Return log p of possible rows; for integers, p is the mean over the nodes of their intervals."""
    u, log_slopes = columns.to_line((x[:, None] + nodes).reshape(-1, x.shape[1]))
    with np.errstate(over="ignore"):  # the squares of distant rows, whose density is 0
        terms = [
            network.log_prob(white.forward(u)) + white.log_det + np.log(weight) for white, network, weight in mixture
        ]
    logs = (np.logaddexp.reduce(terms, axis=0) + log_slopes).reshape(len(x), len(nodes))
    return np.asarray(np.logaddexp.reduce(logs, axis=1) - math.log(len(nodes)))
