"""What was found: lines of text, model files, the plot and the page; what they need is checked before training."""

from __future__ import annotations

import datetime
import io
import itertools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import plunit
from plunit.base.errors import UserError, is_installed, shown
from plunit.base.files import ending, save_whole
from plunit.ensemble.mlp import PIECEWISE
from plunit.fitting.problems import Problem, root_mean_square
from plunit.fitting.reducing import Reduced
from plunit.fitting.solving import SAMPLES, FitSettings, Found
from plunit.pieces import Curve, save, save_c, save_csv, save_json, save_onnx
from plunit.pieces.formats.exporter import EXPORTERS, c_name

WINNERS = 5
ROWS = 40


def told(problem: Problem, settings: FitSettings, found: Found) -> list[str]:
    """Return lines that say what was found."""
    model = found.model
    hidden = " x ".join(map(str, model.widths_[1:-1])) or "no"
    what = f"{len(problem.y):,} rows" if problem.expression is None else f"{len(problem.y):,} points"
    names = ", ".join(problem.inputs[:8]) + (", ..." if len(problem.inputs) > 8 else "")
    head = f"{problem.target} = f({names})" if problem.expression is None else problem.title
    averaged = model.theta_.shape[1]
    kind = "the best network" if averaged == 1 else f"the mean of the {averaged} best networks"
    lines = [
        f"{head}, {what}: {kind} of {settings.starts} starts, {hidden} {settings.activation} units",
        *_errors(problem, found),
        *_pieces(problem, settings, found),
        f"the best starts: {_winners(found)}",
    ]
    if found.stopped:
        lines.append("stopped before the end: this is the best so far")
    return lines


def _errors(problem: Problem, found: Found) -> list[str]:
    size = root_mean_square(problem.y - np.mean(problem.y))
    lines = [f"root mean square error {found.rmse:.4g}, {_share(found.rmse, size)} of the standard deviation"]
    if found.tests:
        mean, half = found.interval()
        n = len(found.tests)
        few = "one split" if n == 1 else f"{n} splits, too few for an interval"
        about = f" +- {half:.2g} (95 % interval of the mean over {n} splits)" if n > 2 else f" ({few})"
        lines.append(f"on rows not seen in training {mean:.4g}{about}, {_share(mean, size)} of the standard deviation")
    if largest := found.largest:
        lines.append(f"largest error {error_text(largest.value, largest.bound, hasattr(found.model, 'curve_'))}")
    return lines


def error_text(value: float, bound: float | None, of_curve: bool) -> str:
    """Return an error with how it is known."""
    if bound is not None:
        return f"{value:.4g}, at most {bound:.4g} (bounded by interval arithmetic)"
    if of_curve:
        return f"{value:.4g} at the points looked at; no bound (the function jumps, or intervals do not show one)"
    return f"{value:.4g} at {SAMPLES:,} random points; no bound (it needs one input and a piecewise-linear network)"


def _pieces(problem: Problem, settings: FitSettings, found: Found) -> list[str]:
    if found.reduced is None:
        return [f"the network has {found.curve.pieces} straight pieces", found.missing] if found.missing else []
    few, curve = found.reduced, found.curve
    if few.of == "f":
        wanted = "" if settings.pieces is None else f" with {settings.pieces} pieces at most"
        near = f"the closest curve{wanted}" if settings.pieces is not None else "the fewest pieces within the error"
        told_error = f"largest error {error_text(few.error, few.bound, True)}"
    elif few.of == "the network":
        near, told_error = "the fewest pieces within the error", f"{few.error:.4g} from the network at most"
    else:
        near = "the best curve through the rows" if settings.pieces is None else "the best such curve through the rows"
        told_error = f"root mean square error {few.error:.4g}"
    return [f"the network has {curve.pieces} straight pieces", f"{near}: {few.curve.pieces} pieces, {told_error}"]


def _winners(found: Found) -> str:
    table = found.model.candidates_
    losses = [f"no. {start} ({loss:.3g})" for start, loss in zip(table["start"], table["validation_loss"], strict=True)]
    middle = float(np.median(table["validation_loss"]))
    unit = "mean square error on rows of validation, in units of the variance"
    return f"{', '.join(losses[:WINNERS])}; the median of all {middle:.3g} ({unit})"


def _share(error: float, size: float) -> str:
    return f"{100 * error / size:.3g} %" if size > 0 and math.isfinite(error) else "no share"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value):.6g}"


