"""What `fit` takes: arrays of all kinds, functions, loaders; converted once to the precision of the flow, and screened.

Data that cannot be learned as they are get an error or a warning with the column; good data get none.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from plunit.invertible import TOYS, Flow, conditional, density, toy
from plunit.invertible.training.batches import screen

X = toy("moons", 64, torch.Generator().manual_seed(0)).double()


def read_only(x):
    array = x.numpy().copy()
    array.flags.writeable = False
    return array


FORMS = {
    "float64 tensor": lambda x: x,
    "float32 tensor": lambda x: x.float(),
    "tensor with gradient": lambda x: x.clone().requires_grad_(),
    "more axes": lambda x: x.reshape(4, 16, 2),
    "float64 array": lambda x: x.numpy(),
    "float32 array": lambda x: x.numpy().astype(np.float32),
    "fortran order": lambda x: np.asfortranarray(x.numpy()),
    "big endian": lambda x: x.numpy().astype(">f8"),
    "read-only": read_only,
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: tuple(map(tuple, x.tolist())),
    "data frame": lambda x: pd.DataFrame(x.numpy(), columns=["a", "b"]),
    "function of arrays": lambda x: lambda n: x.numpy()[:n],
    "loader": lambda x: DataLoader(TensorDataset(x), batch_size=64),
    "loader of tensors": lambda x: DataLoader(x, batch_size=64),
    "iterator of arrays": lambda x: iter([x.numpy()] * 20),
}


def fitted(data, dtype, **options):
    flow = Flow(density(2, 2, generator=torch.Generator().manual_seed(0))).to(dtype)
    losses = flow.fit(data, 8, batch=64, generator=torch.Generator().manual_seed(1), **options).losses
    return flow, losses


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_form_is_taken_in_both_precisions(name, dtype):
    before = X.clone()
    flow, losses = fitted(FORMS[name](X), dtype, validation=X.numpy())
    assert torch.equal(X, before)
    assert all(parameter.dtype == dtype for parameter in flow.parameters())
    same = fitted(lambda n: X[:n], dtype) if not _drawn(name) else fitted(X, dtype)
    assert losses == pytest.approx(same[1], rel=1e-6 if dtype == torch.float32 or "32" in name else 1e-12)


def _drawn(name):
    return not any(word in name for word in ("function", "loader", "iterator"))


def test_a_loader_is_read_again_and_again():
    order = []

    class Batches:
        def __iter__(self):
            for index in range(3):
                order.append(index)
                yield X[index * 16 : index * 16 + 16]

    Flow(density(2, 1)).fit(Batches(), 7)
    assert order == [0, 1, 2, 0, 1, 2, 0]


PAIRS = {
    "arrays": lambda x, c: ((x.numpy(),), {"context": c.numpy()}),
    "lists": lambda x, c: ((x.tolist(),), {"context": c.tolist()}),
    "function": lambda x, c: ((lambda n: (x[:n], c[:n]),), {}),
    "loader": lambda x, c: ((DataLoader(TensorDataset(x, c), batch_size=32),), {}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_contexts_come_with_their_points(name):
    args, options = PAIRS[name](X, X.sum(1, keepdim=True).clone())
    flow = Flow(conditional(2, 1, blocks=1, hidden=(8,))).double()
    assert len(flow.fit(*args, 4, **options, validation=(X, X[:, :1])).validation) == 5


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
        (normal(1, 3), "one point has no density: give at least two different points"),
        (with_column(Z, 2, 7.0), r"column 2 is constant \(7\), .* drop what is constant"),
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
