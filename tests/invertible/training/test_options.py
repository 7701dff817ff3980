"""The options of `Flow.fit`: numbers of NumPy are taken, and what makes no sense is one clear line."""

import numpy as np
import pytest
import torch

from plunit.invertible import Flow, ScaleShift, toy

X = toy("moons", 40, torch.Generator().manual_seed(0))


def fitted(steps=3, **options):
    return Flow(ScaleShift(2)).fit(X, steps, generator=torch.Generator().manual_seed(1), **options)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"steps": np.int64(3)}, {"steps": 3}),
        ({"batch": np.int32(8)}, {"batch": 8}),
        ({"lr": np.float32(0.5)}, {"lr": 0.5}),
        ({"lr": torch.tensor(0.5)}, {"lr": 0.5}),
        ({"clip": np.float64(0.5)}, {"clip": 0.5}),
        ({"validation": np.float32(0.5)}, {"validation": 0.5}),
        ({"validation": np.float64(0.5), "patience": np.int64(2)}, {"validation": 0.5, "patience": 2}),
        ({"progress": None}, {}),
    ],
)
def test_numbers_of_numpy_are_numbers(given, plain):
    assert fitted(**given) == fitted(**plain)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"steps": np.float64(3)}, ValueError, r"steps must be an integer of at least 1, got .*3\.0"),
        ({"steps": True}, ValueError, "steps must be an integer of at least 1, got True"),
        ({"batch": "a"}, ValueError, "batch must be an integer of at least 1, got 'a'"),
        ({"batch": 10**9}, ValueError, "batch must be at most 10,000,000, got 1,000,000,000"),
        ({"lr": "a"}, ValueError, "lr must be positive and finite, got 'a'; the default is 0.01"),
        ({"lr": "0.1"}, ValueError, "lr must be positive and finite, got '0.1'"),
        ({"lr": None}, ValueError, "lr must be positive and finite, got None"),
        ({"lr": np.zeros(2)}, ValueError, "lr must be positive and finite, got array"),
        ({"clip": "a"}, ValueError, "clip must be positive, or None, got 'a'"),
        ({"clip": np.nan}, ValueError, "clip must be positive, or None, got nan"),
        ({"generator": 5}, TypeError, r"generator takes a torch\.Generator, or None, got 5"),
        ({"progress": 5}, TypeError, r"progress takes True, False or a function of \(steps done, loss\), got 5"),
        ({"validation": 0}, ValueError, "validation as a fraction must lie between 0 and 1 .* of 40 points"),
        ({"validation": 1}, ValueError, "validation as a fraction must lie between 0 and 1 .* of 40 points"),
    ],
)
def test_what_makes_no_sense_is_named(options, error, message):
    with pytest.raises(error, match=message):
        Flow(ScaleShift(2)).fit(X, **{"steps": 3, **options})


def test_training_needs_no_gradients_to_be_enabled():
    with torch.no_grad():
        found = fitted(validation=0.5)
        assert not torch.is_grad_enabled()
    assert found == fitted(validation=0.5)


def test_inference_mode_is_named():
    with torch.inference_mode(), pytest.raises(RuntimeError, match="call fit outside of it"):
        fitted()
