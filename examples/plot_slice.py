"""
A slice of a network with many inputs
=====================================

A network with 30 inputs cannot be drawn, but it can be cut. ``plane`` gives the network on a plane through its input
space as a network with two inputs, whose polygons are exact. Where two inputs vary and the others are fixed,
``draw_slice`` draws the picture by itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from plunit.pieces import along, plane, polygons, solve
from plunit.sklearn import PLUClassifier

data = load_breast_cancer()
x, x_test, y, y_test = train_test_split(data.data, data.target, random_state=0, stratify=data.target)
model = PLUClassifier((16,), n_init=32, n_best=1, random_state=0).fit(x, y)
print(f"{100 * model.score(x_test, y_test):.1f} % of {len(y_test)} test rows are classified correctly")

# %%
# The plane goes through the means of both classes and the test row that is hardest to classify.
origin, other = x[y == 0].mean(axis=0), x[y == 1].mean(axis=0)
logits = model.network_(x_test)[:, 0]
third = x_test[np.abs(logits).argmin()]
cut = plane(model.network_, origin, other - origin, third - origin)
found = polygons(cut, ((-0.5, 1.5), (-0.5, 1.5)))
line = along(model.network_, origin, other)
print(f"{found.pieces} polygons on the slice, {line.pieces} pieces on the line between the two means")
print(f"on that line the class changes after {solve(line, 0.0)[0, 0]:.2f} of the way")

# %%
# The colour is the log-odds in the middle of each polygon, with exact edges.
figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
middles = cut(np.array([corners.mean(axis=0) for corners in found.corners]))[:, 0]
faces = PolyCollection(found.corners, array=middles, cmap="RdYlBu", edgecolors="white", linewidths=0.4)
faces.set_clim(-np.abs(middles).max(), np.abs(middles).max())
ax.add_collection(faces)
marks = {"mean malignant": (0, 0, "o"), "mean benign": (1, 0, "s"), "hardest row": (0, 1, "^")}
for label, (s, t, marker) in marks.items():
    ax.plot(s, t, marker, color="black", markeredgecolor="white", markersize=9, label=label)
ax.set(xlim=found.box[0], ylim=found.box[1], xlabel="towards the mean benign row", ylabel="towards the hardest row")
ax.set_xticks([-0.5, 0, 0.5, 1, 1.5])
ax.set_title("A plane through 30 dimensions")
ax.legend(loc="upper right", fontsize=10, frameon=True)
figure.colorbar(faces, label="log-odds of benign")
plt.show()
