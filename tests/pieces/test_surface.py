"""What `plunit.pieces` exports, and what it must not import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from plunit import pieces


def test_exports_are_sorted_and_there():
    assert pieces.__all__ == sorted(pieces.__all__)
    assert all(hasattr(pieces, name) for name in pieces.__all__)


def test_what_is_loaded_later_is_what_type_checkers_see():
    tree = ast.parse(Path(pieces.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: one.module.removeprefix("plunit.pieces.") for one in block.body for alias in one.names}
    assert seen == pieces._LATER
    assert set(seen) <= set(pieces.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'plunit\.pieces' has no attribute 'nothing'"):
        _ = pieces.nothing
    assert set(pieces.__all__) <= set(dir(pieces))


def loaded_by(statement):
    code = f"import sys; {statement}; print(*(m for m in ('torch', 'jax', 'matplotlib', 'onnx') if m in sys.modules))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_import_needs_numpy_only():
    assert loaded_by("import plunit.pieces") == []


def test_the_import_test_can_fail():
    pytest.importorskip("matplotlib")
    assert loaded_by("import plunit.pieces, matplotlib") == ["matplotlib"]
