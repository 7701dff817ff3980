"""Members of an ensemble against networks trained alone, in both engines."""

import functools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lone_members import MODULES, PaperPLU, alone, columns, generators
from torch import nn

from plunit.ensemble import ENGINES, MLP, Rows, Validation, forward, initial, train, training

# Not symmetric about 0: on symmetric data an odd activation has bias gradients that are 0 but for rounding, which Adam
# scales up to whole steps, so that any two programs drift apart.
X = np.linspace(-5, 7, 50, dtype=np.float32)[None]
Y = np.sin(X)


@functools.cache
def sine_alone(name, seed):
    return alone((1, 3, 3, 1), MODULES[name], seed, lambda step: (X.T, Y.T), 200)


@pytest.mark.parametrize("name", MODULES)
def test_a_member_follows_the_network_trained_alone(engine, name):
    network = MLP((1, 3, 3, 1), name)
    ours = train(network, initial(network, generators([3, 8])), (X, Y), steps=200, stride=1, engine=engine)
    losses, theta = columns(sine_alone(name, seed) for seed in [3, 8])
    np.testing.assert_allclose(ours.history, losses, rtol=2e-3, atol=2e-5)
    np.testing.assert_allclose(ours.theta[: len(theta)], theta, rtol=5e-3, atol=5e-3)


def test_streams_and_several_inputs_and_outputs(engine):
    widths, seeds, steps = (2, 4, 3, 2), [0, 5], 100
    batches = {s: np.random.default_rng(100 + s).uniform(-3, 3, (steps, 2, 10)).astype(np.float32) for s in seeds}

    def target(x):
        return np.stack([x[..., 0, :] ** 2 - x[..., 1, :] ** 2, x[..., 0, :]], axis=-2)

    position = 0

    def stream(n):
        nonlocal position
        x = np.stack([batches[s][position : position + n] for s in seeds], axis=-1)
        y = np.stack([target(batches[s][position : position + n]) for s in seeds], axis=-1)
        position += n
        return x, y

    network = MLP(widths, "tanh")
    ours = train(network, initial(network, generators(seeds)), stream, steps=steps, stride=1, engine=engine)

    def batch(seed, step):
        x = batches[seed][step]
        return x.T, target(x).T

    losses, theta = columns(alone(widths, nn.Tanh, s, functools.partial(batch, s), steps) for s in seeds)
    np.testing.assert_allclose(ours.history, losses, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ours.theta, theta, rtol=1e-3, atol=1e-3)


