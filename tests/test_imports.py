"""Imports go one way: functional, gain -> frameworks, pieces -> invertible, ensemble -> lab -> cli."""

import ast
from pathlib import Path

import pytest

import plunit

ROOT = Path(plunit.__file__).parent
LEVELS = {
    "cache": 0,
    "csv_layout": 0,
    "csv_numbers": 0,
    "csv_text": 0,
    "errors": 0,
    "functional": 0,
    "learned": 0,
    "numpy": 0,
    "parquet_numbers": 0,
    "tabular": 0,
    "gain": 0,
    "pieces": 1,
    "torch": 2,
    "jax": 2,
    "keras": 2,
    "invertible": 3,
    "ensemble": 3,
    "lab": 4,
    "cli": 5,
}


def part_of(module):
    """Return the part of plunit a dotted module name belongs to, or None."""
    names = module.split(".")
    return names[1] if names[0] == "plunit" and len(names) > 1 and names[1] in LEVELS else None


def imported_parts(source):
    """Return the parts of plunit a source text imports, wherever in the text it does."""
    parts = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts |= {part_of(name) for name in names}
    return parts - {None}


def upward(part, source):
    """Return the imported parts that a part must not know: those of a higher level, or another of its own."""
    return {other for other in imported_parts(source) if other != part and LEVELS[other] >= max(LEVELS[part], 1)}


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_imports_upwards(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert part in LEVELS, f"give {part} a level"
    assert not upward(part, path.read_text())


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("torch", "from plunit.lab import store"),
        ("jax", "import plunit.torch"),
        ("functional", "def f():\n    from plunit import torch"),
    ],
)
def test_the_rule_can_fail(part, source):
    assert upward(part, source)
