"""Data that cannot be learned as they are get an error or a warning with the column; good data get none."""

import warnings

import pytest
import torch

from plunit.invertible import TOYS, Flow, conditional, density, toy
from plunit.invertible.batches import screen


def normal(n, columns, seed=0):
    return torch.randn(n, columns, generator=torch.Generator().manual_seed(seed))


def with_column(x, column, values):
    x = x.clone()
    x[:, column] = values
    return x


Z = normal(1000, 4)
GOOD = {
    **{name: toy(name, 3000, torch.Generator().manual_seed(0)) for name in TOYS},
    "two points": normal(2, 3),
    "as many points as features": normal(5, 5),
    "few points": normal(12, 3).round(decimals=1),
    "cauchy": torch.distributions.Cauchy(0.0, 1.0).icdf(torch.linspace(0.001, 0.999, 999))[:, None],
    "an outlier": torch.cat([Z, torch.full((1, 4), 1e8)]),
    "two digits": Z.round(decimals=2),
    "a tenth of zeros, nearly": with_column(Z, 1, torch.where(torch.arange(1000) < 99, 0.0, Z[:, 1])),
    "counts": torch.poisson(torch.full((1000, 1), 400.0), generator=torch.Generator().manual_seed(0)) / 20 - 20,
    "strongly correlated": with_column(Z, 1, Z[:, 0] + 1e-3 * Z[:, 1]),
    "scale 10": 10 * Z + 10,
    "scale 0.1": 0.1 * Z,
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_good_data_are_not_mentioned(name, dtype):
    screen(GOOD[name].to(dtype))  # warnings are errors in these tests


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (normal(1, 3), "one point has no density; pass at least two different points"),
        (with_column(Z, 2, 7.0), r"column 2 is constant \(7\), .* drop constant columns"),
        (torch.zeros(50, 8), r"columns 0, 1, 2, 3, 4 and 3 more are constant \(0\)"),
        (with_column(Z, 3, Z[:, 1]), r"columns 1, 3 are linearly dependent .* drop columns that others determine"),
        (with_column(Z, 0, 2 * Z[:, 1] - Z[:, 2] + 5), "columns 0, 1, 2 are linearly dependent"),
        (with_column(Z, 1, Z[:, 0] + 1e-7 * Z[:, 1]), "columns 0, 1 are linearly dependent"),
    ],
)
def test_data_without_a_density_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        screen(x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (with_column(Z, 1, Z[:, 1].sign()), r"^column 1 is discrete, .* makes up 5\d% of column 1.* add uniform noise"),
        (with_column(Z, 0, Z[:, 0].clamp(min=1)), r"column 0 is discrete, at least in part: 1 makes up 8\d%"),
        (with_column(Z, 3, torch.arange(1000.0) % 25 / 7), r"column 3 is discrete, .* makes up 4% of column 3"),
        (1e6 * Z, r"columns 0, 1, 2, 3 are far from standard: .* the spread .*e\+0[56], .* Standardise: \(x - x"),
        (Z + with_column(0 * Z, 2, 1e6), r"^column 2 is far from standard: column 2 has the centre 1e\+06"),
        (1e-6 * Z, "columns 0, 1, 2, 3 are far from standard"),
    ],
)
def test_data_that_are_hard_to_learn_are_named(x, message):
    with pytest.warns(UserWarning, match=message):
        screen(x.double())


def test_in_a_batch_everything_is_a_warning_because_others_may_differ():
    with pytest.warns(UserWarning, match="column 2 is constant"):
        screen(with_column(Z, 2, 7.0), whole=False)
    screen(with_column(Z[:10], 2, 7.0), whole=False)  # too few to say
    screen(Z[:1], whole=False)


def test_contexts_may_be_discrete_and_constant_but_not_far():
    context = torch.cat([torch.ones(1000, 1), Z[:, :1].sign()], 1)
    screen(Z, context)
    with pytest.warns(UserWarning, match="context columns 0, 1 are far from standard"):
        screen(Z, 1000 * context)


@pytest.mark.parametrize("of", [lambda x: x, lambda x: lambda n: x[:n], lambda x: [x[:500], x[500:]].__iter__()])
def test_fit_screens_points_functions_and_loaders(of):
    with pytest.warns(UserWarning, match="columns 0, 1 are far from standard") as caught:
        Flow(density(2, 1)).fit(of(1e5 * Z[:, :2]), 1)
    assert caught[0].filename == __file__  # the warning points at the user's line
    with pytest.warns(UserWarning, match="column 1 is constant"):  # of a function: the next batch may differ
        Flow(density(2, 1)).fit(lambda n: with_column(Z[:, :2], 1, 7.0), 1)
    with pytest.warns(UserWarning, match="context column 0 is far"):
        Flow(conditional(2, 1, blocks=1)).fit(Z[:, :2], 1, context=100 * Z[:, 2:3])


def test_many_rows_are_thinned_but_constants_are_looked_for_in_all():
    x = normal(40_001, 2)
    x[:, 1] = 0
    x[-2, 1] = 1.0  # one value of 40,001 is another: discrete, not constant
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        screen(x)
    assert [str(each.message).partition(",")[0] for each in caught] == ["column 1 is discrete"]
