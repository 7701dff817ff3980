"""One self-contained HTML page from stored results; nothing is trained here."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

import plunit
from plunit.lab import experiments, style, summary
from plunit.lab.claims import RESAMPLES, RULE, Claim
from plunit.lab.plan import Plan, cells
from plunit.lab.results import Results
from plunit.lab.store import write_atomically

Track = Callable[[list[style.Picture]], Iterable[style.Picture]]

VERDICTS = ("holds", "holds weakly", "does not hold")


def build(folder: Path, plan: Plan, results: Results, track: Track = iter) -> tuple[Path, list[Claim]]:
    """Write tables, figures and report.html; `track` watches the figures; return the page and the claims."""
    packages = experiments.packages(results.names())
    claims = [claim for package in packages for claim in package.claims(results)]
    summary.write_summary(folder, results)
    summary.write_claims(folder, claims)
    summary.write_histories(folder, results)
    images = []
    with style.settings():
        for picture in track([picture for package in packages for picture in package.figures(results)]):
            style.save(picture, folder / "figures")
            images.append({"picture": picture, "url": style.data_url(picture, folder / "figures")})
    path = folder / "report.html"
    write_atomically(path, _page(plan, results, claims, images).encode())
    return path, claims


def _page(plan: Plan, results: Results, claims: list[Claim], images: list[dict[str, Any]]) -> str:
    loader = jinja2.PackageLoader("plunit.lab", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["number"] = number
    environment.filters["label"] = style.label
    names = results.names()
    table = losses(results)
    return environment.get_template("report.html").render(
        plan={name: plan[name] for name in names},
        titles={name: experiments.MODULES[name].TITLES[name] for name in names},
        last_seed={name: max(cell.last for cell in cells({name: plan[name]})) - 1 for name in names},
        specs={name: dataclasses.asdict(experiments.spec(name, plan[name].steps)) for name in names},
        losses=table,
        fitted=list(dict.fromkeys(activation for row in table.values() for activation in row)),
        claims=claims,
        tally=Counter(claim.verdict for claim in claims if claim.source != "ours"),
        verdicts=VERDICTS,
        rule=RULE,
        resamples=RESAMPLES,
        images=images,
        machine=machine(),
        version=plunit.__version__,
    )


def losses(results: Results) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Return the 5, 50 and 95 % quantiles of the final loss, by experiment and activation, of experiments that fit."""
    table: dict[str, dict[str, tuple[float, float, float]]] = {}
    for name, activation, arrays in results.items():
        if "history" in arrays:
            final = np.nan_to_num(arrays["final_loss"], nan=np.inf)
            low, high = np.quantile(final, [0.05, 0.95], method="nearest")
            table.setdefault(name, {})[activation] = (float(low), float(np.median(final)), float(high))
    return table


def number(value: float) -> str:
    """Print a number to three digits.

    >>> number(0.000123), number(41.96), number(0.0), number(12345.6)
    ('1.23e-04', '42', '0', '1.23e+04')
    """
    if value == 0 or 0.001 <= abs(value) < 10000:
        return f"{value:.3g}"
    return f"{value:.2e}"


def machine() -> dict[str, str]:
    """Describe the machine and the versions the page was made with."""
    versions = {name: metadata.version(name) for name in ("numpy", "torch", "matplotlib")}
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "plunit": plunit.__version__,
        **versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
