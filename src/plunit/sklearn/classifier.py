"""PLUClassifier: the class of x by the best of many small networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from plunit.ensemble.activation import sigmoid
from plunit.ensemble.arrays import Array
from plunit.sklearn.base import PLUEstimator


class PLUClassifier(ClassifierMixin, PLUEstimator):  # type: ignore[misc]
    """P(class | x) = softmax(f(x)) with f the mean of the `n_best` best of `n_init` small networks.

    Two classes have one output and the logistic loss, more classes an output each and the softmax loss. The parameters
    and attributes are those of `PLURegressor`, and besides:

    Args:
        class_weight: "balanced", or a dict from class to weight; it multiplies sample_weight.

    Attributes:
        classes_: the classes in order.
        network_: f, in the units of the data: the log-odds of the second class, or a number for each class.
        validation_scores_: minus the loss of validation of the best member at each look.

    >>> from plunit.sklearn import PLUClassifier
    >>> x = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = PLUClassifier(n_init=16, random_state=0).fit(x, x[:, 0] * x[:, 1] > 0)
    >>> bool(model.score(x, x[:, 0] * x[:, 1] > 0) > 0.95)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (16, 16),
        activation: str = "plu",
        *,
        alpha: float = 0.1,
        c: float = 1.0,
        n_init: int = 64,
        n_best: int = 8,
        max_iter: int | None = None,
        learning_rate_init: float = 0.02,
        weight_decay: float = 0.0,
        batch_size: Any = "auto",
        early_stopping: bool = True,
        validation_fraction: float = 0.15,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation,
            alpha=alpha,
            c=c,
            n_init=n_init,
            n_best=n_best,
            max_iter=max_iter,
            learning_rate_init=learning_rate_init,
            weight_decay=weight_decay,
            batch_size=batch_size,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PLUClassifier:  # noqa: N803
        """Train on rows X [n, in] and classes y [n]."""
        X, y = validate_data(self, X, y, dtype=np.float64)  # noqa: N806
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"a classifier needs two classes or more, got one class: {classes[0]!r}")
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        self.classes_ = classes
        targets = index.reshape(-1, 1).astype(np.float64) if len(classes) == 2 else np.eye(len(classes))[index]
        self._train(X, targets, weight, "logistic" if len(classes) == 2 else "softmax")
        return self

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Return f(X): the log-odds of the second of two classes [n], or a number for each class [n, classes]."""
        values = self._outputs(X).mean(0)
        return np.asarray(values[:, 0] if len(self.classes_) == 2 else values)

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probability of each class, [n, classes]."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.stack([sigmoid(-values), sigmoid(values)], axis=1)
        powers = np.exp(values - values.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each row."""
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(1)]
