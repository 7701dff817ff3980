"""The public names of `plunit.pieces`."""

import ast
import importlib
from pathlib import Path

from plunit import pieces


def test_exports_are_sorted_and_there():
    assert pieces.__all__ == sorted(pieces.__all__)
    assert set(pieces.__all__) <= set(dir(pieces))
    assert all(hasattr(pieces, name) for name in pieces.__all__)
    assert not hasattr(pieces, "nothing")


def test_what_is_loaded_later_is_what_type_checkers_see():
    (block,) = (node for node in ast.parse(Path(pieces.__file__).read_text()).body if isinstance(node, ast.If))
    seen = [(one.module, alias.name) for one in block.body for alias in one.names]
    assert [
        name for module, name in seen if getattr(importlib.import_module(module), name) is not getattr(pieces, name)
    ] == []
