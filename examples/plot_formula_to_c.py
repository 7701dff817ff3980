"""
A formula in two inputs to int16 C, with a proved bound
=======================================================

A network learns a formula, becomes integers, and is written as a C header. Two bounds are proved for every input in the
box: the network against the formula, and the integer program against the network. Their sum holds for the C program.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from plunit.expressions import parse, sup_error
from plunit.pieces import error_bound, quantize, save_c
from plunit.pieces.rounding import rounded_up
from plunit.sklearn import PLURegressor

BOX = [(-2.0, 2.0), (-2.0, 2.0)]
f = parse("x * exp(-x**2 - y**2)")
axis = np.linspace(-2, 2, 61)
points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
model = PLURegressor((16, 16), n_init=32, n_best=1, max_iter=4000, weight_decay=0.0, random_state=0)
net = model.fit(points, f(*points.T)).network_

# %%
# The bounds come from linear forms with outward rounding, not from samples.
against_formula = sup_error(f, net, BOX)
fixed = quantize(net, BOX, bits=16)
rounding = error_bound(fixed)[0]
total = against_formula.bound + rounding
print(f"network against formula: at most {rounded_up(against_formula.bound)} (found: {against_formula.value:.4g})")
print(f"int16 program against network: at most {rounded_up(rounding)}")
print(f"int16 program against formula: at most {rounded_up(total)}")

# %%
# The header has these bounds in its comment and needs neither malloc nor libm.
with tempfile.TemporaryDirectory() as folder:
    save_c(fixed, Path(folder, "bump.h"), "bump", fitted=against_formula.bound, about=f"fitted to {f.text}")
    header = Path(folder, "bump.h").read_text()
print(f"bump.h has {len(header.splitlines())} lines and begins with\n")
print(header.partition("#ifndef")[0])

# %%
# ``fixed(x)`` has the same bits as the compiled program, so its errors can be drawn without a compiler.
fine = np.linspace(-2, 2, 301)
x, y = np.meshgrid(fine, fine)
errors = fixed(np.stack([x, y], axis=-1).reshape(-1, 2))[:, 0].reshape(x.shape) - f(x, y)
print(f"largest error on {errors.size:,} points: {np.abs(errors).max():.5f}")
figure, ax = plt.subplots(figsize=(5, 5.2), layout="constrained")
shown = ax.pcolormesh(x, y, errors, cmap="RdYlBu", vmin=-total, vmax=total, rasterized=True)
ax.plot(*against_formula.x, "kx", markersize=9, markeredgewidth=2, label="largest error of the network")
ax.set(xlabel="x", ylabel="y", aspect="equal", title="int16 program minus x exp(-x² - y²)")
ax.legend(loc="upper right", frameon=True)
figure.colorbar(shown, label="error, up to the proved bound", location="bottom", ticks=[-0.005, 0, 0.005])
plt.show()
