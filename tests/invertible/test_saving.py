"""Flows as files: what was saved comes back, and a file of any other content is one clear line."""

import importlib
import json
import math
import os
import re

import pytest
import torch
from safetensors.torch import save, save_file
from torch.distributions import Laplace

from plunit.invertible import (
    LU,
    PLU,
    Annealing,
    Bijection,
    Chain,
    Conditional,
    Flow,
    Inverse,
    ScaleShift,
    SmoothPLU,
    Tanh,
    conditional,
    density,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_bijection_comes_back(make, bijection_name, dtype, tmp_path):
    flow, path = Flow(make(bijection_name, 3, dtype)).to(dtype), tmp_path / "flow.safetensors"
    state, loss = torch.get_rng_state(), flow.log_prob(torch.zeros(1, 3, dtype=dtype)).sum()
    flow.save(path)
    if loss.requires_grad:
        loss.backward()  # saving leaves a loss that waits for its gradient
    loaded = Flow.load(path)
    assert torch.equal(torch.get_rng_state(), state)
    x = torch.randn(7, 3, dtype=dtype).clamp(-0.9, 0.9)
    assert repr(loaded) == repr(flow)
    assert torch.equal(loaded.log_prob(x), flow.log_prob(x))
    torch.testing.assert_close(loaded.bijection.inverse(x), flow.bijection.inverse(x), rtol=0, atol=0)
    assert loaded.sample(4).dtype == dtype
    assert [p.shape for p in loaded.parameters()] == [p.shape for p in flow.parameters()]


@pytest.mark.parametrize("activation", ["smooth", "annealed", "flux"])
@pytest.mark.parametrize("sharp", [False, True])
def test_conditional_flows_come_back(perturb, activation, sharp, tmp_path):
    flow = Flow(perturb(conditional(2, 3, blocks=2, activation=activation, hidden=(8,))))
    if sharp:
        flow.sharpen()
    flow.save(tmp_path / "flow")
    loaded, x, context = Flow.load(tmp_path / "flow"), torch.randn(9, 2), torch.randn(9, 3)
    assert isinstance(loaded.bijection, Conditional)
    assert torch.equal(loaded.log_prob(x, context), flow.log_prob(x, context))
    assert len(loaded.fit(x, 2, context=context).losses) == 2


def test_a_loaded_flow_is_annealed_as_it_was_built_to_be(tmp_path):
    Flow(Chain(LU(2), SmoothPLU(2, learnable=True, annealing=Annealing(0.8, 0.1, 0.5)))).save(tmp_path / "flow")
    loaded = Flow.load(tmp_path / "flow")
    assert loaded.bijection.parts()[1].annealing == Annealing(0.8, 0.1, 0.5)
    loaded.fit(torch.randn(50, 2), 4)
    assert isinstance(loaded.bijection.parts()[1], PLU)


def test_a_base_of_its_own_is_given_again(tmp_path):
    base = torch.distributions.Independent(Laplace(torch.zeros(2), torch.ones(2)), 1)
    flow, x = Flow(density(2, 1), base), torch.randn(5, 2)
    flow.save(tmp_path / "flow")
    assert torch.equal(Flow.load(tmp_path / "flow", base).log_prob(x), flow.log_prob(x))
    with pytest.raises(ValueError, match="holds a flow whose base is not the standard normal; pass base="):
        Flow.load(tmp_path / "flow")
    Flow(density(2, 1)).save(tmp_path / "plain")
    with pytest.raises(ValueError, match="holds a flow whose base is the standard normal; omit base"):
        Flow.load(tmp_path / "plain", base)


class Mine(Bijection):
    """A bijection that the list does not know."""


def with_value(flow, name, value):
    with torch.no_grad():
        flow.get_parameter(name).fill_(value)
    return flow


def nested(levels):
    bijection = ScaleShift(2)
    for _ in range(levels):
        bijection = Chain(bijection)
    return bijection


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (
            lambda: with_value(Flow(density(2, 1)), "bijection.bijections.0.bias", math.nan),
            r"not saved, because .*flow could not be loaded again: bijections\.0\.bias must be finite",
        ),
        (lambda: with_value(Flow(LU(2)), "bijection.raw_diagonal", 1e6), r"raw_diagonal must be at most .* got \[1000"),
        (lambda: Flow(nested(25)), "nested more than 20 deep"),
        (lambda: Flow(Chain(*[Tanh(2)] * 40_000)), "at most 1000000 characters"),
        (lambda: Flow(density(2, 1)).frozen(), "Frozen cannot be saved; save the flow it came from"),
        (lambda: Flow(Chain(Mine(2))), "Mine cannot be saved; only PLU, LeakyReLU"),
        (lambda: Flow(density(2, 1)).bfloat16(), "float32 or float64, got torch.bfloat16"),
    ],
)
def test_what_cannot_be_saved_leaves_no_file(flow, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        flow().save(tmp_path / "flow")
    assert not list(tmp_path.iterdir())


PLAIN = {"format": 1, "dtype": "float32", "own_base": False}
LINE = {"kind": "ScaleShift", "features": 2}
PLANE = {"kind": "PLU", "features": 2, "learnable": True, "boundary": False}
ARRAYS = {"raw_scale": torch.zeros(2), "shift": torch.zeros(2)}
INNER = {f"bijection.{name}": value for name, value in ARRAYS.items()}
LAST = {**INNER, "network.0.weight": torch.zeros(4, 1)}
HUGE = 10**12


def held(bijection):
    """The structure of a file that holds a bijection."""
    return {**PLAIN, "bijection": bijection}


def test_a_reversible_chain_of_an_older_file_is_a_chain(tmp_path):
    arrays = {f"bijections.{i}.{name}": value + i for i in (0, 1) for name, value in ARRAYS.items()}
    structure = held({"kind": "Reversible", "parts": [LINE, LINE]})
    save_file(arrays, tmp_path / "flow", {"flow": json.dumps(structure)})
    chain = Flow.load(tmp_path / "flow").bijection
    assert type(chain) is Chain
    assert [part.shift.tolist() for part in chain.parts()] == [[0, 0], [1, 1]]


def conditioned(context, slots):
    return held({"kind": "Conditional", "part": LINE, "context": context, "hidden": [], "slots": slots})


def deep(levels):
    found = LINE
    for _ in range(levels):
        found = {"kind": "Inverse", "part": found}
    return found


@pytest.mark.parametrize(
    ("structure", "arrays", "message"),
    [
        ("{", ARRAYS, "Expecting property name"),
        ({**PLAIN, "format": 2, "bijection": LINE}, ARRAYS, "the format must be 1; .* later version"),
        ({**PLAIN, "dtype": "int8", "bijection": LINE}, ARRAYS, "structure must have"),
        (held({"kind": "eval", "code": "1"}), ARRAYS, r"'eval' with \['code'\] is not a known bijection"),
        (held({**LINE, "hook": "x"}), ARRAYS, "ScaleShift must have the options features, got"),
        (
            held({**LINE, "features": HUGE}),
            ARRAYS,
            rf"ScaleShift needs at least {HUGE} numbers, but the file has 4 \(\*\)",
        ),
        (held({**PLANE, "features": HUGE}), ARRAYS, f"PLU needs at least {HUGE} numbers"),
        (held({"kind": "LU", "features": 10**6}), {"bias": torch.zeros(10**6)}, f"LU needs at least {HUGE} numbers"),
        (held({"kind": "Chain", "parts": []}), ARRAYS, "at least one bijection"),
        (held(deep(30)), ARRAYS, "nested more than 20 deep"),
        ('{"format": 1, "bijection": ' + '{"part": ' * 100_000, ARRAYS, "recursion|Recursion"),
        (held(LINE), {"shift": torch.zeros(2)}, "Missing key"),
        (held(LINE), {**ARRAYS, "other": torch.zeros(1)}, "Unexpected key"),
        (held(LINE), {**ARRAYS, "shift": torch.full((2,), torch.nan)}, "shift must be finite"),
        (held({"kind": "Permutation", "features": 2}), {"order": torch.tensor([0, 0])}, "order must name each"),
        (conditioned(10**9, [2]), INNER, r"needs at least 4000000000 numbers, but the file has 0 \(network\.\*\)"),
        (conditioned(1, [1, 1]), {**LAST, "network.0.bias": torch.zeros(4)}, "for each at least as many slots"),
        (conditioned(1, [2]), {**LAST, "network.0.bias": torch.full((4,), torch.nan)}, "network.0.bias must be finite"),
    ],
)
def test_a_hostile_file_is_one_line(structure, arrays, message, tmp_path):
    text = structure if isinstance(structure, str) else json.dumps(structure)
    save_file(arrays, tmp_path / "flow", {"flow": text})
    with pytest.raises(ValueError, match="is not a readable flow: ") as caught:
        Flow.load(tmp_path / "flow")
    assert re.search(message, str(caught.value))
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_left_as_it_is(tmp_path):
    flow = Flow(density(2, 1))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/null"):
        with pytest.raises(ValueError, match="the path is a folder or a device"):
            Flow.load(path)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="is a folder, a device or a pipe; give a file name"):
            flow.save(path)
    for use in (flow.save, Flow.load):
        with pytest.raises(FileNotFoundError):
            use(tmp_path / "missing" / "flow")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    flow.save(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "pipe"]
    assert Flow.load(tmp_path / "link").bijection.features == 2


