"""
Learnable PLU
=============

``PLU(learnable=True, num_parameters=n)`` learns the outer slope alpha and the half-width c of each of n units. Here a
network of 16 units fits a function that is flat in some places and steep in others.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from plunit.torch import PLU, param_groups

x = torch.linspace(-3, 3, 400)[:, None]
y = torch.sin(x**2)


# %%
# ``param_groups`` keeps alpha and c, and the biases, out of weight decay.
def fit(make, steps: int = 1500) -> tuple[nn.Sequential, float]:
    """Return a trained network and its root mean square error."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 16), make(), nn.Linear(16, 1))
    optimiser = torch.optim.AdamW(param_groups(model, weight_decay=1e-4), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model, loss.item() ** 0.5


fixed, fixed_error = fit(PLU)
learned, learned_error = fit(lambda: PLU(learnable=True, num_parameters=16))
alpha, c = learned[1].alpha.detach(), learned[1].c.detach()
print(f"root mean square error: {fixed_error:.3f} with alpha = 0.1 and c = 1, {learned_error:.3f} with learned ones")
print(f"learned: alpha from {alpha.min():.3f} to {alpha.max():.3f}, c from {c.min():.2f} to {c.max():.2f}")

# %%
# Top: the target and both fits. Bottom: the shapes that the 16 units have learned.
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5, 6), layout="constrained")
top.plot(x, y, color="black", linewidth=3, alpha=0.25, label="sin(x²)")
for model, style, label in ((fixed, "--", "fixed PLU"), (learned, "-", "learned PLU")):
    top.plot(x, model(x).detach(), style, label=label)
top.set(xlabel="x", ylabel="y", title="The fit")
top.legend(loc="lower center")
z = torch.linspace(-4, 4, 401)[:, None]
bottom.plot(z, learned[1](z.expand(-1, 16)).detach(), color="C1", linewidth=0.8)
bottom.plot(z, PLU()(z), "k--", label="alpha = 0.1, c = 1")
bottom.set(xlabel="z", ylabel="PLU(z)", title="The units after training")
bottom.legend()
plt.show()
