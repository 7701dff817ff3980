"""The compiled program: its cache, its bits, and life without a compiler."""

import platform
import warnings

import numpy as np
import pytest
import torch

from plunit.ensemble import Network, build, initial, native, train
from plunit.ensemble.state import State

X = torch.linspace(-5, 7, 50)[None]


@pytest.fixture
def fresh(monkeypatch):
    """Forget the loaded library before and after."""
    build.library.cache_clear()
    yield monkeypatch
    build.library.cache_clear()


def state(activation, members=64, steps=40):
    network = Network((1, 3, 3, 1), activation)
    theta = initial(network, [np.random.default_rng(seed) for seed in range(members)])
    zeros = [torch.zeros_like(theta) for _ in range(2)]
    shapes = [torch.full((2, members), value) for value in (0.1, 1.0)]
    return State(network, 0.01, 8, theta, *zeros, *shapes, torch.zeros(5, members))


@pytest.mark.usefixtures("compiler")
@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="names an x86 target")
@pytest.mark.parametrize("activation", ["tanh", "plu", "gelu", "plu_learned"])
def test_every_processor_computes_the_same_bits(activation):
    narrow, wide = state(activation), state(activation)
    data = X[None, ..., None], X.sin()[None, ..., None]
    native.run(build.compile_program(("-march=x86-64",)), narrow, *data, 0, 40)
    native.run(build.library(), wide, *data, 0, 40)
    assert torch.equal(narrow.theta, wide.theta)
    assert torch.equal(narrow.history, wide.history)
    assert narrow.history[-1].isfinite().all()


@pytest.mark.usefixtures("compiler")
def test_a_compiled_program_is_used_again(monkeypatch):
    build.compile_program(("-march=native",))
    commands = []
    run = build._output
    monkeypatch.setattr(build, "_output", lambda command: commands.append(command) or run(command))
    build.compile_program(("-march=native",))
    assert [("-o" in command) for command in commands] == [False]


@pytest.mark.usefixtures("compiler")
def test_the_cache_may_be_unwritable(fresh, tmp_path):
    (tmp_path / "file").touch()
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert build._cache().is_dir()


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [("no-such-compiler", r"no C\+\+ compiler found \(CXX is 'no-such-compiler'\)"), ("false", "false failed: ")],
)
def test_without_a_compiler_training_runs_eagerly_and_says_so(fresh, compiler, reason):
    fresh.setenv("CXX", compiler)
    network = Network((1, 2, 1), "plu")
    start = initial(network, [np.random.default_rng(0)])
    with pytest.warns(
        UserWarning, match=f"{reason}.*: training runs eagerly, slower, with the same result to rounding"
    ):
        slow = train(network, start, (X, X.sin()), steps=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(slow.theta, train(network, start, (X, X.sin()), steps=20, engine="eager").theta)
