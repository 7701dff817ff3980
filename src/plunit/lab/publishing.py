"""What a folder of results shows: tables for other programs, figures, and report.html; docs/lab.md explains them.

`write_report` writes all of it from stored results; nothing here trains.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import os
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
from matplotlib.figure import Figure

import plunit
from plunit.base.files import write_atomically, write_csv
from plunit.base.machine import describe_machine
from plunit.lab import story, style, summary
from plunit.lab.cell import PACKAGE
from plunit.lab.claims import PAPER, RULE, SECTIONS, STATEMENTS, Judged, answers, judge, tally
from plunit.lab.experiment import Experiment, Results, catalogue
from plunit.lab.pairs import RULE_OF_PAIRS, Matrix, compare_pairs
from plunit.lab.pictures import Picture, save
from plunit.lab.plan import Plan

COLUMNS = ("experiment", "activation", "seed", "alpha", "c", "depth", "final_loss", "dead_units", "gradient_norm")
"""The first columns of summary.csv; experiments may add more."""

PAIR_COLUMNS = ("experiment", "above", "below", "n", "value", "low", "high", "verdict")
CLAIM_COLUMNS = (
    *("experiment", "source", "statement", "primary", "setting", "sentence", "statistic", "words"),
    *("n", "value", "low", "high", "claimed", "weaker", "weaker_words", "verdict", "needed"),
)

Track = Callable[[list[Picture]], Iterable[Picture]]


class Published(NamedTuple):
    """What is also printed: quantiles by the name of a loss, matrices of pairs by experiment, and lines."""

    losses: dict[str, story.Losses]
    matrices: dict[str, Matrix]
    lines: list[str]


def write_report(folder: Path, plan: Plan, results: Results, track: Track = iter) -> Published:
    """Write tables, figures and report.html; return what is printed; `track` watches figures."""
    order = list(catalogue())
    results = dict(sorted(results.items(), key=lambda item: order.index(plan[item[0]].base)))
    experiments = {name: plan[name].experiment() for name in results}
    judged = judge(experiments, results)
    matrices = {name: compare_pairs(*one.compared(results[name])) for name, one in experiments.items()}
    matrices = {name: matrix for name, matrix in matrices.items() if matrix}
    write_tables(folder, experiments, results, judged, matrices)
    tables = {noun: story.final_losses(results, key) for noun, key in story.LOSSES.items()}
    found = answers(judged)
    own = [one for one in judged if not one.claim.statement]
    content = _template().render(
        opening=story.opening(experiments, results, found),
        answers=found,
        sections=_sections(experiments, {one.section for one in found}),
        experiments=experiments,
        findings={name: one.finding(results[name]) for name, one in experiments.items()},
        own={name: [one for one in own if one.experiment == name] for name in experiments},
        tables=tables,
        matrices=matrices,
        images=_draw(folder, experiments, results, tables["final loss"], track),
        plan={name: plan[name] for name in results},
        specs={name: dataclasses.asdict(one.spec) for name, one in experiments.items()},
        sources={name: _source(one, folder) for name, one in experiments.items()},
        numbers={one: i for i, one in enumerate(judged)},
        paper=PAPER,
        rules=[RULE] * bool(judged) + [RULE_OF_PAIRS] * bool(matrices),
        machine=describe_machine(),
        version=plunit.__version__,
        folder=shlex.quote(str(folder)),
    )
    write_atomically(folder / "report.html", content.encode())
    lines = [f"statements of the paper: {tally(found)}"] if found else story.plain(experiments, results, judged)
    return Published(tables, matrices, lines)


def _draw(
    folder: Path, experiments: dict[str, Experiment], results: Results, losses: story.Losses, track: Track
) -> dict[str, list[tuple[Picture, str]]]:
    """Save all figures; return them by experiment, with URLs of their content, that of the whole report under ""."""
    with style.settings():
        pictures = {name: list(experiments[name].figures(runs)) for name, runs in results.items()}
        titles = {name: one.title for name, one in experiments.items()}
        pictures[""] = [draw_final_losses(losses, titles)] if losses else []
        drawn = iter(track([picture for group in pictures.values() for picture in group]))
        return {
            name: [(picture, save(next(drawn), folder / "figures")) for picture in group]
            for name, group in pictures.items()
        }


def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("plunit.lab", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": summary.number,
        "label": summary.label,
        "slug": slug,
        "interval": story.with_interval,
    }
    return environment.get_template("report.html")


def write_tables(
    folder: Path,
    experiments: dict[str, Experiment],
    results: Results,
    judged: list[Judged],
    matrices: dict[str, Matrix],
) -> None:
    """Write all tables of a folder; the same results give the same bytes, except in timings.csv."""
    rows = [row for name, runs in results.items() for row in experiments[name].rows(runs)]
    names = dict.fromkeys([*COLUMNS, *(column for row in rows for column in row)])
    write_csv(folder / "summary.csv", tuple(names), rows)
    write_csv(folder / "claims.csv", CLAIM_COLUMNS, map(claim_row, judged))
    if matrices:
        write_csv(folder / "pairs.csv", PAIR_COLUMNS, _pair_rows(matrices))
    each = [(name, activation, arrays) for name, runs in results.items() for activation, arrays in runs.items()]
    seconds = [
        {"experiment": name, "activation": activation, "seed": int(seed), "seconds": round(float(seconds), 3)}
        for name, activation, arrays in each
        if "seconds" in arrays
        for seed, seconds in zip(arrays["seed"], arrays["seconds"], strict=True)
    ]
    write_csv(folder / "timings.csv", ("experiment", "activation", "seed", "seconds"), seconds)
    histories: dict[str, Any] = {
        f"{name}.{activation}": arrays["history"] for name, activation, arrays in each if "history" in arrays
    }
    buffer = io.BytesIO()
    np.savez(buffer, **histories)
    write_atomically(folder / "histories.npz", buffer.getvalue())


def claim_row(one: Judged) -> dict[str, Any]:
    """Return the row of a claim in claims.csv."""
    claim, estimate = one.claim, one.estimate
    weaker = dict(zip(("weaker", "weaker_words"), claim.weaker or ("", ""), strict=True))
    return {
        "experiment": one.experiment,
        "source": STATEMENTS[claim.statement].section if claim.statement else "ours",
        "statement": claim.statement,
        "primary": claim.primary,
        "setting": claim.setting,
        "sentence": claim.said,
        "statistic": claim.statistic,
        "words": one.words,
        **{name: getattr(estimate, name) for name in ("n", "value", "low", "high")},
        **{"claimed": str(claim.claimed), **weaker, "verdict": one.verdict, "needed": one.needed or ""},
    }


def _pair_rows(matrices: dict[str, Matrix]) -> Iterable[dict[str, Any]]:
    for name, matrix in matrices.items():
        for pair in (pair for row in matrix.values() for pair in row.values()):
            numbers = {key: getattr(pair.estimate, key) for key in ("n", "value", "low", "high")}
            yield {"experiment": name, "above": pair.above, "below": pair.below, **numbers, "verdict": pair.verdict}


def slug(text: str) -> str:
    """Return a text as an anchor.

    >>> slug("holds in a weaker form"), slug("sine+lr=0.1")
    ('holds-in-a-weaker-form', 'sine-lr-0-1')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _sections(experiments: dict[str, Experiment], judged: set[str]) -> list[tuple[str, str, list[str]]]:
    """Return number, title and experiments of each section, in the paper's order; variants come last.

    A section of which a statement is judged is there even without an experiment.
    """
    titles = SECTIONS if judged else SECTIONS | {"": "Results"}
    groups: dict[tuple[str, str], list[str]] = {item: [] for item in (*titles.items(), ("variants", "Variants"))}
    for name, one in experiments.items():
        groups[("variants", "Variants") if one.variant else (one.section, titles[one.section])].append(name)
    return [(*section, names) for section, names in groups.items() if names or section[0] in judged]


