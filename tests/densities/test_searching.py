"""The search: halving, what it keeps, stopping, and input that it refuses."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from plunit.base import progress as pauses
from plunit.densities import Architecture, NoFiniteStart, Sample, search, searching, start
from plunit.densities.chain import mean_loss, prepare_sample
from plunit.densities.searching import rho_schedule


def ring(count, seed=0):
    """Points around a circle: no normal density."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * math.pi, count)
    return np.stack([np.cos(angle), np.sin(angle)], 1) * 1.4 + 0.1 * rng.standard_normal((count, 2))


TRAINING, VALIDATION = Sample(ring(2000)), Sample(ring(500, seed=1))
SIX_BLOCKS = Architecture(2, 6)


def found(forms=(SIX_BLOCKS,), training=TRAINING, validation=VALIDATION, **options):
    return search(list(forms), training, validation, **{"starts": 4, "steps": 400, "lr": 0.02, **options})


def check_losses(members):
    """The losses are those of the networks, without corners, and the best is first."""
    losses = [member.loss for member in members]
    assert losses == sorted(losses)
    assert math.isfinite(losses[-1])
    assert {member.network().rho for member in members} == {0}
    np.testing.assert_allclose([mean_loss(one.network(), VALIDATION) for one in members], losses, rtol=1e-4)


def test_a_ring_is_learned(engine):
    """A normal density has 2.8 nats there, 2.76 to be exact."""
    members = found(engine=engine, steps=300)
    check_losses(members)
    assert -members[0].network().log_prob(ring(2000, seed=2)).mean() < 2.2


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("keep", "ends"), [(1, [100, 100, 200, 400]), (3, [100, 400, 400, 400]), (9, [400] * 4)])
def test_the_worse_half_ends_at_each_rung(keep, ends):
    """After 1/8, 1/4 and 1/2 of the steps, at the next look."""
    members = found(keep=keep, every=100)
    assert sorted(member.steps for member in members) == ends
    assert members[0].steps == 400


@pytest.mark.usefixtures("compiler")
def test_the_same_seed_gives_the_same_bits_whatever_the_pauses(monkeypatch):
    one = found()
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 1e-9)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    other = found()
    assert [member.loss for member in one] == [member.loss for member in other]
    assert np.array_equal(one[0].best, other[0].best)
    assert not np.array_equal(one[0].best, found(seed=1)[0].best)


def test_points_are_prepared_once():
    x, weight = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 6.0])
    found = prepare_sample(Sample(x, 1e300 * weight), 2, "X")
    assert found.x.dtype == found.weight.dtype == np.float32
    np.testing.assert_allclose(found.weight, weight / 3, rtol=1e-6)
    assert prepare_sample(found, 2, "X") is found


@pytest.mark.usefixtures("compiler")
def test_several_forms_compete():
    members = found([Architecture(2, 0), Architecture(2, 8)], keep=2)
    assert len(members) == 8
    assert members[0].architecture.blocks == 8


@pytest.mark.parametrize("steps", [1, 5, 100])
def test_annealing_ends_with_kinks(engine, steps):
    rho = rho_schedule(steps)
    assert [*rho[[0, -1]], (rho > 0).sum()] == [0.9 if steps > 1 else 0, 0, int(0.9 * steps)]
    check_losses(found([Architecture(2, 6, "plu")], anneal=True, steps=steps, engine=engine))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("stop_at", [1, 4, 9])
def test_annealing_that_is_stopped_has_losses_without_corners_too(monkeypatch, stop_at):
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 1e-9)
    calls = itertools.count(1)
    check_losses(found([Architecture(2, 6, "plu")], anneal=True, progress=lambda *_: next(calls) >= stop_at))


def test_ctrl_c_amid_a_part_finds_the_state_before_it(engine, monkeypatch):
    """One member has taken its steps, and the others have not, when Python raises."""
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 1e9)
    firsts = []

    def spy(members, steps, threads, advance=searching._ENGINES[engine]):
        firsts.append(members[0].steps)
        advance(members[:1] if len(firsts) == 4 else members, steps, threads)
        if len(firsts) == 4:
            raise KeyboardInterrupt

    whole = {one.seed: one.looks for one in found(engine=engine, steps=80, every=5, keep=4)}
    monkeypatch.setitem(searching._ENGINES, engine, spy)
    with pytest.warns(UserWarning, match="Training interrupted by user after"):
        members = found(engine=engine, steps=80, every=5, keep=4)
    assert {one.steps for one in members} == {firsts[-1]}
    for one in members:
        taken = firsts[-1] // 5
        np.testing.assert_array_equal(one.looks[:taken], whole[one.seed][:taken])
        assert np.isnan(one.looks[taken:]).all()
        assert one.loss == one.looks[:taken].min()


