"""Successive halving over starts and shapes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from lone_members import looks_of

from plunit.base import progress as pauses
from plunit.ensemble import MLP, Rows, Validation, forward, halving, initial, train
from plunit.ensemble.halving import search_networks

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (120, 2)).astype(np.float32)
Y = (np.sin(2 * X[:, :1]) * X[:, 1:] + 0.2 * RNG.normal(size=(120, 1))).astype(np.float32)
WEIGHT = RNG.random(120).astype(np.float32)
ROWS = Rows(X[:80], Y[:80], WEIGHT[:80], batch=16)
TESTS = Validation(X[80:], Y[80:], WEIGHT[80:], every=5)
SHAPES = [MLP((2, 5, 1), "plu"), MLP((2, 4, 3, 1), "plu_learned")]
STEPS = 80


def run(engine=None, *, networks=SHAPES, rows=ROWS, validation=TESTS, **options):
    options = {"starts": 12, "steps": STEPS, "seed": 7, "lr": 0.02, "decay": 0.1, **options}
    return search_networks(networks, rows, validation, engine=engine, **options)


def alone(network, shape, start, steps=STEPS, **options):
    """Train one start by `train`, as the docstring of `search_networks` describes it."""
    generator = np.random.default_rng([7, shape, start])
    scales = [1 / math.sqrt(n) for n in network.widths[:-1]]
    scales[-1] *= 0.3
    theta = initial(network, [generator], scales=scales)
    rows = Rows(ROWS.x, ROWS.y, ROWS.weight, 16, [int(generator.integers(2**63))])
    schedule = (1 + np.cos(np.pi * np.arange(STEPS) / STEPS)) / 2
    options = {"lr": 0.02, "decay": 0.1, "validation": TESTS, "schedule": schedule[:steps], **options}
    return train(network, theta, rows, steps=steps, **options)


def test_each_start_is_trained_as_far_as_it_got(engine):
    """Also those that ended, and those that went on without them; each start is there once, and the best is first."""
    found = run(engine)
    assert {one.steps for one in found} == {10, 20, 40, 80}
    for one in found:
        trained = alone(one.network, SHAPES.index(one.network), one.start, one.steps, engine=engine)
        assert (one.loss, one.best_step) == (trained.best_loss[0], trained.best_step[0])
        assert one.theta.tobytes() == trained.best[:, 0].tobytes()
        assert one.history.tobytes() == trained.history[:, 0].tobytes()
        assert (len(one.looks), one.looks.min()) == (one.steps // 5, one.loss)
    assert sorted((SHAPES.index(one.network), one.start) for one in found) == list(np.ndindex(2, 12))
    losses = [one.loss for one in found]
    assert losses == sorted(losses)
    x, y = X[80:].T.astype(np.float64), Y[80:, 0].astype(np.float64)
    for one in found:
        output = forward(one.network, one.theta[:, None].astype(np.float64), x)[0, :, 0]
        assert ((output - y) ** 2 * WEIGHT[80:]).mean() == pytest.approx(one.loss, rel=1e-4)


@pytest.mark.parametrize(
    ("keep", "counts"),
    [(1, {10: 12, 20: 6, 40: 3, 80: 3}), (10, {10: 12, 20: 2, 80: 10}), (24, {80: 24}), (99, {80: 24})],
)
def test_the_better_half_goes_on(keep, counts):
    found = run(keep=keep)
    steps = [one.steps for one in found]
    assert {step: steps.count(step) for step in sorted(set(steps))} == counts
    for rung in (10, 20, 40):
        ended = [one.looks[: rung // 5].min() for one in found if one.steps == rung]
        going = [one.looks[: rung // 5].min() for one in found if one.steps > rung]
        assert not ended or max(going) <= min(ended)


def test_shapes_need_not_survive():
    """Without hidden units a product cannot be learned."""
    rows, tests = Rows(X[:80], X[:80, :1] * X[:80, 1:]), Validation(X[80:], X[80:, :1] * X[80:, 1:], every=5)
    found = run(networks=[MLP((2, 1)), MLP((2, 8, 1))], rows=rows, validation=tests, steps=200, lr=0.05)
    assert {one.network.depth for one in found if one.steps == 200} == {2}
    assert max(one.steps for one in found if one.network.depth == 1) < 200


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_starts_that_are_not_finite_come_last(engine, poison, monkeypatch):
    def sick(*args, **options):
        theta = initial(*args, **options)
        theta[:, :3] = poison
        return theta

    with monkeypatch.context() as patch:
        patch.setattr(halving, "initial", sick)
        found = run(engine, networks=SHAPES[:1])
    assert sorted(one.start for one in found[-3:]) == [0, 1, 2]
    assert {one.steps for one in found[-3:]} == {10}
    assert np.isfinite([one.loss for one in found[:-3]]).all()
    clean = {one.start: one.theta.tobytes() for one in run(engine, networks=SHAPES[:1], keep=12)}
    assert all(one.theta.tobytes() == clean[one.start] for one in found if one.steps == STEPS)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, {"every": 5}),
        ({"keep": 10}, {"every": 5}),
        *(({"steps": steps}, {"every": every}) for steps, every in ((1, 1), (3, 1), (100, 7), (99, 100))),
        ({}, {"every": 5, "patience": 2, "tolerance": 0.1}),
    ],
)
def test_progress_grows_to_1_and_rungs_are_at_looks(options, rule):
    told = []
    found = run(validation=Validation(X[80:], Y[80:], **rule), progress=lambda *now: told.append(now), **options)
    done, best = map(np.array, zip(*told, strict=True))
    assert (np.diff(done) >= 0).all()
    assert (best[1:] <= best[:-1]).all()
    assert 0 < done[0] <= done[-2] < 1
    assert (done[-1], best[-1]) == (1, found[0].loss)
    steps = options.get("steps", STEPS)
    assert max(one.steps for one in found) == steps or "patience" in rule
    assert {one.steps % rule["every"] for one in found if one.steps < steps} <= {0}


def test_pauses_change_nothing(monkeypatch):
    """A search that pauses after each step, as on a slow machine, and one that pauses at its rungs only."""
    told = []
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 0.0)
    often = run(progress=lambda *now: told.append(now))
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 1e9)
    rarely = run()
    assert len(told) > 20
    assert [(one.start, one.loss) for one in often] == [(one.start, one.loss) for one in rarely]
    assert all(np.array_equal(one.theta, other.theta) for one, other in zip(often, rarely, strict=True))


def test_a_search_can_be_stopped_after_the_first_look(monkeypatch):
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 0.0)
    found = run(progress=lambda *now: True)
    assert len(found) == len(run())
    assert {one.steps for one in found} == {5}
    assert np.isfinite([one.loss for one in found]).all()


@pytest.mark.parametrize("calls", [3, 5])
def test_ctrl_c_amid_a_part_finds_the_state_before_it(engine, monkeypatch, calls):
    """Some members have taken their steps, and the others have not, when Python raises."""
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 1e9)
    seen = []

    def spy(parts, advance=halving.ENGINES[engine]):
        seen.append(parts[0][1].first)
        advance(parts[:1] if len(seen) == calls else parts)
        if len(seen) == calls:
            raise KeyboardInterrupt

    monkeypatch.setitem(halving.ENGINES, engine, spy)
    with pytest.warns(UserWarning, match="Training interrupted by user after") as said:
        found = run(engine, keep=24)
    monkeypatch.undo()
    whole = {(one.network, one.start): one.looks for one in run(engine, keep=24)}
    assert f"after {seen[-1]} of {STEPS} steps" in str(said[0].message)
    assert {one.steps for one in found} == {seen[-1]}
    for one in found:
        looks = whole[one.network, one.start][: seen[-1] // 5]
        assert (one.loss, one.looks.tobytes()) == (looks.min(), looks.tobytes())


def test_ctrl_c_before_the_first_look_raises(engine):
    def press(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(engine, progress=press, validation=Validation(X[80:], Y[80:], every=40))


def test_patience(engine, monkeypatch):
    """A member ends where the rule says, between rungs too, and gives up its place at the next rung."""
    limits, options, waiting = {"patience": 2, "tolerance": 0.01}, {"keep": 24, "decay": 0.0, "lr": 0.1}, []

    def spy(parts, advance=halving.ENGINES[engine]):
        waiting.extend(state.waited.max() for state, steps in parts if steps.first in (10, 20, 40))
        advance(parts)

    whole = run(engine, validation=Validation(X[80:], Y[80:], every=5), **options)
    monkeypatch.setitem(halving.ENGINES, engine, spy)
    found = run(engine, validation=Validation(X[80:], Y[80:], every=5, **limits), **options)
    looks = {(one.network, one.start): one.looks for one in whole}
    expected = [5 * looks_of(looks[one.network, one.start], **limits) for one in found]
    assert [one.steps for one in found] == expected
    assert len(set(expected) - {10, 20, 40, 80}) > 1
    assert all(one.best_step <= one.steps for one in found)
    assert 0 <= max(waiting) < 2


@pytest.mark.parametrize("finish", [0, 3])
def test_a_start_is_trained_on_all_rows_but_its_own_fold(engine, finish):
    """It is the same, to the bit, as a search without folds on the rows behind those that are held, in their order."""
    held, firsts = 30, [0, 30, 60, 105] * 3  # the last fold goes on at row 0
    folded = replace(ROWS, x=X, y=Y, weight=WEIGHT, held=held, firsts=firsts)
    options = {"keep": 12, "finish": finish, "finishers": 24}
    found = run(engine, rows=folded, validation=Validation(every=5), **options)
    for first in set(firsts):
        order = (np.arange(120) + first) % 120
        (x, y, w), tests = (part[order[held:]] for part in (X, Y, WEIGHT)), order[:held]
        weight = WEIGHT[tests] / WEIGHT[tests].astype(np.float64).mean()
        plain = run(
            engine, rows=Rows(x, y, w, 16), validation=Validation(X[tests], Y[tests], weight, every=5), **options
        )
        alike = {(one.network, one.start): one for one in plain}
        mine = [one for one in found if one.first_held == first]
        assert len(mine) == 2 * 3
        for one in mine:
            other = alike[one.network, one.start]
            if one.steps == other.steps:
                assert (one.loss, one.theta.tobytes()) == (other.loss, other.theta.tobytes())
        assert any(one.steps == alike[one.network, one.start].steps for one in mine)


def test_each_fold_goes_on_with_as_many():
    """Also if the rows of one fold are much harder to predict than those of the others."""
    y = Y.copy()
    y[:30] += 100
    folded = replace(ROWS, x=X, y=y, weight=None, held=30, firsts=[0, 30, 60, 90] * 3)
    found = run(rows=folded, validation=Validation(every=5), networks=SHAPES[:1], keep=4)
    assert sorted(one.first_held for one in found if one.steps == STEPS) == [0, 30, 60, 90]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held": 120}, "held must be from 1 to 119"),
        ({"held": -1}, "held must be from 1 to 119"),
        ({"held": 5, "batch": 0}, "with batch > 0"),
    ],
)
def test_rows_must_be_left_to_draw(change, message):
    with pytest.raises(ValueError, match=message):
        replace(ROWS, x=X, y=Y, weight=None, **change)


def test_a_finish_keeps_all_members_of_equal_shapes():
    found = run(networks=SHAPES[:1] * 2, finish=2, finishers=12)
    assert sorted(one.start for one in found) == sorted([*range(12)] * 2)