def test_alpha_and_c_of_each_member_are_its_own(engine):
    alpha, c = np.array([0.0, 0.3, 0.9]), np.array([0.5, 2.0, 1.0])
    network = MLP((1, 3, 3, 1), "plu")
    start = initial(network, generators([1, 1, 1]))
    ours = train(network, start, (X, Y), steps=200, stride=1, alpha=alpha, c=c, engine=engine)
    modules = [functools.partial(PaperPLU, *shape) for shape in zip(alpha.tolist(), c.tolist(), strict=True)]
    losses, _ = columns(alone((1, 3, 3, 1), module, 1, lambda step: (X.T, Y.T), 200) for module in modules)
    np.testing.assert_allclose(ours.history, losses, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("name", ["plu", "tanh", "gelu"])
def test_a_member_is_the_same_to_the_bit_in_any_company(engine, name):
    network = MLP((1, 3, 3, 1), name)
    steps = 60
    whole = train(network, initial(network, generators(range(37))), (X, Y), steps=steps, engine=engine)
    chunks = [[0], [*range(3, 20)], [*range(20, 37)]]
    parts = [
        train(network, initial(network, generators(chunk)), (X, Y), steps=steps, engine=engine) for chunk in chunks
    ]
    ours = [(part.theta, part.history) for part in parts]
    expected = [(whole.theta[:, chunk], whole.history[:, chunk]) for chunk in chunks]
    np.testing.assert_equal(ours, expected)


@pytest.mark.parametrize("poison", [math.nan, math.inf, 3e38])
@pytest.mark.parametrize("name", ["plu", "tanh", "relu", "plu_learned"])
def test_a_diverged_member_touches_no_other(engine, poison, name):
    network = MLP((1, 3, 3, 1), name)
    start = initial(network, generators(range(20)))
    clean = train(network, start, (X, Y), steps=50, engine=engine)
    sick = start.copy()
    sick[:, 7] = poison
    ours = train(network, sick, (X, Y), steps=50, engine=engine)
    others = np.arange(20) != 7
    assert not np.isfinite(ours.history[:, 7]).any()
    assert np.array_equal(ours.theta[:, others], clean.theta[:, others])
    assert np.array_equal(ours.history[:, others], clean.history[:, others])


def test_data_of_each_member_and_shared_data_agree(engine):
    network = MLP((1, 3, 3, 1), "plu")
    start = initial(network, generators(range(5)))
    shared = train(network, start, (X, Y), steps=40, engine=engine)
    own = train(network, start, (np.broadcast_to(X[..., None], (1, 50, 5)), Y), steps=40, engine=engine)
    assert np.array_equal(shared.theta, own.theta)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", ["tanh", "plu", "plu_learned", "elu"])
def test_engines_agree_over_a_hundred_steps(name):
    network = MLP((1, 5, 5, 5, 5, 2), name)
    start = initial(network, generators(range(8)))
    targets = np.concatenate([Y, np.cos(X)])
    compiled, numpy = (train(network, start, (X, targets), steps=100, engine=engine) for engine in ENGINES)
    np.testing.assert_allclose(compiled.history, numpy.history, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(compiled.theta, numpy.theta, rtol=1e-2, atol=2e-3)


def test_checkpoints_and_strides_change_nothing(engine):
    network = MLP((1, 3, 3, 1), "plu")
    start = initial(network, generators(range(3)))
    plain = train(network, start, (X, Y), steps=50, stride=1, engine=engine)
    marked = train(network, start, (X, Y), steps=50, stride=7, checkpoints=[0, 13, 50], engine=engine)
    early = train(network, start, (X, Y), steps=13, engine=engine)
    assert np.array_equal(marked.theta, plain.theta)
    assert np.array_equal(marked.history, plain.history[::7])
    assert np.array_equal(marked.checkpoints, np.stack([start, early.theta, plain.theta]))


def test_recorded_losses_are_those_of_the_recorded_weights(engine):
    network = MLP((1, 3, 3, 1), "plu")
    run = train(
        network, initial(network, generators([4])), (X, Y), steps=33, stride=16, checkpoints=[0, 16, 32], engine=engine
    )
    losses = [((forward(network, theta, X) - Y[..., None]) ** 2).mean((0, 1)) for theta in run.checkpoints]
    np.testing.assert_allclose(run.history, np.stack(losses), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("members", [3, 64])
def test_the_start_is_left_as_it_is(engine, members):
    network = MLP((1, 2, 1), "plu_learned")
    start = initial(network, generators(range(members)))
    before = start.copy()
    ours = train(network, start, (X, Y), steps=5, engine=engine)
    assert np.array_equal(start, before)
    assert not np.array_equal(ours.theta, before)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X[0], Y),
        (X.T, Y.T),
        (X, Y[:, :49]),
        (X, np.concatenate([Y, Y])),
        (np.broadcast_to(X[..., None], (1, 50, 3)), Y),
        (X, np.broadcast_to(Y[..., None], (1, 50, 5))),
        (X[:, :, None, None], Y),
        (X[:, :0], Y[:, :0]),
    ],
)
def test_wrong_data_is_named(engine, x, y):
    network = MLP((1, 2, 1), "plu")
    with pytest.raises(ValueError, match=r"(inputs|targets) must be \[1, batch\] or \[1, batch, 2\]"):
        train(network, initial(network, generators([0, 1])), (x, y), steps=2, engine=engine)


@pytest.mark.parametrize("data", [None, (X,), (X, Y, X), 3, lambda n: None])
def test_data_that_are_no_pair_are_named(data):
    network = MLP((1, 2, 1), "plu")
    with pytest.raises(ValueError, match=r"data must be Rows, a pair \(inputs, targets\) or a function of such, got"):
        train(network, initial(network, generators([0])), data, steps=2)


