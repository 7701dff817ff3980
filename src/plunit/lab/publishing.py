"""What a folder of results shows: tables for other programs, figures, and report.html; docs/results.md explains them.

`write_report` writes all of it from stored results; nothing here trains.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

import plunit
from plunit.base.files import write_atomically, write_csv
from plunit.base.machine import describe_machine
from plunit.lab import overview, paper, story, style
from plunit.lab.cell import PACKAGE
from plunit.lab.claims import RULE, RULE_OF_PAIRS, Claim, Difference
from plunit.lab.experiment import Experiment, Results, catalogue
from plunit.lab.paper import STATEMENTS
from plunit.lab.plan import Plan

COLUMNS = ("experiment", "activation", "seed", "alpha", "c", "depth", "final_loss", "dead_units", "gradient_norm")
"""The first columns of summary.csv; experiments may add more."""

CLAIM_COLUMNS = (
    *("experiment", "source", "statement", "primary", "setting", "sentence", "statistic"),
    *("n", "value", "low", "high", "claimed", "weaker", "verdict"),
)


def write_tables(folder: Path, experiments: dict[str, Experiment], results: Results, claims: list[Claim]) -> None:
    """Write all tables of a folder; the same results give the same bytes, except in timings.csv."""
    rows = [row for name, runs in results.items() for row in experiments[name].rows(runs)]
    names = dict.fromkeys([*COLUMNS, *(column for row in rows for column in row)])
    write_csv(folder / "summary.csv", tuple(names), rows)
    write_csv(folder / "claims.csv", CLAIM_COLUMNS, map(_claim, claims))
    write_csv(folder / "timings.csv", ("experiment", "activation", "seed", "seconds"), _timings(results))
    _write_histories(folder / "histories.npz", results)


def _claim(claim: Claim) -> dict[str, Any]:
    source = STATEMENTS[claim.statement].section if claim.statement else "ours"
    ranges = {"claimed": str(claim.claimed), "weaker": str(claim.weaker)}
    return {**vars(claim), **ranges, "primary": claim.primary, "verdict": claim.verdict, "source": source}


def _timings(results: Results) -> list[dict[str, Any]]:
    return [
        {"experiment": name, "activation": activation, "seed": int(seed), "seconds": round(float(seconds), 3)}
        for name, runs in results.items()
        for activation, arrays in runs.items()
        if "seconds" in arrays
        for seed, seconds in zip(arrays["seed"], arrays["seconds"], strict=True)
    ]


def _write_histories(path: Path, results: Results) -> None:
    """Write, for each "experiment.activation", the losses [recorded steps, seeds]."""
    histories: dict[str, Any] = {
        f"{name}.{activation}": arrays["history"]
        for name, runs in results.items()
        for activation, arrays in runs.items()
        if "history" in arrays
    }
    buffer = io.BytesIO()
    np.savez(buffer, **histories)
    write_atomically(path, buffer.getvalue())


Track = Callable[[list[style.Picture]], Iterable[style.Picture]]


class Published(NamedTuple):
    """What was written: the page, the final losses and lines to print."""

    page: Path
    losses: story.Losses
    lines: list[str]


class Image(NamedTuple):
    """A picture and its content as a URL."""

    picture: style.Picture
    url: str


def write_report(folder: Path, plan: Plan, results: Results, track: Track = iter) -> Published:
    """Write tables, figures and report.html; `track` watches the figures."""
    order = {name: i for i, name in enumerate(catalogue())}
    results = {name: results[name] for name in sorted(results, key=lambda name: order[plan[name].base])}
    experiments = {name: plan[name].experiment() for name in results}
    claims = story.judge(experiments, results)
    write_tables(folder, experiments, results, claims)
    losses = story.final_losses(results)
    images = draw(folder, experiments, results, claims, losses, track)
    judged = story.statements(claims)
    page = folder / "report.html"
    write_atomically(page, render(folder, plan, experiments, results, claims, judged, losses, images).encode())
    lines = [f"statements of the paper: {story.tally(judged)}"] if judged else story.plain(experiments, results, claims)
    return Published(page, losses, lines)


def draw(
    folder: Path,
    experiments: dict[str, Experiment],
    results: Results,
    claims: list[Claim],
    losses: story.Losses,
    track: Track = iter,
) -> dict[str, list[Image]]:
    """Draw and save all figures, by experiment; those of the whole report stand under ""."""
    with style.settings():
        titles = {name: one.title for name, one in experiments.items()}
        pictures = {name: list(experiments[name].figures(runs)) for name, runs in results.items()}
        pictures[""] = [overview.final_losses(losses, titles)] if losses else []
        pictures[""] += [overview.forest(claims)] if claims else []
        owner = [(name, picture) for name, group in pictures.items() for picture in group]
        drawn = track([picture for _, picture in owner])
        images: dict[str, list[Image]] = {name: [] for name in pictures}
        for (name, _), picture in zip(owner, drawn, strict=True):
            images[name].append(Image(picture, style.save(picture, folder / "figures")))
    return images


def render(
    folder: Path,
    plan: Plan,
    experiments: dict[str, Experiment],
    results: Results,
    claims: list[Claim],
    judged: list[story.Judged],
    losses: story.Losses,
    images: dict[str, list[Image]],
) -> str:
    """Return the page."""
    loader = jinja2.PackageLoader("plunit.lab", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": style.number, "label": style.label, "slug": slug}
    own = [claim for claim in claims if not claim.statement]
    return environment.get_template("report.html").render(
        opening=story.opening(experiments, results, judged),
        judged=judged,
        sections=_sections(experiments, results, bool(judged)),
        experiments=experiments,
        findings={name: one.finding(results[name]) for name, one in experiments.items()},
        own={name: [claim for claim in own if claim.experiment == name] for name in experiments},
        losses=losses,
        fitted=list(dict.fromkeys(activation for row in losses.values() for activation in row)),
        images=images,
        plan={name: plan[name] for name in results},
        specs={name: dataclasses.asdict(one.spec) for name, one in experiments.items()},
        sources={name: _source(one, folder) for name, one in experiments.items()},
        numbers={claim: i for i, claim in enumerate(claims)},
        paper=paper,
        rules=dict.fromkeys(RULE_OF_PAIRS if isinstance(claim, Difference) else RULE for claim in claims),
        machine=describe_machine(),
        version=plunit.__version__,
    )


def slug(text: str) -> str:
    """Return a text as an anchor.

    >>> slug("does not hold"), slug("sine+lr=0.1")
    ('does-not-hold', 'sine-lr-0-1')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _sections(experiments: dict[str, Experiment], results: Results, papers: bool) -> list[tuple[str, str, list[str]]]:
    """Return number, title and experiments of each section, in the paper's order; variants come last."""
    usual = {
        section: [name for name in results if experiments[name].section == section and not experiments[name].variant]
        for section in paper.SECTIONS
    }
    titles = paper.SECTIONS if papers else paper.SECTIONS | {"": "Results"}
    found = [(section, titles[section], names) for section, names in usual.items() if names]
    variants = [name for name in results if experiments[name].variant]
    return [*found, ("variants", "Variants", variants)] if variants else found


def _source(experiment: Experiment, folder: Path) -> tuple[str, str]:
    """Return the file that computes an experiment, as a name and as a link from the folder."""
    file = Path(inspect.getfile(inspect.unwrap(experiment.compute)))
    name = str(file.relative_to(PACKAGE.parent)) if file.is_relative_to(PACKAGE.parent) else file.name
    try:
        return name, Path(os.path.relpath(file, folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return name, file.as_uri()
