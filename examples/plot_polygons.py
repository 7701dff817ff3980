"""
The polygons of a classifier
============================

A network of straight pieces divides the plane into polygons, and is an affine function on each of them. ``polygons``
finds all of them, with corners and gradients. Where the log-odds cross 0, the class changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from plunit.pieces import draw_polygons, polygons
from plunit.sklearn import PLUClassifier

x, y = make_moons(300, noise=0.15, random_state=0)
x_test, y_test = make_moons(1000, noise=0.15, random_state=1)
model = PLUClassifier((8, 8), n_init=64, n_best=1, random_state=0).fit(x, y)
print(f"{100 * model.score(x_test, y_test):.1f} % of {len(x_test)} test points are classified correctly")

# %%
# ``network_`` gives the log-odds of the second class, in the units of the data.
found = polygons(model.network_, ((-2, 3), (-1.5, 2)))
steepness = np.linalg.norm(found.gradients[:, 0], axis=1)
print(f"{found.pieces} polygons; the largest covers {found.areas.max():.2f} of {found.areas.sum():.2f} square units")
print(f"the log-odds change by at most {steepness.max():.1f} per unit, and by {np.median(steepness):.1f} in the median")

# %%
# The hue of a polygon is the direction of its gradient, and the depth of colour its size, as the disc shows.
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
draw_polygons(found, ax)
middles = np.linspace(-2, 3, 400), np.linspace(-1.5, 2, 300)
grid = np.stack(np.meshgrid(*middles), axis=-1)
ax.contour(*middles, model.network_(grid.reshape(-1, 2)).reshape(grid.shape[:2]), [0], colors="black", linewidths=2)
for label, marker in ((0, "o"), (1, "^")):
    ax.scatter(*x[y == label].T, s=14, marker=marker, c="white", edgecolors="black", label=f"class {label}")
ax.plot([], [], color="black", linewidth=2, label="boundary")
ax.legend(loc="lower left", bbox_to_anchor=(1.03, 0), frameon=False)
ax.set_title(f"{found.pieces} polygons")
plt.show()
