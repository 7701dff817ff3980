"""Flows as safetensors files: the structure as JSON, by the names in `KINDS`, and the arrays; no code is executed.

Loading checks names, options, sizes and numbers before it builds a flow.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plunit.base.errors import missing
from plunit.base.files import save_whole
from plunit.invertible.bijections.bijection import Bijection, faults
from plunit.invertible.bijections.chain import Chain, Inverse
from plunit.invertible.bijections.elementwise import PLU, LeakyReLU, ScaleShift, Tanh
from plunit.invertible.bijections.linear import LU, Orthogonal, Permutation
from plunit.invertible.bijections.smooth_plu import Annealing, SmoothPLU
from plunit.invertible.contexts import Conditional

KINDS: dict[str, tuple[type[Bijection], tuple[str, ...]]] = {
    "PLU": (PLU, ("learnable", "boundary")),
    "LeakyReLU": (LeakyReLU, ("learnable", "boundary")),
    "SmoothPLU": (SmoothPLU, ("learnable", "learnable_rho", "annealing")),
    "Tanh": (Tanh, ()),
    "ScaleShift": (ScaleShift, ()),
    "Permutation": (Permutation, ()),
    "LU": (LU, ()),
    "Orthogonal": (Orthogonal, ()),
}
"""The bijections without parts by name, with their options other than `features`: attributes and keyword arguments.
"""

_CHAINS = ("Chain", "Reversible")  # files of version 0.2 have the latter, the same map
_DTYPES = {"float32": torch.float32, "float64": torch.float64}
_FORMAT = 1
_DEEPEST = 20
_LONGEST = 1_000_000  # maximum length of the structure in characters

_State = Mapping[str, Tensor]


def save_bijection(path: Path, bijection: Bijection | Conditional, dtype: torch.dtype, own_base: bool) -> None:
    """Write a bijection to a file atomically, with whether its flow has a base other than the standard normal."""
    if dtype not in _DTYPES.values():
        raise ValueError(f"flows are saved in float32 or float64, got {dtype}; convert it with .to(torch.float32)")
    structure = {"format": _FORMAT, "dtype": str(dtype).removeprefix("torch."), "own_base": own_base}
    text = json.dumps({**structure, "bijection": _describe(bijection)})
    arrays = {name: value.detach().cpu().clone().contiguous() for name, value in bijection.state_dict().items()}
    library = _library("safetensors.torch")
    try:
        _restore(text, arrays)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"this flow was not saved, because {path} could not be loaded again: {_line(error)}") from None
    save_whole(path, library.save(arrays, {"flow": text}))


def load_bijection(path: Path) -> tuple[Bijection | Conditional, torch.dtype, bool]:
    """Return the bijection in a file, its dtype, and whether its flow had a base other than the standard normal."""
    library = _library("safetensors")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a readable flow: the path is a folder or a device, not a file")
    try:
        with library.safe_open(str(path), "pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return _restore((file.metadata() or {}).get("flow"), state)
    except OSError:
        raise
    # a file of any content can fail in any way
    except Exception as error:
        raise ValueError(f"{path} is not a readable flow: {_line(error)}") from None


def _describe(bijection: Bijection | Conditional) -> dict[str, Any]:
    """Return a bijection as JSON values."""
    if isinstance(bijection, Conditional):
        rest = {"context": bijection.context, "hidden": list(bijection.hidden), "slots": bijection.slots}
        return {"kind": "Conditional", "part": _describe(bijection.bijection), **rest}
    name = bijection.kind
    if type(bijection) is Chain:
        return {"kind": name, "parts": [_describe(part) for part in bijection.parts()]}
    if type(bijection) is Inverse:
        return {"kind": name, "part": _describe(bijection.bijection)}
    cls, names = KINDS.get(name, (Conditional, ()))
    if isinstance(bijection, cls):
        options = {name: getattr(bijection, name) for name in names}
        if "annealing" in options:
            options["annealing"] = list(astuple(options["annealing"])) if options["annealing"] else []
        return {"kind": name, "features": bijection.features, **options}
    known = f"only {', '.join(KINDS)} and combinations of them can"
    raise ValueError(f"{name} cannot be saved; {'save the flow it came from' if name == 'Frozen' else known}")


def _restore(text: str | None, state: _State) -> tuple[Bijection | Conditional, torch.dtype, bool]:
    """Return the result of `load_bijection` from the metadata and the arrays of a file."""
    if text is None or len(text) > _LONGEST:
        raise ValueError(
            f"the metadata must have an entry `flow` of at most {_LONGEST} characters, as Flow.save writes"
        )
    found = json.loads(text)
    form = {"format": int, "dtype": str, "own_base": bool, "bijection": dict}
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"the format must be {_FORMAT}; the file may be from a later version of plunit")
    if {name: type(value) for name, value in found.items()} != form or found["dtype"] not in _DTYPES:
        raise ValueError(f"the structure must have the fields {', '.join(form)}, got {text[:80]}")
    dtype = _DTYPES[found["dtype"]]
    with torch.random.fork_rng(devices=[]):  # random starts, which are overwritten below
        bijection = _build(found["bijection"], "", state).to(dtype)
    for fault in faults(bijection, state):
        raise ValueError(fault)
    bijection.load_state_dict(state)
    return bijection, dtype, found["own_base"]


def _build(given: Any, prefix: str, state: _State, depth: int = 0) -> Any:
    """Return the bijection that JSON values describe; the names of its arrays begin with `prefix`."""
    if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
        raise ValueError(f"a bijection must be an object with a name as `kind`, got {given!r:.60}")
    if depth > _DEEPEST:
        raise ValueError(f"parts of a flow must not be nested more than {_DEEPEST} deep")
    kind, options = given["kind"], {name: value for name, value in given.items() if name != "kind"}
    if kind in _CHAINS and options.keys() == {"parts"} and isinstance(options["parts"], list):
        parts = enumerate(options["parts"])
        return Chain(*(_build(part, f"{prefix}bijections.{i}.", state, depth + 1) for i, part in parts))
    if kind == "Inverse" and options.keys() == {"part"}:
        return Inverse(_build(options["part"], f"{prefix}bijection.", state, depth + 1))
    if kind == "Conditional" and depth == 0 and options.keys() == {"part", "context", "hidden", "slots"}:
        part = _build(options.pop("part"), "bijection.", state, depth + 1)
        sizes = (options["context"], *options["hidden"], sum(options["slots"]) * part.features)
        _expect(kind, "network.", state, sum(a * b for a, b in itertools.pairwise(sizes)))
        return Conditional(part, **options)
    if kind not in KINDS:
        raise ValueError(
            f"{kind!r:.60} with {sorted(options)!r:.60} is not a known bijection; choose one of {', '.join(KINDS)}"
        )
    cls, names = KINDS[kind]
    wanted = {"features": int, **{name: list if name == "annealing" else bool for name in names}}
    if {name: type(value) for name, value in options.items()} != wanted:
        raise ValueError(f"{kind} must have the options {', '.join(wanted)}, got {options!r:.80}")
    n = options["features"]
    _expect(kind, prefix, state, {LU: n * n, Orthogonal: n * n, Tanh: 0}.get(cls, n))
    if cls is Permutation:
        return Permutation(range(n))
    if "annealing" in options:
        options["annealing"] = Annealing(*options["annealing"]) if options["annealing"] else None
    return cls(**options)


def _expect(kind: str, prefix: str, state: _State, needed: int) -> None:
    """Raise if a file has fewer numbers than a part needs, before a large part is built for nothing."""
    have = sum(value.numel() for name, value in state.items() if name.startswith(prefix))
    if have < needed:
        raise ValueError(f"{kind} needs at least {needed} numbers, but the file has {have} ({prefix}*)")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _library(name: str) -> Any:
    """Return a safetensors module, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing(error, "safetensors", user="a saved flow") from None
