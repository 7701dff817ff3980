"""A progress display for long work on a terminal; silence elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


def bars(console: Console) -> Progress:
    """Return a progress display that shows nothing when the output is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