def formula(curve: Curve, name: str) -> list[tuple[str, str, str]]:
    """Return the pieces of a curve as rows (from, to, line), at most 40."""
    knots, values, slopes = (part.tolist() for part in (curve.knots, curve.values[:, 0], curve.slopes[:, 0]))
    rows = [
        (f"{a:.6g}", f"{b:.6g}", f"{y:.6g} {_signed(slope)} ({name} {_signed(-a)})")
        for a, b, y, slope in zip(knots, knots[1:], values, slopes, strict=False)
    ]
    return rows[:ROWS]


Writer = Callable[[Found, Problem, Path], None]

PACKAGES = {".onnx": ("onnx", "onnx")}
"""What writes files of an ending and is not part of plunit: the package, and what to install."""

DRAWING = tuple((name, "'plunit[lab]'") for name in ("matplotlib", "jinja2"))
"""What draws the picture and writes the page, and what to install."""

CURVES: dict[str, Callable[[Curve, Path, str], None]] = {
    ".h": lambda curve, to, about: save_c(curve, to, c_name(to), about=about),
    ".onnx": lambda curve, to, about: save_onnx(curve, to),
    ".json": lambda curve, to, about: save_json(curve, to),
    ".csv": lambda curve, to, about: save_csv(curve, to),
}
"""What writes a curve to a file of each ending, with a line about it where there is room."""


def check_places(source: str, paths: list[Path]) -> None:
    """Raise UserError if a file could not be written, or would replace another one of them or the table."""
    taken = {Path(source).resolve()}
    for path in paths:
        if not path.parent.is_dir():
            raise UserError(f"{shown(path)}: there is no folder {shown(path.parent)}; make it first")
        if path.is_dir():
            raise UserError(f"{shown(path)} is a folder; name a file")
        if path.resolve() in taken:
            raise UserError(f"{shown(path)} is named twice, or is the table itself; name another file")
        taken.add(path.resolve())


def check_packages(models: Sequence[Path]) -> None:
    """Raise UserError if a package is missing that the files of the models, the picture and the page need."""
    needed = [*(PACKAGES[ending(path)] for path in models if ending(path) in PACKAGES), *DRAWING]
    if missing := list(dict.fromkeys(pair for pair in needed if not is_installed(pair[0]))):
        names, sources = (" ".join(dict.fromkeys(part)) for part in zip(*missing, strict=True))
        raise UserError(f"not installed, and needed to write these files: {names}; pip install {sources}")


def free_page() -> Path:
    """Return fit.html or, where that is taken, the first free name of fit-2.html, fit-3.html, ..."""
    names = (f"fit-{number}.html" if number > 1 else "fit.html" for number in itertools.count(1))
    return next(Path(name) for name in names if not os.path.lexists(name))


def writer_of(path: Path, few: bool, inputs: int, activation: str) -> Writer:
    """Return what writes a file, before any work is done: of the curve with few pieces, or of the network."""
    known = CURVES if few else EXPORTERS
    if ending(path) not in known:
        raise UserError(f"{shown(path)} must end in one of {' '.join(known)}")
    if activation not in PIECEWISE:
        raise UserError(
            f"a file of the model needs a piecewise-linear activation: {', '.join(PIECEWISE)}; got {activation}"
        )
    if inputs not in (taken := EXPORTERS[ending(path)].inputs or (inputs,)):
        wanted = " or ".join(map(str, taken))
        raise UserError(
            f"{shown(path)}: the number of inputs is {inputs}, and {path.suffix} takes {wanted}; .h, .onnx and .json "
            "take any number"
        )
    return _write_curve if few else _write_network


def _write_curve(found: Found, problem: Problem, path: Path) -> None:
    if found.reduced is not None:
        CURVES[ending(path)](found.reduced.curve, path, _about(problem, found.reduced))


def _about(problem: Problem, few: Reduced) -> str:
    """Return what a curve was made from, and its error."""
    if few.of == "f":
        return f"f = {problem.title}: largest error {error_text(few.error, few.bound, True)}."
    kind = "root mean square error" if few.of == "the rows" else "largest distance"
    return f"{problem.target} = f({problem.inputs[0]}) of {problem.title}: {kind} {few.error:.4g} from {few.of}."


def _write_network(found: Found, problem: Problem, path: Path) -> None:
    save(found.model.network_, path, problem.box.tolist())


def content_of(found: Found, few: bool) -> str:
    """Return what a file holds, in words."""
    return f"the curve of {found.reduced.curve.pieces} pieces" if few and found.reduced else "the network"


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
