"""The commands of saved networks: `plunit pieces` prints their pieces, `plunit prove` decides a VNN-LIB property."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from typer.core import TyperCommand

from plunit import pieces
from plunit.base.errors import UserError, escape
from plunit.base.files import resolve, save_whole
from plunit.base.progress import bars
from plunit.cli import NOT_SHOWN
from plunit.pieces import Curve, Network, Polygons, curve, polygons
from plunit.pieces.boxes import many
from plunit.pieces.exact.limits import Report
from plunit.pieces.formats.exporter import call_note, check_ending
from plunit.pieces.formats.reading import read_model
from plunit.pieces.formats.vnnlib_networks import load_question

_ROWS = 40
DEFAULT = f"{-math.tau} {math.tau}"

WORDS = {"proved": "unsat", "refuted": "sat", "undecided": "unknown"}
CODES = {"proved": 0, "refuted": 10, "undecided": NOT_SHOWN}
"""Exit codes. 10 is what SAT solvers say for sat; their 20 is unsat, and so it is not used for anything else."""

_GIVE_NETWORK, _GIVE_PROPERTY = "give the file of a network", "give a .vnnlib file"

Sides = tuple[tuple[float, float], ...]


class BoxCommand(TyperCommand):
    """A command whose option --box takes its numbers in one argument (-2,2) or in several (-2 2)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the numbers that follow --box: an option of typer takes a fixed number of arguments."""
        start = args.index("--box") + 1 if "--box" in args else len(args)
        numbers = list(itertools.takewhile(_is_number, args[start:]))
        joined = [" ".join(numbers)] if numbers else []
        return super().parse_args(ctx, [*args[:start], *joined, *args[start + len(numbers) :]])


def _is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        return not math.isnan(float(word))
    return False


def pieces_of(
    model: Annotated[
        Path, typer.Argument(help="Network file: ONNX, JSON, .nnet, or an nn.Sequential saved by torch.save.")
    ],
    box: Annotated[
        str | None,
        typer.Option(
            metavar="LOW HIGH ...",
            help="Domain: low and high for all inputs (-2 2), or for each (-2 2 0 1); -2 pi to 2 pi by default.",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="C,H,W", help="Input shape of a PyTorch model with convolutions or pooling."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT", help="Write the network to a file: .h (C), .onnx or .json; .csv lists its pieces in the box."
        ),
    ] = None,
    maximum: Annotated[bool, typer.Option("--maximum", help="Print the proved maximum of the first output.")] = False,
) -> None:
    """Print the exact linear pieces of a saved network: knots, slopes and intercepts, or a summary of its polygons."""
    chosen = DEFAULT if box is None else box
    with _one_line(_GIVE_NETWORK):
        model.stat()
        given, _ = _shape_of(shape), _numbers(chosen)  # options are checked before any package is imported
        if save is not None:
            check_ending(save)
        net, found = _load(model, given)
    domain = domain_of(net, chosen)
    if net.inputs > 2 and save is None and not maximum:
        raise UserError(
            f"the model has {net.inputs} inputs; pieces can be listed for 1 or 2. Use --maximum for a proved maximum, "
            "--save to export, or plunit.pieces.along and plane for a cut."
        )
    if save is not None:
        with _one_line("choose another place with --save"):
            pieces.save(net, save, domain)
    with _progress("pieces") as show:
        found[:0] = lines(net, domain, show) if net.inputs <= 2 else []
        if maximum:
            found.append(describe_maximum(net, domain, show))
    if box is None:
        found.append(f"box: [{-math.tau:.6g}, {math.tau:.6g}] for every input, by default; choose another with --box")
    if save is not None:
        found.append(f"saved as {save}{call_note(save)}")
    print(*found, sep="\n")


def _load(path: Path, shape: tuple[int, ...] | None = None) -> tuple[Network, list[str]]:
    """Return the network of a file, and notes on how the two differ."""
    model = read_model(path, shape)
    return model.network, [f"note: {escape(line)}" for line in model.notes(path)]


def domain_of(net: Network, box: str) -> Sides:
    """Return low and high of every input from --box: two numbers for all inputs, or two for each."""
    numbers = _numbers(box)
    if len(numbers) not in (2, 2 * net.inputs):
        rule = "low and high" if net.inputs == 1 else f"2 numbers for all or {2 * net.inputs} for each"
        raise UserError(f"the model has {many(net.inputs, 'input')}, so --box needs {rule}, got {len(numbers)} numbers")
    if len(numbers) == 2:
        numbers *= net.inputs
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _numbers(box: str) -> list[float]:
    try:
        numbers = [float(word) for word in box.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if not numbers:
        raise UserError(f"--box needs numbers, low and high of all inputs or of each, got {box!r}")
    return numbers


def lines(net: Network, domain: Sides, progress: Report | None = None) -> list[str]:
    """Return the pieces of a network of one input, or the polygons of one of two inputs."""
    with _one_line():
        if net.inputs == 1:
            return list(_curve(curve(net, *domain[0], progress=progress)))
        return list(_polygons(polygons(net, (domain[0], domain[1]), progress=progress)))


def describe_maximum(net: Network, domain: Sides, progress: Report | None = None) -> str:
    """Return the largest value on the domain, where it is, and whether it is proved."""
    with _one_line():
        found = pieces.maximum(net, domain, progress=progress)
    place = ", ".join(f"{number:.6g}" for number in np.atleast_1d(found.x))
    proof = "proved" if found.proved else f"not proved: at most {found.bound:.9g}"
    return f"maximum {found.value:.9g} at x = [{place}], {proof}"


def _shape_of(text: str | None) -> tuple[int, ...] | None:
    words = [] if text is None else text.replace(",", " ").split()
    if text is not None and not (words and all(re.fullmatch(r"0*[1-9]\d{0,8}", word, re.ASCII) for word in words)):
        raise UserError(f"--shape needs positive integers, as in 3,32,32, got {text[:80]!r}")
    return tuple(map(int, words)) or None


@contextlib.contextmanager
def _one_line(remedy: str = "") -> Iterator[None]:
    """Turn errors of `plunit.pieces` into user errors; the remedy is for a missing file."""
    try:
        yield
    except (ImportError, ValueError) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{escape(error.filename)}: {error.strerror}; {remedy}") from None


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Report]:
    """Show a bar on a terminal; yield the function that moves it."""
    with bars(Console(stderr=True)) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done, text: bar.update(task, completed=done, description=text)


def _curve(f: Curve) -> Iterator[str]:
    """Yield f(x) = slope x + intercept on each piece, the first `_ROWS` of them."""
    merged = f.merge()
    outputs = range(merged.values.shape[1])
    names = [f"{word} {i + 1}" if len(outputs) > 1 else word for i in outputs for word in ("slope", "intercept")]
    yield _row("from", "to", *names)
    lines = np.stack([merged.slopes, merged.intercepts], axis=-1).reshape(merged.pieces, -1)
    for row in np.column_stack([merged.knots[:-1], merged.knots[1:], lines])[:_ROWS]:
        yield _row(*(f"{number:.6g}" for number in row))
    if merged.pieces > _ROWS:
        yield f"... {merged.pieces - _ROWS} more"
    yield f"{many(f.pieces, 'piece')}, {many(f.patterns, 'activation pattern')} on [{f.low:.6g}, {f.high:.6g}]"


def _polygons(found: Polygons) -> Iterator[str]:
    """Yield least, median and largest of the polygons' areas and of their largest slopes, and the counts."""
    steepest = np.linalg.norm(found.gradients, ord=2, axis=(1, 2))
    yield _row("", "least", "median", "largest")
    for name, column in (("area", found.areas), ("steepness", steepest)):
        yield _row(name, *(f"{number:.6g}" for number in np.quantile(column, [0, 0.5, 1])))
    sides = " x ".join(f"[{low:.6g}, {high:.6g}]" for low, high in found.box)
    counts = f"{many(found.pieces, 'piece')}, {many(found.patterns, 'polygon')} (activation patterns)"
    yield f"{counts} on {sides}, area {found.areas.sum():.6g}"


