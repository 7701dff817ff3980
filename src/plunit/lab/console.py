"""What a run says: progress with the time left on a terminal, silence elsewhere, and a short table at the end."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from plunit.lab.claims import Claim
from plunit.lab.report import number
from plunit.lab.style import label


def progress(console: Console) -> Progress:
    """Return a progress display that shows nothing when the output is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def table(losses: dict[str, dict[str, tuple[float, float, float]]]) -> Table:
    """Return the median final losses, a row for each experiment and a column for each activation."""
    activations = list(dict.fromkeys(activation for row in losses.values() for activation in row))
    shown = Table("median final loss", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for activation in activations:
        shown.add_column(label(activation), justify="right")
    for name, row in losses.items():
        shown.add_row(name, *(number(row[activation][1]) if activation in row else "" for activation in activations))
    return shown


def tally(claims: list[Claim]) -> str:
    """Return the verdicts on the paper's claims, or on ours if there are no others, as one sentence."""
    papers = [claim for claim in claims if claim.source != "ours"]
    count = Counter(claim.verdict for claim in papers or claims)
    parts = (f"{count['holds']} hold", f"{count['holds weakly']} hold weakly", f"{count['does not hold']} do not")
    return f"claims of {'the paper' if papers else 'ours'}: {', '.join(parts)}"
