"""The command `plunit pieces`: the pieces of one network as lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from plunit.errors import UserError
from plunit.pieces import Cells, Curve, Network, cells, curve
from plunit.pieces.limits import Progress
from plunit.progress import bars

ROWS = 40

Interval = tuple[float, float]


def pieces_of(
    model: Annotated[Path, typer.Argument(help="An nn.Sequential of one or two inputs, saved by torch.save.")],
    low: Annotated[float, typer.Option(help="Lower end of the domain of every input.")] = -math.tau,
    high: Annotated[float, typer.Option(help="Upper end.")] = math.tau,
    box: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(metavar="X0 X1 Y0 Y1", help="Both ends for each of two inputs, rather than --low and --high."),
    ] = None,
) -> None:
    """Print the linear pieces of a saved model, exactly: knots, slopes and intercepts, or its regions."""
    from plunit.torch import saved

    net = saved.load(model)
    with bars(Console(stderr=True)) as bar:
        task = bar.add_task("pieces", total=1.0)

        def show(done: float, text: str) -> None:
            bar.update(task, completed=done, description=text)

        found = lines(net, (low, high), (box[:2], box[2:]) if box else None, show)
    print(*found, sep="\n")


def lines(
    net: Network, interval: Interval, box: tuple[Interval, Interval] | None = None, progress: Progress | None = None
) -> list[str]:
    """Return the pieces on the interval of a network of one input, or the cells of one of two inputs.

    Cells are those on the box, or, without one, on the square of the interval.
    """
    if box and net.inputs == 1:
        raise UserError("the model has one input; give --low and --high rather than --box")
    try:
        if net.inputs == 1:
            return list(_curve(curve(net, *interval, progress=progress)))
        if net.inputs == 2:
            return list(_cells(cells(net, box or (interval, interval), progress=progress)))
    except ValueError as error:
        raise UserError(str(error)) from None
    raise UserError(
        f"the model has {net.inputs} inputs, a table needs 1 or 2; in Python, plunit.pieces.along(net, a, b) takes a "
        "line and plunit.pieces.plane(net, origin, u, v) a plane through them"
    )


def _curve(f: Curve) -> Iterator[str]:
    """Yield f(x) = slope x + intercept on each piece, the first `ROWS` of them."""
    shown = f.merged()
    outputs = range(shown.values.shape[1])
    names = [f"{word} {i + 1}" if len(outputs) > 1 else word for i in outputs for word in ("slope", "intercept")]
    yield _row("from", "to", *names)
    lines = np.stack([shown.slopes, shown.intercepts], axis=-1).reshape(shown.pieces, -1)
    for low, high, line in list(zip(shown.knots, shown.knots[1:], lines, strict=False))[:ROWS]:
        yield _row(*(f"{number:.6g}" for number in (low, high, *line)))
    if shown.pieces > ROWS:
        yield f"... {shown.pieces - ROWS} more"
    yield f"{f.pieces} pieces, {f.patterns} activation patterns on [{f.low:.6g}, {f.high:.6g}]"


def _cells(found: Cells) -> Iterator[str]:
    """Yield least, median and largest of the cells' areas and of their largest slopes, and the counts."""
    steepest = np.linalg.norm(found.gradients, ord=2, axis=(1, 2))
    yield _row("", "least", "median", "largest")
    for name, column in (("area", found.areas), ("steepness", steepest)):
        yield _row(name, *(f"{number:.6g}" for number in np.quantile(column, [0, 0.5, 1])))
    sides = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in found.box)
    total = found.areas.sum()
    yield f"{found.pieces} pieces, {found.patterns} cells (activation patterns) on {sides}, area {total:.6g}"


def _row(*columns: str) -> str:
    return " ".join(f"{column:>13}" for column in columns).rstrip()
