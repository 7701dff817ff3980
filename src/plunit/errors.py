"""The one exception the command line turns into a line and exit code 2."""


class UserError(Exception):
    """Something the user can put right; the text says what, in one line."""
