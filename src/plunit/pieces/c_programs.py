"""The programs that networks become in C: the contract `Program`, with the check-list, and `FloatNetwork`.

A proof about a program is a proof about a real-number network, `real`, whose distance from the program is bounded;
single inputs are decided by running the program on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.activation import evaluate
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.float_errors import check_knots, numpy_type, rounding_bound
from plunit.pieces.networks import Network, check_network


class Program(ABC):
    """A program that approximates a network: `maximum`, `holds` and others answer for the program.

    A subclass has

        net         the network that the program was made from
        real        a real-number network close to the program; it reads places instead of inputs x
        sides       the first and the last place of the inputs in a box
        nearest     the nearest place that is an input
        x           the input at a place
        run         the outputs at places, to the bit
        error       a bound on |run - real|, for all places in a box

    Places are float64 numbers in the order of x. If they are evenly spaced, as integers are, the subclass may also
    define `step`, exact ends of intervals in `ranges`, and the integers of a place in `integers_at`: then the search
    goes down to single inputs and runs the program on all of them. x is about place + `offset`.
    """

    net: Network
    offset: Floats

    @property
    def inputs(self) -> int:
        """The dimension of x."""
        return self.net.inputs

    @property
    def outputs(self) -> int:
        """The dimension of f(x)."""
        return self.net.outputs

    @property
    def identity(self) -> tuple[object, ...]:
        """A key that equal programs share."""
        return (self,)

    @property
    def step(self) -> Floats | None:
        """The distance between neighbouring places of each input, None if it varies."""
        return None

    @property
    @abstractmethod
    def real(self) -> Network:
        """The real-number network close to the program."""

    @abstractmethod
    def sides(self, box: Floats) -> Floats:
        """Return the first and the last place of the inputs in a box, [in, 2]; ValueError if a side has none."""

    @abstractmethod
    def nearest(self, places: Floats) -> Floats:
        """Return the places of inputs that are nearest to the given places [n, in]."""

    @abstractmethod
    def x(self, places: Floats, box: Floats) -> Floats:
        """Return x in the box, for places of inputs in that box."""

    @abstractmethod
    def run(self, places: Floats) -> Floats:
        """Return the outputs [n, out] of the program at the places of inputs [n, in], to the bit."""

    @abstractmethod
    def error(self, sides: Floats) -> Floats:
        """Return a bound on |run - real| for each output, for all places in sides [in, 2]."""

    def ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return bounds on the outputs [n, out] for all places between low and high [n, in]."""
        infinite = np.full((len(low), self.net.outputs), np.inf)
        return -infinite, infinite

    def integers_at(self, place: Floats) -> Ints | None:
        """Return the integers [in] that the program reads at a place, None for a program in floating point."""
        return None


@dataclass(frozen=True, eq=False)
class FloatNetwork(Program):
    """A network as `save_c(net, path, dtype=dtype)` writes it in C, for proofs: x and all values are of type dtype.

    Sums start at the bias and add the products in the order of the inputs. Each operation is rounded to nearest, as C
    compilers do with -ffp-contract=off. Proofs also hold with fused multiply-add; the outputs here, and so witnesses,
    are those without it.

    >>> from plunit.pieces import network
    >>> tenth = FloatNetwork(network([([[0.1]], [0.0])]))
    >>> float(tenth([1.0])[0]) == float(np.float32(0.1))
    True
    """

    net: Network
    dtype: str = "float"

    def __post_init__(self) -> None:
        check_network(self.net)
        for _, f in self.net.hidden:
            check_knots(f.functions.knots, np.dtype(self.type))
        for weight, bias, units in self._tables:
            if not all(np.isfinite(table).all() for table in (weight, bias, *(units or ()))):
                raise ValueError(f"a number of the network is too large for {self.dtype}; use double, or scale it down")

    @property
    def identity(self) -> tuple[object, ...]:
        """The network and the type."""
        return self.net, self.dtype

    @property
    def type(self) -> Any:
        """The NumPy type."""
        return numpy_type(self.dtype)

    @property
    def offset(self) -> Floats:  # type: ignore[override]
        """Zeros: a place is an input."""
        return np.zeros(self.net.inputs)

    @property
    def real(self) -> Network:
        """The network itself: places are inputs."""
        return self.net

    def __call__(self, x: Any) -> Floats:
        """f(x): [..., in] -> [..., out]; x is rounded to the type first."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.net.inputs:
            raise ValueError(f"this network expects x of shape [..., {self.net.inputs}], got {x.shape}")
        return self.run(x.reshape(-1, self.net.inputs)).reshape(*x.shape[:-1], self.net.outputs)

    def sides(self, box: Floats) -> Floats:
        """Return the first and the last number of the type in each side of a box."""
        with np.errstate(over="ignore"):
            low, high = (side.astype(self.type) for side in box.T)
        low = np.where(low < box[:, 0], np.nextafter(low, self.type(np.inf)), low)
        high = np.where(high > box[:, 1], np.nextafter(high, self.type(-np.inf)), high)
        if (none := np.flatnonzero(~(low <= high))).size:
            i = int(none[0])
            raise ValueError(
                f"input {i} has no {self.dtype} in {box[i].tolist()}; widen this side of the box to "
                f"{float(high[i])!r} or {float(low[i])!r}"
            )
        return np.stack([low, high], axis=1).astype(np.float64)

    def nearest(self, places: Floats) -> Floats:
        """Return the numbers rounded to the type."""
        with np.errstate(over="ignore"):
            return np.asarray(places.astype(self.type).astype(np.float64))

    def x(self, places: Floats, box: Floats) -> Floats:
        """Return the places, which are the inputs."""
        return places

    def run(self, places: Floats) -> Floats:
        """Return the outputs, each operation rounded to the type."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            h = places.astype(self.type)
            for weight, bias, units in self._tables:
                z = np.repeat(bias[None], len(h), axis=0)
                for j in range(weight.shape[1]):
                    z += weight[:, j] * h[:, j : j + 1]
                h = z if units is None else evaluate(z, *units)
        return np.asarray(h.astype(np.float64))

    @cached_property
    def _tables(self) -> list[Any]:
        """Weight, bias and the tables of the units of each layer, rounded to the type."""

        def convert(*tables: Floats) -> tuple[Any, ...]:
            with np.errstate(over="ignore", under="ignore"):
                return tuple(table.astype(self.type) for table in tables)

        parts = ((convert(one.weight, one.bias), one.functions) for one in self.net.layers)
        return [(*affine, None if f is None else convert(*f.units)) for affine, f in parts]

    def error(self, sides: Floats) -> Floats:
        """Return the bound on rounding errors that the header of `save_c` states for a box."""
        return rounding_bound(self.net, sides, self.dtype)
