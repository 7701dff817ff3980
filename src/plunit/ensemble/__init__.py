"""Many small networks trained as one: members on the last axis, each with its own start, data, alpha and c.

NumPy arrays enter and leave. Start with `training.py`, which has `train`; `runs.py` has what a run of it is given and
carries. `halving.py` has `search`, behind every estimator: it goes on with the better half of many starts and finishes
the best by `levenberg_marquardt.py`. `nonlinearities.py` has activations and losses; a new one follows `Nonlinearity`.
`native_steps.py` calls the compiled program, and `numpy_steps.py` states the same steps in NumPy.
"""

from plunit.ensemble.levenberg_marquardt import finish_members
from plunit.ensemble.mlp import MLP, forward, initial, preactivations
from plunit.ensemble.nonlinearities import ACTIVATIONS, LOSSES
from plunit.ensemble.training import ENGINES, Trained, engine, train
from plunit.ensemble.training_data import Rows, Validation
from plunit.programs.libraries import why_not_native

__all__ = [
    "ACTIVATIONS",
    "ENGINES",
    "LOSSES",
    "MLP",
    "Rows",
    "Trained",
    "Validation",
    "engine",
    "finish_members",
    "forward",
    "initial",
    "preactivations",
    "train",
    "why_not_native",
]
