"""The library's errors do not speak of the command line: it has users of its own, and a page."""

import ast
import re
from pathlib import Path

import plunit

SOURCE = Path(plunit.__file__).parent
COMMANDS = ("cli", "lab", "play")  # the lab's requests are those of its commands


def options_in_errors(text):
    """Return the options of a command line that strings in `raise` and in calls of errors name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        named = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
        if named or isinstance(node, ast.Raise):
            strings = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            found |= {option for part in strings for option in re.findall(r"(?<!\S)--[a-z]+", str(part))}
    return found


def test_errors_name_no_options():
    library = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in COMMANDS]
    assert {path: found for path in library if (found := options_in_errors(path.read_text(encoding="utf-8")))} == {}


def test_the_test_can_fail():
    assert options_in_errors("raise UserError(f'{x} is wrong; choose another with --inputs')") == {"--inputs"}
    assert options_in_errors("def f():\n    return UserError('take --to or another')") == {"--to"}
