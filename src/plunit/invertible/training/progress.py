"""A progress bar for training, drawn by rich where it is installed and the output is a terminal."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, float], None]
"""What is called after each step, with the number of steps done, and the loss."""


@contextmanager
def bar(steps: int) -> Iterator[Report]:
    """Yield a function that advances a bar; without rich, or without a terminal, it does nothing."""
    try:
        rich = importlib.import_module("rich.progress")
    except ImportError:
        yield lambda done, loss: None
        return
    columns = (
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("NLL {task.fields[loss]:.3f}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, transient=True) as progress:
        task = progress.add_task("fit", total=steps, loss=float("nan"))
        yield lambda done, loss: progress.update(task, completed=done, loss=loss)
