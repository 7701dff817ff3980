"""Draw docs/front.png: a network that was fitted to a function, its knots, and its error within a proved bound.

python docs/front_figure.py            # draws it from results/readme/front.json
python docs/front_figure.py --store    # first fits the network, a few seconds, and stores it
"""

from pathlib import Path

import numpy as np
from figure_script import WIDTH, run, save_figure, style
from matplotlib.figure import Figure

from plunit.expressions import parse, sup_error
from plunit.fitting.problems import of_expression
from plunit.fitting.solving import FitSettings, fit_problem
from plunit.lab.pictures import COLOURS
from plunit.pieces import Network, curve, load, save_json
from plunit.pieces.rounding import rounded_up

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "readme" / "front.json"
FUNCTION, LOW, HIGH = "sin(x) + x/3", -6.0, 6.0
SETTINGS = FitSettings(hidden=(6, 6))


def draw(net: Network) -> Figure:
    """Return the figure."""
    figure = Figure(figsize=(WIDTH, 4.6))
    fit, error = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    x = np.linspace(LOW, HIGH, 2001)
    y = parse(FUNCTION)(x)
    found = curve(net, LOW, HIGH)
    bound = rounded_up(sup_error(parse(FUNCTION), net, [(LOW, HIGH)]).bound)
    fit.plot(x, y, color="0.72", linewidth=6, label=FUNCTION)
    fit.plot(found.knots, found.values[:, 0], color=COLOURS["plu"], label=f"network of {found.pieces} straight pieces")
    fit.plot(found.knots, found.values[:, 0], "o", color=COLOURS["plu"], markersize=4.5, label="its knots")
    fit.set(ylim=(-2.1, 4.1), yticks=[-1, 0, 1], title=f"the best of {SETTINGS.starts} networks")
    fit.legend(loc="upper left")
    error.plot(x, net(x[:, None])[:, 0] - y, color=COLOURS["plu"], label="network minus function")
    error.axhline(bound, color="black", linestyle="--", label=f"proved: at most {bound} everywhere")
    error.axhline(-bound, color="black", linestyle="--")
    error.set(xlim=(LOW, HIGH), ylim=(-1.3 * bound, 3.4 * bound), xlabel="x")
    error.set_yticks([-bound, 0, bound], [f"{-bound:.2g}", "0", f"{bound:.2g}"])
    error.legend(loc="upper left")
    return figure


def save(path: Path) -> None:
    """Draw the stored network."""
    with style():
        save_figure(draw(load(STORED)), path)


def store(_: bool) -> None:
    """Fit the network and store it."""
    save_json(fit_problem(of_expression(FUNCTION, LOW, HIGH), SETTINGS).model.network_, STORED)


if __name__ == "__main__":
    run(__doc__, save, DOCS / "front.png", store, action="store_true", help="fit the network and store it first")
