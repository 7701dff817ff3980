"""
PLU in a convolutional network
==============================

A small convolutional network reads handwritten digits. Only the activation changes: ``PLU()`` replaces ``nn.ReLU()``;
the seed, the data and the optimiser stay the same.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from plunit.torch import PLU

images, labels = load_digits(return_X_y=True)
images = torch.as_tensor(images / 8 - 1, dtype=torch.float32).reshape(-1, 1, 8, 8)
split = train_test_split(images, torch.as_tensor(labels), test_size=500, random_state=0, stratify=labels)
x, x_test, y, y_test = split


# %%
# Two convolutions and a linear layer, trained for eight epochs.
def train(activation: type[nn.Module], epochs: int = 8) -> list[float]:
    """Return the test error in percent after each epoch."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, stride=2, padding=1), activation()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), activation()),
        *(nn.Flatten(), nn.Linear(128, 10)),
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    errors = []
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            errors.append(100 * (model(x_test).argmax(1) != y_test).float().mean().item())
    return errors


# %%
# One training each is an example, not a comparison; see the benchmarks for that.
figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
for activation, style in ((PLU, "o-"), (nn.Tanh, "s--"), (nn.ReLU, "^:")):
    errors = train(activation)
    print(f"{activation.__name__}: {errors[-1]:.1f} % of 500 test digits are wrong after {len(errors)} epochs")
    ax.plot(range(1, len(errors) + 1), errors, style, markersize=4, label=activation.__name__)
ax.set(xlabel="epoch", ylabel="test error in %", ylim=0, title="Handwritten digits, one seed")
ax.legend()
plt.show()
