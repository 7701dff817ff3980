"""PLUDensity against densities that are known, and what `fit` does with rows, weights, seeds and units."""

import numpy as np
import pytest
from scipy import stats

from plunit.sklearn import PLUDensity

RNG = np.random.default_rng(0)
FEW = {"n_init": 2, "n_best": 2, "max_iter": 300, "random_state": 3}
CURVE = np.stack([RNG.normal(size=400), RNG.normal(size=400)], axis=1)
CURVE[:, 1] = 0.3 * CURVE[:, 1] + CURVE[:, 0] ** 2


def bits(model, *data):
    model.fit(*data)
    return b"".join(part.tobytes() for part in (model.theta_, model.means_, model.lowers_, model.constants_))


def test_a_normal_density_is_found():
    truth = stats.multivariate_normal([5.0, -100.0], [[4.0, 3.0], [3.0, 9.0]])
    x, test = truth.rvs(500, random_state=0), truth.rvs(5000, random_state=1)
    model = PLUDensity(random_state=0).fit(x)
    assert np.mean(truth.logpdf(test) - model.score_samples(test)) < 0.02
    np.testing.assert_allclose(model.score_samples([[5.0, -100.0]]), truth.logpdf([5.0, -100.0]), atol=0.25)


def test_what_is_not_normal_is_found():
    """x2 | x1 is normal around x1^2: the entropy is known, and a normal density is 1 nat behind."""
    model = PLUDensity(random_state=0).fit(CURVE)
    x = RNG.normal(size=(5000, 2))
    test = np.stack([x[:, 0], 0.3 * x[:, 1] + x[:, 0] ** 2], axis=1)
    truth = stats.norm.logpdf(x).sum(1).mean() - np.log(0.3)
    assert truth - 0.2 < model.score(test) < truth + 0.01
    assert PLUDensity(0, random_state=0).fit(CURVE).score(test) < truth - 0.8


def test_samples_are_of_the_density():
    model = PLUDensity((4,), **FEW).fit(CURVE)
    x = model.sample(20_000, random_state=0)
    side = np.linspace(-6, 20, 521)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mass = np.exp(model.score_samples(grid))
    mass /= mass.sum()
    deviation = np.sqrt(mass @ grid**2 - (mass @ grid) ** 2)
    np.testing.assert_allclose(x.mean(0), mass @ grid, atol=4 * deviation.max() / np.sqrt(20_000))
    np.testing.assert_allclose(x.std(0), deviation, rtol=0.04)
    np.testing.assert_array_equal(x, model.sample(20_000, random_state=0))
    assert not np.array_equal(x, model.sample(20_000, random_state=1))
    assert model.sample().shape == (1, 2)


def test_the_density_is_the_mean_of_its_members():
    model = PLUDensity((2,), **FEW).fit(CURVE)
    far = np.concatenate([CURVE, [[40.0, -70.0]]])
    parts = zip(model.networks_, model.means_, model.spreads_, model.lowers_, strict=True)
    densities, normals = [], []
    for network, mean, spread, lower in parts:
        matrix = np.linalg.inv(lower) / spread
        log_det = np.linalg.slogdet(matrix)[1]
        densities.append(np.exp(network.log_prob((far - mean) @ matrix.T) + log_det))
        normals.append(stats.multivariate_normal(mean, np.linalg.inv(matrix.T @ matrix)).pdf(far))
    expected = np.mean(densities, axis=0) * (1 - 1 / 400) + np.mean(normals, axis=0) / 400
    np.testing.assert_allclose(np.exp(model.score_samples(far)), expected, rtol=1e-9)
    assert model.network_.architecture == model.networks_[0].architecture
    assert model.score(CURVE) == pytest.approx(np.mean(model.score_samples(CURVE)))


@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (1e6, -1e7), ([1e150, 1e-150], 0.0), (-2.0, 3.0)])
def test_units_change_the_density_by_their_determinant(factor, shift):
    factor = np.ones(2) * factor
    there = PLUDensity((0, 4), **FEW).fit(CURVE * factor + shift)
    plain = PLUDensity((0, 4), **FEW).fit(CURVE)
    found, expected = there.score(CURVE * factor + shift), plain.score(CURVE) - np.log(np.abs(factor)).sum()
    assert found == pytest.approx(expected, abs=0.03)  # rows have another order, and the starts are not mirrored


@pytest.mark.filterwarnings("ignore:only")
@pytest.mark.parametrize("kind", ["numbers", "integers"])
def test_weights_are_numbers_of_rows(kind):
    x = CURVE[:60] if kind == "numbers" else RNG.poisson(3, (60, 2))
    model, times = PLUDensity((0, 2), **FEW), RNG.integers(0, 7, 60)
    there = bits(model, np.repeat(x, times, axis=0))
    assert bits(model, x, None, times) == there
    assert bits(model, x, None, 0.5 * times) == there
    assert bits(model, x) != there


def test_the_order_of_rows_does_not_matter_and_the_seed_does():
    model, other = PLUDensity((0, 2), **FEW), PLUDensity((0, 2), **{**FEW, "random_state": 4})
    assert bits(model, CURVE) == bits(model, CURVE[RNG.permutation(400)]) != bits(other, CURVE)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_tiny_tables_are_normal(n):
    """With fewer than 10 rows there is nothing to validate on: columns are independent."""
    x = RNG.normal(size=(n, 3))
    model = PLUDensity(random_state=0).fit(x)
    assert model.n_blocks_ == 0
    np.testing.assert_allclose(model.score_samples(x), stats.norm(x.mean(0), x.std(0)).logpdf(x).sum(1), rtol=1e-9)