def test_any_change_of_a_byte_is_a_flow_or_one_line_and_another_kind_of_file_too(tmp_path):
    path, random = tmp_path / "flow", torch.Generator().manual_seed(0)
    Flow(Chain(LU(2), PLU(2, learnable=True), Inverse(ScaleShift(2)))).save(path)
    good = bytearray(path.read_bytes())
    results = []
    for place in torch.randint(len(good), (100,), generator=random).tolist():
        spoiled = good.copy()
        spoiled[place] ^= 1 << (place % 8)
        path.write_bytes(spoiled)
        try:
            results.append(type(Flow.load(path)).__name__)
        except ValueError as error:
            results.append(str(error))
    assert 0 < results.count("Flow") < 100
    assert not any("\n" in text for text in results)
    for content in (b"", b"\x80\x04K\x01.", b"\xff" * 100, (2**40).to_bytes(8, "little") + b"{}", save(ARRAYS)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="flow is not a readable flow: "):
            Flow.load(path)


def test_without_safetensors_the_extra_is_named(monkeypatch, tmp_path):
    def import_module(name):
        raise ModuleNotFoundError(name="safetensors")

    monkeypatch.setattr(importlib, "import_module", import_module)
    for use in (Flow(density(2, 1)).save, Flow.load):
        with pytest.raises(ModuleNotFoundError, match=r"a saved flow needs safetensors, .* 'plunit\[lab\]'"):
            use(tmp_path / "flow")