def test_a_short_stream_is_named(engine):
    network = MLP((1, 2, 1), "plu")
    short = np.broadcast_to(X[None, ..., None], (3, 1, 50, 2))
    with pytest.raises(ValueError, match="a first axis of 4 steps"):
        train(network, initial(network, generators([0, 1])), lambda n: (short, short), steps=4, engine=engine)


@pytest.mark.parametrize("theta", [np.zeros((6, 2)), np.zeros(7), np.zeros((7, 0))])
def test_a_wrong_start_is_named(engine, theta):
    with pytest.raises(ValueError, match=r"theta must be \[7, members\]"):
        train(MLP((1, 2, 1), "plu"), theta, (X, Y), steps=2, engine=engine)


def test_the_native_engine_refuses_what_it_cannot_do():
    network = MLP((1, 2, 1), "plu")
    with pytest.raises(ValueError, match=r"takes float32, got float64; take engine='numpy'"):
        train(network, initial(network, generators([0])).astype(np.float64), (X, Y), steps=2, engine="native")


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 2.0])
@pytest.mark.parametrize("x", [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, -3.0, math.inf, -math.inf, math.nan])
def test_plu_at_its_kinks_and_at_infinity(engine, x, alpha):
    """A unit with weight x, an input of 1 and a target of 0: the first loss is PLU(x) squared.

    The second member is there because some member must be finite.
    """
    network = MLP((1, 1, 1), "plu")
    theta = np.array([[x, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], dtype=np.float32)
    data = np.ones((1, 1)), np.zeros((1, 1))
    loss = train(network, theta, data, steps=1, alpha=alpha, engine=engine).history[0, 0]
    edge = math.copysign(1.0, x)
    expected = x if not abs(x) > 1 else edge if alpha == 0 else edge + alpha * (x - edge)
    np.testing.assert_allclose(loss, expected**2, rtol=1e-6)


def test_float64_runs_in_numpy_and_agrees_closely():
    network = MLP((1, 3, 3, 1), "plu")
    ours = train(network, initial(network, generators([2])).astype(np.float64), (X, Y), steps=300, stride=1)
    losses, _ = alone((1, 3, 3, 1), PaperPLU, 2, lambda step: (X.T, Y.T), 300, torch.float64)
    np.testing.assert_allclose(ours.history[:, 0], losses, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "arguments",
    [
        {"steps": -1},
        {"steps": True},
        {"steps": 5, "stride": 0},
        {"steps": 5, "checkpoints": [6]},
        {"steps": 5, "checkpoints": [3, 1]},
        {"steps": 5, "checkpoints": 5},
        {"steps": 5, "checkpoints": ("a",)},
    ],
)
def test_wrong_arguments_are_named(arguments):
    network = MLP((1, 2, 1), "plu")
    with pytest.raises(
        ValueError, match=r"(steps|stride) must be an integer of|checkpoints must be increasing steps from 0 to 5"
    ):
        train(network, initial(network, generators([0])), (X, Y), **arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": -1.0}, "lr must be finite and not negative, got"),
        ({"lr": np.nan}, "lr must be finite"),
        ({"decay": -0.1}, "decay must be finite and not negative"),
        ({"alpha": np.inf}, "alpha must be finite"),
        ({"c": -1.0}, "c must be finite and not negative"),
        ({"alpha": None}, "alpha must be finite and not negative, got None"),
        ({"lr": "fast"}, "lr must hold real numbers, got .*fast"),
        ({"loss": ["square"]}, r"unknown loss \['square'\]; choose one of square"),
        ({"schedule": -1.0}, r"schedule must be finite and not negative, got -1\.0"),
        ({"schedule": [math.nan]}, r"schedule must be finite and not negative, got nan at index \(0,\)"),
        ({"schedule": [math.inf]}, "schedule must be finite and not negative, got inf"),
        ({"schedule": 1j}, "schedule must hold real numbers, got complex128; pass the real part"),
    ],
)
def test_settings_that_no_training_survives_are_refused(options, words):
    network = MLP((1, 3, 1))
    start = initial(network, [np.random.default_rng(0)])
    with pytest.raises(ValueError, match=words):
        train(network, start, (np.ones((1, 2)), np.ones((1, 2))), steps=1, **options)


