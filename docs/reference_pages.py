"""The pages of the reference, from the modules that have an `__all__`."""

import ast
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src"
ARRAY = re.compile(r"ndarray\[(tuple\[Any, \.\.\.\]|Any), (dtype\[\w+\]|Any)\]")
"""How Sphinx writes the type of a NumPy array."""


def module_path(module: str) -> Path:
    """Return the file of a module of plunit."""
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@functools.cache
def public_names() -> dict[str, list[str]]:
    """Return `__all__` of every module that has one, by reading the source."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                parts = path.relative_to(SOURCE).with_suffix("").parts
                found[".".join(part for part in parts if part != "__init__")] = ast.literal_eval(node.value)
    return found


def origins(module: str) -> dict[str, str | None]:
    """Return the module that each imported name of a module comes from."""
    body = ast.parse(module_path(module).read_text(encoding="utf-8")).body
    return {name.name: node.module for node in body if isinstance(node, ast.ImportFrom) for name in node.names}


def constants(module: str) -> dict[str, str]:
    """Return the imported public names that are neither classes nor functions, each with the text below it."""
    origin, found = origins(module), {}
    for name in filter(origin.get, public_names().get(module, [])):
        defined = ast.parse(module_path(origin[name]).read_text(encoding="utf-8")).body
        for node, below in itertools.pairwise(defined):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if getattr(targets[0], "id", "") == name and isinstance(below, ast.Expr):
                found[name] = str(ast.literal_eval(below.value))
    return found


def page(module: str) -> str:
    """Return the page of a module. Sphinx finds classes and functions, but not imported constants."""
    data = "".join(f"\n.. py:data:: {name}\n\n   {plain_to_rst(text)}\n" for name, text in constants(module).items())
    return f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n{data}```\n"


def summary(module: str) -> str:
    """Return the first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(module_path(module).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def contents(modules: Iterable[str]) -> str:
    """Return the page that lists the modules."""
    items = "".join(f"- [`{module}`]({module}.md): {summary(module)}\n" for module in sorted(modules))
    return (
        "# Reference\n\nThe public modules. In signatures, `Array` is a NumPy array, and `Any` is whatever an "
        f"array can be made of.\n\n{items}\n"
        "```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    )


def write_reference() -> None:
    """Write the pages; unchanged ones are kept, so that they are not built again."""
    folder = DOCS / "reference"
    folder.mkdir(exist_ok=True)
    within = [
        f"{module}.{name}" for module in public_names() for name, origin in origins(module).items() if origin == module
    ]
    modules = [*public_names(), *within]
    pages = {"index.md": contents(modules)} | {f"{module}.md": page(module) for module in modules}
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def check_reference(app: Sphinx, error: Exception | None) -> None:
    """Raise unless the reference has every public name."""
    documented = set(app.env.domains.python_domain.objects)
    public = {f"{module}.{name}" for module, names in public_names().items() for name in names}
    if error is None and (missing := sorted(public - documented - {"plunit.__version__"})):
        raise SphinxError(f"the reference lacks {', '.join(missing)}; each needs a docstring")


def plain_to_rst(line: str) -> str:
    r"""Return a line of a docstring as reStructuredText. Docstrings are plain text in which only `code` is markup.

    >>> print(plain_to_rst("|x| <= c of `raw_c`"))
    \|x\| <= c of ``raw_c``

    A letter with a full stop does not start a list. Napoleon itself escapes the names before a colon:

    >>> print(plain_to_rst("coefs_, theta_: F. See theta_."))
    coefs_, theta_: F\. See theta\_.
    """
    names = re.match(r"\s*(\w+, )*\w+: |", line)[0]
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line.removeprefix(names))
    parts[1::2] = [f"``{code.strip('`')}``" for code in parts[1::2]]
    parts[0::2] = [re.sub(r"([|*]|_\b|(?<=^[A-Za-z])\.)", r"\\\1", text) for text in parts[0::2]]
    return names + "".join(parts)


def rewrite(app: Sphinx, what: str, name: str, target: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring before its sections are read, except for examples."""
    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines[i] = plain_to_rst(line)
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment: of a first line "a: b" napoleon would take a for the type


def without_factories(
    app: Sphinx, what: str, name: str, target: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Return a signature that Sphinx can read: "..." where dataclasses show a default that is not an expression."""
    return signature and signature.replace("<factory>", "..."), returns


def name_arrays(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Write `Array` for the type of every NumPy array in the signatures of an object."""
    for signature in content.parent.findall(addnodes.desc_signature):
        for parent in {node.parent for node in signature.findall(addnodes.pending_xref) if node.astext() == "ndarray"}:
            parent[:] = list(with_arrays_named(parent.children))
        if "ndarray" in signature.astext():
            raise SphinxError(f"{signature.astext()}: {ARRAY.pattern} lacks a way of writing an array")


def with_arrays_named(children: Sequence[nodes.Node]) -> Iterator[nodes.Node]:
    """Yield the children of a node; those that together spell the type of an array become one word."""
    text = "".join(child.astext() for child in children)
    arrays = {found.start(): found.end() for found in ARRAY.finditer(text)}
    at = end = 0
    for child in children:
        if at in arrays:
            end = arrays[at]
            yield addnodes.desc_sig_name("", "Array")
        if at >= end:
            yield child
        at += len(child.astext())


def is_generated(app: Sphinx, what: str, name: str, target: Any, skip: bool, options: Any) -> bool | None:
    """Leave out fields of named tuples and the methods that scikit-learn generates; None: undecided."""
    field = str(getattr(target, "__doc__", "")).startswith("Alias for field number")
    return True if field or re.fullmatch(r"set_\w+_request", name) else None
