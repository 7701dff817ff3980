"""Flows as safetensors files: the structure as JSON, by the names in `KINDS`, and the arrays; nothing is executed.

A file from outside is checked before anything is built: names, options, sizes, shapes and numbers.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from plunit.base.errors import missing
from plunit.base.files import save_whole
from plunit.invertible.bijections.anneal import Annealing
from plunit.invertible.bijections.axes import Permutation, ScaleShift
from plunit.invertible.bijections.bijection import Bijection, faults_within
from plunit.invertible.bijections.chain import Chain, Inverse
from plunit.invertible.bijections.elementwise import PLU, LeakyReLU, Tanh
from plunit.invertible.bijections.linear import LU, Orthogonal
from plunit.invertible.bijections.reversible import Reversible
from plunit.invertible.bijections.smooth_plu import SmoothPLU
from plunit.invertible.contexts import Conditional, network_shapes

Shapes = dict[str, tuple[int, ...]]


class Kind(NamedTuple):
    """A bijection without parts, as a file holds it.

    A row in `KINDS` is one point of the check-list in `Bijection`.

    Attributes:
        made: its class; it is built by made(**options), and its arrays are its state_dict.
        shapes: returns the shape of its largest array from the options, so that nothing is built that is not there.
        options: the names of its options beside `features`, of those in `_OPTIONS`.
    """

    made: type[Bijection]
    shapes: Callable[[dict[str, Any]], Shapes]
    options: tuple[str, ...] = ()

    def make(self, options: dict[str, Any]) -> Bijection:
        """Build it from options that were checked."""
        if self.made is Permutation:
            return Permutation(range(options["features"]))
        if "annealing" in options:
            options = {**options, "annealing": Annealing(*options["annealing"]) if options["annealing"] else None}
        return self.made(**options)


def _one_each(name: str) -> Callable[[dict[str, Any]], Shapes]:
    """Return the shape of an array of one number per feature, held as it is or raw."""
    return lambda o: {name.format("raw" if o.get("learnable") else "fixed"): (o["features"],)}


_OPTIONS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "learnable": (bool, lambda module: "raw_alpha" in module._parameters),
    "boundary": (bool, lambda module: module.boundary),
    "learnable_rho": (bool, lambda module: "raw_rho" in module._parameters),
    "annealing": (list, lambda module: list(astuple(module.annealing)) if module.annealing else []),
}
"""The options of kinds: the type of their JSON values, and how to read them off a module."""

KINDS: dict[str, Kind] = {
    "PLU": Kind(PLU, _one_each("{}_alpha"), ("learnable", "boundary")),
    "LeakyReLU": Kind(LeakyReLU, _one_each("{}_alpha"), ("learnable", "boundary")),
    "SmoothPLU": Kind(SmoothPLU, _one_each("{}_alpha"), ("learnable", "learnable_rho", "annealing")),
    "Tanh": Kind(Tanh, lambda o: {}),
    "ScaleShift": Kind(ScaleShift, _one_each("shift")),
    "Permutation": Kind(Permutation, _one_each("order")),
    "LU": Kind(LU, lambda o: {"lower": (math.comb(o["features"], 2),), "bias": (o["features"],)}),
    "Orthogonal": Kind(Orthogonal, lambda o: {"parametrizations.weight.original": (o["features"],) * 2}),
}
"""The kinds by name."""

_CHAINS: dict[str, type[Chain]] = {"Chain": Chain, "Reversible": Reversible}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}
_FORMAT = 1
_DEEPEST = 20
_MOST = 10_000  # parts
_LONGEST = 10_000_000  # characters of the structure


def write(path: Path, bijection: Bijection | Conditional, dtype: torch.dtype, own_base: bool) -> None:
    """Write a bijection, and whether its flow has a base of its own, to a file, whole or not at all."""
    if dtype not in _DTYPES.values():
        raise ValueError(f"a flow is saved in float32 or float64, got {dtype}; convert it by .to(torch.float32)")
    structure = {"format": _FORMAT, "dtype": str(dtype).removeprefix("torch."), "own_base": own_base}
    text = json.dumps({**structure, "bijection": _described(bijection)})
    arrays = {name: value.detach().cpu().clone().contiguous() for name, value in bijection.state_dict().items()}
    try:
        _structure({"flow": text})
        _check_finite(arrays)
        for fault in faults_within(bijection, arrays):
            raise ValueError(fault)
    except ValueError as error:
        raise ValueError(f"this flow is not saved, because {path} could not be read: {error}") from None
    save_whole(path, _library("safetensors.torch").save(arrays, {"flow": text}))


def read(path: Path) -> tuple[Bijection | Conditional, torch.dtype, bool]:
    """Return the bijection that a file holds, its dtype, and whether its flow had a base of its own."""
    library = _library("safetensors")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} holds no flow that can be read: it is a folder or a device, not a file")
    try:
        with library.safe_open(str(path), "pt") as file:
            structure = _structure(file.metadata() or {})
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            with torch.random.fork_rng(devices=[]):  # starts are drawn, and then overwritten
                bijection = _built(structure["bijection"], "", shapes)
            state = {name: file.get_tensor(name) for name in shapes}
            _check_finite(state)
        dtype = _DTYPES[structure["dtype"]]
        bijection.to(dtype).load_state_dict(state)
    except OSError:
        raise
    # a file of any content can fail in any way
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ValueError(f"{path} holds no flow that can be read: {reason}") from None
    return bijection, dtype, structure["own_base"]


def _described(bijection: Bijection | Conditional) -> dict[str, Any]:
    """Return a bijection as JSON values."""
    if isinstance(bijection, Conditional):
        rest = {"context": bijection.context, "hidden": list(bijection.hidden), "slots": bijection.slots}
        return {"kind": "Conditional", "part": _described(bijection.bijection), **rest}
    name = bijection.kind
    if type(bijection) is _CHAINS.get(name):
        return {"kind": name, "parts": [_described(part) for part in bijection.parts()]}
    if type(bijection) is Inverse:
        return {"kind": name, "part": _described(bijection.bijection)}
    if name in KINDS and isinstance(bijection, KINDS[name].made):
        options = {option: _OPTIONS[option][1](bijection) for option in KINDS[name].options}
        return {"kind": name, "features": bijection.features, **options}
    known = f"known are {', '.join(KINDS)} and what is made of them"
    raise ValueError(f"{name} cannot be saved; {'save the flow it came from' if name == 'Frozen' else known}")


def _structure(metadata: dict[str, str]) -> dict[str, Any]:
    """Return what the metadata say, or raise ValueError unless they have the right form."""
    text = metadata.get("flow")
    if text is None or len(text) > _LONGEST:
        raise ValueError(f"its metadata need an entry `flow` of at most {_LONGEST} characters; Flow.save writes one")
    found = json.loads(text)
    form = {"format": int, "dtype": str, "own_base": bool, "bijection": dict}
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT}, the one that is known; was it written by a later plunit?")
    if {name: type(value) for name, value in found.items()} != form or found["dtype"] not in _DTYPES:
        raise ValueError(f"its structure must hold {', '.join(form)}, got {text[:80]}")
    _check_size(found["bijection"])
    return found


def _check_size(bijection: dict[str, Any]) -> None:
    """Raise unless JSON values of a bijection have few enough parts, few enough within one another."""
    level, count = [bijection], 0
    for _ in range(_DEEPEST + 1):
        count += len(level)
        if count > _MOST:
            raise ValueError(f"a flow in a file has at most {_MOST} parts, got {count} or more")
        level = [part for given in level if isinstance(given, dict) for part in _within(given)]
        if not level:
            return
    raise ValueError(f"a flow in a file has at most {_DEEPEST} parts within one another, got more")


def _within(given: dict[str, Any]) -> list[Any]:
    parts = given.get("parts")
    return [*(parts if isinstance(parts, list) else []), *([given["part"]] if "part" in given else [])]


def _built(given: Any, prefix: str, shapes: Shapes, depth: int = 0) -> Any:
    """Return the bijection that JSON values describe; its arrays have names that begin with `prefix`."""
    if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
        raise ValueError(f"a bijection is an object whose `kind` is a name, got {given!r:.60}")
    kind, options = given["kind"], {name: value for name, value in given.items() if name != "kind"}
    if kind in _CHAINS and options.keys() == {"parts"} and isinstance(options["parts"], list):
        parts = enumerate(options["parts"])
        return _CHAINS[kind](*(_built(part, f"{prefix}bijections.{i}.", shapes, depth + 1) for i, part in parts))
    if kind == "Inverse" and options.keys() == {"part"}:
        return Inverse(_built(options["part"], f"{prefix}bijection.", shapes, depth + 1))
    if kind == "Conditional" and depth == 0 and options.keys() == {"part", "context", "hidden", "slots"}:
        part = _built(options.pop("part"), "bijection.", shapes, depth + 1)
        _expect(shapes, "network.", network_shapes(part.features, **options))
        return Conditional(part, **options)
    if kind not in KINDS:
        raise ValueError(
            f"{kind!r:.60} with {sorted(options)!r:.60} is no known bijection; known are {', '.join(KINDS)}"
        )
    wanted = {"features": int, **{option: _OPTIONS[option][0] for option in KINDS[kind].options}}
    if {name: type(value) for name, value in options.items()} != wanted or options["features"] < 1:
        raise ValueError(f"{kind} has the options {', '.join(wanted)}, got {options!r:.80}")
    _expect(shapes, prefix, KINDS[kind].shapes(options))
    return KINDS[kind].make(options)


def _expect(shapes: Shapes, prefix: str, wanted: Shapes) -> None:
    """Raise unless the file has arrays of these names and shapes."""
    for name, shape in wanted.items():
        if shapes.get(f"{prefix}{name}") != shape:
            got = shapes.get(f"{prefix}{name}", "none")
            raise ValueError(f"the array {prefix}{name} must have the shape {shape}, got {got}")


def _check_finite(arrays: dict[str, Tensor]) -> None:
    for name, value in arrays.items():
        if not value.isfinite().all():
            raise ValueError(f"the array {name} holds values that are not finite")


def _library(name: str) -> Any:
    """Return a module of safetensors, or raise with the extra that installs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing(error, "safetensors", user="a saved flow") from None
