"""
The boundary term in one dimension
==================================

Take x ~ N(0, 1) and the flow z = PLU(w x) with base N(0, 1). The log-likelihood contains the logarithm of the slope,
which jumps where a sample crosses a kink. Autograd does not see these crossings, so its gradient in w is wrong; at
w = 1 even its sign is. ``PLU(..., boundary=True)`` adds the missing term.
"""

import math
from bisect import bisect

import matplotlib.pyplot as plt
import torch

from plunit.invertible import PLU
from plunit.torch import plu

X = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
NORMAL = torch.exp(-X.square() / 2) / math.sqrt(2 * math.pi)
W = torch.logspace(math.log10(0.25), 1, 321, dtype=torch.float64)


# %%
# The true negative log-likelihood, by quadrature. The slope is 0.1 with probability erfc(1 / (w sqrt 2)), else 1.
def true_nll(w: float) -> float:
    """Return E[-log p(x)]."""
    smooth = torch.trapezoid(NORMAL * plu(w * X).square() / 2, X).item()
    return smooth + 0.5 * math.log(2 * math.pi) - math.log(0.1) * math.erfc(1 / (w * math.sqrt(2))) - math.log(w)


def gradient(bijection: PLU, w: float, x: torch.Tensor) -> float:
    """Return autograd's d/dw of the mean negative log-likelihood of a sample."""
    weight = torch.tensor(w, dtype=x.dtype, requires_grad=True)
    z, log_det = bijection((weight * x)[:, None])
    loss = (z[:, 0].square() / 2 - log_det - weight.log()).mean()
    return torch.autograd.grad(loss, weight)[0].item()


x = torch.special.ndtri((torch.arange(50_000, dtype=torch.float64) + 0.5) / 50_000)  # quantiles instead of samples
plain, corrected = PLU(1).double(), PLU(1, boundary=True).double()
truth = (true_nll(1.001) - true_nll(0.999)) / 0.002
print(f"d/dw at w = 1: true {truth:+.3f}, autograd {gradient(plain, 1.0, x):+.3f}, ", end="")
print(f"with the boundary term {gradient(corrected, 1.0, x):+.3f}")

# %%
# Descent with autograd's gradient passes the optimum and stops far away.
nll = torch.tensor([true_nll(w) for w in W.tolist()])
points = W[8:-8:16].tolist()
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5, 6), layout="constrained")
rest = (100 + bisect(range(100, 1000), 0, key=lambda hundredths: gradient(plain, hundredths / 100, x))) / 100
top.plot(W, nll, color="black")
for w, style, label in ((W[nll.argmin()].item(), "C2o", "true optimum"), (rest, "C3s", "autograd stops")):
    print(f"{label}: w = {w:.2f}")
    top.plot([w], [true_nll(w)], style, label=f"{label}, w = {w:.2f}")
top.set(xscale="log", xlabel="w", ylabel="nats", title="Negative log-likelihood")
bottom.axhline(0, color="grey", linewidth=0.8)
bottom.plot(W[1:-1], (nll[2:] - nll[:-2]) / (W[2:] - W[:-2]), color="black", label="true slope")
for bijection, style, label in ((corrected, "C2o", "with the boundary term"), (plain, "C3s", "autograd only")):
    bottom.plot(points, [gradient(bijection, w, x) for w in points], style, markersize=4, label=label)
bottom.set(xscale="log", xlabel="w", ylabel="nats", ylim=(-4.5, 1), title="Its derivative in w")
for ax in (top, bottom):
    ax.set_xticks([0.25, 0.5, 1, 2, 5, 10], ["¼", "½", "1", "2", "5", "10"])
    ax.minorticks_off()
    ax.legend(fontsize=10)
plt.show()