def _row(*columns: str) -> str:
    return " ".join(f"{column:>13}" for column in columns).rstrip()


def prove_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[NET] PROPERTY.vnnlib",
            help="Network file (ONNX, .nnet, JSON, or saved by torch.save), and VNN-LIB file (.vnnlib or .vnnlib.gz).",
        ),
    ],
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NET", help="Network for a name in a VNN-LIB 2.0 property, instead of NET; repeatable."
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Give up after this many seconds (0: no limit).")
    ] = 60.0,
    witness: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer and the counterexample to a file.")
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option(metavar="16|8", help="Prove it for the C program in fixed point, for every integer input."),
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(
            metavar="LOW HIGH ...",
            help="Box that the program in fixed point is made for; by default that of the property.",
        ),
    ] = None,
    float_: Annotated[bool, typer.Option("--float", help="Prove it for the C program in float.")] = False,
    double: Annotated[bool, typer.Option("--double", help="Prove it for the C program in double.")] = False,
) -> None:
    """Prove that no input of a network satisfies the formula of a VNN-LIB file, or find one that does.

    Prints the answer in the format of VNN-COMP. Exit code 0: unsat, proved that there is none. 10: sat, with the input
    X and the output Y of the network, or of the program with --bits, --float or --double. 30: unknown, with the reason.
    2: invalid files or options. 130: Ctrl-C.
    """
    if bits not in (None, 8, 16):
        raise UserError(f"--bits must be 16 or 8, got {bits}")
    if (bits is not None) + float_ + double > 1 or (bits is None and box is not None):
        raise UserError("give only one of --bits, --float and --double; --box LOW HIGH goes with --bits")
    *nets, formula = files
    named = dict(_parse_name(text) for text in network or ())
    if len(nets) != (0 if named else 1) or len(named) != len(network or ()):
        raise UserError("give a network and a property, or a property and --network NAME=NET once for each network")
    if nets and _is_property(nets[0]) and not _is_property(formula):
        raise UserError(
            f"{escape(nets[0])} is a property; the network comes first: "
            f"plunit prove {escape(formula)} {escape(nets[0])}"
        )
    read = [*nets, *named.values(), formula]
    for path in read:  # before importing the packages that read them
        with _one_line(_GIVE_PROPERTY if path is formula else _GIVE_NETWORK):
            os.stat(path)
    if witness is not None:
        _check_place(witness, read)
    net, wanted, names, notes = _question(formula, named or {"": nets[0]})
    with _one_line():
        if bits is not None:
            program: Any = pieces.quantize(net, outer_box(wanted) if box is None else domain_of(net, box), bits)
        else:
            program = pieces.FloatNetwork(net, "float" if float_ else "double") if float_ or double else net
    with _progress("prove") as show, _one_line():
        verdict = pieces.holds(program, wanted, time_limit=time_limit or None, progress=show)
    lines = [WORDS[verdict.status]]
    if verdict.x is not None and verdict.y is not None:
        lines.append(assignment(names, [*verdict.x, *verdict.y]))
    reason = [verdict.reason] if verdict.status == "undecided" else []
    if verdict.q is not None:
        notes.append(f"note: the program reads the integers {verdict.q.tolist()} for this input")
    try:  # the file first: the output may be a pipe that nobody reads
        if witness is not None:
            save_whole(witness, "\n".join(lines) + "\n")
    finally:
        print(*lines, *reason, *notes, sep="\n", flush=True)
    raise typer.Exit(CODES[verdict.status])


