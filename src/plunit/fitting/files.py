"""The files of a fit: what may be written where, and what they hold."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from plunit.data.csv_text import shown
from plunit.ensemble.members import PIECEWISE
from plunit.errors import UserError
from plunit.extras import is_installed
from plunit.files import ending
from plunit.fitting.problems import Problem
from plunit.fitting.reducing import Reduced
from plunit.fitting.solving import Found
from plunit.fitting.telling import error_text
from plunit.pieces import Curve, save, save_c, save_csv, save_json, save_onnx, save_svg
from plunit.pieces.formats.saving import EXPORTERS, c_name

Writer = Callable[[Found, Problem, Path], None]

PACKAGES = {".onnx": ("onnx", "onnx"), ".safetensors": ("safetensors", "'plunit[lab]'")}
"""What writes files of an ending and is not part of plunit: the package, and what to install."""

DRAWING = tuple((name, "'plunit[lab]'") for name in ("matplotlib", "jinja2"))
"""What draws the picture and writes the page, and what to install."""

CURVES: dict[str, Callable[[Curve, Path, str], None]] = {
    ".h": lambda curve, to, about: save_c(curve, to, c_name(to), about=about),
    ".onnx": lambda curve, to, about: save_onnx(curve, to),
    ".json": lambda curve, to, about: save_json(curve, to),
    ".csv": lambda curve, to, about: save_csv(curve, to),
    ".svg": lambda curve, to, about: save_svg(curve, to),
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
