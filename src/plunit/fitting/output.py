"""The result as lines of text, model files and a page; their requirements are checked before training."""

from __future__ import annotations

import contextlib
import datetime
import errno
import io
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import plunit
from plunit.base.errors import UserError, describe_missing, escape, is_installed
from plunit.base.files import ending, resolve, save_whole
from plunit.ensemble.mlp import PIECEWISE
from plunit.fitting.curves import Reduced
from plunit.fitting.drawing import draw_fit, draw_panels
from plunit.fitting.lookup_table import MOST_INPUTS, describe_table
from plunit.fitting.problems import Problem, root_mean_square
from plunit.fitting.solving import FRESH_POINTS, RANDOM_POINTS, FitResult, FitSettings
from plunit.pieces import Curve
from plunit.pieces.boxes import many
from plunit.pieces.rounding import rounded_up

if TYPE_CHECKING:
    from plunit.expressions import SupError
    from plunit.sklearn import PLURegressor

_WINNERS, _ROWS = 5, 40  # maximum numbers of starts that are named, and of pieces that the page lists
_LOOSE = 10  # a proof that was stopped with a bound this many times the error found says nothing about tables
PLOTS = (".png", ".svg", ".pdf")
_INK = "#010203"  # replaced by the colour of the page's text


def summarize(problem: Problem, settings: FitSettings, found: FitResult) -> list[str]:
    """Return the result as lines of text."""
    is_table, averaged = problem.expression is None, found.model.theta_.shape[1]
    columns = problem.inputs if problem.table is None else tuple(map(escape, problem.table.inputs))
    names = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
    head = f"{problem.target} = f({names})" if is_table else problem.title
    kind = "the best network" if averaged == 1 else f"the mean of the {averaged} best networks"
    hidden = " x ".join(map(str, found.model.widths_[1:-1])) or "no"
    lines = [
        f"{head}, {len(problem.y):,} {'rows' if is_table else 'points'}: {kind} of {found.model.n_init} starts, "
        f"{hidden} {settings.activation} units",
        *_errors(problem, found),
        *([] if is_table or len(columns) == 1 else [_input_order(columns)]),
        *problem.notes,
        *_pieces(settings, found),
        *_attempts(found),
        *_compare_with_table(problem, settings, found),
        _validation(found.model),
    ]
    return [*lines, "stopped before the end: this is the best so far"] if found.stopped else lines


def _input_order(names: Sequence[str]) -> str:
    """Return a line that says which input of the model is which variable.

    >>> _input_order(["y", "x"])
    'inputs in order of appearance: x[0] = y, x[1] = x'
    """
    return f"inputs in order of appearance: {', '.join(f'x[{at}] = {name}' for at, name in enumerate(names))}"


def _errors(problem: Problem, found: FitResult) -> list[str]:
    """Return a line for each error and where it was measured; the error to expect on new rows comes first."""
    size = root_mean_square(problem.y - np.mean(problem.y))
    lines = []
    if found.tests:
        mean, half = found.interval()
        n = len(found.tests)
        few = "1 split" if n == 1 else f"{n} splits, too few for an interval"
        about = f" +- {half:.2g} (95 % interval, {n} overlapping splits)" if n > 2 else f" ({few})"
        lines += [
            f"root mean square error on unseen rows {mean:.4g}{about}, {_share(mean, size)} of the standard deviation",
            f"largest error on unseen rows {found.seen:.4g} (observed, not a bound)",
        ]
    elif problem.expression is None:
        lines.append("not tested on unseen rows")
    if largest := found.largest:
        lines.append(f"largest error {_largest(problem, largest)}")
    if fixed := found.fixed:
        total = "" if found.proved == math.inf else f", and {up(found.proved)} from the function"
        which = f"the C program with weights of {fixed.network.bits} bits"
        lines.append(f"{which}: at most {up(fixed.bound)} from the network{total} (proved)")
    seen = "training rows" if problem.expression is None else f"{FRESH_POINTS:,} random points"
    share = f"{_share(found.rmse, size)} of the standard deviation"
    return [*lines, f"root mean square error on {seen} {found.rmse:.4g}, {share}"]


