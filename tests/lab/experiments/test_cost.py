"""The time of PLU compared with that of ReLU and tanh."""

import dataclasses

import numpy as np
import pytest
import torch

from plunit.lab.cell import Cell
from plunit.lab.read.cost import EXPERIMENTS
from plunit.lab.train import cost

(COST,) = EXPERIMENTS
SPEC = dataclasses.replace(COST.spec, elements=50, calls=2)


def test_every_repetition_times_forward_and_backward_of_all(tmp_path, monkeypatch):
    called = []

    def seconds(call, x, grad, calls):
        (slope,) = torch.autograd.grad(call(), x, grad)
        called.append((call().detach().numpy(), (slope / grad).numpy(), calls))
        return float(len(called))

    monkeypatch.setattr(cost, "_seconds", seconds)
    found = cost.compute(Cell("cost", SPEC, "plu", 0, 3, "", ""), tmp_path)
    assert len(called) == 4 + 3 * 4
    assert [calls for *_, calls in called] == [3] * 4 + [2] * 12
    x = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))[0].numpy()
    plu, relu = np.clip(x, -1, 1) + 0.1 * (x - np.clip(x, -1, 1)), np.maximum(x, 0)
    values = {"plu": plu, "composite": plu, "relu": relu, "tanh": np.tanh(x)}
    slopes = {"plu": np.where(abs(x) > 1, 0.1, 1), "relu": x > 0, "tanh": 1 - np.tanh(x) ** 2}
    slopes["composite"] = slopes["plu"]
    orders = set()
    for repetition in range(3):
        times = {name: int(found[f"{name}_seconds"][repetition]) for name in cost.TIMED}
        assert sorted(times.values()) == [*range(5 + 4 * repetition, 9 + 4 * repetition)]  # each once, interleaved
        orders.add(tuple(sorted(times, key=times.get)))
        for name, at in times.items():
            np.testing.assert_allclose(called[at - 1][0], values[name], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(called[at - 1][1], slopes[name], rtol=1e-3, atol=1e-4)
    assert len(orders) > 1


def test_the_time_of_a_longer_tensor_is_longer(tmp_path):
    cells = [Cell("cost", dataclasses.replace(SPEC, elements=n), "plu", 0, 5, "", "") for n in (100, 1_000_000)]
    short, long = (cost.compute(cell, tmp_path) for cell in cells)
    assert all(np.median(long[key]) > 3 * np.median(short[key]) > 0 for key in COST.columns)


def test_statistics_are_medians_of_ratios_over_repetitions():
    times = {"plu": 2.0, "composite": 3.0, "relu": 1.0, "tanh": 4.0}
    load = np.linspace(1, 2, 31)  # the same for all of a repetition
    arrays = {f"{name}_seconds": 1e-3 * one * load for name, one in times.items()}
    runs = {"plu": {"seed": np.arange(31), **arrays, "native": np.ones(31, bool)}}
    found = {one.name: one.estimate for one in COST.statistics(runs)}
    assert {name: one.value for name, one in found.items()} == {
        "plu/relu": pytest.approx(2),
        "plu/tanh": pytest.approx(0.5),
        "composite/relu": pytest.approx(3),
        "composite/tanh": pytest.approx(0.75),
    }
    assert all(one.low == pytest.approx(one.high) for one in found.values())
    said = "PLU 3 ms, PLU without the compiled kernel 4.5 ms, ReLU 1.5 ms, tanh 6 ms"
    assert COST.finding(runs) == f"Median time of forward and backward, 1,000,000 elements, on one thread: {said}."
    runs["plu"]["native"][:] = False
    assert COST.finding(runs).endswith("(the kernel was not compiled).")
