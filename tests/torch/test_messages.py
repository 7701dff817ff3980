"""What PLU for PyTorch refuses: one table of calls, each with its error and the words that matter."""

import math
import re

import pytest
import torch
from torch import nn

import plunit
from plunit.torch import PLU, convert, init_, inverse, log_slope, param_groups, plu, slope

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
ONES = torch.ones(3)


def quantized(x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)


def of_type(dtype):
    return lambda x: x.to(dtype)


OTHERS = {
    "torch.int64; convert it with x.float()": of_type(torch.int64),
    "torch.bool; convert it with x.float()": of_type(torch.bool),
    "torch.float8_e4m3fn; convert it with x.float()": of_type(torch.float8_e4m3fn),
    "torch.complex64; apply PLU to x.real and x.imag": of_type(torch.complex64),
    "torch.qint8; convert it with x.dequantize()": quantized,
}

CALLS = [
    # the functions
    *(
        (lambda function=function, make=make: function(make(ONES)), TypeError, f"float32 and float64, got {text}")
        for function in (plu, inverse, slope, log_slope)
        for text, make in OTHERS.items()
    ),
    (lambda: plu([1.0, 2.0]), TypeError, "x must be a tensor, got list; convert it with torch.tensor(x)"),
    (lambda: plunit.plu(2.0, torch.tensor(0.1)), TypeError, "x must be a tensor, got float"),
    *(
        (lambda a=a: plu(ONES, a), TypeError, "alpha must be a real number or an array of them, got")
        for a in (1j, None, "0.1", ["a"])
    ),
    (lambda: plu(ONES, torch.tensor(1j)), TypeError, "alpha must be real, got a tensor of torch.complex64; pass"),
    (lambda: inverse(ONES, alpha=0.0), ValueError, "the inverse needs alpha > 0, got 0"),
    # the module
    *(
        (lambda name=name, v=v: PLU(**{name: v}), ValueError, f"{name} must be finite and >= 0, got {v}")
        for name, v in (("alpha", -0.1), ("c", -1), ("alpha", math.nan), ("c", math.inf))
    ),
    *(
        (lambda v=v: PLU(learnable=v), ValueError, f'learnable must be False, True, "alpha" or "c", got {v!r}')
        for v in ("both", None, ["alpha"])
    ),
    (lambda: PLU(learnable=0, num_parameters=5), ValueError, "learnable must be False, True"),
    (lambda: PLU(0.0, learnable=True), ValueError, "learnable alpha must lie in (0, 1), here "),
    (lambda: PLU(1.5, learnable=True), ValueError, "got 1.5; start from 0.1, or keep alpha fixed"),
    (lambda: PLU(c=0.0, learnable="c"), ValueError, "learnable c must be positive"),
    (lambda: PLU(num_parameters=3), ValueError, "num_parameters must be 1, or the number of channels"),
    (lambda: PLU(num_parameters=0, learnable=True), ValueError, "got 0 with learnable=True"),
    (lambda: PLU(num_parameters=2.5, learnable=True), ValueError, "got 2.5 with learnable=True"),
    (lambda: PLU([0.1, 0.2]), TypeError, "alpha of a layer must be one number, got [0.1, 0.2]"),
    (lambda: PLU(c=nn.Parameter(torch.ones(1))), TypeError, "c of a layer must be one number, got Parameter"),
    (lambda: PLU(alpha=0.0).inverse(ONES), ValueError, "the inverse needs alpha > 0"),
    # models
    *(
        (
            lambda given=given: convert(nn.Sequential(nn.ReLU()), given),
            TypeError,
            "replacements must map module types to functions that return a module, such as {nn.ReLU: PLU}; got",
        )
        for given in ({"ReLU": PLU}, {nn.ReLU: PLU()}, {nn.ReLU: None}, PLU)
    ),
    (lambda: convert(nn.ReLU(), {nn.ReLU: PLU}), TypeError, "the model itself is a ReLU and cannot be replaced"),
    *(
        (
            lambda given=given: convert(nn.Sequential(nn.ReLU()), {nn.ReLU: given}),
            TypeError,
            f"the replacement of ReLU must return a module, but {given.__name__} does not; use the class PLU",
        )
        for given in (plu, dict)
    ),
    (lambda: init_(nn.Linear(2, 2), mode="sideways"), ValueError, 'mode must be "forward" or "backward", got'),
    (lambda: param_groups(nn.Linear(2, 2), weight_decay=-1), ValueError, "weight_decay must be >= 0, got -1"),
]


@pytest.mark.parametrize(("call", "error", "text"), CALLS)
def test_messages(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
