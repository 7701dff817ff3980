"""
A table: its surface and its decision boundary
==============================================

``PLURegressor`` trains many small networks and keeps the best one. With two inputs its surface is a set of flat
polygons, and the line where it crosses a threshold is made of straight segments. Both are exact: no grid is involved.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from plunit.sklearn import PLURegressor

# %%
# The table is noisy, so four units and a strong weight decay are enough.
data = load_diabetes(as_frame=True, scaled=False)
x, y = data.data[["bmi", "s5"]], data.target
x, x_test, y, y_test = train_test_split(x, y, random_state=0)
model = PLURegressor((4,), n_best=1, weight_decay=1.0, random_state=0).fit(x, y)
surface = model.polygons_
line = LinearRegression().fit(x, y)
print(f"R² on test rows: {model.score(x_test, y_test):.2f}; of a linear model {line.score(x_test, y_test):.2f}")
print(f"the surface has {surface.pieces} flat pieces over bmi in {surface.box[0]} and s5 in {surface.box[1]}")

# %%
# In each polygon the prediction is ``gradient @ x + intercept``, so it crosses 150 on at most one segment.
THRESHOLD = 150
segments = []
for corners, gradient, intercept in zip(surface.corners, surface.gradients, surface.intercepts, strict=True):
    height = corners @ gradient[0] + intercept[0] - THRESHOLD
    after, other = np.roll(corners, -1, axis=0), np.roll(height, -1)
    crossed = (height < 0) != (other < 0)
    part = (height / np.where(crossed, height - other, 1))[crossed, None]
    if crossed.any():
        segments.append(corners[crossed] + part * (after - corners)[crossed])
print(f"the line where {THRESHOLD} is predicted has {len(segments)} segments, the first from", *segments[0].round(2))

# %%
# The colour of a polygon is its prediction in the middle; the dots are test rows.
figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
middles = model.network_(np.array([corners.mean(axis=0) for corners in surface.corners]))[:, 0]
faces = PolyCollection(surface.corners, array=middles, cmap="RdYlBu_r", edgecolors="white", linewidths=0.6)
ax.add_collection(faces)
ax.add_collection(LineCollection(segments, colors="black", linewidths=2.5, label=f"prediction = {THRESHOLD}"))
above = y_test > THRESHOLD
ax.scatter(*x_test[above].to_numpy().T, marker="^", s=22, c="white", edgecolors="black", label=f"above {THRESHOLD}")
ax.scatter(*x_test[~above].to_numpy().T, marker="o", s=16, c="black", edgecolors="white", label="not above")
ax.set(xlim=surface.box[0], ylim=surface.box[1], xlabel="body mass index", ylabel="logarithm of triglycerides (s5)")
ax.set_title("Progress of diabetes after a year")
ax.legend(loc="lower right", fontsize=10, frameon=True)
figure.colorbar(faces, label="prediction")
plt.show()
