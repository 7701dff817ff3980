"""PLU for PyTorch: the op, the module, and changes to models that use them.

Start with `op.py`, which chooses between the native kernel (`csrc`) and PyTorch's own ops (`composite.py`) for a call;
each has its own autograd. `exact/` turns models into the exact networks of `plunit.pieces`; it is imported when
`to_network` is first used.
"""

from typing import TYPE_CHECKING, Any

from plunit.base.errors import describe_missing

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    # `python -m plunit.torch.build` prints an error with a name inside plunit as one line
    raise ModuleNotFoundError(describe_missing(__name__, "torch"), name=__name__) from None

from plunit.torch.conversion import convert
from plunit.torch.initialising import init_, param_groups
from plunit.torch.module import PLU, Residual
from plunit.torch.op import has_native, inverse, kernels, log_slope, plu, slope

if TYPE_CHECKING:
    from plunit.torch.exact.network import to_network

__all__ = [
    "PLU",
    "Residual",
    "convert",
    "has_native",
    "init_",
    "inverse",
    "kernels",
    "log_slope",
    "param_groups",
    "plu",
    "slope",
    "to_network",
]


def __getattr__(name: str) -> Any:
    if name != "to_network":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plunit.torch.exact.network import to_network

    return to_network


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
