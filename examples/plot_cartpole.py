"""
A cart-pole policy: trained, bounded by a proof, and run as C
=============================================================

A random search trains a PLU network of eight units to balance a pole on a cart. Then the largest force and the
Lipschitz constant are proved for all states in a box, and the compiled C program balances the pole.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from plunit.numpy import plu
from plunit.pieces import activation, bounds, lipschitz, network, save_c


def step(state, force):
    """Return (position, speed, angle, angular speed) of the cart and its pole 0.02 s later."""
    _, v, angle, turn = state
    push = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
    bend = (9.8 * np.sin(angle) - np.cos(angle) * push) / (2 / 3 - np.cos(angle) ** 2 / 22)
    return state + 0.02 * np.array([v, push - bend * np.cos(angle) / 22, turn, bend])


def rewards(theta, state):
    """Return the sum of rewards of each policy, a column of theta: pole up, cart near the middle, little force."""
    total, up = 0, True
    for _ in range(300):
        hidden = plu(np.einsum("ijn,jn->in", theta[:32].reshape(8, 4, -1), state) + theta[32:40])
        state = step(state, force := 10 * (theta[40:] * hidden).sum(axis=0))
        up = up & (np.abs(state[0]) < 2.4) & (np.abs(state[2]) < 0.2)
        state, total = state * up, total + up * (1 - np.abs(state[0]) / 2.4 - np.abs(force) / 50)
    return total


# %%
# The cross-entropy method draws 100 policies around the best 20 of the last round.
rng = np.random.default_rng(0)
mean, spread = np.zeros(48), np.ones(48)
for _ in range(25):
    theta = mean[:, None] + spread[:, None] * rng.normal(size=(48, 100))
    best = theta[:, rewards(theta, rng.uniform(-0.1, 0.1, (4, 100))).argsort()[-20:]]
    mean, spread = best.mean(axis=1), best.std(axis=1) + 0.02
net = network([(mean[:32].reshape(8, 4), mean[32:40]), activation.plu(), (10 * mean[None, 40:], [0.0])])

# %%
# The proofs hold for every state in the box, visited or not. Bounds are rounded outward.
box = [(-2.4, 2.4), (-3, 3), (-0.2, 0.2), (-3, 3)]
force = bounds(net, box)
extremes = f"between {np.floor(10 * force.low[0]) / 10} and {np.ceil(10 * force.high[0]) / 10} N"
print(f"proved: the force is {extremes} for every state in the box")
print(f"proved: it changes by at most {np.ceil(10 * lipschitz(net, box).bound) / 10} N per unit of the state")

# %%
# ctypes calls the compiled header in each step. Without a compiler the network itself is called.
if compiler := shutil.which("cc"):
    with tempfile.TemporaryDirectory() as folder:
        save_c(net, Path(folder, "policy.h"), "policy", box=box)
        Path(folder, "run.c").write_text('#include "policy.h"\nvoid run(const double *x, double *y) { policy(x, y); }')
        subprocess.run([compiler, "-shared", "-fPIC", "run.c", "-o", "run.so"], cwd=folder, check=True)
        run = ctypes.CDLL(str(Path(folder, "run.so"))).run
    run.argtypes = [np.ctypeslib.ndpointer(np.float64)] * 2
state, path = np.array([1.0, 0.0, 0.1, 0.0]), []
for _ in range(300):
    force = net(state)
    if compiler:
        run(state, force)  # overwrites it
    path.append([*state, *force])
    state = step(state, force[0])
path = np.array(path)
print(f"run in {'C' if compiler else 'NumPy'}: the pole stays within {np.abs(path[:, 2]).max():.2f} rad for 6 s")
figure, axes = plt.subplots(2, 1, sharex=True, figsize=(5, 4.2), layout="constrained")
time = 0.02 * np.arange(len(path))
axes[0].plot(time, path[:, [0, 2]], label=["position in m", "angle in rad"])
axes[0].set(ylabel="state", title="The cart returns, and the pole stays up")
axes[0].legend()
axes[1].plot(time, path[:, 4], color="C2")
axes[1].set(xlabel="seconds", ylabel="force in N", title=f"Proved: {extremes}")
plt.show()