def _compare_with_table(problem: Problem, settings: FitSettings, found: FitResult) -> list[str]:
    """Return the comparison with a lookup table of the written model's error, for up to four inputs."""
    f = problem.expression
    if f is None or len(problem.inputs) > MOST_INPUTS or settings.activation not in PIECEWISE:
        return []
    few = found.reduced if settings.pieces is not None or settings.error is not None else None
    function: Any = found.fixed.network if found.fixed else found.model.network_
    error = found.proved
    if few is not None:
        error, function = math.inf if few.bound is None else few.bound, few.curve
    elif found.stopped and found.largest is not None and found.proved > _LOOSE * found.largest.value:
        return []
    try:
        return [describe_table(f, problem.box, error, function)] if error < math.inf else []
    except KeyboardInterrupt:
        return []


def up(bound: float) -> str:
    """Return a bound with four digits, rounded up.

    >>> up(0.0200001), up(2.0)
    ('0.02001', '2')
    """
    return f"{rounded_up(bound):.4g}"


def _error(value: float, bound: float | None, note: str, place: str = "", *, sampled: bool = False) -> str:
    """Return a text with an error and whether it is proved."""
    because = f"; {note}" if note else ""
    if bound is not None:
        at = f" at {place}" if place else ""
        return f"found {value:.4g}{at}; proved: at most {up(bound)}{because}"
    return f"found {value:.4g} on {f'{RANDOM_POINTS:,} random' if sampled else 'the'} points; no bound{because}"


def _largest(problem: Problem, found: SupError) -> str:
    """Return a text with the largest error of the network, its place, and whether it is proved."""
    place = ", ".join(f"{name} = {number:.6g}" for name, number in zip(problem.inputs, found.x, strict=False))
    return _error(found.value, found.bound, found.note, place, sampled=not found.x)


def _attempts(found: FitResult) -> list[str]:
    """Return lines that say whether the requested error is proved, and the bounds of the networks tried for it."""
    if not (found.tried or found.missed):
        return []
    bounds = (up(bound) if bound < math.inf else "no bound" for _, bound in found.tried)
    tried = [
        f"{' x '.join(map(str, shape))} units {bound}" for (shape, _), bound in zip(found.tried, bounds, strict=True)
    ]
    bounds_of_all = f"; proved errors of the networks tried: {', '.join(tried)}" if tried else ""
    if not found.missed:
        return [f"proved to be within {found.asked:g}{bounds_of_all}"]
    remedy = "a smaller range" if found.reduced else "more starts, a larger network or a smaller range"
    if found.needed < math.inf:
        remedy += f"; about {math.ceil(found.needed)} x {math.ceil(found.needed)} units would probably do"
    return [
        f"NOT proved to be within {found.asked:g}{bounds_of_all}",
        f"the best is kept; allow a larger error, or use {remedy}",
    ]


def _pieces(settings: FitSettings, found: FitResult) -> list[str]:
    if found.curve is None:
        return []
    first = f"the network has {many(found.curve.pieces, 'straight piece')}"
    if found.reduced is None:
        return [first, found.missing]
    few, most = found.reduced, settings.pieces
    near, error = "the fewest pieces within the error", f"{few.error:.4g} from the network at most"
    if few.of == "f":
        near = near if most is None else f"the closest curve with {many(most, 'piece')} at most"
        error = f"largest error {_error(few.error, few.bound, few.note)}"
    elif few.of == "the rows":
        near = f"the best {'' if most is None else 'such '}curve through the rows"
        error = f"root mean square error {few.error:.4g}"
    return [first, f"{near}: {many(few.curve.pieces, 'piece')}, {error}"]


def _validation(model: PLURegressor) -> str:
    """Return the line of validation errors; those of different folds are not comparable."""
    table, unit = model.candidates_, "(mean square / variance)"
    losses = table["validation_loss"]
    middle = f"median {float(np.median(losses)):.3g}"
    if (averaged := model.theta_.shape[1]) > 1:
        folds = many(len(set(table["fold"][table["chosen"]])), "fold")
        mean = f"mean {model.best_loss_:.3g} over {folds}"
        return f"validation error of the {averaged} chosen starts {unit}: {mean}; {middle} of all starts"
    names = ["the closest curve" if start < 0 else f"no. {start}" for start in table["start"]]
    best = [f"{loss:.3g} ({name})" for name, loss in zip(names, losses, strict=True)]
    return f"validation error of the best starts {unit}: {', '.join(best[:_WINNERS])}; {middle}"


def _share(error: float, size: float) -> str:
    return f"{100 * error / size:.3g} %" if size > 0 and math.isfinite(error) else "no share"


