"""Packages that plunit can do without: each is installed by an extra of its name."""


def missing(
    error: ModuleNotFoundError, package: str, *, user: str | None = None, extra: str | None = None
) -> ModuleNotFoundError:
    """Return the error of a package that is not installed, with the extra that installs it.

    If it was another package that was not found, the error is returned as it is. `user` is what needs the package, by
    default the module of plunit of the same name; `extra` the extra, by default of the same name too.

    >>> missing(ModuleNotFoundError(name="flax"), "flax")
    ModuleNotFoundError("plunit.flax needs flax, which is not installed; pip install 'plunit[flax]'")
    """
    if error.name != package:
        return error
    user, extra = user or f"plunit.{package}", extra or package
    text = f"{user} needs {package}, which is not installed; pip install 'plunit[{extra}]'"
    return ModuleNotFoundError(text, name=package)
