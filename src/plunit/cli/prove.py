"""The command `plunit prove`: whether any input of a network fulfils the formula of a VNN-LIB file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from plunit import pieces
from plunit.base.errors import UserError, shown
from plunit.base.files import save_whole
from plunit.base.progress import bars
from plunit.pieces.arrays import Floats

WORDS = {"proved": "unsat", "refuted": "sat", "undecided": "unknown"}
CODES = {"proved": 0, "refuted": 10, "undecided": 30}
"""Exit codes. 10 is what SAT solvers say for sat; their 20 is unsat, and so it is not used for anything else."""

Thing = TypeVar("Thing")


def prove_(
    net: Annotated[Path, typer.Argument(metavar="NET", help="A network: ONNX, .nnet, JSON, or by torch.save.")],
    formula: Annotated[
        Path, typer.Argument(metavar="PROPERTY.vnnlib", help="What must not happen, in VNN-LIB 1.0; may end in .gz.")
    ],
    time_limit: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Give up after this many seconds; 0 for no limit.")
    ] = 60.0,
    witness: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer and the counterexample to a file.")
    ] = None,
) -> None:
    """Prove that no input of a network fulfils the formula of a VNN-LIB file, or find one that does.

    Prints the answer as VNN-COMP does. Exit code 0: unsat, proved that there is none. 10: sat, with the input X and the
    output Y of the network. 30: unknown, with the reason. 2: the files or options cannot be used. 130: Ctrl-C.
    """
    network = _read(pieces.load, net, "the file of a network")
    wanted = _read(pieces.load_vnnlib, formula, "a .vnnlib file")
    try:
        wanted.check_fits(network)
    except ValueError as error:
        raise UserError(f"{shown(net)} and {shown(formula)} do not fit: {error}") from None
    if witness is not None:
        _check_place(witness, (net, formula))
    verdict = _decided(network, wanted, time_limit or None)
    lines = [WORDS[verdict.status]]
    if verdict.x is not None and verdict.y is not None:
        lines.append(assignment(verdict.x, verdict.y))
    print(*lines, *([verdict.reason] if verdict.status == "undecided" else []), sep="\n", flush=True)
    if witness is not None:
        save_whole(witness, "\n".join(lines) + "\n")
    raise typer.Exit(CODES[verdict.status])


def assignment(x: Floats, y: Floats) -> str:
    """Return a counterexample as VNN-COMP writes it, with the digits that give back the same numbers.

    >>> print(assignment([0.5, 1.0], [-2.0]))
    ((X_0 0.5)
     (X_1 1.0)
     (Y_0 -2.0))
    """
    pairs = [
        f"({letter}_{i} {float(value)!r})"
        for letter, part in zip("XY", (x, y), strict=True)
        for i, value in enumerate(part)
    ]
    return f"({chr(10).join(pairs)})".replace("\n", "\n ")


def _read(load: Callable[[Path], Thing], path: Path, remedy: str) -> Thing:
    try:
        return load(path)
    except (ImportError, ValueError) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{shown(path)}: {error.strerror}; give {remedy}") from None


def _check_place(witness: Path, read: tuple[Path, ...]) -> None:
    """Raise UserError if the witness cannot be written, or would replace a file that is read."""
    if not witness.parent.is_dir() or (witness.exists() and not witness.is_file()):
        raise UserError(f"--witness {shown(witness)} must be a file in a folder that exists; make it, or name another")
    try:
        place = witness.resolve()
    except (OSError, RuntimeError):  # a loop of links
        raise UserError(f"--witness {shown(witness)} cannot be written; name another file") from None
    if place in (path.resolve() for path in read):
        raise UserError(f"--witness {shown(witness)} would replace a file that is read; name another")


def _decided(network: pieces.Network, wanted: pieces.Property, time_limit: float | None) -> pieces.Verdict:
    """Return the verdict; a bar on a terminal shows how far it is."""
    with bars(Console(stderr=True)) as bar:
        task = bar.add_task("prove", total=1.0)
        try:
            return pieces.holds(
                network,
                wanted,
                time_limit=time_limit,
                progress=lambda done, text: bar.update(task, completed=done, description=text),
            )
        except (ImportError, ValueError) as error:
            raise UserError(str(error)) from None
