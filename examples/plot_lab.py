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
from plunit.lab.claims import Claim, judge
from plunit.lab.experiment import Experiment, ratio
from plunit.lab.pictures import COLOURS, Picture


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

    claims = tuple(
        Claim("", "wave", f"{other}/plu", Range(low=1), sentence=f"PLU is better than {other}.")
        for other in ("relu", "tanh")
    )

    def statistics(self, runs):
        """Compare seed by seed."""
        for other in ("relu", "tanh"):
            yield from ratio(runs, other, "plu", "final_loss", "final loss")

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
for one in judge({"wave": wave}, {"wave": runs}):
    found = one.estimate
    print(f"{one.claim.said} {one.words} {found.value:.2f} [{found.low:.2f}, {found.high:.2f}]: {one.verdict}")
next(iter(wave.figures(runs)))
plt.show()
