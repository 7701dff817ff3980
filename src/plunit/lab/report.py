"""The folder of a run: tables for other programs, figures, and report.html; docs/lab.md explains them.

`write_report` writes all of it from stored results; nothing here trains.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

import plunit
from plunit.base.files import write_atomically, write_csv
from plunit.base.machine import describe_machine
from plunit.ensemble.nonlinearities import title_of
from plunit.lab import pictures
from plunit.lab.cell import PACKAGE
from plunit.lab.claims import PAPER, REFUTED, RULE, SECTIONS, STATEMENTS, Judged, Ruling, answers, judge, tally
from plunit.lab.experiment import Experiment, Results, catalogue
from plunit.lab.intervals import RULE_OF_PAIRS, Column, Estimate, Matrix, compare_pairs, worst_if_diverged
from plunit.lab.pictures import Picture, number, save
from plunit.lab.plan import Plan

COLUMNS = ("experiment", "activation", "seed", "alpha", "c", "depth", "final_loss", "dead_units", "gradient_norm")
"""The first columns of summary.csv; experiments may add more."""

PAIR_COLUMNS = ("experiment", "above", "below", "n", "value", "low", "high", "verdict")
CLAIM_COLUMNS = (
    *("experiment", "source", "statement", "primary", "setting", "sentence", "statistic", "words"),
    *("n", "value", "low", "high", "claimed", "weaker", "weaker_words", "verdict", "needed"),
)

Track = Callable[[list[Picture]], Iterable[Picture]]

Losses = dict[str, dict[str, tuple[float, float, float]]]
"""Experiment, activation: 5, 50 and 95 % quantiles of a loss."""

LOSSES = {"final loss": "final_loss", "test loss": "test_loss", "training loss": "train_loss"}
"""The losses at the end of training that experiments may have, and their arrays."""

_COMPARED = {"sine-relu": "the sine", "curve-relu": "the parametric curve", "surface-relu": "the surface"}


class ReportSummary(NamedTuple):
    """What is also printed: quantiles by the name of a loss, matrices of pairs by experiment, and lines."""

    losses: dict[str, Losses]
    matrices: dict[str, Matrix]
    lines: list[str]


def write_report(folder: Path, plan: Plan, results: Results, track: Track = iter) -> ReportSummary:
    """Write tables, figures and report.html; return what is printed; `track` watches figures."""
    order = list(catalogue())
    results = dict(sorted(results.items(), key=lambda item: order.index(plan[item[0]].base)))
    experiments = {name: plan[name].experiment() for name in results}
    judged = judge(experiments, results)
    matrices = {name: compare_pairs(*one.pairs(results[name])) for name, one in experiments.items()}
    matrices = {name: matrix for name, matrix in matrices.items() if matrix}
    write_tables(folder, experiments, results, judged, matrices)
    tables = {noun: final_losses(results, key) for noun, key in LOSSES.items()}
    found = answers(judged)
    own = [one for one in judged if not one.claim.statement]
    content = _template().render(
        opening=opening(experiments, results, found),
        answers=found,
        sections=_sections(experiments, {one.section for one in found}),
        experiments=experiments,
        findings={name: one.finding(results[name]) for name, one in experiments.items()},
        own={name: [one for one in own if one.experiment == name] for name in experiments},
        tables=tables,
        matrices=matrices,
        images=_draw(folder, experiments, results, track),
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
    lines = [f"statements of the paper: {tally(found)}"] if found else plain(experiments, results, judged)
    return ReportSummary(tables, matrices, lines)


def _draw(
    folder: Path, experiments: dict[str, Experiment], results: Results, track: Track
) -> dict[str, list[tuple[Picture, str]]]:
    """Save all figures; return them by experiment, with URLs of their content."""
    with pictures.settings():
        drawn = {name: list(experiments[name].figures(runs)) for name, runs in results.items()}
        watched = iter(track([picture for group in drawn.values() for picture in group]))
        return {
            name: [(one, save(next(watched), folder / "figures")) for one in group] for name, group in drawn.items()
        }


def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("plunit.lab", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "label": title_of, "slug": slug, "interval": with_interval}
    return environment.get_template("report.html")


def write_tables(
    folder: Path,
    experiments: dict[str, Experiment],
    results: Results,
    judged: list[Judged],
    matrices: dict[str, Matrix],
) -> None:
    """Write all tables of a folder; the same results give the same bytes."""
    rows = [row for name, runs in results.items() for row in experiments[name].rows(runs)]
    names = dict.fromkeys([*COLUMNS, *(column for row in rows for column in row)])
    write_csv(folder / "summary.csv", tuple(names), rows)
    write_csv(folder / "claims.csv", CLAIM_COLUMNS, map(claim_row, judged))
    if matrices:
        write_csv(folder / "pairs.csv", PAIR_COLUMNS, _pair_rows(matrices))
    histories: dict[str, Any] = {
        f"{name}.{activation}": arrays["history"]
        for name, runs in results.items()
        for activation, arrays in runs.items()
        if "history" in arrays
    }
    buffer = io.BytesIO()
    np.savez(buffer, **histories)
    write_atomically(folder / "histories.npz", buffer.getvalue())


def claim_row(one: Judged) -> dict[str, Any]:
    """Return the row of a claim in claims.csv."""
    claim = one.claim
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
        **_numbers(one.estimate),
        **{"claimed": str(claim.claimed), **weaker, "verdict": one.verdict, "needed": one.needed or ""},
    }


def _numbers(estimate: Estimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in ("n", "value", "low", "high")}


def _pair_rows(matrices: dict[str, Matrix]) -> Iterable[dict[str, Any]]:
    for name, matrix in matrices.items():
        for pair in (pair for row in matrix.values() for pair in row.values()):
            first = {"experiment": name, "above": pair.above, "below": pair.below}
            yield {**first, **_numbers(pair.estimate), "verdict": pair.verdict}


def final_losses(results: Results, key: str = "final_loss") -> Losses:
    """Return the quantiles of a loss at the end of training, of the experiments that have it.

    Test losses include that of a constant prediction, the mean, if it was measured.
    """

    def quantiles(losses: Column) -> tuple[float, float, float]:
        final = worst_if_diverged(losses)
        low, high = np.quantile(final, [0.05, 0.95], method="nearest")
        return float(low), float(np.median(final)), float(high)

    found = {}
    for name, runs in results.items():
        if all(key in arrays and "history" in arrays for arrays in runs.values()):
            found[name] = {activation: quantiles(arrays[key]) for activation, arrays in runs.items()}
            first = next(iter(runs.values()))
            if key == "test_loss" and "baseline" in first:
                found[name]["mean"] = quantiles(first["baseline"])
    return found


def opening(experiments: Mapping[str, Experiment], results: Results, found: list[Ruling]) -> list[str]:
    """Return up to three sentences that say what was found; the ratios are those of sections 2 to 4."""
    if not found:
        findings = {name: text for name, runs in results.items() if (text := experiments[name].finding(runs))}
        single = len(findings) == 1 and not experiments[next(iter(findings))].variant
        return [text if single else f"{experiments[name].title}: {text}" for name, text in findings.items()][:3]
    measured = [one for one in found if not one.theorem]
    seeds = max(one.estimate.n for answer in measured for one in answer.claims)
    first = f"Of {len(measured)} statements of the paper, judged on up to {seeds:,} seeds, {tally(found)}."
    ratios = [
        f"{with_interval(one.estimate)} on {_COMPARED[answer.key]}"
        for answer in measured
        for one in answer.primary
        if answer.key in _COMPARED and one.claim.statistic == "relu/plu"
    ]
    compared = f"ReLU's final loss divided by PLU's, median over seeds: {'; '.join(ratios)}." if ratios else ""
    refuted = "; ".join(f"“{one.sentence.rstrip('.')}”" for one in found if one.verdict == REFUTED)
    return [text for text in (first, compared, f"Refuted: {refuted}." if refuted else "") if text]


def plain(experiments: Mapping[str, Experiment], results: Results, judged: list[Judged]) -> list[str]:
    """Return the lines to print for results without statements of the paper: findings, then claims with intervals."""
    words = ((one, one.words[:1].upper() + one.words[1:]) for one in judged)
    shown = (f"{one.claim.said} {text} {with_interval(one.estimate)}: {one.said}" for one, text in words)
    return [*opening(experiments, results, []), *shown]


def with_interval(estimate: Estimate) -> str:
    """Return an estimate and its interval as a text: "16.7 (15.1 to 18.5)".

    >>> with_interval(Estimate(1.0, 0.5, 2.0, 6)), with_interval(Estimate(1.0, math.nan, math.nan, 1))
    ('1 (0.5 to 2)', '1')
    """
    ends = "" if math.isnan(estimate.low) else f" ({number(estimate.low)} to {number(estimate.high)})"
    return f"{number(estimate.value)}{ends}"


def slug(text: str) -> str:
    """Return a text as an anchor.

    >>> slug("holds in a weaker form"), slug("sine+lr=0.1")
    ('holds-in-a-weaker-form', 'sine-lr-0-1')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _sections(experiments: dict[str, Experiment], judged: set[str]) -> list[tuple[str, str, list[str]]]:
    """Return number, title and experiments of each section, in the paper's order; variants come last.

    A section with a judged statement is listed even if no experiment of it was run.
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
