"""Densities by small invertible networks, trained by a compiled program; PyTorch is not required.

`search` trains members on points (`Sample`) and returns them, the one with the lowest validation loss first; each has a
`DensityNetwork` with `log_prob` and `sample`. Start with `searching.py`. `chain.py` has the state of a member and its
steps by the program, `numpy_chain.py` the same steps in NumPy, and `density_faults.py` the rules for tables without a
density.
"""

from plunit.densities.chain import Member, Sample
from plunit.densities.density_network import Architecture, DensityNetwork, start
from plunit.densities.searching import NoFiniteStart, search

__all__ = ["Architecture", "DensityNetwork", "Member", "NoFiniteStart", "Sample", "search", "start"]
