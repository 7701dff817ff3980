"""What was found: lines of text, model files, the plot and the page; what they need is checked before training."""

from __future__ import annotations

import datetime
import io
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import plunit
from plunit.base.errors import UserError, is_installed, shown
from plunit.base.files import ending, save_new, save_whole
from plunit.ensemble.mlp import PIECEWISE
from plunit.expressions import SupError
from plunit.fitting.picture import drawn
from plunit.fitting.problems import Problem, root_mean_square
from plunit.fitting.solving import SAMPLES, FitSettings, Found, Reduced
from plunit.pieces import Curve, save, save_c, save_csv, save_json, save_onnx
from plunit.pieces.formats.exporter import EXPORTERS, c_name

WINNERS, ROWS = 5, 40  # starts that are named, and pieces that the page lists, at most
PLOTS = (".png", ".svg", ".pdf")

CURVES: dict[str, Callable[[Reduced, Path, str], None]] = {
    ".h": lambda few, to, about: save_c(few.curve, to, c_name(to), about=about, fitted=few.bound),
    ".onnx": lambda few, to, about: save_onnx(few.curve, to),
    ".json": lambda few, to, about: save_json(few.curve, to),
    ".csv": lambda few, to, about: save_csv(few.curve, to),
}
"""What writes a curve to a file of each ending, with lines about it where there is room."""


def told(problem: Problem, settings: FitSettings, found: Found) -> list[str]:
    """Return lines that say what was found."""
    is_table, averaged = problem.expression is None, found.model.theta_.shape[1]
    names = ", ".join(problem.inputs[:8]) + (", ..." if len(problem.inputs) > 8 else "")
    head = f"{problem.target} = f({names})" if is_table else problem.title
    kind = "the best network" if averaged == 1 else f"the mean of the {averaged} best networks"
    hidden = " x ".join(map(str, found.model.widths_[1:-1])) or "no"
    lines = [
        f"{head}, {len(problem.y):,} {'rows' if is_table else 'points'}: {kind} of {found.model.n_init} starts, "
        f"{hidden} {settings.activation} units",
        *_errors(problem, found),
        *_tried(settings, found),
        *_pieces(settings, found),
        f"the best starts: {_winners(found)}",
    ]
    return [*lines, "stopped before the end: this is the best so far"] if found.stopped else lines


def _errors(problem: Problem, found: Found) -> list[str]:
    size = root_mean_square(problem.y - np.mean(problem.y))
    lines = [f"root mean square error {found.rmse:.4g}, {_share(found.rmse, size)} of the standard deviation"]
    if found.tests:
        mean, half = found.interval()
        n = len(found.tests)
        few = "one split" if n == 1 else f"{n} splits, too few for an interval"
        about = f" +- {half:.2g} (95 % interval of the mean over {n} splits)" if n > 2 else f" ({few})"
        lines.append(f"on rows not seen in training {mean:.4g}{about}, {_share(mean, size)} of the standard deviation")
        lines.append(f"the largest error on those rows is {found.seen:.4g} (seen, no bound)")
    if largest := found.largest:
        lines.append(f"largest error {_largest(problem, largest)}")
    if fixed := found.fixed:
        total = "" if found.proved == math.inf else f", and {up(found.proved)} from the function"
        lines.append(
            f"with weights of {fixed.network.bits} bits at most {up(fixed.bound)} from the network{total} (proved)"
        )
    return lines


def up(bound: float) -> str:
    """Return a bound with four digits, rounded up.

    >>> up(0.0200001), up(2.0)
    ('0.02001', '2')
    """
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(bound)):.4g}"


def _error(value: float, bound: float | None, note: str, place: str = "", *, sampled: bool = False) -> str:
    """Return an error with how it is known."""
    because = f"; {note}" if note else ""
    if bound is not None:
        at = f" at {place}" if place else ""
        return f"{value:.4g}{at}, at most {up(bound)} (bounded by interval arithmetic){because}"
    return f"{value:.4g} at {f'{SAMPLES:,} random' if sampled else 'the'} points looked at; no bound{because}"


def _largest(problem: Problem, found: SupError) -> str:
    """Return the largest error of the network, where it is, and how it is known."""
    place = ", ".join(f"{name} = {number:.6g}" for name, number in zip(problem.inputs, found.x, strict=False))
    return _error(found.value, found.bound, found.note, place, sampled=not found.x)


