"""The exception that the command line prints as one line, with exit code 2; texts of messages; missing packages."""

from __future__ import annotations

from importlib import util


class UserError(Exception):
    """An error that the user can fix, described in one line."""


def escape(value: object) -> str:
    r"""Return a value as one line of text, escaped if it is not printable.

    >>> print(escape("a\nb"))
    a\nb
    """
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]


def quote(text: str) -> str:
    """Return a user's text for a message: in quotes, on one line, shortened to 40 characters.

    >>> quote("x" * 50)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    return repr(text if len(text) <= 40 else text[:40] + "...")


EXTRAS = {
    **dict.fromkeys(("jinja2", "matplotlib", "onnx", "rich", "scipy", "sklearn", "typer"), "fit"),
    **dict.fromkeys(("PIL", "filelock", "safetensors"), "lab"),
    **{name: name for name in ("torch", "jax", "equinox", "flax", "keras")},
    "anywidget": "notebook",
    "distributed": "cluster",
}
"""The extra that installs a package, by the name under which it is imported; the smallest if several do."""


def install(*packages: str) -> str:
    """Return the pip command that installs packages, through plunit's extras where they have one.

    >>> install("onnx"), install("torch", "sklearn"), install("vnnlib")
    ("pip install 'plunit[fit]'", "pip install 'plunit[torch,fit]'", 'pip install vnnlib')
    """
    extras = dict.fromkeys(EXTRAS[name] for name in packages if name in EXTRAS)
    others = [name for name in packages if name not in EXTRAS]
    return " ".join(["pip install", *([f"'plunit[{','.join(extras)}]'"] if extras else []), *others])


def describe_missing(user: str, *packages: str, command: str = "") -> str:
    """Return a line that says what needs which missing packages, with the command that installs them.

    >>> describe_missing("a page", "jinja2", "matplotlib")
    "a page needs jinja2 and matplotlib, which are not installed; pip install 'plunit[fit]'"
    """
    verb = "is" if len(packages) == 1 else "are"
    return f"{user} needs {' and '.join(packages)}, which {verb} not installed; {command or install(*packages)}"


def missing(error: ModuleNotFoundError, package: str, *, user: str | None = None) -> ModuleNotFoundError:
    """Return the error for a package that is not installed, with the command that installs it.

    If another package was not found, the error is returned unchanged. `user` names what needs the package, by default
    the module of plunit of the same name.

    >>> missing(ModuleNotFoundError(name="flax"), "flax")
    ModuleNotFoundError("plunit.flax needs flax, which is not installed; pip install 'plunit[flax]'")
    """
    if error.name != package:
        return error
    return ModuleNotFoundError(describe_missing(user or f"plunit.{package}", package), name=package)


def is_installed(package: str) -> bool:
    """Whether a package is installed, without importing it.

    >>> is_installed("numpy"), is_installed("no_such_package")
    (True, False)
    """
    try:
        return util.find_spec(package) is not None
    except (ImportError, ValueError):  # ValueError: a module without a specification
        return False
