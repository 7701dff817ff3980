"""Training steps by the compiled program of csrc/train.cpp, in float32 on the processor."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from plunit import learned
from plunit.ensemble.arrays import Array
from plunit.ensemble.build import library
from plunit.ensemble.data import StepData
from plunit.ensemble.state import State, Steps, check_room

_VECTOR = 16  # members of the widest vector the program may use
_ARRAYS = ("lr", "decay", "theta", "mean", "square", "running", "alpha", "c", "history", "best", "record", "looks")


class _Source(ctypes.Structure):
    """The C++ struct Source."""

    _fields_ = (
        ("values", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("step", "unit", "point", "member")),
    )


class _Rows(ctypes.Structure):
    """The C++ struct Rows."""

    _fields_ = (*((name, _Source) for name in ("x", "y", "weight")), ("count", ctypes.c_int64))


class _Task(ctypes.Structure):
    """The C++ struct Task, field by field."""

    _fields_ = (
        ("members", ctypes.c_int64),
        ("depth", ctypes.c_int64),
        ("widths", ctypes.c_void_p),
        ("activation", ctypes.c_char_p),
        ("loss", ctypes.c_char_p),
        ("learned", ctypes.c_int64),
        ("limit", ctypes.c_float),
        *((name, ctypes.c_int64) for name in ("first", "steps", "stride")),
        ("training", _Rows),
        ("tests", _Rows),
        ("batch", ctypes.c_int64),
        ("seeds", ctypes.c_void_p),
        ("every", ctypes.c_int64),
        *((name, ctypes.c_float) for name in ("patience", "tolerance")),
        *((name, ctypes.c_void_p) for name in ("rate", "root", "schedule", "share", *_ARRAYS)),
    )


def advance(state: State, steps: Steps) -> None:
    """Take the steps of Adam, in place."""
    run(library(), state, steps)


def run(program: ctypes.CDLL, state: State, steps: Steps) -> None:
    """Like `advance`, with a given build of the program."""
    check_room(state, steps)
    whole = _filled(state)
    t = np.arange(steps.first + 1, steps.last + 1, dtype=np.float64)
    seeds = steps.training.rows.seeds if steps.training.rows else ()
    arrays: dict[str, Array] = {
        "widths": np.array(state.network.widths, dtype=np.int64),
        "seeds": _fill(np.array([int(seed) % 2**64 for seed in seeds] or [0], dtype=np.uint64)),
        "rate": (steps.schedule / (1 - 0.9**t)).astype(np.float32),
        "root": (1 / np.sqrt(1 - 0.999**t)).astype(np.float32),
        "schedule": np.asarray(steps.schedule, dtype=np.float32),
        **{name: getattr(whole, name) for name in _ARRAYS},
    }
    if steps.validation and steps.validation.average:
        arrays["share"] = steps.shares().astype(np.float32)
    training, tests = _aligned(steps.training), _aligned(steps.tests)
    task = _Task(
        members=whole.members,
        depth=state.network.depth,
        activation=state.network.activation.encode(),
        loss=state.loss.encode(),
        learned=state.network.learned,
        limit=learned.LIMIT,
        first=steps.first,
        steps=len(steps.schedule),
        stride=state.stride,
        training=_rows(training),
        tests=_rows(tests),
        batch=steps.training.rows.batch if steps.training.rows else 0,
        every=steps.validation.every if steps.validation else 1,
        patience=steps.validation.patience if steps.validation else math.inf,
        tolerance=steps.validation.tolerance if steps.validation else 0.0,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    _share(program, task)
    if whole is not state:
        for name in _ARRAYS:
            getattr(state, name)[...] = getattr(whole, name)[..., : state.members]


def _share(program: ctypes.CDLL, task: _Task) -> None:
    """Let threads share the blocks of members: the call releases Python's lock."""
    threads = processors()
    width = _VECTOR * math.ceil(task.members / _VECTOR / (4 * threads))
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(program.plunit_train, ctypes.byref(task), ctypes.c_int64(start), ctypes.c_int64(stop))
            for start, stop in ((i, min(i + width, task.members)) for i in range(0, task.members, width))
        ]
        for job in jobs:
            job.result()


def processors() -> int:
    """Return how many threads train: OMP_NUM_THREADS, or the processors that this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _filled(state: State) -> State:
    """Return the state with a multiple of the vector's members and contiguous arrays: itself, or a copy."""
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    filled: dict[str, Any] = {name: _fill(array) for name, array in arrays.items()}
    same = all(filled[name] is array for name, array in arrays.items())
    return state if same else dataclasses.replace(state, **filled)


def _fill(values: Array) -> Array:
    """Repeat the last member up to a multiple of the vector, contiguous."""
    missing = -values.shape[-1] % _VECTOR
    if not missing:
        return values if values.flags.c_contiguous and values.flags.writeable else np.array(values, order="C")
    # concatenation alone keeps the order of axes in memory
    return np.ascontiguousarray(np.concatenate([values, np.repeat(values[..., -1:], missing, axis=-1)], axis=-1))


def _aligned(points: StepData | None) -> tuple[Any, ...]:
    """Return x, y and weight with shared members, or with contiguous members up to a multiple of the vector."""
    if points is None:
        return ()
    parts = [part if part is None or _is_whole(part) else part.copy() for part in (points.x, points.y, points.weight)]
    return tuple(part if part is None or part.shape[3] == 1 else _fill(part) for part in parts)


def _is_whole(part: Array) -> bool:
    """Return whether the program can step through an array: by whole numbers, from an address that is a multiple."""
    return part.flags.aligned and not any(stride % part.itemsize for stride in part.strides)


def _rows(parts: tuple[Any, ...]) -> _Rows:
    return _Rows(*map(_source, parts), parts[0].shape[2]) if parts else _Rows()


def _source(part: Array | None) -> _Source:
    if part is None:
        return _Source()
    strides = (
        stride // part.itemsize if length > 1 else 0 for stride, length in zip(part.strides, part.shape, strict=True)
    )
    return _Source(part.ctypes.data, *strides)