def test_patience_waits_for_the_end_of_annealing(engine):
    """Until the corners are gone each look is at another function, so members take all these steps as without it."""
    options = {"anneal": True, "starts": 2, "keep": 2, "lr": 0.3, "every": 5, "steps": 200, "engine": engine}
    with_patience, without = (
        sorted(found([Architecture(2, 4, "plu")], patience=patience, **options), key=lambda one: one.seed)
        for patience in (1, math.inf)
    )
    sharp = int((rho_schedule(200) > 0).sum()) // 5
    for one, other in zip(with_patience, without, strict=True):
        np.testing.assert_array_equal(one.looks[:sharp], other.looks[:sharp])
        assert (np.diff(other.looks[:sharp]) > 0).any()  # a look that was not better
        assert one.steps >= 5 * sharp
    assert any(one.steps < 200 for one in with_patience)  # then it counts


def test_members_that_diverge_come_last(engine, monkeypatch):
    """The first of four has parameters without a finite loss."""
    calls = itertools.count()

    def begun(*arguments):
        made = start(*arguments)
        return replace(made, theta=np.full_like(made.theta, np.nan)) if next(calls) == 0 else made

    monkeypatch.setattr(searching, "start", begun)
    members = found(engine=engine, steps=100)
    assert [math.isfinite(member.loss) for member in members] == [True, True, True, False]
    assert members[-1].loss == math.inf
    assert members[0].steps == 100


def test_if_all_diverge_a_line_says_so(engine):
    with pytest.raises(NoFiniteStart, match="no start gave a finite loss; standardise the columns, or reduce lr from"):
        found(engine=engine, lr=1e38, steps=50, every=50)


def spoiled(value):
    x = ring(50)
    x[7, 1] = value
    return Sample(x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": spoiled(math.nan)}, r"x of training must be finite in float32, got nan at \[7, 1\]; drop"),
        ({"validation": spoiled(-1e39)}, r"x of validation must be finite in float32, got -inf at \[7, 1\]"),
        ({"training": ring(1)}, "a density needs at least two rows, got 1"),
        ({"training": ring(0)}, r"x of training must be \[rows, 2\] with at least one row, got shape \(0, 2\)"),
        ({"training": ring(9) * [1, 0] + [0, 2]}, r"column 1 is constant \(2\), and a constant has no density; drop"),
        ({"training": ring(9) + 0j}, "x of training must hold real numbers, got complex128"),
        ({"training": Sample(ring(9), np.ones(8))}, r"weight of training must be \[9\], one for each row; got shape"),
        *(
            ({"training": Sample(ring(9), weight)}, "at least 0, and not all 0; the smallest is")
            for weight in (-np.ones(9), np.zeros(9))
        ),
        ({"forms": []}, r"architectures must not be empty and must have the same features, got \[\]"),
        ({"forms": [Architecture(2, 1), Architecture(3, 1)]}, r"the same features, got \[2, 3\]"),
        ({"anneal": True}, 'anneal needs the activation "plu"'),
        ({"lr": 0.0}, r"lr must be positive and finite, got 0\.0"),
        ({"patience": 0}, "patience must be positive, got 0"),
        *(({name: bad}, f"{name} must be") for name in ("steps", "starts", "keep", "batch") for bad in (0, 1.5)),
        ({"every": -1}, "every must be an integer of at least 0"),
        ({"engine": "gpu"}, "unknown engine 'gpu'; choose native or numpy"),
    ],
)
def test_messages(options, message):
    with pytest.raises(ValueError, match=message):
        found(**options)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.x,
        lambda x: Sample(x.x.astype(np.float32)),
        lambda x: Sample(x.x.tolist()),
        lambda x: Sample(np.asfortranarray(x.x)),
        lambda x: Sample(x.x[:, ::-1][:, ::-1]),
    ],
    ids=["an array", "float32", "a list", "by columns", "a view"],
)
@pytest.mark.usefixtures("compiler")
def test_arrays_of_any_layout_are_the_same_points(change):
    options = {"steps": 20, "starts": 1}
    other = found(training=change(TRAINING), validation=change(VALIDATION), **options)
    assert other[0].loss == found(**options)[0].loss


@pytest.mark.usefixtures("compiler")
def test_a_batch_has_at_most_all_points():
    options = {"steps": 20, "starts": 1, "training": Sample(ring(100))}
    assert found(batch=2**31 - 1, **options)[0].loss == found(batch=100, **options)[0].loss


def test_weights_count(engine):
    """Points of weight 0 are as good as missing, and the scale of weights has no effect."""
    far = np.concatenate([ring(300), ring(300) + 40])
    order = np.random.default_rng(0).permutation(600)
    keep, options = np.repeat([1.0, 0.0], 300)[order], {"steps": 40, "engine": engine, "batch": 600}
    one = found(training=Sample(far[order], keep), **options)[0]
    for factor in (1e3, 2.0**-200, 2.0**1020):
        assert found(training=Sample(far[order], factor * keep), **options)[0].loss == one.loss
    assert one.loss < found(training=Sample(far[order]), **options)[0].loss - 0.3
