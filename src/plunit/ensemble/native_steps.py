"""Training steps and outputs in float32 by the compiled program of programs/csrc/train.cpp."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plunit import learned
from plunit.base.machine import processors
from plunit.ensemble.adam import corrections, whole_looks
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP, broadcast
from plunit.ensemble.training_data import StepData
from plunit.ensemble.training_state import Part, State, Steps, check_capacity
from plunit.programs.interface import (
    RowSources,
    Source,
    Struct,
    Task,
    address,
    call_program,
    run_on_threads,
)
from plunit.programs.libraries import library

VECTOR = 16  # members of the widest vector the program may use
_ARRAYS = (
    *("lr", "decay", "theta", "mean", "square", "running", "alpha", "c", "history", "best"),
    *("best_loss", "best_step", "mark", "waited", "looks"),
)


def advance(parts: Sequence[Part], program: ctypes.CDLL | None = None) -> None:
    """Take Adam's steps of all ensembles in place, by a given build of the program or the default one.

    Threads share the members of all ensembles. After a MemoryError, some members have taken their steps and others
    have not.
    """
    program = program or library()
    wholes = [fill_lanes(state) for state, _ in parts]
    tasks, counter = [_task(whole, steps) for whole, (_, steps) in zip(wholes, parts, strict=True)], ctypes.c_int64(0)
    array = (Task * len(tasks))(*tasks)
    call = program.plunit_train, array, ctypes.c_int64(len(tasks)), ctypes.byref(counter)
    run_on_threads(lambda: call_program(*call), min(processors(), sum(task.members for task in tasks) // VECTOR))
    for whole, (state, _) in zip(wholes, parts, strict=True):
        if whole is not state:
            for name in _ARRAYS:
                getattr(state, name)[...] = getattr(whole, name)[..., : state.members]


def _task(state: State, steps: Steps) -> Struct:
    """Return the task of a padded state; it keeps the arrays that it points to alive."""
    check_capacity(state, steps)
    mean, root = corrections(np.arange(steps.first + 1, steps.last + 1, dtype=np.float64), steps.adam)
    drawn, rule, shares = steps.training.rows, steps.validation, steps.shares()
    return Task(
        members=state.members,
        **form(state.network),
        learned=state.network.learned,
        limit=learned.LIMIT,
        loss=state.loss.encode(),
        first=steps.first,
        steps=len(steps.schedule),
        stride=state.stride,
        training=_rows(steps.training),
        tests=_rows(steps.tests) if steps.tests else RowSources(),
        batch=drawn.batch if drawn else 0,
        seeds=_fill(np.array([int(seed) % 2**64 for seed in (drawn.seeds if drawn else [0])], dtype=np.uint64)),
        held=drawn.held if drawn else 0,
        firsts=_fill(np.array(drawn.firsts, dtype=np.int64)) if drawn and drawn.held else None,
        every=rule.every if rule else 1,
        patience=whole_looks(rule.patience if rule else math.inf),
        tolerance=rule.tolerance if rule else 0.0,
        rate=(steps.schedule / mean).astype(np.float32),
        root=root.astype(np.float32),
        schedule=np.ascontiguousarray(steps.schedule, dtype=np.float32),
        share=None if shares is None else shares.astype(np.float32),
        **{name: getattr(state, name) for name in _ARRAYS},
    )


def form(network: MLP) -> dict[str, Any]:
    """Return the fields of a task that describe the network."""
    widths = np.array(network.widths, dtype=np.int64)
    return {"depth": network.depth, "widths": widths, "activation": network.activation.encode()}


def values(network: MLP, theta: Array, x: Array, alpha: Any = 0.1, c: Any = 1.0) -> Array:
    """Return F(x), [out, batch, S], for float32 theta [parameters, S] and x [in, batch]: `forward` up to rounding."""
    whole, alphas, cs = map(_fill, (theta, *(np.array(broadcast(network, theta, value)) for value in (alpha, c))))
    found = np.empty((network.widths[-1], x.shape[1], whole.shape[1]), np.float32)
    tests = RowSources(x=_source(np.ascontiguousarray(x)[None, ..., None]), count=x.shape[1])
    shape = {"theta": whole, "alpha": alphas, "c": cs, "learned": network.learned, "limit": learned.LIMIT}
    task = Task(members=whole.shape[1], **form(network), loss=b"square", tests=tests, **shape)
    call_program(library().plunit_values, ctypes.byref(task), ctypes.c_void_p(address(found, "float*", "values")))
    return found[..., : theta.shape[1]]


def fill_lanes(state: State) -> State:
    """Return the state, or a copy with contiguous arrays whose members are padded to a multiple of `VECTOR`."""
    arrays = {name: getattr(state, name) for name in _ARRAYS}
    whole: dict[str, Any] = {name: _fill(array) for name, array in arrays.items()}
    same = all(whole[name] is array for name, array in arrays.items())
    return state if same else dataclasses.replace(state, **whole)


def _fill(values: Array) -> Array:
    """Return a contiguous array whose last member is repeated up to a multiple of `VECTOR`."""
    missing = -values.shape[-1] % VECTOR
    if not missing:
        return values if values.flags.c_contiguous and values.flags.writeable else np.array(values, order="C")
    # concatenation keeps the order of axes in memory, so it needs a copy
    return np.ascontiguousarray(np.concatenate([values, np.repeat(values[..., -1:], missing, axis=-1)], axis=-1))


def _rows(points: StepData) -> Struct:
    parts = {"x": points.x, "y": points.y, "weight": points.weight}
    return RowSources(
        **{name: _source(part) for name, part in parts.items() if part is not None}, count=points.x.shape[2]
    )


def _source(part: Array) -> Struct:
    """Return the struct of an array with shared members, or with contiguous members padded to `VECTOR`."""
    if not part.flags.aligned or any(stride % part.itemsize for stride in part.strides):
        part = part.copy()  # the program's strides are whole elements, from an aligned address
    part = part if part.shape[3] == 1 else _fill(part)
    lengths = zip(part.strides, part.shape, strict=True)
    step, unit, point, member = (stride // part.itemsize if length > 1 else 0 for stride, length in lengths)
    return Source(values=part, step=step, unit=unit, point=point, member=member)
