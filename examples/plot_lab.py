"""
Your own experiment in the lab
==============================

The lab trains an experiment over many seeds, stores each result under a hash of its source, and judges claims with 95 %
intervals. This experiment asks whether PLU learns a triangle wave better than ReLU and tanh. Run it as a script, not as
a notebook, because the lab hashes the file that defines ``compute``.
"""

import dataclasses
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from plunit import ensemble
from plunit.base.ranges import Range
from plunit.lab import running, store
from plunit.lab.claims import measure_ratio
from plunit.lab.experiment import Experiment
from plunit.lab.pictures import Picture
from plunit.lab.style import COLOURS


@dataclasses.dataclass(frozen=True)
class WaveSpec:
    """What can be chosen: the number of steps."""

    steps: int = 2000


def compute(cell, scratch):
    """Train the seeds of a cell, side by side, and return their losses."""
    network = ensemble.MLP((1, 4, 4, 1), cell.activation)
    start = ensemble.initial(network, [np.random.default_rng(seed) for seed in cell.seeds])
    x = np.linspace(-3, 3, 121)[None]
    trained = ensemble.train(network, start, (x, 2 * np.abs(x % 2 - 1) - 1), steps=cell.spec.steps, engine=cell.engine)
    return {"seed": np.array(cell.seeds), "final_loss": trained.history[-1]}


class Wave(Experiment):
    """The triangle wave with three activations."""

    activations = choices = ("plu", "relu", "tanh")
    columns, seeds, chunk = ("final_loss",), 256, 128
    compute = staticmethod(compute)

    def claims(self, runs, results):
        """Compare seed by seed."""
        for other in ("relu", "tanh"):
            losses = runs[other]["final_loss"], runs["plu"]["final_loss"]
            yield measure_ratio("", f"PLU is better than {other}.", "median ratio", *losses, Range(1, np.inf))

    def figures(self, runs):
        """Draw the share of seeds below each loss."""
        figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
        for name, arrays in runs.items():
            ax.ecdf(arrays["final_loss"], label=name, color=COLOURS[name])
        ax.set(xscale="log", xlabel="final loss", ylabel="share of seeds", title="A triangle wave, 256 seeds each")
        ax.legend()
        yield Picture("wave", "Losses.", "Three rising curves.", figure)


# %%
# Run all cells, read them from the store, and judge. In a package, an entry point makes this ``plunit run wave``.
wave = Wave("wave", "A triangle wave", WaveSpec())
cells = wave.cells(wave.activations, wave.seeds, ensemble.engine())
with tempfile.TemporaryDirectory() as folder:
    running.run(Path(folder), dict.fromkeys(cells, wave), running.here())
    stored = store.read_all(Path(folder), cells, print)
runs = {name: store.join([stored[cell] for cell in cells if cell.activation == name]) for name in wave.activations}
for claim in wave.claims(runs, {}):
    print(f"{claim.sentence} {claim.statistic} {claim.value:.2f} [{claim.low:.2f}, {claim.high:.2f}]: {claim.verdict}")
next(iter(wave.figures(runs)))
plt.show()