def _tried(settings: FitSettings, found: Found) -> list[str]:
    """Return which of the networks that were tried for an error are within it."""
    if settings.error is None or not found.tried:
        return []
    bounds = (up(bound) if bound < math.inf else "no bound" for _, bound in found.tried)
    tried = [
        f"{' x '.join(map(str, shape))} units {bound}" for (shape, _), bound in zip(found.tried, bounds, strict=True)
    ]
    if found.proved <= settings.error:
        return [f"proved to be within {settings.error:g}; proved errors of what was tried: {', '.join(tried)}"]
    return [
        f"NOT proved to be within {settings.error:g}; proved errors of what was tried: {', '.join(tried)}",
        "the best of them is kept; allow a larger error, or take more starts, a larger network or a smaller range",
    ]


def _pieces(settings: FitSettings, found: Found) -> list[str]:
    if found.reduced is None and not found.missing:
        return []
    first = f"the network has {found.curve.pieces} straight pieces"
    if found.reduced is None:
        return [first, found.missing]
    few, most = found.reduced, settings.pieces
    near, error = "the fewest pieces within the error", f"{few.error:.4g} from the network at most"
    if few.of == "f":
        near = near if most is None else f"the closest curve with {most} pieces at most"
        error = f"largest error {_error(few.error, few.bound, few.note)}"
    elif few.of == "the rows":
        near = f"the best {'' if most is None else 'such '}curve through the rows"
        error = f"root mean square error {few.error:.4g}"
    return [first, f"{near}: {few.curve.pieces} pieces, {error}"]


def _winners(found: Found) -> str:
    table = found.model.candidates_
    losses = [f"no. {start} ({loss:.3g})" for start, loss in zip(table["start"], table["validation_loss"], strict=True)]
    middle = float(np.median(table["validation_loss"]))
    unit = "mean square error on rows of validation, in units of the variance"
    return f"{', '.join(losses[:WINNERS])}; the median of all {middle:.3g} ({unit})"


def _share(error: float, size: float) -> str:
    return f"{100 * error / size:.3g} %" if size > 0 and math.isfinite(error) else "no share"


def formula(curve: Curve, name: str) -> list[tuple[str, str, str]]:
    """Return the pieces of a curve as rows (from, to, line), at most 40."""
    knots, values, slopes = (part.tolist() for part in (curve.knots, curve.values[:, 0], curve.slopes[:, 0]))
    return [
        (f"{a:.6g}", f"{b:.6g}", f"{y:.6g} {_signed(slope)} ({name} {_signed(-a)})")
        for a, b, y, slope in zip(knots, knots[1:], values, slopes, strict=False)
    ][:ROWS]


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value):.6g}"


class OutputFiles(NamedTuple):
    """The files to write: models, of the curve with few pieces or of the network, the plot, and the page."""

    models: Sequence[Path]
    few: bool
    plot: Path | None
    page: Path | None


def check_files(files: OutputFiles, source: str, problem: Problem, activation: str) -> None:
    """Raise UserError, before any work is done, if one of the files could not be written.

    It would replace another one of them or the table, its ending or its folder is wrong, the model does not fit into
    it, or a package is missing.
    """
    taken = {Path(source).resolve()}
    for path in filter(None, [files.page, files.plot, *files.models]):
        if not path.parent.is_dir():
            raise UserError(f"{shown(path)}: there is no folder {shown(path.parent)}; make it first")
        if path.is_dir():
            raise UserError(f"{shown(path)} is a folder; name a file")
        if path.resolve() in taken:
            raise UserError(f"{shown(path)} is named twice, or is the table itself; name another file")
        taken.add(path.resolve())
    if files.plot is not None and ending(files.plot) not in PLOTS:
        raise UserError(f"{shown(files.plot)} must end in one of {' '.join(PLOTS)}")
    for path in files.models:
        _check_model(path, CURVES if files.few else EXPORTERS, len(problem.inputs), activation)
    needed = {"matplotlib": "'plunit[lab]'", "jinja2": "'plunit[lab]'"}
    if ".onnx" in map(ending, files.models):
        needed = {"onnx": "onnx", **needed}
    if missing := [name for name in needed if not is_installed(name)]:
        install = " ".join(dict.fromkeys(needed[name] for name in missing))
        raise UserError(f"not installed, and needed to write these files: {' '.join(missing)}; pip install {install}")


