"""Draw docs/likelihood-bias.png: the likelihood of z = PLU(w x), x ~ N(0, 1), and its gradient in three versions.

Run: python docs/likelihood_bias.py
"""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from plunit.invertible import PLU
from plunit.torch import plu

X = torch.linspace(-12, 12, 48_001, dtype=torch.float64)
GREEN, RED = "#009E73", "#D55E00"  # told apart with any common colour blindness
NORMAL = torch.exp(-X.square() / 2) / math.sqrt(2 * math.pi)


def true_nll(w: float) -> float:
    """Return E[-log p(x)]: by quadrature, and in closed form P(|w x| > 1) for the log-slope, log(0.1) there."""
    smooth = torch.trapezoid(NORMAL * plu(w * X).square() / 2, X).item()
    return smooth + 0.5 * math.log(2 * math.pi) - math.log(0.1) * math.erfc(1 / (w * math.sqrt(2))) - math.log(w)


def plain_gradient(w: float) -> float:
    """Return what autograd's gradient is on average: the log-slope counts as constant."""
    slope = torch.where((w * X).abs() > 1, 0.1, 1.0).double()
    return torch.trapezoid(NORMAL * plu(w * X) * slope * X, X).item() - 1 / w


def settled() -> float:
    """Return the w at which descent by autograd's gradient comes to rest, by bisection."""
    low, high = 1.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if plain_gradient(middle) < 0 else (low, middle)
    return low


def estimated_gradient(bijection: PLU, w: float, x: torch.Tensor) -> float:
    """Return autograd's d/dw of the mean negative log-likelihood of a sample."""
    weight = torch.tensor(w, dtype=x.dtype, requires_grad=True)
    z, log_det = bijection((weight * x)[:, None])
    loss = (z[:, 0].square() / 2 - log_det - weight.log()).mean()
    return torch.autograd.grad(loss, weight)[0].item()


def save(path: Path) -> None:
    """Draw the figure."""
    w = torch.logspace(math.log10(0.25), 1, 161, dtype=torch.float64)
    nll = torch.tensor([true_nll(value) for value in w.tolist()])
    slope = (nll[2:] - nll[:-2]) / (w[2:] - w[:-2])
    x = torch.randn(100_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points = w[2:-2:6].tolist()
    plain = [estimated_gradient(PLU(1).double(), value, x) for value in points]
    corrected = [estimated_gradient(PLU(1, boundary=True).double(), value, x) for value in points]

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    left.plot(w, nll, color="black")
    rest = settled()
    best = min((0.5 + step / 1000 for step in range(200)), key=true_nll)
    for value, text, colour in (
        (best, f"true optimum, w = {best:.3f}", GREEN),
        (rest, f"autograd settles at w = {rest:.2f}", RED),
    ):
        left.plot([value], [true_nll(value)], "o" if value == best else "s", color=colour, label=text)
    left.set(xscale="log", xlabel="w", ylabel="nats", title="negative log-likelihood of z = PLU(w x)")
    left.legend(frameon=False)
    right.axhline(0, color="grey", linewidth=0.8)
    right.plot(w[1:-1], slope, color="black", label="true slope (quadrature)")
    right.plot(points, corrected, "o", color=GREEN, markersize=4, label="boundary=True, $10^5$ samples")
    right.plot(points, plain, "s", color=RED, markersize=4, label="boundary=False (plain autograd)")
    right.set(xscale="log", xlabel="w", ylim=(-4.5, 1), title="its gradient d/dw")
    right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.set_xticks([0.25, 0.5, 1, 2, 5, 10], ["0.25", "0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    save(Path(__file__).with_name("likelihood-bias.png"))