NUMBERS = {"x": (60, 2), "y": (60, 1), "weight": (60,)}
SICK = [
    ("x", (7, 1), r"inputs must be finite in float32, got {} in row 7, column 1; drop such rows"),
    ("y", (7, 0), r"targets must be finite in float32, got {} in row 7; drop such rows"),
    ("weight", (7,), r"weight must be finite in float32, got {} in row 7; drop such rows"),
]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("batch", [0, 8])
@pytest.mark.parametrize(("name", "place", "words"), SICK)
def test_rows_that_are_not_finite_are_refused(engine, name, place, words, batch, bad):
    network = MLP((2, 3, 1))
    start, numbers = initial(network, generators([0])), {key: np.ones(shape) for key, shape in NUMBERS.items()}
    numbers[name][place] = bad
    words = words.format(bad)
    with pytest.raises(ValueError, match=f"^{words}"):
        train(network, start, Rows(**numbers, batch=batch, seeds=[0]), steps=3, engine=engine)
    healthy = Rows(np.ones((4, 2)), np.ones((4, 1)))
    with pytest.raises(ValueError, match=f"^validation: {words}"):
        train(network, start, healthy, validation=Validation(**numbers), steps=3, engine=engine)


@pytest.mark.parametrize(("name", "place", "words"), SICK)
def test_rows_below_a_mask_are_refused(engine, name, place, words):
    network = MLP((2, 3, 1))
    start, numbers = initial(network, generators([0])), {key: np.ones(shape) for key, shape in NUMBERS.items()}
    numbers[name][place] = -9999
    numbers[name] = np.ma.masked_equal(numbers[name], -9999)
    words = rf"{words.split()[0]} must not be masked, got 1 masked numbers, the first at index .{place[0]},.*; drop"
    with pytest.raises(ValueError, match=f"^{words}"):
        train(network, start, Rows(**numbers), steps=3, engine=engine)
    healthy = Rows(np.ones((4, 2)), np.ones((4, 1)))
    with pytest.raises(ValueError, match=f"^validation: {words}"):
        train(network, start, healthy, validation=Validation(**numbers), steps=3, engine=engine)


def test_a_masked_array_without_masked_entries_is_an_array():
    network, start = MLP((1, 3, 1)), initial(MLP((1, 3, 1)), generators([0]))
    masked, plain = (train(network, start, (x, Y), steps=3).theta for x in (np.ma.masked_equal(X, -9999), X))
    np.testing.assert_array_equal(masked, plain)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_start_without_a_finite_member_is_refused(engine, value):
    theta = np.zeros((7, 2))
    theta[1, 1] = theta[3, 0] = value
    with pytest.raises(ValueError, match=rf"theta must be finite in some member, got {value} at index \(1, 1\)"):
        train(MLP((1, 2, 1)), theta.astype(np.float32), (X, Y), steps=2, engine=engine)


KINDS = [
    ("complex64", "got complex64; pass the real part"),
    ("datetime64[D]", r"got datetime64\[D\]; subtract a date and divide by a unit"),
    ("timedelta64[s]", r"got timedelta64\[s\]; divide it by a unit"),
]


@pytest.mark.parametrize(("dtype", "words"), KINDS)
@pytest.mark.parametrize(("name", "place"), [("theta", 0), ("inputs", 1), ("targets", 2)])
def test_numbers_that_are_not_real_are_refused(dtype, words, name, place):
    given = [np.ones(shape, np.float32) for shape in [(10, 2), (1, 5), (1, 5)]]
    given[place] = np.ones(given[place].shape, np.int64).astype(dtype)
    with pytest.raises(ValueError, match=f"{name} must hold real numbers, {words}"):
        train(MLP((1, 3, 1)), given[0], tuple(given[1:]), steps=2)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("bad", [-0.5, 1.5])
def test_targets_that_are_no_probabilities_are_refused(engine, loss, bad):
    network, y = MLP((1, 3, 2)), np.full((50, 2), 0.5)
    start, sick = initial(network, generators([0])), y.copy()
    sick[7, 1] = bad
    words = f"targets of the loss {loss} must be from 0 to 1, got {bad} in row 7, column 1; scale them"
    with pytest.raises(ValueError, match=f"^{words}"):
        train(network, start, Rows(X.T, sick), loss=loss, steps=2, engine=engine)
    with pytest.raises(ValueError, match=f"^validation: {words}"):
        train(network, start, Rows(X.T, y), loss=loss, validation=Validation(X.T, sick), steps=2, engine=engine)


