"""Properties of several networks from files of VNN-LIB 2.0, which name networks and their variables.

The package vnnlib parses them. Here they become a formula like those of version 1.0 (see `vnnlib`), over the inputs and
outputs of all networks side by side.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.errors import missing
from plunit.pieces.formats.vnnlib import DEPTH, Formula, is_newer, name_file, parse_plain, plain_text, read_plain
from plunit.pieces.graphs import check_bytes
from plunit.pieces.networks import Network
from plunit.pieces.proofs.properties import Property
from plunit.pieces.rewriting import join_networks

_KINDS = {
    "And": "and",
    "Or": "or",
    "LessEqual": "<=",
    "GreaterEqual": ">=",
    "LessThan": "<",
    "GreaterThan": ">",
    "Equal": "=",
    "Negate": "-",
    "Plus": "+",
    "Minus": "-",
    "Multiply": "*",
}
"""Kinds of nodes of the package vnnlib, and the same in VNN-LIB 1.0."""

_NUMBERS = ("Real", "F16", "BF16", "F32", "F64")
"""Types of the package vnnlib that are treated as real numbers."""


def load_specification(path: str | Path) -> Specification:
    """Return the specification of a VNN-LIB 2.0 file (.vnnlib or .vnnlib.gz), of one or several networks.

    ValueError as from `load_vnnlib`; ImportError if the package vnnlib is missing.
    """
    path = Path(path)
    with name_file(path, "2.0"):
        return _parse_plain(read_plain(path))


def load_question(path: Path) -> Property | Specification:
    """Return the question in a VNN-LIB file: a property in version 1.0, a specification in version 2.0."""
    with name_file(path, "1.0"):
        plain = read_plain(path)
    with name_file(path, "2.0" if is_newer(plain) else "1.0"):
        return _parse_plain(plain) if is_newer(plain) else parse_plain(plain)


@dataclass(frozen=True, eq=False)
class Specification:
    """A property of networks side by side, which read their inputs from one x; their concatenated outputs are y.

    weights: for each network the one with its weights, itself unless the file says equal-to. inputs: for each network
    the places of its inputs in x; inputs that the file sets equal share a place. outputs: the number of outputs of each
    network. names: for each variable its place in (x, y).
    """

    weights: dict[str, str]
    inputs: dict[str, list[int]]
    outputs: dict[str, int]
    names: dict[str, int]
    property: Property

    def together(self, nets: Mapping[str, Network]) -> Network:
        """Return the networks joined into the one of the property; ValueError if one is missing or does not fit."""
        wanted = set(self.weights.values())
        if set(nets) != wanted:
            raise ValueError(f"the property needs the networks {sorted(wanted)}, got {sorted(nets)}; give each once")
        for name, same in self.weights.items():
            sizes, given = (len(self.inputs[name]), self.outputs[name]), (nets[same].inputs, nets[same].outputs)
            if sizes != given:
                raise ValueError(
                    f"network {name} has {sizes[0]} inputs and {sizes[1]} outputs in the file, but the given one has "
                    f"{given[0]} and {given[1]}; check that the two belong together"
                )
        parts = [nets[same] for same in self.weights.values()]
        return join_networks(parts, list(self.inputs.values()), self.property.inputs)


def parse_specification(text: str) -> Specification:
    """Return the specification of a text in VNN-LIB 2.0; ValueError if it is not one.

    >>> twice = "(declare-network {} (declare-input {} real [1]) (declare-output {} real [1]))"
    >>> head = "(vnnlib-version <2.0>)" + twice.format("f", "X", "Y") + twice.format("g", "U", "V")
    >>> asked = parse_specification(head + "(assert (and (== X[0] U[0]) (<= X[0] 1.0) (>= X[0] 0.0) (> Y[0] V[0])))")
    >>> asked.names, asked.property.inputs
    ({'X[0]': 0, 'U[0]': 0, 'Y[0]': 1, 'V[0]': 2}, 1)
    """
    return _parse_plain(plain_text(text))


def _parse_plain(plain: str) -> Specification:
    try:
        from vnnlib import VNNLibException, parse_query_string
    except ModuleNotFoundError as error:
        raise missing(error, "vnnlib", user="VNN-LIB 2.0") from None
    if "\0" in plain:  # the package would stop reading there
        raise ValueError("the file has a byte 0, which no text has; write it again")
    if max(accumulate(1 if one == "(" else -1 for one in re.findall("[()]", plain)), default=0) > DEPTH:
        raise ValueError(f"parentheses are nested deeper than {DEPTH}; write the formula flatter")
    try:
        query = parse_query_string(plain)
    except VNNLibException as error:
        raise ValueError(_first_error(str(error))) from None
    except IndexError:
        raise ValueError("an integer exceeds 64 bits; use a smaller one") from None
    shapes = {side: _variables(query.networks, side) for side in ("inputs", "outputs")}
    asserted = [part for one in query.assertions for part in _conjuncts(_tree(one.expr))]
    places = _shared(shapes["inputs"], asserted)
    inputs = len(set(places.values()))
    outputs = [name for names in shapes["outputs"].values() for name in names]
    names = {**places, **{name: inputs + i for i, name in enumerate(outputs)}}
    rest = [part for part in asserted if not (_is_sharing(part, places) and places[part[1]] == places[part[2]])]
    return Specification(
        {one.name: one.equal_to or one.name for one in query.networks},
        {network: [places[name] for name in mine] for network, mine in shapes["inputs"].items()},
        {network: len(mine) for network, mine in shapes["outputs"].items()},
        names,
        Formula(names, inputs, len(outputs)).property(rest),
    )


def _first_error(text: str) -> str:
    """Return the first error of the package's report, which is JSON unless the grammar is broken."""
    try:
        first = json.loads(text)["errors"][0]
        return f"line {first['line']}: {first['message']}; {first['hint']}"
    except (ValueError, LookupError, TypeError):
        return text[:200]


