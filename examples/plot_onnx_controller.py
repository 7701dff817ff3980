"""
A controller from an ONNX file, proved safe
===========================================

``load`` reads networks that other tools have written. Here it reads a braking controller, and ``holds`` proves that it
brakes whenever the car in front is near and coming nearer, or finds an input for which it does not. ONNX files need
the extra ``fit``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from plunit.pieces import Property, along, holds, load, maximum, save_onnx
from plunit.pieces.rounding import rounded_up
from plunit.sklearn import PLURegressor

# %%
# Make the file: from distance (m), closing speed (m/s) and own speed (m/s) to the deceleration in m/s².
rng = np.random.default_rng(0)
low, high = np.array([5, -10, 5]), np.array([100, 20, 40])
x = rng.uniform(low, high, (3000, 3))
wanted = np.clip(0.3 * x[:, 1] + 12 * np.exp(-x[:, 0] / (4 + 0.5 * x[:, 2])), 0, 8)
teacher = PLURegressor((12, 12), n_init=32, n_best=1, max_iter=3000, random_state=0).fit(x, wanted)
with tempfile.TemporaryDirectory() as folder:
    save_onnx(teacher.network_, Path(folder, "brake.onnx"), dtype="float32")
    net = load(Path(folder, "brake.onnx"))
print(net, "was read from brake.onnx")

# %%
# Within 20 m and closing at 8 m/s or more, is the deceleration at least 2.5 m/s² at any speed? At least 4?
danger = [(5, 20), (8, 20), (5, 40)]
for least in (2.5, 4.0):
    verdict = holds(net, Property.always(danger, rows=[[-1.0]], limits=[-least]))
    witness = "" if verdict.x is None else f": {verdict.y[0]:.2f} m/s² at {np.round(verdict.x, 2)}"
    print(f"deceleration >= {least} m/s²: {verdict.status}{witness}")
most = maximum(net, list(zip(low, high, strict=True)))
print(f"nowhere does it brake harder than {rounded_up(most.bound)} m/s², for example at {np.round(most.x, 1)}")

# %%
# The exact command over the distance, at 30 m/s, for three closing speeds; a dot is a kink.
figure, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
for i, closing in enumerate((0, 10, 20)):
    line = along(net, [5, closing, 30], [100, closing, 30]).merge()
    distance = 5 + 95 * line.knots
    ax.plot(distance, line.values, "o-", color=f"C{i}", markersize=3, label=f"closing at {closing} m/s")
ax.fill_betweenx([0, 2.5], 5, 20, color="C3", alpha=0.2, label="proved: never here when\nclosing at 8 m/s or more")
ax.set(xlabel="distance to the car in front in m", ylabel="deceleration in m/s²", ylim=(-0.3, 11))
ax.set_title("The command at 30 m/s")
ax.legend(fontsize="small", ncols=2, loc="upper center")
plt.show()
