"""The command `plunit prove`: whether any input of a network fulfils the formula of a VNN-LIB file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from plunit import pieces
from plunit.base.errors import UserError, shown
from plunit.base.files import save_whole
from plunit.base.progress import bars
from plunit.pieces.formats.vnnlib import is_specification

WORDS = {"proved": "unsat", "refuted": "sat", "undecided": "unknown"}
CODES = {"proved": 0, "refuted": 10, "undecided": 30}
"""Exit codes. 10 is what SAT solvers say for sat; their 20 is unsat, and so it is not used for anything else."""

NETWORK, SPECIFICATION = "the file of a network", "a .vnnlib file"

Thing = TypeVar("Thing")


def prove_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[NET] PROPERTY.vnnlib",
            help="A network (ONNX, .nnet, JSON, or by torch.save), and what must not happen; may end in .gz.",
        ),
    ],
    network: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NET", help="A network of a property in VNN-LIB 2.0, in place of NET."),
    ] = None,
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
    *nets, formula = files
    named = dict(_named(text) for text in network or ())
    if len(nets) != (0 if named else 1) or len(named) != len(network or ()):
        raise UserError("give a network and a property, or a property and --network NAME=NET once for each network")
    for path, remedy in (*((path, NETWORK) for path in (*nets, *named.values())), (formula, SPECIFICATION)):
        _read(os.stat, path, remedy)  # before packages are imported that read them
    if witness is not None:
        _check_place(witness, (*nets, *named.values(), formula))
    net, wanted, names = _question(formula, named or {"": nets[0]})
    verdict = _decided(net, wanted, time_limit or None)
    lines = [WORDS[verdict.status]]
    if verdict.x is not None and verdict.y is not None:
        lines.append(assignment(names, [*verdict.x, *verdict.y]))
    print(*lines, *([verdict.reason] if verdict.status == "undecided" else []), sep="\n", flush=True)
    if witness is not None:
        save_whole(witness, "\n".join(lines) + "\n")
    raise typer.Exit(CODES[verdict.status])


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UserError(f"--network {shown(text)} must be NAME=NET, as in --network f=net.onnx")
    return name, Path(path)


def _question(formula: Path, paths: dict[str, Path]) -> tuple[pieces.Network, pieces.Property, dict[str, int]]:
    """Return the network, the property, and the names of all variables with their places in (x, y)."""
    nets = {name: _read(pieces.load, path, NETWORK) for name, path in paths.items()}
    try:
        if is_specification(formula):
            asked = _read(pieces.load_specification, formula, SPECIFICATION)
            if set(nets) == {""} and len(only := set(asked.weights.values())) == 1:
                nets = {only.pop(): nets[""]}
            return asked.together(nets), asked.property, asked.names
        wanted = _read(pieces.load_vnnlib, formula, SPECIFICATION)
        if set(nets) != {""}:
            raise ValueError("VNN-LIB 1.0 names no networks; give NET instead of --network")
        wanted.check_fits(nets[""])
    except ValueError as error:
        every = " and ".join(shown(path) for path in paths.values())
        raise UserError(f"{every} and {shown(formula)} do not fit: {error}") from None
    letters = [*(f"X_{i}" for i in range(wanted.inputs)), *(f"Y_{i}" for i in range(wanted.outputs))]
    return nets[""], wanted, {name: i for i, name in enumerate(letters)}


def assignment(names: dict[str, int], values: Sequence[float]) -> str:
    """Return a counterexample as VNN-COMP writes it, with the digits that give back the same numbers.

    >>> print(assignment({"X_0": 0, "X_1": 1, "Y_0": 2}, [0.5, 1.0, -2.0]))
    ((X_0 0.5)
     (X_1 1.0)
     (Y_0 -2.0))
    """
    return f"({chr(10).join(f'({name} {float(values[i])!r})' for name, i in names.items())})".replace("\n", "\n ")


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
