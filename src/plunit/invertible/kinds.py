"""The bijections that a file can hold: by name, with their options and the shapes of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plunit.invertible.anneal import Annealing
from plunit.invertible.axes import Permutation, ScaleShift
from plunit.invertible.bijection import Bijection
from plunit.invertible.elementwise import PLU, LeakyReLU, Tanh
from plunit.invertible.householder import Householder
from plunit.invertible.linear import LU, Orthogonal
from plunit.invertible.smooth import SmoothPLU

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Kind:
    """A bijection without parts, as a file holds it.

    A row in `KINDS` is one point of the check-list in `Bijection`.

    Attributes:
        made: its class; it is built by made(**options), and its arrays are its state_dict.
        shapes: returns the shape of its largest array from the options, so that nothing is built that is not there.
        options: the names of its options beside `features`, with the type of their JSON values.
        describe: returns those options of a module.
    """

    made: type[Bijection]
    shapes: Callable[[dict[str, Any]], Shapes]
    options: Mapping[str, type]
    describe: Callable[[Any], dict[str, Any]]

    def make(self, options: dict[str, Any]) -> Bijection:
        """Build it from options that were checked."""
        if self.made is Permutation:
            return Permutation(range(options["features"]))
        if "annealing" in options:
            options = {**options, "annealing": Annealing(*options["annealing"]) if options["annealing"] else None}
        return self.made(**options)

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options from a file, or raise ValueError unless they have these names and types."""
        wanted = {"features": int, **self.options}
        good = options.keys() == wanted.keys() and all(type(options[name]) is kind for name, kind in wanted.items())
        if not good or options["features"] < 1:
            raise ValueError(f"{self.made.__name__} has the options {', '.join(wanted)}, got {_short(options)}")
        return options


def learns(name: str) -> Callable[[Bijection], bool]:
    """Return a function that says whether a module learns the number of this name."""
    return lambda module: f"raw_{name}" in module._parameters


def _number(name: str) -> Callable[[dict[str, Any]], Shapes]:
    """Return the shape of a number, learned or fixed, one per feature."""
    return lambda o: {f"{'raw' if o['learnable'] else 'fixed'}_{name}": (o["features"],)}


def _kinked(module: PLU | LeakyReLU) -> dict[str, Any]:
    return {"learnable": learns("alpha")(module), "boundary": module.boundary}


def _smooth(module: SmoothPLU) -> dict[str, Any]:
    plan = module.annealing
    return {
        "learnable": learns("alpha")(module),
        "learnable_rho": learns("rho")(module),
        "annealing": [] if plan is None else [plan.start, plan.end, plan.until],
    }


def _nothing(module: Bijection) -> dict[str, Any]:
    return {}


_KINKED = {"learnable": bool, "boundary": bool}
_SMOOTH = {"learnable": bool, "learnable_rho": bool, "annealing": list}
KINDS: dict[str, Kind] = {
    "PLU": Kind(PLU, _number("alpha"), _KINKED, _kinked),
    "LeakyReLU": Kind(LeakyReLU, _number("alpha"), _KINKED, _kinked),
    "SmoothPLU": Kind(SmoothPLU, _number("alpha"), _SMOOTH, _smooth),
    "Tanh": Kind(Tanh, lambda o: {}, {}, _nothing),
    "ScaleShift": Kind(ScaleShift, lambda o: {"shift": (o["features"],)}, {}, _nothing),
    "Permutation": Kind(Permutation, lambda o: {"order": (o["features"],)}, {}, _nothing),
    "LU": Kind(
        LU, lambda o: {"lower": (o["features"] * (o["features"] - 1) // 2,), "bias": (o["features"],)}, {}, _nothing
    ),
    "Orthogonal": Kind(
        Orthogonal, lambda o: {"parametrizations.weight.original": (o["features"], o["features"])}, {}, _nothing
    ),
    "Householder": Kind(
        Householder,
        lambda o: {"vectors": (o["features"], o["reflections"])},
        {"reflections": int},
        lambda module: {"reflections": module.reflections},
    ),
}
"""The kinds by name."""


def _short(value: Any) -> str:
    return repr(value)[:80]
