"""The data sets of the experiments: found in a cache folder or fetched, and verified to the byte before use."""

from plunit.lab.data import cifar10

SETS = {"cifar10": cifar10}

__all__ = ["SETS", "cifar10"]
