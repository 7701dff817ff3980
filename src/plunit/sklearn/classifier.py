"""PLUClassifier: the class of x by the best of many small networks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from plunit.ensemble.arrays import Array
from plunit.numpy import sigmoid
from plunit.sklearn import folds
from plunit.sklearn.fitted import member_mean
from plunit.sklearn.network_estimator import PLUEstimator


@dataclass(eq=False, repr=False)
class PLUClassifier(ClassifierMixin, PLUEstimator):  # type: ignore[misc]
    """P(class | x) = softmax(f(x)), where f is the mean of the `n_best` best of `n_init` small networks.

    Two classes share one output, with the logistic loss; more classes have an output each, with the softmax loss.
    Several labels per row, y [n, labels] of 0 and 1, have an output each, with the logistic loss. The parameters and
    attributes are those of `PLURegressor`, and in addition:

    Args:
        class_weight: "balanced" (all classes have the same total weight), or a dict from class to weight; it multiplies
            sample_weight.

    Attributes:
        classes_: the sorted classes; for several labels, their numbers.
        multilabel_: whether y had several labels.
        network_: f in the units of the data: the log-odds of the second of two classes, a score for each of several
            classes, or the log-odds of each label.
        validation_scores_: minus the validation loss of the best member at each validation.

    >>> from plunit.sklearn import PLUClassifier
    >>> x = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = PLUClassifier(n_init=16, random_state=0).fit(x, x[:, 0] * x[:, 1] > 0)
    >>> bool(model.score(x, x[:, 0] * x[:, 1] > 0) > 0.95)
    True
    """

    _: KW_ONLY
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> PLUClassifier:  # noqa: N803
        """Train on rows X [n, in] and classes y [n]; X_val and y_val are your own validation rows."""
        return self._fit_whole(X, y, sample_weight, X_val, y_val)

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> str:  # noqa: N803
        X, y = validate_data(self, X, y, multi_output=True, dtype=np.float64)  # noqa: N806
        y = y.toarray() if hasattr(y, "toarray") else y
        y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X, y, weight = folds.drop_weightless(X, y, weight)  # noqa: N806
        self.multilabel_ = y.ndim == 2
        if not self.multilabel_:
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"a classifier needs at least two classes, got one class: {self.classes_[0]}")
        targets = self._labels if self.multilabel_ else self._one_class
        held = self._own_validation(X_val, y_val, targets)
        return self._train(X, targets(y), weight, "logistic" if self._binary() else "softmax", held)

    def _one_class(self, y: Array) -> Array:
        if np.shape(y)[1:] not in ((), (1,)):
            raise ValueError(f"y_val must have one class for each row, like y, got the shape {np.shape(y)}")
        place = {label: i for i, label in enumerate(self.classes_.tolist())}
        labels = np.ravel(y).tolist()
        if strangers := [label for label in labels if label not in place]:
            raise ValueError(f"y_val has the class {strangers[0]!r}, which y does not have; leave such rows out")
        index = np.array([place[label] for label in labels])
        return index.reshape(-1, 1).astype(np.float64) if self._binary() else np.eye(len(self.classes_))[index]

    def _labels(self, y: Array) -> Array:
        if type_of_target(y) != "multilabel-indicator" or not np.isin(y, (0, 1)).all():
            raise ValueError("y with several columns must hold 0 and 1: whether the row has each label")
        if self.class_weight is not None:
            raise ValueError(f"class_weight {self.class_weight!r} needs one class per row; use sample_weight")
        self.classes_ = np.arange(y.shape[1])
        return y.astype(np.float64)

    def _binary(self) -> bool:
        """Whether each output is a log-odds."""
        return self.multilabel_ or len(self.classes_) == 2

    def _factors(self, y: Array, weight: Array) -> Any:
        """Return the class weight of each row."""
        if self.class_weight is None:
            return 1.0
        label = y[:, 0].astype(np.int64) if y.shape[1] == 1 else y.argmax(1)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            sums = np.bincount(label, weights=weight)
            return (weight.sum() / (len(sums) * sums))[label]
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[label])
        if not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"class_weight must hold finite numbers >= 0, got {self.class_weight!r}")
        return factors[label]

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Return f(X): the log-odds of the second of two classes [n], or scores [n, classes or labels]."""
        values = self._of_outputs(X, member_mean)
        return np.asarray(values if self.multilabel_ or not self._binary() else values[:, 0])

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probability of each class or label, [n, classes]."""
        return self._of_outputs(X, self._chances)

    def _chances(self, outputs: Array) -> Array:
        values = member_mean(outputs)
        if self.multilabel_:
            return np.asarray(sigmoid(values))
        if self._binary():
            return np.stack([sigmoid(-values[:, 0]), sigmoid(values[:, 0])], axis=1)
        with np.errstate(over="ignore"):  # the difference of huge numbers: the probability is 0
            powers = np.exp(values - values.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each row; for several labels, those more probable than not."""
        found = self._of_outputs(X, self._decide)
        return found if self.multilabel_ else self.classes_[found]

    def _decide(self, outputs: Array) -> Array:
        chances = self._chances(outputs)
        return np.asarray((chances > 0.5).astype(np.int64) if self.multilabel_ else chances.argmax(1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