def _source(experiment: Experiment, folder: Path) -> tuple[str, str]:
    """Return the file that computes an experiment, as a name and as a link from the folder."""
    file = Path(inspect.getfile(inspect.unwrap(experiment.compute)))
    name = str(file.relative_to(PACKAGE.parent)) if file.is_relative_to(PACKAGE.parent) else file.name
    try:
        return name, Path(os.path.relpath(file, folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return name, file.as_uri()


def draw_final_losses(losses: story.Losses, titles: dict[str, str]) -> Picture:
    """Draw the median final loss and 5-95 % of seeds, a row for each experiment and a mark for each activation."""
    activations = list(dict.fromkeys(activation for row in losses.values() for activation in row))
    figure = Figure(figsize=(7.4, 0.75 * len(losses) + 1.1))
    axes = figure.subplots()
    for place, row in enumerate(losses.values()):
        for i, (activation, (low, middle, high)) in enumerate(row.items()):
            y = -place - 0.14 * (i - (len(row) - 1) / 2)
            colour = style.look(activation)["color"]
            axes.plot([low, high], [y, y], color=colour, linewidth=2.2, alpha=0.45)
            axes.plot(middle, y, style.MARKS.get(activation, "^"), color=colour, markersize=6)
    for activation in activations:
        marker = style.MARKS.get(activation, "^")
        axes.plot([], [], marker, color=style.look(activation)["color"], label=summary.label(activation))
    axes.set(xscale="log", xlabel="final loss (mean square error), lower is better")
    plain = [titles[name].replace("$", r"\$") for name in losses]  # so that Matplotlib finds no formula
    axes.set_yticks(range(0, -len(losses), -1), [textwrap.fill(title, 34) for title in plain])
    axes.set_ylim(-len(losses) + 0.45, 0.55)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    medians = "; ".join(
        f"{titles[name]}: {summary.listed({a: q[1] for a, q in row.items()})}" for name, row in losses.items()
    )
    caption = "Final losses of the networks of sections 2-4: median and 5-95 % of seeds."
    return Picture(
        "final-losses", caption, f"A row for each function, a mark for each activation. Medians: {medians}.", figure
    )