def outer_box(asked: pieces.Property) -> Sides:
    """Return the smallest box that contains those of all cases; UserError if an input is fixed in it."""
    boxes = np.stack([case.box for case in asked.cases])
    found = tuple(zip(boxes[..., 0].min(axis=0).tolist(), boxes[..., 1].max(axis=0).tolist(), strict=True))
    if fixed := [i for i, (low, high) in enumerate(found) if low == high]:
        raise UserError(
            f"the property fixes input {fixed[0]} at {found[fixed[0]][0]!r}; give the box of the program with --box"
        )
    return found


def _is_property(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".vnnlib")


def _parse_name(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UserError(f"--network {escape(text)} must be NAME=NET, as in --network f=net.onnx")
    return name, Path(path)


def _question(
    formula: Path, paths: dict[str, Path]
) -> tuple[pieces.Network, pieces.Property, dict[str, int], list[str]]:
    """Return the network, the property, the names of all variables with their positions in (x, y), and notes."""
    nets, notes = {}, list[str]()
    with _one_line(_GIVE_NETWORK):
        for name, path in paths.items():
            nets[name], found = _load(path)
            notes += found
    with _one_line(_GIVE_PROPERTY):
        asked = load_question(formula)
    try:
        if isinstance(asked, pieces.Specification):
            if set(nets) == {""} and len(only := set(asked.weights.values())) == 1:
                nets = {only.pop(): nets[""]}
            return asked.together(nets), asked.property, asked.names, notes
        if set(nets) != {""}:
            raise ValueError("VNN-LIB 1.0 names no networks; give NET instead of --network")
        asked.check_fits(nets[""])
    except ValueError as error:
        every = " and ".join(escape(path) for path in paths.values())
        raise UserError(f"{every} and {escape(formula)} do not match: {error}") from None
    letters = [*(f"X_{i}" for i in range(asked.inputs)), *(f"Y_{i}" for i in range(asked.outputs))]
    return nets[""], asked, {name: i for i, name in enumerate(letters)}, notes


def assignment(names: dict[str, int], values: Sequence[float]) -> str:
    """Return a counterexample as VNN-COMP writes it, with the digits that give back the same numbers.

    >>> print(assignment({"X_0": 0, "X_1": 1, "Y_0": 2}, [0.5, 1.0, -2.0]))
    ((X_0 0.5)
     (X_1 1.0)
     (Y_0 -2.0))
    """
    return f"({chr(10).join(f'({name} {float(values[i])!r})' for name, i in names.items())})".replace("\n", "\n ")


def _check_place(witness: Path, read: Sequence[Path]) -> None:
    """Raise UserError if the witness cannot be written, or would replace an input file."""
    if not witness.parent.is_dir() or (witness.exists() and not witness.is_file()):
        raise UserError(
            f"--witness {escape(witness)} must be a file in a folder that exists; create it, or give another file"
        )
    try:
        place = resolve(witness)
    except OSError:  # a loop of links
        raise UserError(f"--witness {escape(witness)} cannot be written; give another file") from None
    if place in map(resolve, read):
        raise UserError(f"--witness {escape(witness)} would replace an input file; give another file")
