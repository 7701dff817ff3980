"""Packages that plunit can do without: each is installed by an extra of its name."""


def missing(error: ModuleNotFoundError, package: str) -> ModuleNotFoundError:
    """Return the error of a package that is not installed, with the extra that installs it.

    If it was another package that was not found, the error is returned as it is.

    >>> missing(ModuleNotFoundError(name="flax"), "flax")
    ModuleNotFoundError("plunit.flax needs flax, which is not installed; pip install 'plunit[flax]'")
    """
    if error.name != package:
        return error
    text = f"plunit.{package} needs {package}, which is not installed; pip install 'plunit[{package}]'"
    return ModuleNotFoundError(text, name=package)
