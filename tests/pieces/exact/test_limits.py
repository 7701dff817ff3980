"""Limits on pieces and memory, whose errors name the layer and the count; and reports of progress."""

import numpy as np
import pytest
from random_networks import dense_network

from plunit.pieces import activation, curve, network, polygons

BOX = ((-3.0, 3.0), (-2.0, 4.0))
PLU, PAIR = (network([(np.eye(n), np.zeros(n)), activation.plu(), (np.ones((1, n)), [0.0])]) for n in (1, 2))


@pytest.mark.parametrize(
    ("call", "patterns"), [(lambda n: curve(PLU, -2, 2, limit=n), 3), (lambda n: polygons(PAIR, BOX, limit=n), 9)]
)
def test_the_limit_is_exact(call, patterns):
    assert call(patterns).patterns == patterns
    with pytest.raises(ValueError, match=f"limit={patterns - 1};"):
        call(patterns - 1)


def test_exponentially_many_pieces_stop_at_the_limit():
    tent = [([[2.0], [4.0]], [0.0, -2.0]), activation.relu(), ([[1.0, -1.0]], [0.0])]
    assert curve(network(tent * 10), 0.0, 1.0).pieces == 2**10
    with pytest.raises(ValueError, match=r"layer 14 of 60 makes at least 16,384 pieces, but limit=10000"):
        curve(network(tent * 60), 0.0, 1.0, limit=10_000)


def test_a_wide_network_stops_at_the_limit_soon():
    with pytest.raises(ValueError, match="limit=20000;"):
        polygons(dense_network(2, 2, 500, 500, 1), BOX, limit=20_000)


def test_memory_is_checked_before_it_is_used(monkeypatch):
    monkeypatch.setattr("plunit.pieces.exact.limits.MEMORY", 2**24)
    net = dense_network(3, 2, 60, 2000, 1)
    with pytest.raises(
        ValueError, match=r"layer 1 of 2 makes at least .* points with 4,000 numbers each, 0\.\d GB, more than the 0.0"
    ):
        polygons(net, BOX)


def test_progress_is_reported():
    told = []
    curve(dense_network(0, 1, 5, 5, 5, 1), -3.0, 3.0, progress=lambda *parts: told.append(parts))
    assert [done for done, _ in told] == [0.0, 1 / 3, 2 / 3]
    assert [text.partition(":")[0] for _, text in told] == [f"layer {i} of 3" for i in (1, 2, 3)]
    told.clear()
    found = polygons(dense_network(5, 2, 20, 20, 1), BOX, progress=lambda *parts: told.append(parts))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {text.partition(":")[0] for _, text in told} == {"layer 1 of 2", "layer 2 of 2"}
    assert told[-1] == (1.0, f"layer 2 of 2: {len(found):,} polygons")
