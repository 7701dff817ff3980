"""Training steps by the compiled program of csrc/train.cpp, in float32 on the processor."""

from __future__ import annotations

import ctypes
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from plunit import learned
from plunit.ensemble.activation import ACTIVATIONS
from plunit.ensemble.build import library
from plunit.ensemble.state import State

_VECTOR = 16  # members of the widest vector the program may use
_ARRAYS = ("theta", "mean", "square", "alpha", "c", "x", "y", "history")


class _Task(ctypes.Structure):
    """The C++ struct Task, field by field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("members", "batch", "steps", "first", "stride")),
        *((name, ctypes.c_int64) for name in ("data_members", "data_steps", "depth")),
        ("widths", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("activation", "learned")),
        ("limit", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("rate", "root", *_ARRAYS)),
    )


def advance(state: State, x: Tensor, y: Tensor, first: int, last: int) -> None:
    """Take steps first, ..., last - 1 of Adam on the mean square error, in place; x and y are [steps or 1, ...]."""
    run(library(), state, x, y, first, last)


def run(program: ctypes.CDLL, state: State, x: Tensor, y: Tensor, first: int, last: int) -> None:
    """Like `advance`, with a given build of the program."""
    network, members = state.network, state.theta.shape[1]
    t = np.arange(first + 1, last + 1, dtype=np.float64)
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "widths": np.array(network.widths, dtype=np.int64),
        "rate": (state.lr / (1 - 0.9**t)).astype(np.float32),
        "root": (1 / np.sqrt(1 - 0.999**t)).astype(np.float32),
    }
    tensors = [state.theta, state.mean, state.square, state.alpha, state.c, x, y, state.history]
    task = _Task(
        members=members,
        batch=x.shape[2],
        steps=last - first,
        first=first,
        stride=state.stride,
        data_members=x.shape[3],
        data_steps=x.shape[0],
        depth=network.depth,
        activation=list(ACTIVATIONS).index(network.activation),
        learned=network.learned,
        limit=learned.LIMIT,
        **{name: array.ctypes.data for name, array in arrays.items()},
        **{name: tensor.data_ptr() for name, tensor in zip(_ARRAYS, tensors, strict=True)},
    )
    # the call releases Python's lock, so plain threads share the blocks
    threads = torch.get_num_threads()
    width = _VECTOR * math.ceil(members / _VECTOR / (4 * threads))
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(program.plunit_train, ctypes.byref(task), ctypes.c_int64(start), ctypes.c_int64(stop))
            for start, stop in ((i, min(i + width, members)) for i in range(0, members, width))
        ]
        for job in jobs:
            job.result()
