"""Errors that a user can put right; the command line turns `UserError` into a line and exit code 2."""


class UserError(Exception):
    """Something the user can put right; the text says what, in one line."""


def missing(error: ModuleNotFoundError, package: str) -> ModuleNotFoundError:
    """Return the error of a package that is not installed, with the extra of plunit that installs it.

    The extra has the name of the package. If it was another package that was not found, the error is returned as it is.

    >>> missing(ModuleNotFoundError(name="flax"), "flax")
    ModuleNotFoundError("plunit.flax needs flax, which is not installed; pip install 'plunit[flax]'")
    """
    if error.name != package:
        return error
    text = f"plunit.{package} needs {package}, which is not installed; pip install 'plunit[{package}]'"
    return ModuleNotFoundError(text, name=package)
