"""Training steps of a density network by the compiled program of programs/csrc/chain.cpp, in float32."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from plunit import learned
from plunit.base.machine import processors
from plunit.densities.chain_state import Member, MemberSteps, Sample, check_looks, nearest, shares
from plunit.densities.density_network import LEARNED
from plunit.ensemble.training_state import whole_looks
from plunit.programs.interface import ChainTask, SampleArrays, Struct, call_program
from plunit.programs.libraries import library

_ARRAYS = ("order", "sign", "theta", "mean", "square", "average", "best", "radii", "looks")


def advance(members: Sequence[Member], steps: MemberSteps) -> None:
    """Take the steps of Adam for all members, in place; threads share the members, and the bits do not depend on it."""
    program = library("chain")
    with ThreadPoolExecutor(processors()) as pool:
        for job in [pool.submit(run, program, member, steps) for member in members]:
            job.result()


def run(program: ctypes.CDLL, member: Member, steps: MemberSteps) -> None:
    """Take the steps of one member with a given build of the program, which releases Python's lock."""
    check_looks(member, steps)
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
    task = ChainTask(
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
        patience=whole_looks(steps.patience if steps.tests else math.inf),
        best_loss=member.loss,
        mark=member.mark,
        best_step=member.best_step,
        waited=member.waited,
        **numbers,
        **{name: getattr(member, name) for name in _ARRAYS},
    )
    member.steps += call_program(program.plunit_chain, ctypes.byref(task))
    member.loss, member.best_step, member.mark, member.waited = task.best_loss, task.best_step, task.mark, task.waited


def _sample(sample: Sample | None) -> Struct:
    return SampleArrays() if sample is None else SampleArrays(x=sample.x, weight=sample.weight, count=len(sample.x))
