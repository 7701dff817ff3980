"""The swirl and its inverse as deformed grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.lab.results import Results
from plunit.lab.style import Picture, label, look
from plunit.lab.warp.compute import grid, swirl
from plunit.lab.warp.spec import SPECS, TITLES, Warp


def figures(results: Results) -> Iterator[Picture]:
    """Draw the experiments that were run."""
    for name in results.names():
        if name in SPECS:
            yield _grids(name, results)


def _grids(name: str, results: Results) -> Picture:
    spec = SPECS[name]
    activations = results.activations(name)
    figure = Figure(figsize=(2.9 * (1 + len(activations)), 5.8))
    panels: Any = figure.subplots(2, 1 + len(activations), sharex=True, sharey=True)
    lines = grid(spec)
    for row, turn, noun in ((0, spec.turn, "F"), (1, -spec.turn, "F⁻¹")):
        _draw(panels[row, 0], spec, swirl(lines, turn).numpy(), "#444444")
        panels[row, 0].set_title(f"{noun}: the swirl" if row == 0 else f"{noun}: its inverse")
    errors = []
    for column, activation in enumerate(activations, 1):
        arrays = results[name, activation]
        middle = int(np.argsort(arrays["inverse_error"])[(arrays["seed"].size - 1) // 2])
        for row, key, noun in ((0, "forward", "F"), (1, "inverse", "F⁻¹")):
            _draw(panels[row, column], spec, arrays[key][..., middle], look(activation)["color"])
            panels[row, column].set_title(f"{noun} of the {label(activation)} network")
        values = (float(np.median(arrays[f"{key}_error"])) for key in ("forward", "inverse"))
        errors.append("{}: F {:.3f}, F⁻¹ {:.3f}".format(label(activation), *values))
    seeds, steps = results[name, activations[0]]["seed"].size, len(results[name, activations[0]]["loss"])
    caption = (
        f"{TITLES[name]}, {steps:,} steps: a square grid mapped by F and by the exact inverse of F, which no training "
        f"step saw; the median of {seeds} seeds is drawn. Root mean square errors: {'; '.join(errors)}."
    )
    return Picture(name, name, caption, figure)


def _draw(axes: Any, spec: Warp, points: Any, colour: str) -> None:
    for line in points.reshape(2 * spec.lines, spec.dots, 2):
        axes.plot(*line.T, color=colour, linewidth=0.7)
    reach = 1.3 * spec.half
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
    axes.grid(visible=False)
