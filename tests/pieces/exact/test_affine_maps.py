import numpy as np
import pytest

from plunit.pieces.exact.affine_maps import Maps, group_starts, same_maps


@pytest.mark.parametrize(
    ("slopes", "tolerance", "starts"),
    [
        ([1, 1, 2, 2, 1], 0.0, [0, 2, 4]),
        ([1, 1.1, 0.95, 1.0], 0.1, [0]),
        ([0, 1, 2, 3, 4, 5, 6], 0.5, [0, 2, 4, 6]),
        ([0, 1, 2, 1, 0, 9, 9.5, 10.1], 0.5, [0, 2, 4, 5, 7]),
        ([0, 1, 2], [0.9, 0.2, 0.2], [0, 2]),
        ([3], 0.0, [0]),
    ],
)
def test_a_group_stays_near_its_start(slopes, tolerance, starts):
    tolerance = np.broadcast_to(tolerance, len(slopes)).astype(float)[:, None]
    found = group_starts(np.array(slopes, dtype=float)[:, None], tolerance, np.arange(len(slopes)) == 0)
    assert np.flatnonzero(found).tolist() == starts


def test_fresh_pieces_start_groups_and_any_output_counts():
    slopes = np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0], [1.0, 6.0]])
    fresh = np.array([True, False, True, False])
    assert np.flatnonzero(group_starts(slopes, 0 * slopes, fresh)).tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("gradients", "labels"),
    [
        ([0, 0, 1, 0], [0, 0, 1, 2]),
        ([0, 0.1, 0.2, 0.3], [0, 0, 1, 1]),
        ([0, 0.1, 0.2, 0.1], [0, 0, 1, 2]),
    ],
)
def test_cells_in_a_row_are_grouped_by_the_first(gradients, labels):
    """Neighbours within 0.15 of each other: a group holds those within 0.15 of its first."""
    count = len(gradients)
    gradient = np.array(gradients, dtype=float)[:, None, None] * np.ones((1, 1, 2))
    maps = Maps(gradient, np.zeros((count, 1)), np.full_like(gradient, 0.075))
    pairs = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    assert same_maps(maps, pairs).tolist() == labels
