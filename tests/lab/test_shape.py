import dataclasses

import numpy as np
from plunit.lab.results import Results
from plunit.lab.shape.claims import table

from plunit.lab import fit, shape
from plunit.lab.cell import Cell


def test_the_grid_holds_the_paper_s_choice_and_16_by_16_values():
    for spec in shape.SPECS.values():
        assert len(set(spec.alphas)) == len(set(spec.cs)) == 16
        assert spec.fit.alpha in spec.alphas
        assert spec.fit.c in spec.cs


def test_a_point_of_the_map_is_the_experiment_with_that_alpha_and_c():
    quick = dataclasses.replace(fit.SPECS["sine"], steps=24)
    spec = shape.spec.ShapeMap(quick, alphas=(0.1, 0.4), cs=(0.5, 1, 2))
    arrays = shape.compute(Cell("map-sine", spec, "plu", 5, 7, "eager"))
    losses = table(spec, arrays)
    assert losses.shape == (2, 3, 2)
    for i, alpha in enumerate(spec.alphas):
        for j, c in enumerate(spec.cs):
            alone = dataclasses.replace(quick, alpha=alpha, c=c, checkpoints=())
            expected = fit.compute(Cell("sine", alone, "plu", 5, 7, "eager"))["final_loss"]
            np.testing.assert_allclose(losses[i, j], expected, rtol=1e-6)


def test_the_verdict_is_the_rank_of_the_paper_s_choice():
    spec = shape.SPECS["map-sine"]
    rank = {True: np.arange(256.0), False: -np.arange(256.0)}
    for best, order in rank.items():
        losses = np.roll(order, 3 * 16 + 8).reshape(16, 16)  # the first of the order falls on alpha = 0.1, c = 1
        arrays = {"final_loss": np.tile(losses.ravel(), 20) + 1000}
        (claim,) = shape.claims(Results({("map-sine", "plu"): arrays}))
        assert claim.value == (0 if best else 255 / 257)
        assert claim.verdict == ("holds" if best else "does not hold")
    assert (spec.alphas[3], spec.cs[8]) == (0.1, 1)
