"""What `plunit.pieces` exports, and what it must not import."""

import subprocess
import sys

import pytest

from plunit import pieces


def test_exports_are_sorted_and_there():
    assert pieces.__all__ == sorted(pieces.__all__)
    assert all(hasattr(pieces, name) for name in pieces.__all__)


def loaded_by(statement):
    code = f"import sys; {statement}; print(*(m for m in ('torch', 'jax', 'matplotlib', 'onnx') if m in sys.modules))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_import_needs_numpy_only():
    assert loaded_by("import plunit.pieces") == []


def test_the_import_test_can_fail():
    pytest.importorskip("matplotlib")
    assert loaded_by("import plunit.pieces, matplotlib") == ["matplotlib"]