def _variables(networks: Any, side: str) -> dict[str, list[str]]:
    """Return the names of the inputs or outputs of each network, such as X[0,1], in their order."""
    found = {}
    for one in networks:
        tensors = getattr(one, side)
        if len(tensors) != 1 or one.hidden:
            raise ValueError(f"network {one.name} must have one input and one output, and no hidden variables")
        shape = tuple(tensors[0].shape)
        check_bytes(f"the {side} of network {one.name}", 8 * math.prod(shape))
        name, kind = tensors[0].name, tensors[0].dtype.name
        if kind not in _NUMBERS:
            raise ValueError(
                f"{name} of network {one.name} must be declared real or as a floating-point type, got type {kind}; "
                "integers and other types are not supported"
            )
        found[one.name] = [_name(name, index) for index in np.ndindex(*shape)]
    return found


def _name(name: str, index: Sequence[int]) -> str:
    return f"{name}[{','.join(map(str, index))}]" if len(index) else name


def _tree(node: Any) -> Any:
    """Return an expression of the package as nested lists of words, as `_expressions` yields them."""
    kind = type(node).__name__
    if kind == "Var":
        return _name(node.name, node.indices)
    if hasattr(node, "lexeme"):
        return str(node.lexeme)
    parts = [_tree(part) for part in node.children()]
    if kind == "NotEqual":
        return ["or", ["<", *parts], [">", *parts]]
    if kind not in _KINDS:
        raise ValueError(f"{kind} is not supported: {str(node)[:80]}")
    return [_KINDS[kind], *parts]


def _conjuncts(tree: Any) -> list[Any]:
    return [part for each in tree[1:] for part in _conjuncts(each)] if tree[0] == "and" else [tree]


def _is_sharing(tree: Any, inputs: Container[str]) -> bool:
    """Whether an assertion sets two inputs equal."""
    return tree[0] == "=" and all(isinstance(side, str) and side in inputs for side in tree[1:])


def _shared(inputs: dict[str, list[str]], asserted: list[Any]) -> dict[str, int]:
    """Return the place of each input in x; inputs of different networks that are asserted to be equal share one."""
    owner = {name: network for network, names in inputs.items() for name in names}
    group = {name: {name} for name in owner}
    for _, one, other in (tree for tree in asserted if _is_sharing(tree, group)):
        both = group[one] | group[other]
        if len({owner[name] for name in both}) == len(both):
            group.update(dict.fromkeys(both, both))
    numbers: dict[int, int] = {}
    return {name: numbers.setdefault(id(same), len(numbers)) for name, same in group.items()}