@pytest.mark.parametrize("rows", [12, 30])
def test_small_tables_are_not_much_worse_than_normal(rows):
    """The columns are independent and normal; a network has nothing to gain."""
    losses = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        x, test = rng.normal(size=(rows, 3)), rng.normal(size=(2000, 3))
        normal = stats.multivariate_normal(x.mean(0), np.cov(x.T, bias=True))
        losses.append(normal.logpdf(test).mean() - PLUDensity(random_state=0, max_iter=1000).fit(x).score(test))
    assert np.mean(losses) < 0.05


def test_more_columns_than_rows():
    x = RNG.normal(size=(15, 40))
    assert np.isfinite(PLUDensity(random_state=0).fit(x).score(RNG.normal(size=(100, 40))))


def test_attributes_agree():
    model = PLUDensity((0, 1, 4), **FEW).fit(CURVE)
    table = model.candidates_
    means = {b: table["validation_loss"][table["n_blocks"] == b].mean() for b in (0, 1, 4)}
    assert model.n_blocks_ == min(means, key=means.get)
    assert model.best_loss_ == pytest.approx(means[model.n_blocks_])
    assert table["n_blocks"][table["chosen"]].tolist() == [model.n_blocks_] * 2
    assert model.n_parameters_ == model.theta_.shape[1] == table["n_parameters"][table["chosen"]][0]
    assert model.validation_scores_.max() == pytest.approx(-table["validation_loss"][table["chosen"]].min(), abs=1e-5)
    assert model.n_iter_ == table["n_iter"].max()


@pytest.mark.parametrize(("blocks", "share"), [(0, 0.99), (2, 0.9)])
def test_the_losses_are_those_of_rows_kept_for_validation(blocks, share):
    """Nearly every row decides; the Jacobians of bounds and spread values count, too."""
    x = np.column_stack([np.exp(CURVE[:, 0] + 2), np.round(CURVE[:, 1] * 20) / 20])
    options = {"n_best": 1, "max_iter": 300, "random_state": 0, "bounds": [(0, None), None]}
    model = PLUDensity(blocks, validation_fraction=share, **options).fit(x)
    assert model.best_loss_ == pytest.approx(-model.score(x), abs=0.1)


def test_a_fit_that_fails_changes_nothing():
    model = PLUDensity((0,), **FEW).fit(CURVE)
    before = model.score_samples(CURVE)
    with pytest.raises(ValueError, match="no start gave a finite loss; use a smaller learning_rate_init"):
        model.set_params(n_blocks=(2,), learning_rate_init=1e30).fit(np.hstack([CURVE, CURVE**2]))
    np.testing.assert_array_equal(model.score_samples(CURVE), before)


@pytest.mark.parametrize(
    ("x", "weight", "text"),
    [
        (CURVE, np.append(1e300, np.full(399, 1e-300)), r"weights are from 1e-300 to 1e\+300: one row has all"),
        (
            np.array([[1.7e308, 0.0], [-1.7e308, 1.0], [0.0, 2.0]]),
            None,
            r"values up to 1.7e\+308; .* scale its columns",
        ),
        (RNG.normal(size=(100, 65)), None, "at most 64 columns, got 65; reduce them by PCA, or drop columns"),
        (np.ones((20, 2)), None, "all columns of X are constant; a density needs a column that varies"),
    ],
)
@pytest.mark.filterwarnings("ignore:column")
def test_tables_without_a_density_are_refused(x, weight, text):
    with pytest.raises(ValueError, match=text):
        PLUDensity((0,), **FEW).fit(x, sample_weight=weight)


def test_rows_of_negligible_weight_have_no_effect():
    weight = np.where(np.arange(400) < 300, 1e150, 1e-150)
    assert bits(PLUDensity((0, 2), **FEW), CURVE, None, weight) == bits(PLUDensity((0, 2), **FEW), CURVE[:300])


def test_rows_far_away_have_density_0_and_a_sample_has_a_largest_size():
    model = PLUDensity((0, 2), **FEW).fit(CURVE)
    assert model.score_samples([[1e160, 0.0]]) == -np.inf
    with pytest.raises(ValueError, match=r"must be at most 1073741824, got n_samples = 9223372036854775808; draw"):
        model.sample(2**63)


@pytest.mark.parametrize("activation", ["smooth", "plu", "leaky"])
def test_to_torch_is_the_same_density(activation):
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(200, 2)) * [1e3, 1e-3] + 5
    model = PLUDensity((3,), activation, **{**FEW, "n_best": 1}).fit(x)
    flow = model.to_torch()
    with torch.no_grad():
        np.testing.assert_allclose(flow.log_prob(torch.from_numpy(x)).numpy(), model.score_samples(x), rtol=1e-9)
    assert flow.sample(4).dtype == torch.float64
    with pytest.raises(ValueError, match="to_torch does not support bounds, integers and constant"):
        model.set_params(bounds={0: (-1e4, None)}).fit(x).to_torch()
