"""Stored results as arrays, all seeds of an (experiment, activation) together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plunit.lab.store import Arrays


class Results:
    """The arrays of each experiment and activation, members on the last axis.

    >>> results = Results({("sine", "plu"): {"final_loss": np.array([0.1, 0.2])}})
    >>> results.has("sine", "plu"), results.has("sine", "plu", "tanh")
    (True, False)
    """

    def __init__(self, arrays: dict[tuple[str, str], Arrays]) -> None:
        self._arrays = arrays

    def __getitem__(self, key: tuple[str, str]) -> Arrays:
        return self._arrays[key]

    def has(self, name: str, *activations: str) -> bool:
        """Tell whether the experiment was run with all of these activations."""
        return all((name, activation) in self._arrays for activation in activations)

    def items(self) -> Iterator[tuple[str, str, Arrays]]:
        """Yield experiment, activation and arrays."""
        for (name, activation), arrays in self._arrays.items():
            yield name, activation, arrays

    def names(self) -> list[str]:
        """Return the experiments, in the order of the plan."""
        return list(dict.fromkeys(name for name, _ in self._arrays))

    def activations(self, name: str) -> list[str]:
        """Return the activations an experiment was run with."""
        return [activation for other, activation in self._arrays if other == name]


def join(pieces: list[Arrays]) -> Arrays:
    """Put chunks of seeds together."""
    return {name: np.concatenate([piece[name] for piece in pieces], axis=-1) for name in pieces[0]}