def _check_model(path: Path, known: Any, inputs: int, activation: str) -> None:
    if ending(path) not in known:
        raise UserError(f"{shown(path)} must end in one of {' '.join(known)}")
    if activation not in PIECEWISE:
        raise UserError(
            f"a file of the model needs a piecewise-linear activation: {', '.join(PIECEWISE)}; got {activation}"
        )
    if inputs not in (taken := EXPORTERS[ending(path)].inputs or (inputs,)):
        raise UserError(
            f"{shown(path)}: the number of inputs is {inputs}, and {path.suffix} takes {' or '.join(map(str, taken))}; "
            ".h, .onnx and .json take any number"
        )


def write_files(
    files: OutputFiles, problem: Problem, found: Found, lines: Sequence[str], command: str
) -> Iterator[str]:
    """Write the models, the picture and the page with these lines; yield a line for each file that is there."""
    for path in files.models:
        if files.few and found.reduced:
            CURVES[ending(path)](found.reduced, path, _about_curve(problem, found.reduced))
            content = f"the curve of {found.reduced.curve.pieces} pieces"
        else:
            content = _save_network(problem, found, path)
        yield f"saved {shown(path)}, {content}"
    figure = drawn(problem, found)
    if (plot := files.plot) is not None:
        save_whole(plot, _bytes(figure, ending(plot).removeprefix("."), 150))
        yield f"saved {shown(plot)}"
    text = _page(problem, found.reduced.curve if found.reduced else None, lines, figure, command)
    if files.page is not None:
        save_whole(files.page, text)
        yield f"saved {shown(files.page)}"
    else:  # where fit.html is taken, the first free name of fit-2.html, fit-3.html, ...
        names = (Path(f"fit-{number}.html" if number > 1 else "fit.html") for number in itertools.count(1))
        yield f"saved {shown(save_new(names, text))}"


def _save_network(problem: Problem, found: Found, path: Path) -> str:
    """Write the network, and return what was written."""
    if ending(path) != ".h":
        save(found.model.network_, path, problem.box.tolist())
        return "the network"
    about, fitted = _about_network(problem, found), found.largest.bound if found.largest else None
    if found.fixed is None:
        save_c(found.model.network_, path, c_name(path), box=problem.box.tolist(), about=about, fitted=fitted)
        return "the network"
    save_c(found.fixed.network, path, c_name(path), about=about, fitted=fitted)
    return f"the network with weights of {found.fixed.network.bits} bits"


def _about_network(problem: Problem, found: Found) -> str:
    """Return what is known of the network against the function or the rows, apart from what C makes of it."""
    names = ", ".join(f"x[{i}] = {name}" for i, name in enumerate(problem.inputs))
    if (largest := found.largest) is None:
        rows, seen = "test rows", found.seen
        if math.isnan(seen):
            rows, seen = "rows of training", float(np.abs(found.model.predict(problem.x) - problem.y).max())
        return (
            f"{problem.target} = f({', '.join(problem.inputs)}) of {problem.title}.\n"
            f"The network against the table: the largest error on {rows} is {seen:.4g} (seen, no bound)."
        )
    known = _largest(problem, largest)
    proved = "proved" if largest.bound is not None else "not proved"
    return f"f = {problem.title}, {names}.\nThe network against this formula ({proved}): largest error {known}."


def _about_curve(problem: Problem, few: Reduced) -> str:
    """Return what a curve was made from, and its error."""
    if few.of == "f":
        return f"f = {problem.title}: largest error {_error(few.error, few.bound, few.note)}."
    kind = "root mean square error" if few.of == "the rows" else "largest distance"
    return f"{problem.target} = f({problem.inputs[0]}) of {problem.title}: {kind} {few.error:.4g} from {few.of}."


def _page(problem: Problem, few: Curve | None, lines: Sequence[str], figure: Any, command: str) -> str:
    """Return an HTML page that needs no other file."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    svg = _bytes(figure, "svg", "figure").decode()
    pages = Environment(loader=PackageLoader("plunit.fitting"), autoescape=select_autoescape())
    return pages.get_template("page.html").render(
        title=problem.title,
        lines=lines,
        picture=svg[svg.index("<svg") :],
        rows=formula(few, problem.inputs[0]) if few else [],
        heading=f"{few.pieces} pieces" if few else "",
        more=few and max(0, few.pieces - ROWS),
        target=problem.target,
        command=command,
        about=f"plunit {plunit.__version__}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
    )


def _bytes(figure: Any, form: str, dpi: int | str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=dpi)
    return buffer.getvalue()
