"""Training steps by the compiled program of programs/csrc/train.cpp, in float32 on the processor."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from plunit import learned
from plunit.base.machine import processors
from plunit.ensemble.arrays import Array
from plunit.ensemble.data import StepData
from plunit.ensemble.mlp import MLP, spread
from plunit.ensemble.run_state import Part, State, Steps, check_room, whole_looks
from plunit.programs.interface import Rows, Source, Struct, Task, address, called
from plunit.programs.loading import library

VECTOR = 16  # members of the widest vector the program may use
_ARRAYS = (
    *("lr", "decay", "theta", "mean", "square", "running", "alpha", "c", "history", "best"),
    *("best_loss", "best_step", "mark", "waited", "looks"),
)


def advance(parts: Sequence[Part]) -> None:
    """Take the steps of Adam of all ensembles, in place."""
    run(library(), parts)


def run(program: ctypes.CDLL, parts: Sequence[Part]) -> None:
    """Like `advance`, with a given build of the program; threads share the members of all ensembles.

    A MemoryError leaves ensembles of which some members have taken their steps.
    """
    calls, counter = [_Call(*part) for part in parts], ctypes.c_int64(0)
    tasks = (Task * len(calls))(*(call.task for call in calls))
    failed: list[MemoryError] = []

    def work() -> None:  # without Python's lock; it holds `calls`, so the arrays outlive every thread
        try:
            called(program.plunit_train, tasks, ctypes.c_int64(len(calls)), ctypes.byref(counter))
        except MemoryError as error:
            failed.append(error)

    others: list[threading.Thread] = []
    try:
        with contextlib.suppress(RuntimeError):  # the system has no more threads
            for _ in range(1, min(processors(), sum(call.task.members for call in calls) // VECTOR)):
                other = threading.Thread(target=work)
                other.start()
                others.append(other)
        work()
    finally:
        for other in others:
            other.join()
    if failed:
        raise failed[0]
    for call in calls:
        call.finish()


class _Call:
    """The task of one ensemble, and the arrays that it points to."""

    def __init__(self, state: State, steps: Steps) -> None:
        check_room(state, steps)
        self._state, self._whole = state, filled(state)
        t = np.arange(steps.first + 1, steps.last + 1, dtype=np.float64)
        drawn, rule = steps.training.rows, steps.validation
        self._points = _aligned(steps.training), _aligned(steps.tests)
        self.task = Task(
            members=self._whole.members,
            depth=state.network.depth,
            widths=np.array(state.network.widths, dtype=np.int64),
            activation=state.network.activation.encode(),
            loss=state.loss.encode(),
            learned=state.network.learned,
            limit=learned.LIMIT,
            first=steps.first,
            steps=len(steps.schedule),
            stride=state.stride,
            training=_rows(self._points[0]),
            tests=_rows(self._points[1]),
            batch=drawn.batch if drawn else 0,
            seeds=_fill(np.array([int(seed) % 2**64 for seed in (drawn.seeds if drawn else [0])], dtype=np.uint64)),
            every=rule.every if rule else 1,
            patience=whole_looks(rule.patience if rule else math.inf),
            tolerance=rule.tolerance if rule else 0.0,
            rate=(steps.schedule / (1 - 0.9**t)).astype(np.float32),
            root=(1 / np.sqrt(1 - 0.999**t)).astype(np.float32),
            schedule=np.ascontiguousarray(steps.schedule, dtype=np.float32),
            share=steps.shares().astype(np.float32) if rule and rule.average else None,
            **{name: getattr(self._whole, name) for name in _ARRAYS},
        )

    def finish(self) -> None:
        """Copy what a filled state holds to the given one."""
        if self._whole is not self._state:
            for name in _ARRAYS:
                getattr(self._state, name)[...] = getattr(self._whole, name)[..., : self._state.members]


def values(network: MLP, theta: Array, x: Array, alpha: Any = 0.1, c: Any = 1.0) -> Array:
    """F(x), [out, batch, S], for theta [parameters, S] and inputs [in, batch] in float32: `forward` up to rounding."""
    alphas, cs = (_fill(np.array(spread(network, theta, value))) for value in (alpha, c))
    filled, x = _fill(theta), np.ascontiguousarray(x)
    found = np.empty((network.widths[-1], x.shape[1], filled.shape[1]), np.float32)
    task = Task(
        members=filled.shape[1],
        depth=network.depth,
        widths=np.array(network.widths, dtype=np.int64),
        activation=network.activation.encode(),
        loss=b"square",
        learned=network.learned,
        limit=learned.LIMIT,
        tests=Rows(x=_source(x[None, ..., None]), count=x.shape[1]),
        theta=filled,
        alpha=alphas,
        c=cs,
    )
    called(library().plunit_values, ctypes.byref(task), ctypes.c_void_p(address(found, "float*", "values")))
    return found[..., : theta.shape[1]]


def filled(state: State) -> State:
    """Return the state with a multiple of the vector's members and contiguous arrays: itself, or a copy."""
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    whole: dict[str, Any] = {name: _fill(array) for name, array in arrays.items()}
    same = all(whole[name] is array for name, array in arrays.items())
    return state if same else dataclasses.replace(state, **whole)


def _fill(values: Array) -> Array:
    """Repeat the last member up to a multiple of the vector, contiguous."""
    missing = -values.shape[-1] % VECTOR
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


def _rows(parts: tuple[Any, ...]) -> Struct:
    if not parts:
        return Rows()
    x, y, weight = map(_source, parts)
    return Rows(x=x, y=y, weight=weight, count=parts[0].shape[2])


def _source(part: Array | None) -> Struct:
    if part is None:
        return Source()
    step, unit, point, member = (
        stride // part.itemsize if length > 1 else 0 for stride, length in zip(part.strides, part.shape, strict=True)
    )
    place = address(part, "const float*", "data", strided=True)
    return Source(values=place, step=step, unit=unit, point=point, member=member)
