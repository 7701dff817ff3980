"""Densities by small invertible networks, trained by a compiled program; no PyTorch."""

from plunit.densities.architecture import Architecture, Start, start
from plunit.densities.chain_state import Member
from plunit.densities.density_network import DensityNetwork
from plunit.densities.sample import Sample
from plunit.densities.searching import NoFiniteStart, search

__all__ = ["Architecture", "DensityNetwork", "Member", "NoFiniteStart", "Sample", "Start", "search", "start"]
