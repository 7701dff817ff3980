"""The picture and the page of a fit, as files."""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plunit
from plunit.files import ending, save_whole
from plunit.fitting.problems import Problem
from plunit.fitting.solving import Found
from plunit.fitting.telling import ROWS, formula


def write_page(path: Path, problem: Problem, found: Found, lines: Sequence[str], figure: Any, command: str) -> None:
    """Write one HTML file that needs no other."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    few = found.reduced.curve if found.reduced is not None else None
    pages = Environment(loader=PackageLoader("plunit.fitting"), autoescape=select_autoescape())
    page = pages.get_template("page.html")
    text = page.render(
        title=problem.title,
        lines=lines,
        picture=_svg(figure),
        rows=formula(few, problem.inputs[0]) if few is not None else [],
        heading="" if few is None else f"{few.pieces} pieces",
        more="" if few is None else max(0, few.pieces - ROWS) or "",
        target=problem.target,
        command=command,
        about=f"plunit {plunit.__version__}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
    )
    save_whole(path, text)


def write_plot(path: Path, figure: Any) -> None:
    """Write the picture in the format that the ending names: .png, .svg, .pdf."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=ending(path).removeprefix("."), dpi=150)
    save_whole(path, buffer.getvalue())


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]
