"""plunit: the Piecewise Linear Unit. This module imports no framework.

Start with `functional.py`, the definition. `dispatch` chooses the framework of an array; `torch`, `jax`, `keras` and
`numpy` evaluate the same formula. docs/contribute.md describes the other subpackages ("rooms") and the order in which
they may import each other; tests/test_imports.py checks it.
"""

from plunit.dispatch import inverse, log_slope, plu, slope
from plunit.gains import gain

__all__ = ["__version__", "gain", "inverse", "log_slope", "plu", "slope"]

__version__ = "0.2.0"
