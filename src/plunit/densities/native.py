"""Training steps of a density network by the compiled program of ensemble/csrc/chain.cpp, in float32."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from plunit import learned
from plunit.densities.architecture import LEARNED
from plunit.densities.sample import Sample
from plunit.densities.state import Member, MemberSteps, check_room, nearest, shares
from plunit.ensemble.arrays import Array
from plunit.ensemble.build import library
from plunit.ensemble.native import processors

_ARRAYS = ("theta", "mean", "square", "average", "best", "record", "widths", "looks")
_SCHEDULES = ("rate", "root", "rho", "share")


class _Sample(ctypes.Structure):
    """The C++ struct Sample."""

    _fields_ = (("x", ctypes.c_void_p), ("weight", ctypes.c_void_p), ("count", ctypes.c_int64))


class _ChainTask(ctypes.Structure):
    """The C++ struct ChainTask, field by field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("features", "blocks", "sides", "learned")),
        ("order", ctypes.c_void_p),
        ("sign", ctypes.c_void_p),
        ("limit", ctypes.c_float),
        ("training", _Sample),
        ("tests", _Sample),
        *((name, ctypes.c_int64) for name in ("batch", "nearest", "every")),
        ("seed", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("first", "steps")),
        *((name, ctypes.c_float) for name in ("patience", "tolerance")),
        *((name, ctypes.c_void_p) for name in (*_SCHEDULES, *_ARRAYS)),
    )


def advance(members: Sequence[Member], steps: MemberSteps) -> None:
    """Take the steps of Adam for all members, in place; threads share the members, and the bits do not depend on it."""
    program = library("chain")
    with ThreadPoolExecutor(processors()) as pool:
        for job in [pool.submit(run, program, member, steps) for member in members]:
            job.result()


def run(program: ctypes.CDLL, member: Member, steps: MemberSteps) -> None:
    """Take the steps of one member with a given build of the program, which releases Python's lock."""
    check_room(member, steps)
    form = member.architecture
    t = np.arange(member.steps + 1, member.steps + steps.count + 1, dtype=np.float64)
    schedules = {
        "rate": steps.rate / (1 - 0.9**t),
        "root": 1 / np.sqrt(1 - 0.999**t),
        "rho": np.broadcast_to(steps.rho, t.shape),
        "share": shares(member.steps, steps.count),
    }
    with np.errstate(over="ignore"):  # of a rate that no network survives
        numbers = {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in schedules.items()}
    arrays: dict[str, Array] = {
        **numbers,
        **{name: getattr(member, name) for name in _ARRAYS},
        "order": member.order,
        "sign": member.sign,
    }
    task = _ChainTask(
        features=form.features,
        blocks=form.blocks,
        sides=1 if form.activation == "leaky" else 2,
        learned=len(LEARNED[form.activation]),
        limit=learned.LIMIT,
        training=_sample(steps.training),
        tests=_sample(steps.tests),
        batch=steps.batch,
        nearest=nearest(steps.batch),
        every=steps.every,
        seed=member.seed % 2**64,
        first=member.steps,
        steps=steps.count,
        patience=steps.patience if steps.tests else math.inf,
        tolerance=steps.tolerance,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    program.plunit_chain.restype = ctypes.c_int64
    member.steps += program.plunit_chain(ctypes.byref(task))


def _sample(sample: Sample | None) -> Any:
    if sample is None:
        return _Sample()
    return _Sample(sample.x.ctypes.data, None if sample.weight is None else sample.weight.ctypes.data, len(sample.x))
