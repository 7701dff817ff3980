"""Many small networks trained as one: members on the last axis, each with its own start, data, alpha and c.

>>> import numpy as np, torch
>>> network = Network((1, 3, 3, 1), "plu")
>>> start = initial(network, [np.random.default_rng(seed) for seed in range(5)])
>>> x = torch.linspace(-6, 6, 50)[None]
>>> trained = train(network, start, (x, x.sin()), steps=200)
>>> trained.theta.shape, trained.history.shape
(torch.Size([22, 5]), torch.Size([13, 5]))
"""

from plunit.ensemble.activation import ACTIVATIONS
from plunit.ensemble.network import Network, forward, initial, preactivations
from plunit.ensemble.threads import one_thread
from plunit.ensemble.training import ENGINES, Trained, engine, train, why_not_native

__all__ = [
    "ACTIVATIONS",
    "ENGINES",
    "Network",
    "Trained",
    "engine",
    "forward",
    "initial",
    "one_thread",
    "preactivations",
    "train",
    "why_not_native",
]
