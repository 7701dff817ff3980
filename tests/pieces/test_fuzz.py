"""A short run of the fuzz (`make fuzz` is the long one), and faults that its judges must detect in a curve."""

import dataclasses

import fuzz
import judges
import numpy as np
import pytest

from plunit.pieces import Curve, Network, activation, curve, network

WRONG_ONCE = {
    # a unit on both of its knots at once, a kink below the rounding of 1 - 1, and again a unit on both knots
    "curve": (2967, 9491, 25657),
    # points next to lines such as 1 + 1e-12 x = 1, which rounding blurs, were once located in the wrong polygon
    "polygons": (2323, 7611),
}


@pytest.mark.parametrize(("kind", "seeds"), [("curve", range(200)), ("polygons", range(60)), *WRONG_ONCE.items()])
def test_every_network_is_right(kind, seeds):
    assert {seed: verdict for seed in seeds if (verdict := judges.JUDGES[kind](seed)) != "right"} == {}


@pytest.mark.parametrize("seed", [101851, 105439])
def test_what_cannot_be_told_apart_is_refused(seed):
    assert judges.judge_curve(seed).startswith("refused: between x = ")


def changed(found, **parts):
    return Curve.assemble(**{**vars(found), **parts})


def bumped(array, part):
    """Move one number by a fraction of the largest."""
    array = array.copy()
    array[len(array) // 2] += part * np.abs(array).max()
    return array


def blurred(found):
    """Treat all slopes as equal."""
    return changed(found, tolerance=np.full_like(found.tolerance, np.abs(found.slopes).max()))


def sharp(found):
    """Treat slopes as different, however small the difference."""
    slopes = found.slopes + np.arange(len(found.slopes))[:, None] * 1e-14
    return changed(found, slopes=slopes, tolerance=0 * found.tolerance)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda found: changed(found, values=bumped(found.values, 1e-5)), "curve[0] at "),
        (lambda found: changed(found, slopes=bumped(found.slopes, 1e-6)), "slope "),
        (blurred, "merged[0] at "),
        (sharp, " pieces"),
        (lambda found: changed(found, patterns=found.patterns - 1), " patterns and "),
    ],
)
def test_the_judge_sees_what_is_wrong(spoil, text, monkeypatch):
    monkeypatch.setattr(judges, "curve", lambda *place: spoil(curve(*place)))
    verdicts = [judges.judge_curve(seed) for seed in (2, 4, 6, 8, 10, 12)]
    assert any(verdict.startswith("wrong: ") and text in verdict for verdict in verdicts)


@pytest.mark.parametrize(("slope", "text"), [(1e-17, "right"), (1e-9, "wrong: no kink at 0.0")])
def test_a_kink_must_move_f_by_more_than_the_rounding_of_its_terms(slope, text, monkeypatch):
    """1 - 1 + slope relu(x), without its kink."""
    first = ([[1.0], [0.0], [0.0]], [0.0, 1.0, 1.0])
    net = network([first, activation.relu(), ([[slope, 1.0, -1.0]], [0.0])])
    monkeypatch.setattr(judges, "scaled_network", lambda *_, **__: net)
    monkeypatch.setattr(judges, "curve", lambda *place: blurred(curve(*place)))
    monkeypatch.setattr(judges, "_values", lambda *_: None)
    assert judges.judge_curve(1) == text


def test_the_judge_of_polygons_sees_what_is_wrong(monkeypatch):
    def spoiled(*place):
        found = exact_polygons(*place)
        *hidden, last = found.network.layers
        steeper = dataclasses.replace(last, weight=last.weight * (1 + 1e-5))
        return dataclasses.replace(found, network=Network((*hidden, steeper)))

    exact_polygons = judges.polygons
    monkeypatch.setattr(judges, "polygons", spoiled)
    assert any(judges.judge_polygons(seed).startswith("wrong: polygons[0] at ") for seed in (2, 4, 6, 8))


def test_what_is_raised_besides_a_refusal_is_wrong(monkeypatch):
    monkeypatch.setattr(judges, "curve", lambda *place: 1 / 0)
    assert judges.verdict(("curve", 2)) == (("curve", 2), "wrong: ZeroDivisionError: division by zero")


def test_counts_are_printed_and_wrong_ones_named(capsys):
    assert fuzz.report([("curve", seed) for seed in range(10)] + [("polygons", 3)], 1) == 0
    text = capsys.readouterr().out
    assert "curve, ordinary                 5        0        0" in text
    assert "polygons, wild scales           1        0        0" in text
