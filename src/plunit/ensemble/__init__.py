"""Many small networks trained as one: members on the last axis, each with its own start, data, alpha and c.

NumPy arrays enter and leave. Start with `training.py`, which has `train`. `halving.py` goes on with the better half of
many starts; `native_steps.py` calls the compiled program, and `numpy_steps.py` states the same steps in NumPy.

>>> import numpy as np
>>> network = MLP((1, 3, 3, 1), "plu")
>>> start = initial(network, [np.random.default_rng(seed) for seed in range(5)])
>>> x = np.linspace(-6, 6, 50)[None]
>>> trained = train(network, start, (x, np.sin(x)), steps=200)
>>> trained.theta.shape, trained.history.shape
((22, 5), (13, 5))
"""

from plunit.ensemble.losses import LOSSES
from plunit.ensemble.mlp import MLP, forward, initial, preactivations
from plunit.ensemble.nonlinearities import ACTIVATIONS
from plunit.ensemble.runs import Rows, Validation
from plunit.ensemble.training import ENGINES, Trained, engine, train
from plunit.programs.loading import why_not_native

__all__ = [
    "ACTIVATIONS",
    "ENGINES",
    "LOSSES",
    "MLP",
    "Rows",
    "Trained",
    "Validation",
    "engine",
    "forward",
    "initial",
    "preactivations",
    "train",
    "why_not_native",
]
