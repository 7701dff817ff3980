"""Densities by small invertible networks, trained by a compiled program; no PyTorch.

Points enter (`Sample`), members leave (`search`), the one with the least validation loss first, and each has a
`DensityNetwork` with `log_prob` and `sample`. Start with `searching.py`. `chain.py` has the state of a member and its
steps by the program, `numpy_chain.py` states the same steps in NumPy, and `density_faults.py` says which tables have no
density.
"""

from plunit.densities.chain import Member, Sample
from plunit.densities.density_network import Architecture, DensityNetwork, start
from plunit.densities.searching import NoFiniteStart, search

__all__ = ["Architecture", "DensityNetwork", "Member", "NoFiniteStart", "Sample", "search", "start"]
