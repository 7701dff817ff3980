"""What scikit-learn's checks find, and what the state of an estimator is made of."""

import warnings
from collections import Counter

import numpy as np
from sklearn.utils.estimator_checks import check_estimator

PLAIN = (np.ndarray, np.generic, int, float, str, type(None))


def odd_parts(value):
    """Return the parts of a value that are no plain arrays, numbers or strings, nor lists, tuples and dicts of them."""
    if isinstance(value, dict):
        return odd_parts(list(value.items()))
    if isinstance(value, list | tuple):
        return [part for one in value for part in odd_parts(one)]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return odd_parts(value.tolist())
    return [] if isinstance(value, PLAIN) else [value]


def counted(model):
    """Run the checks; return how many ended how, and what was not passed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_fail=None, on_skip=None)
    others = {one["check_name"]: (one["status"], one["exception"]) for one in results if one["status"] != "passed"}
    return Counter(one["status"] for one in results), others
