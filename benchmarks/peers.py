"""scikit-learn's estimators on a split: the best of 20 starts of an MLP, and gradient boosting; stored in a file."""

from __future__ import annotations

import dataclasses
import datetime
import json
import sys
import time
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.tables import Fold, Table
from plunit.base.files import save_whole

RESTARTS = 20
SETTINGS: dict[str, Any] = {
    "hidden_layer_sizes": [16, 16],
    "activation": "relu",
    "learning_rate_init": 0.01,
    "max_iter": 200,
    "early_stopping": False,
}
"""Options of the MLPs; the others are scikit-learn's defaults."""


@dataclass(frozen=True)
class Peers:
    """Errors on one split (see `Fold.error`): of each restart on test and validation rows, and of boosting.

    The times are those of this run; results from a file have none.
    """

    restarts: list[float]
    validation: list[float]
    chosen: int
    boosting: float
    restart_seconds: float | None = None
    boosting_seconds: float | None = None

    @property
    def best(self) -> float:
        """Test error of the restart with the smallest error on the validation rows."""
        return self.restarts[self.chosen]


def measure(fold: Fold, jobs: int) -> Peers:
    """Fit the restarts on the training rows without the validation rows, and boosting on all of them."""
    scaled = fold.standardised()
    start = time.perf_counter()
    found = Parallel(n_jobs=jobs)(delayed(restart)(scaled, seed) for seed in range(RESTARTS))
    restarted = time.perf_counter()
    boosting = _boosting(scaled)
    boosted = time.perf_counter()
    chosen = min(range(RESTARTS), key=lambda seed: found[seed][:2])
    validation, _, test = zip(*found, strict=True)
    return Peers(list(test), list(validation), chosen, boosting, restarted - start, boosted - restarted)


def restart(fold: Fold, seed: int) -> tuple[float, float, float]:
    """Fit one MLP; return its error on the validation rows, a tie-breaker, and its error on the test rows.

    Few validation rows are often all classified correctly. The likelihood settles such ties.
    """
    kind = MLPClassifier if fold.classes else MLPRegressor
    keep, choose = ~fold.validation, fold.validation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(**SETTINGS, random_state=seed).fit(fold.x[keep], fold.y[keep])
    x, y = fold.x[choose], fold.y[choose]
    tie = log_loss(y, model.predict_proba(x), labels=model.classes_) if fold.classes else 0.0
    return fold.error(model.predict(x), y), float(tie), fold.error(model.predict(fold.x_test), fold.y_test)


def _boosting(fold: Fold) -> float:
    if fold.classes:
        model = HistGradientBoostingClassifier(random_state=0)
    elif fold.y.ndim == 1:
        model = HistGradientBoostingRegressor(random_state=0)
    else:
        model = MultiOutputRegressor(HistGradientBoostingRegressor(random_state=0))
    return fold.error(model.fit(fold.x, fold.y).predict(fold.x_test), fold.y_test)


class Store:
    """Results of the peers in a JSON file, with the versions and the settings that made them.

    Without a path nothing is kept. A file made with other versions or settings is refused.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        versions = {name: metadata.version(name) for name in ("numpy", "scikit-learn")}
        self.made_with = {"versions": versions, "settings": SETTINGS, "restarts": RESTARTS}
        self.results: dict[str, Any] = {}
        self.date = ""
        self.read = 0
        if path and path.exists():
            self._open(path)

    def _open(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text())
            made_with = {key: kept[key] for key in self.made_with}
            self.results, self.date = kept["results"], kept["date"]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            sys.exit(f"{path} is not a file of peers' results ({fault!r}): name another file")
        if made_with != self.made_with:
            sys.exit(f"{path} was made with {made_with}, this run has {self.made_with}: name another file")

    def get(self, table: Table, split: int) -> Peers | None:
        """Return the stored results of a split, if the table is unchanged."""
        kept = self.results.get(table.name, {})
        if kept.get("checksum") != table.checksum() or str(split) not in kept["splits"]:
            return None
        self.read += 1
        return Peers(**kept["splits"][str(split)])

    def put(self, table: Table, split: int, peers: Peers) -> None:
        """Add a split and write the file atomically."""
        kept = self.results.setdefault(table.name, {})
        if kept.get("checksum") != table.checksum():
            kept.update(checksum=table.checksum(), splits={})
        errors = {key: value for key, value in dataclasses.asdict(peers).items() if not key.endswith("seconds")}
        kept["splits"][str(split)] = errors
        if self.path:
            today = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
            text = json.dumps({"date": today, **self.made_with, "results": self.results})
            save_whole(self.path, text)

    def __str__(self) -> str:
        if not self.read:
            return "all peers were run now"
        return f"{self.read} splits of the peers were not run now: they come from {self.path}, last changed {self.date}"
