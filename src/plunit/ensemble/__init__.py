"""Many small networks trained as one: members on the last axis, each with its own start, data, alpha and c.

All functions take and return NumPy arrays. Start with `training.py`, which has `train`. `training_data.py` has the data
of a run, and `training_state.py` the state that is carried from step to step. The steps are Adam's (`adam.py`):
`native_steps.py` calls the compiled program, and `numpy_steps.py` states the same in NumPy. `halving.py` has
`search_networks`, which regressor and classifier use: it continues with the better half of many starts and finishes the
best by `levenberg_marquardt.py`; `minimax.py` then lowers the largest error, last by `linear_programs.py`.
`nonlinearities.py` has the activations and losses, with a check-list for new ones. `mlp.py` is the network, and
`outputs.py` evaluates it in float64.
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
