"""A member of an ensemble as a program of PyTorch, as text."""

from __future__ import annotations

from plunit.ensemble.activation import module_of
from plunit.ensemble.arrays import Array
from plunit.ensemble.network import MLP, spread

_PROGRAM = """\
import torch
from torch import nn
{imports}
model = nn.Sequential(
{modules}
).double()
parameters = [
{parameters}
]
with torch.no_grad():
    for old, new in zip(model.parameters(), parameters, strict=True):
        old.copy_(torch.tensor(new, dtype=torch.float64))
"""


def torch_code(network: MLP, theta: Array, alpha: float = 0.1, c: float = 1.0) -> str:
    """Return a program that makes `model`, an nn.Sequential in float64, of one member theta [rows, 1]."""
    alphas, cs = network.alphas_and_cs(theta, *(spread(network, theta, value) for value in (alpha, c)))
    kind = module_of(network.activation)
    modules, parameters = [], []
    for i, (weight, bias) in enumerate(network.layers(theta)):
        if i:
            plu = f"PLU(alpha={float(alphas[i - 1, 0])!r}, c={float(cs[i - 1, 0])!r})"
            modules.append(plu if kind == "PLU" else f"nn.{kind}()")
        modules.append(f"nn.Linear({weight.shape[1]}, {weight.shape[0]})")
        parameters += [weight[..., 0].tolist(), bias[:, 0].tolist()]
    return _PROGRAM.format(
        imports="\nfrom plunit.torch import PLU\n" if kind == "PLU" else "",
        modules="\n".join(f"    {module}," for module in modules),
        parameters="\n".join(f"    {numbers}," for numbers in parameters),
    )
