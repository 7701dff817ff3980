"""The lab's name for the exception of `plunit.errors`."""

from plunit.errors import UserError as UserError
