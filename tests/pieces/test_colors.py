import colorsys

import numpy as np
import pytest

from plunit.pieces.drawing import RAMP, gradient_colors, value_colors


def test_colours_tell_directions_apart():
    colors = gradient_colors(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]]), 1.0)
    assert len(np.unique(colors.round(3), axis=0)) == 4
    np.testing.assert_allclose(colors[3], 1.0)


@pytest.mark.parametrize("angle", np.linspace(0, 2 * np.pi, 13))
@pytest.mark.parametrize("size", [0.0, 0.25, 1.0, 4.0])
def test_hue_is_the_direction_and_depth_the_size(angle, size):
    depth = min(size, 1.0) ** 0.5
    expected = colorsys.hsv_to_rgb(angle / (2 * np.pi) % 1.0, 0.75 * depth, 1 - 0.15 * depth)
    found = gradient_colors(size * np.array([[np.cos(angle), np.sin(angle)]]), 1.0)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-12)


def test_values_go_through_the_ramp():
    np.testing.assert_allclose(value_colors(np.array([2.0, 3.0, 4.0, 5.0, 6.0])), RAMP)
    np.testing.assert_allclose(value_colors(np.array([-1e308, 1e308])), RAMP[[0, -1]])
    np.testing.assert_allclose(value_colors(np.array([7.0, 7.0])), RAMP[[2, 2]])
