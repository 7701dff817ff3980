"""`plunit fit`: the best small network for a table or a function, its error, and its exact formula."""

from plunit.fitting.problems import Problem, of_expression, of_table
from plunit.fitting.solving import Found, Settings, solve

__all__ = ["Found", "Problem", "Settings", "of_expression", "of_table", "solve"]
