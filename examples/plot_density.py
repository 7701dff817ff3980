"""
A density with bounded columns, and samples from it
===================================================

``PLUDensity`` estimates the density of the rows of a table. It respects the bounds of a column: the density is 0
outside and integrates to 1 inside, and all samples lie inside.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm

from plunit.sklearn import PLUDensity

# %%
# A share between 0 and 1, and a waiting time above 0 that depends on it.
rng = np.random.default_rng(0)
share = rng.beta(0.8, 1.5, 1500)
rows = np.column_stack([share, rng.gamma(2, 0.2 + share)])
train, test = rows[:1000], rows[1000:]
bounded = PLUDensity(bounds=[(0, 1), (0, None)], random_state=0).fit(train)
free = PLUDensity(random_state=0).fit(train)
print(f"mean log-density of test rows: {bounded.score(test):.2f} with bounds, {free.score(test):.2f} without")

# %%
# Without bounds, some of the probability is lost to values that cannot occur.
samples = {"with bounds": bounded.sample(1000, random_state=0), "without": free.sample(1000, random_state=0)}
for name, drawn in samples.items():
    outside = (drawn[:, 0] < 0) | (drawn[:, 0] > 1) | (drawn[:, 1] < 0)
    print(f"{name}: {outside.sum()} of {len(drawn)} samples are outside")
left, lower = np.linspace(0, 1, 101), np.linspace(0, 6, 121)
middles = (left[1:] + left[:-1]) / 2, (lower[1:] + lower[:-1]) / 2
grid = np.stack(np.meshgrid(*middles), axis=-1)
density = np.exp(bounded.score_samples(grid.reshape(-1, 2))).reshape(grid.shape[:2])
print(f"the density integrates to {density.sum() * 0.01 * 0.05:.3f} over share 0 to 1 and time 0 to 6")

# %%
# The estimated density, the rows that it was fitted to, and samples.
figure, axes = plt.subplots(2, 1, sharex=True, figsize=(5, 6), layout="constrained")
shown = axes[0].pcolormesh(left, lower, density, norm=PowerNorm(0.5, 0, 3), rasterized=True)
axes[0].set(ylabel="waiting time", title="Estimated density")
figure.colorbar(shown, ax=axes[0], extend="max")
axes[1].plot(*train.T, ".", markersize=3, color="grey", label="rows")
axes[1].plot(*samples["with bounds"].T, ".", markersize=3, color="C3", label="samples")
axes[1].set(xlabel="share", ylabel="waiting time", xlim=(0, 1), ylim=(0, 6), title="Rows and samples")
axes[1].legend(markerscale=4)
plt.show()