def list_pieces(curve: Curve, name: str) -> list[tuple[str, str, str]]:
    """Return the pieces of a curve as rows (from, to, line), at most 40."""
    knots, values, slopes = (part.tolist() for part in (curve.knots, curve.values[:, 0], curve.slopes[:, 0]))
    return [
        (f"{a:.6g}", f"{b:.6g}", f"{y:.6g} {_with_sign(slope)} ({name} {_with_sign(-a)})")
        for a, b, y, slope in zip(knots, knots[1:], values, slopes, strict=False)
    ][:_ROWS]


def _with_sign(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value):.6g}"


class OutputFiles(NamedTuple):
    """The files to write: models (of the curve if `few`, else of the network), the plot, and the page."""

    models: Sequence[Path]
    few: bool
    plot: Path | None
    page: Path | None


def check_files(files: OutputFiles, source: str, problem: Problem, activation: str) -> None:
    """Raise UserError, before any work is done, if one of the files could not be written.

    Reasons: the file would replace another one or the table, its extension or folder is wrong, the format cannot hold
    the model, or a package is missing.
    """
    taken = {resolve(source)} if problem.expression is None else set[Path]()
    for path in filter(None, [files.page, files.plot, *files.models]):
        if not path.parent.is_dir():
            raise UserError(f"{escape(path)}: the folder {escape(path.parent)} does not exist; create it first")
        if path.is_dir():
            raise UserError(f"{escape(path)} is a folder; name a file")
        if resolve(path) in taken:
            raise UserError(f"{escape(path)} is named twice, or is the table itself; name another file")
        taken.add(resolve(path))
    if files.plot is not None and ending(files.plot) not in PLOTS:
        raise UserError(f"{escape(files.plot)} must end in one of {' '.join(PLOTS)}")
    for path in files.models:
        _check_model(path, problem, activation)
    needed = ["matplotlib", "jinja2", *(["onnx"] if ".onnx" in map(ending, files.models) else [])]
    if missing := [name for name in needed if not is_installed(name)]:
        raise UserError(describe_missing("writing these files", *missing))


def _check_model(path: Path, problem: Problem, activation: str) -> None:
    from plunit.pieces.formats.exporter import EXPORTERS

    if ending(path) not in EXPORTERS:
        raise UserError(f"{escape(path)} must end in one of {' '.join(EXPORTERS)}")
    if activation not in PIECEWISE:
        raise UserError(
            f"a file of the model needs a piecewise-linear activation: {', '.join(PIECEWISE)}; got {activation}"
        )
    if EXPORTERS[ending(path)].only_curves and (count := len(problem.inputs)) != 1:
        listed = ", ".join(problem.inputs[:8]) + (", ..." if count > 8 else "")
        is_flagged = problem.inputs[1:] == (f"{problem.inputs[0]} is missing",)
        raise UserError(
            f"{escape(path)}: a {path.suffix} file holds a function of 1 input, got {count} ({listed}); .h, .onnx and "
            f".json hold any number{'; or drop rows with missing values' * is_flagged}"
        )


def write_files(
    files: OutputFiles, problem: Problem, found: FitResult, lines: Sequence[str], command: str
) -> Iterator[str]:
    """Write the models, the picture and the page with these lines; yield a line for each file written."""
    from plunit.pieces.formats.exporter import call_note

    for path in files.models:
        yield f"saved {escape(path)}, {_save_model(path, problem, found, few=files.few)}{call_note(path)}"
    if (plot := files.plot) is not None:
        save_whole(plot, _bytes(draw_fit(problem, found), ending(plot).removeprefix("."), 150))
        yield f"saved {escape(plot)}"
    text = _page(problem, found, lines, command)
    if files.page is not None:
        save_whole(files.page, text)
        yield f"saved {escape(files.page)}"
    else:  # if fit.html exists, the first free name of fit-2.html, fit-3.html, ...
        names = (Path(f"fit-{number}.html" if number > 1 else "fit.html") for number in itertools.count(1))
        yield f"saved {escape(save_first_free(names, text))}"


def save_first_free(paths: Iterable[Path], content: str) -> Path:
    """Write the first of these files that does not exist, and return it; simultaneous processes get different files."""
    for path in paths:
        with contextlib.suppress(FileExistsError):
            path.open("x").close()
            save_whole(path, content)
            return path
    raise FileExistsError(errno.EEXIST, "all file names are in use")


