"""A cell: one (spec, activation, chunk of seeds), the unit of work, storage and resumption.

The key of a cell is a hash of everything that determines its result. The source is part of that: the module that
computes the cell, all files of plunit that this module imports, and the versions of the libraries that these import.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import hashlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from plunit import __version__

Arrays = dict[str, np.ndarray[Any, Any]]
"""The result of a cell: arrays with the seeds on the last axis, `seed` among them."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """Everything that determines a result.

    Attributes:
        experiment: its name, a variant's own.
        spec: a frozen dataclass of plain values; a field with compare=False does not determine the result.
        activation: one of the choices of its experiment.
        first: the first seed.
        last: the seed after the last.
        engine: "native" or "numpy" for an ensemble, "" for any other program.
        program: a hash of the source that computes it; see `program_of`.
    """

    experiment: str
    spec: Any
    activation: str
    first: int
    last: int
    engine: str
    program: str

    @property
    def seeds(self) -> range:
        """The seeds of the cell."""
        return range(self.first, self.last)

    def describe(self) -> dict[str, Any]:
        """Return all that determines the result, as plain values."""
        aside = {field.name for field in dataclasses.fields(self.spec) if not field.compare}
        spec = {name: value for name, value in dataclasses.asdict(self.spec).items() if name not in aside}
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**plain, "spec": spec, "plunit": __version__}

    @property
    def key(self) -> str:
        """A hash of all that determines the result."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


PACKAGE = Path(__file__).parents[1]
_HARMLESS = {"matplotlib", "mpl_toolkits", "pyarrow"}
"""Libraries that draw, or read and write files: their versions change no result."""


def program_of(function: Callable[..., Any]) -> str:
    """Hash its module, what that imports of plunit, all of another package that it is in, and versions of libraries."""
    return _program(Path(inspect.getfile(inspect.unwrap(function))).resolve())


def digest(module: Path, package: Path = PACKAGE) -> str:
    """Hash the files in the import closure of a module and the versions of the libraries they import."""
    files = closure(module, package)
    names = {os.path.relpath(file, package if file.is_relative_to(package) else module.parent): file for file in files}
    text = hashlib.sha256()
    for name in sorted(names):
        text.update(f"{name}\0".encode() + names[name].read_bytes() + b"\0")
    for library, version in sorted(_libraries(files, {package.name, _top(module).name})):
        text.update(f"{library} {version}\0".encode())
    return text.hexdigest()[:16]


def closure(module: Path, package: Path = PACKAGE) -> list[Path]:
    """Return the files that a module needs inside a package: itself, its imports, theirs, and compiled sources.

    Importing a.b runs a/__init__.py too. A folder `csrc` belongs to the modules next to it.
    """
    single = module.is_relative_to(package) or not (_top(module) / "__init__.py").exists()
    todo, found = [module] if single else sorted(_top(module).rglob("*.py")), set[Path]()
    while todo:
        file = todo.pop()
        if file in found:
            continue
        found.add(file)
        if file.suffix == ".py":
            inside = file.is_relative_to(package)
            own = ".".join((package.name, *file.relative_to(package).with_suffix("").parts)) if inside else ""
            todo += [path for name in (own, *_names(file.read_bytes())[0]) for path in _files(name, package)]
            todo += sorted(file.parent.glob("csrc/*")) if inside else []
    return sorted(found)


@functools.cache
def _program(module: Path) -> str:
    return digest(module)


def _top(module: Path) -> Path:
    """Return the outermost folder of the package that a module is in; its folder, if it is in none."""
    top = module.parent
    while (top.parent / "__init__.py").exists():
        top = top.parent
    return top


def _libraries(files: list[Path], hashed: set[str]) -> set[tuple[str, str]]:
    """Return distribution and version of what files import, except the standard library and packages that are hashed.

    Packages that are not installed as a distribution have no version.
    """
    roots = {name.partition(".")[0] for file in files if file.suffix == ".py" for name in _names(file.read_bytes())[0]}
    found = set[tuple[str, str]]()
    for root in roots - hashed - _HARMLESS - sys.stdlib_module_names:
        for library in _distributions().get(root, [root]):
            with contextlib.suppress(metadata.PackageNotFoundError):
                found.add((library, metadata.version(library)))
    return found


@functools.cache
def _distributions() -> dict[str, list[str]]:
    """Return the distributions that bring each name to import; Python 3.10 knows only those that list their names."""
    return {"sklearn": ["scikit-learn"], **metadata.packages_distributions()}


@functools.cache
def _names(source: bytes) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the dotted names that a source imports anywhere, and those in `if TYPE_CHECKING`, by name."""
    found: list[str] = []
    for node in ast.walk(tree := ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:  # a relative one is in the package
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    typed = [one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    inside = (one for block in typed for one in block.body if isinstance(one, ast.ImportFrom))
    later = {alias.name: f"{one.module}.{alias.name}" for one in inside for alias in one.names}
    return tuple(name for name in found if name not in later.values()), later


def _files(name: str, package: Path) -> Iterator[Path]:
    """Yield the files that importing a dotted name runs; the last part of the name may be a function of a module."""
    root, *parts = name.split(".")
    if root != package.name or parts == ["__version__"]:  # the key has the version of plunit
        return
    # plunit/__init__.py makes names for users and loads frameworks when these are called: not by importing plunit.x
    inside = bool(parts) and any((package / f"{parts[0]}{end}").exists() for end in ("", ".py"))
    for depth in range(inside, len(parts) + 1):
        place = package.joinpath(*parts[:depth])
        yield from (path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file())
    # a package may load a name when it is used, and name its module for type checkers only
    above = package.joinpath(*parts[:-1], "__init__.py")
    if parts and above.is_file() and (later := _names(above.read_bytes())[1].get(parts[-1])):
        yield from _files(later, package)
