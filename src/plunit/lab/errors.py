"""The lab's name for the package's one exception, so that a handler of either catches both."""

from plunit.errors import UserError

__all__ = ["UserError"]
