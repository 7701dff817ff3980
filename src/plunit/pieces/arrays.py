"""Array types, sign patterns packed 64 to a word, and ranges divided into blocks and runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

Affine = tuple[Floats, Floats]
"""weight [out, in] and bias [out]."""

WORD = 64


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written through."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def pack_bits(flags: Bools) -> Words:
    """Pack flags [rows, units] into words [ceil(units / 64), rows]; unit u is bit u % 64 of word u // 64."""
    rows, units = flags.shape
    padded = np.zeros((rows, -(-units // WORD) * WORD // 8), dtype=np.uint8)
    packed = np.packbits(flags, axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(padded.view("<u8").T)


def unpack_bits(words: Words, units: int) -> Bools:
    """Undo `pack_bits`: flags [rows, units] of words [ceil(units / 64), rows]."""
    octets = np.ascontiguousarray(words.T).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=units, bitorder="little").view(np.bool_)


def set_bits(words: Words) -> tuple[Ints, Ints]:
    """Return (row, bit) of every set bit of words [w, rows], rows ascending; bit b is bit b % 64 of word b // 64."""
    octets = np.ascontiguousarray(words.T).astype("<u8", copy=False).view(np.uint8)
    # most bytes are 0, and skipping these is several times faster
    full = np.flatnonzero(octets)
    owner, bit = np.divmod(np.flatnonzero(np.unpackbits(octets.reshape(-1)[full], bitorder="little")), 8)
    row, octet = np.divmod(full[owner], max(octets.shape[1], 1))
    return row, 8 * octet + bit


def lowest_bit(words: Words) -> tuple[Ints, Words]:
    """Return, for each column of words [w, n], the first word that is not zero and its lowest bit as a mask."""
    word = np.argmax(words != 0, axis=0)
    chosen = words[word, np.arange(words.shape[1])]
    return word, chosen & (~chosen + np.uint64(1))


def blocks(length: int, size: int) -> Iterator[slice]:
    """Yield slices that cover range(length), `size` at a time; work done slice by slice needs less memory."""
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def runs(lengths: Ints) -> tuple[Ints, Ints]:
    """Return (owner, rank) of sum(lengths) items: run i has lengths[i] items, ranked 0, 1, ...

    >>> [part.tolist() for part in runs(np.array([2, 3]))]
    [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return owner, np.arange(len(owner)) - np.repeat(run_starts(lengths), lengths)


def run_starts(lengths: Ints) -> Ints:
    """Return the index at which each run starts."""
    return np.cumsum(lengths) - lengths
