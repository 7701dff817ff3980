"""
The polygons of a classifier
============================

A network of straight pieces divides the plane into polygons, and is an affine function on each of them. ``polygons``
finds all of them, with corners and gradients. Where the log-odds cross 0, the class changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from sklearn.datasets import make_moons

from plunit.pieces import polygons
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
# The colour of a polygon is the log-odds at its middle.
figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
middles = model.network_(np.array([corners.mean(axis=0) for corners in found.corners]))[:, 0]
faces = PolyCollection(found.corners, array=middles, cmap="RdYlBu", clim=(-9, 9), edgecolors="white", linewidths=0.6)
ax.add_collection(faces)
axes = np.linspace(-2, 3, 400), np.linspace(-1.5, 2, 300)
ax.contour(*axes, model.network_(np.stack(np.meshgrid(*axes), axis=-1))[..., 0], [0], colors="black", linewidths=2)
for label, marker in ((0, "o"), (1, "^")):
    ax.scatter(*x[y == label].T, s=14, marker=marker, c="white", edgecolors="black", label=f"class {label}")
ax.plot([], [], color="black", linewidth=2, label="boundary")
ax.legend(loc="lower left", frameon=True)
ax.set(xlim=found.box[0], ylim=found.box[1], xlabel="$x_1$", ylabel="$x_2$", title=f"{found.pieces} polygons")
figure.colorbar(faces, label="log-odds of class 1", location="bottom")
plt.show()
