"""Densities by small invertible networks, trained by a compiled program; no PyTorch."""

from plunit.densities.architecture import Architecture, Start, start
from plunit.densities.network import DensityNetwork
from plunit.densities.sample import Sample
from plunit.densities.searching import NoFiniteStart, search
from plunit.densities.state import Member

__all__ = ["Architecture", "DensityNetwork", "Member", "NoFiniteStart", "Sample", "Start", "search", "start"]