def _save_model(path: Path, problem: Problem, found: FitResult, *, few: bool) -> str:
    """Write the curve with few pieces, or the network; return which one."""
    from plunit.pieces import save, save_c
    from plunit.pieces.formats.exporter import c_name

    is_c, curve = ending(path) == ".h", found.reduced if few else None
    names = problem.inputs if curve is None or problem.expression is None else ()
    about = _about_network(problem, found) if curve is None else _about_curve(problem, curve)
    bound = found.proved if curve is None else math.inf if curve.bound is None else curve.bound
    known_to_be = f"the bound is {up(bound)}" if bound < math.inf else "no bound is known"
    missed = [f"Asked for: within {found.asked:g}. NOT proved; {known_to_be}."] if found.missed else []
    labels: dict[str, Any] = {"names": names, "about": "\n".join([about, *missed, *problem.notes])}
    function: Any = found.model.network_ if curve is None else curve.curve
    content = "the network" if curve is None else f"the curve of {many(curve.curve.pieces, 'piece')}"
    box = problem.box.tolist() if curve is None else None
    if not is_c:
        save(function, path, box, **labels)
        return content
    if found.fixed is not None and curve is None:
        function, box, content = (
            found.fixed.network,
            None,
            f"the network with weights of {found.fixed.network.bits} bits",
        )
    if problem.expression is not None:  # x and y may be names in the formula as well
        labels["names"] = [
            f"the formula's {name}, in [{low!r}, {high!r}]"
            for name, (low, high) in zip(names, problem.box.tolist(), strict=False)
        ]
    known = found.largest if curve is None else curve
    save_c(function, path, c_name(path), box=box, **labels, fitted=known.bound if known else None)
    return content


def _about_network(problem: Problem, found: FitResult) -> str:
    """Return the errors of the network against the function or the rows, before any rounding in C."""
    if (largest := found.largest) is None:
        about, rmse, seen = "The network against its training rows:", found.rmse, _largest_on_rows(problem, found)
        if n := len(found.tests):
            times = "once" if n == 1 else f"{n} times"
            about = f"Tested by fitting to four fifths of the rows, {times}: on the other rows"
            rmse, seen = float(np.mean(found.tests)), found.seen
        errors = f"root mean square error {rmse:.4g}, largest error {seen:.4g} (observed, not a bound)"
        return f"y[0] = {problem.target} of {problem.title}.\n{about}\n{errors}."
    about = f"y[0] approximates f = {problem.title}.\nThe network against this formula:"
    return f"{about} largest error {_largest(problem, largest)}."


def _largest_on_rows(problem: Problem, found: FitResult) -> float:
    return float(np.abs(found.model.predict(problem.x) - problem.y).max())


def _about_curve(problem: Problem, few: Reduced) -> str:
    """Return the source and the error of a curve."""
    if few.of == "f":
        return f"f = {problem.title}: largest error {_error(few.error, few.bound, few.note)}."
    kind = "root mean square error" if few.of == "the rows" else "largest distance"
    return f"{problem.target} = f({problem.inputs[0]}) of {problem.title}: {kind} {few.error:.4g} from {few.of}."


def _page(problem: Problem, found: FitResult, lines: Sequence[str], command: str) -> str:
    """Return a self-contained HTML page, whose pictures use the page's text colour."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    few = found.reduced.curve if found.reduced else None
    pages = Environment(loader=PackageLoader("plunit.fitting"), autoescape=select_autoescape())
    return pages.get_template("page.html").render(
        title=problem.title,
        lines=lines,
        pictures=_pictures(problem, found),
        rows=list_pieces(few, problem.inputs[0]) if few else [],
        heading=many(few.pieces, "piece") if few else "",
        more=few and max(0, few.pieces - _ROWS),
        target=problem.target,
        command=command,
        about=f"plunit {plunit.__version__}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
    )


def _pictures(problem: Problem, found: FitResult) -> list[str]:
    """Return each panel as SVG with selectable text, in the page's colour instead of black."""
    import matplotlib

    parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: Any = {"svg.fonttype": "none", "axes.facecolor": "none", "figure.facecolor": "none"}
    with matplotlib.rc_context(style | dict.fromkeys(parts, _INK)):
        texts = [_bytes(figure, "svg", 150).decode() for figure in draw_panels(problem, found)]
    return [text[text.index("<svg") :].replace(_INK, "currentColor") for text in texts]


def _bytes(figure: Any, form: str, dpi: int | str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=dpi)
    return buffer.getvalue()
