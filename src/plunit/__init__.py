"""plunit: the Piecewise Linear Unit. This module imports no framework; see `plunit.torch`, `.jax` and `.keras`."""

from plunit.dispatch import inverse, log_slope, plu, slope
from plunit.gains import gain

__all__ = ["__version__", "gain", "inverse", "log_slope", "plu", "slope"]

__version__ = "0.2.0"
