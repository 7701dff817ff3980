"""One self-contained HTML page, tables and figures from stored results; nothing is trained here."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import jinja2

import plunit
from plunit.files import write_atomically
from plunit.lab import overview, paper, story, style
from plunit.lab.cell import PACKAGE
from plunit.lab.claims import RULE, RULE_OF_PAIRS, Claim, Difference
from plunit.lab.experiment import Experiment, Results, catalogue
from plunit.lab.plan import Plan
from plunit.lab.tables import write_tables
from plunit.machine import describe_machine

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
    write_atomically(page, render(folder, plan, experiments, results, claims, losses, images).encode())
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
    losses: story.Losses,
    images: dict[str, list[Image]],
) -> str:
    """Return the page."""
    loader = jinja2.PackageLoader("plunit.lab", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": style.number, "label": style.label, "slug": slug}
    judged = story.statements(claims)
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