def test_negative_weights_are_refused(engine):
    network, weight = MLP((1, 3, 1)), np.ones(50)
    start, weight[7] = initial(network, generators([0])), -1
    words = r"weight must not be negative, got -1\.0 in row 7; drop such rows"
    with pytest.raises(ValueError, match=f"^{words}"):
        train(network, start, Rows(X.T, Y.T, weight), steps=2, engine=engine)
    with pytest.raises(ValueError, match=f"^validation: {words}"):
        train(network, start, Rows(X.T, Y.T), validation=Validation(X.T, Y.T, weight), steps=2, engine=engine)


def test_validation_without_weight_is_refused(engine):
    network, looks = MLP((1, 3, 1)), Validation(X.T, Y.T, np.zeros(50))
    with pytest.raises(ValueError, match=r"^validation: weight must be above 0 in some row, got 0 in all; leave"):
        train(network, initial(network, generators([0])), (X, Y), validation=looks, steps=2, engine=engine)


@pytest.mark.parametrize("seed", [1.5, np.float64(2), "3", None])
def test_seeds_that_are_no_integers_are_refused(engine, seed):
    network, rows = MLP((1, 3, 1)), Rows(X.T, Y.T, batch=8, seeds=[0, seed])
    with pytest.raises(ValueError, match=f"seeds must be integers, got {re.escape(repr(seed))}; pass range"):
        train(network, initial(network, generators([0, 1])), rows, steps=2, engine=engine)


def test_points_of_a_batch_that_are_not_finite_are_refused(engine):
    network, x, y = MLP((2, 3, 1)), np.ones((2, 50, 3)), np.ones((1, 50, 1))
    start = initial(network, generators([0, 1, 2]))
    x[1, 7, 2] = math.nan
    with pytest.raises(ValueError, match="inputs must be finite in float32, got nan in point 7, unit 1, member 2"):
        train(network, start, (x, y), steps=3, engine=engine)


def test_steps_of_a_stream_that_are_not_finite_are_refused(engine):
    def stream(steps):
        y = np.ones((steps, 1, 5, 1))
        y[9, 0, 4] = math.inf
        return np.ones((steps, 1, 5, 1)), y

    network = MLP((1, 3, 1))
    with pytest.raises(ValueError, match="targets must be finite in float32, got inf in point 4, step 9; drop such"):
        train(network, initial(network, generators([0])), stream, steps=200, engine=engine)


def test_large_numbers_are_finite(engine):
    """Their sum is not."""
    network, x = MLP((1, 3, 1)), np.full((1, 50), 3e38)
    assert train(network, initial(network, generators([0])), (x, x), steps=1, engine=engine).history.shape == (1, 1)


def test_a_long_training_is_taken_in_parts(engine, monkeypatch):
    taken = []

    def spy(parts, advance=training.ENGINES[engine]):
        taken.extend((steps.first, steps.last) for _, steps in parts)
        advance(parts)

    network, x = MLP((1, 3, 1)), np.linspace(-1, 1, 9, dtype=np.float32)[None]
    start = initial(network, [np.random.default_rng(seed) for seed in range(3)])
    whole = train(network, start, (x, x**2), steps=50, stride=7, checkpoints=[20], engine=engine)
    monkeypatch.setattr(training, "Pace", lambda: SimpleNamespace(next=lambda first, most: min(first + 6, most)))
    monkeypatch.setitem(training.ENGINES, engine, spy)
    parts = train(network, start, (x, x**2), steps=50, stride=7, checkpoints=[20], engine=engine)
    assert taken == [(0, 6), (6, 12), (12, 18), (18, 20), (20, 26), (26, 32), (32, 38), (38, 44), (44, 50)]
    np.testing.assert_array_equal(parts.theta, whole.theta)
    np.testing.assert_array_equal(parts.history, whole.history)
    np.testing.assert_array_equal(parts.checkpoints, whole.checkpoints)
