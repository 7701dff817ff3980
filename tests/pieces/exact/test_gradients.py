import numpy as np
import pytest

from plunit.pieces.exact.gradients import Maps, group_starts, same_maps


@pytest.mark.parametrize(
    ("slopes", "tolerance", "starts"),
    [
        ([1, 1, 2, 2, 1], 0.0, [0, 2, 4]),
        ([1, 1.1, 0.95, 1.0], 0.1, [0]),
        ([0, 1, 2, 3, 4, 5, 6], 0.5, [0, 2, 4, 6]),
        ([0, 1, 2, 1, 0, 9, 9.5, 10.1], 0.5, [0, 2, 4, 5, 7]),
        ([3], 0.0, [0]),
    ],
)
def test_a_group_stays_near_its_start(slopes, tolerance, starts):
    slopes = np.array(slopes, dtype=float)[:, None]
    found = group_starts(slopes, np.full_like(slopes, tolerance), np.arange(len(slopes)) == 0)
    assert np.flatnonzero(found).tolist() == starts


def test_fresh_pieces_start_groups_and_any_output_counts():
    slopes = np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0], [1.0, 6.0]])
    fresh = np.array([True, False, True, False])
    assert np.flatnonzero(group_starts(slopes, 0 * slopes, fresh)).tolist() == [0, 2, 3]


def test_tolerances_are_those_of_the_two_pieces():
    slopes, tolerance = np.array([[0.0], [1.0], [2.0]]), np.array([[0.9], [0.2], [0.2]])
    assert np.flatnonzero(group_starts(slopes, tolerance, np.array([True, False, False]))).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("gradients", "labels"),
    [
        ([0, 0, 1, 0], [0, 0, 1, 2]),
        ([0, 0.1, 0.2, 0.3], [0, 0, 1, 1]),
        ([0, 0.1, 0.2, 0.1], [0, 0, 1, 2]),
    ],
)
def test_cells_in_a_row_are_grouped_by_the_first(gradients, labels):
    """Neighbours within 0.15 of one another, in a row: a group holds those within 0.15 of its first."""
    count = len(gradients)
    gradient = np.array(gradients, dtype=float)[:, None, None] * np.ones((1, 1, 2))
    maps = Maps(gradient, np.zeros((count, 1)), np.full_like(gradient, 0.075))
    pairs = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    assert same_maps(maps, pairs).tolist() == labels
