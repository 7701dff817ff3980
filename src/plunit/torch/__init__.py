"""PLU for PyTorch."""

from plunit.torch.module import PLU
from plunit.torch.network import to_ensemble, to_network
from plunit.torch.op import has_native, inverse, kernels, log_slope, plu, slope, use_triton
from plunit.torch.replacing import convert
from plunit.torch.surgery import init_, param_groups

__all__ = [
    "PLU",
    "convert",
    "has_native",
    "init_",
    "inverse",
    "kernels",
    "log_slope",
    "param_groups",
    "plu",
    "slope",
    "to_ensemble",
    "to_network",
    "use_triton",
]
