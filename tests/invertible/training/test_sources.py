"""What `fit` takes: arrays of all kinds, functions, loaders; always converted once to the precision of the flow."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from plunit.invertible import Flow, conditional, density, toy

X = toy("moons", 64, torch.Generator().manual_seed(0)).double()


def big_endian(x):
    return x.numpy().astype(">f8")


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
    "big endian": big_endian,
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
    flow, losses = fitted(FORMS[name](X), dtype)
    assert all(parameter.dtype == dtype for parameter in flow.parameters())
    same = fitted(lambda n: X[:n], dtype) if not _drawn(name) else fitted(X, dtype)
    assert losses == pytest.approx(same[1], rel=1e-6 if dtype == torch.float32 or "32" in name else 1e-12)


def _drawn(name):
    return not any(word in name for word in ("function", "loader", "iterator"))


def test_integers_are_numbers_too():
    assert len(Flow(density(2, 1)).fit(np.arange(24).reshape(12, 2) ** 2 % 13, 3).losses) == 3


def test_a_loader_is_read_again_and_again():
    order = []

    class Batches:
        def __iter__(self):
            for index in range(3):
                order.append(index)
                yield X[index * 16 : index * 16 + 16]

    Flow(density(2, 1)).fit(Batches(), 7)
    assert order == [0, 1, 2, 0, 1, 2, 0]


def test_an_iterator_that_ends_is_an_error_with_the_remedy():
    flow = Flow(density(2, 1))
    with pytest.raises(ValueError, match="the loader has no batches left; give one that can be read again"):
        flow.fit(iter([X] * 4), 7)
    assert flow.log_prob(X[:3].float()).isfinite().all()


@pytest.mark.parametrize("option", [{"weights": torch.ones(64)}, {"validation": 0.2}, {"context": X}])
@pytest.mark.parametrize("data", [lambda n: X[:n], DataLoader(X, batch_size=8)], ids=["function", "loader"])
def test_what_needs_all_points_at_once_says_so(data, option):
    with pytest.raises(ValueError, match="needs points as a tensor or an array, got"):
        Flow(density(2, 1)).fit(data, 3, **option)


def test_functions_and_loaders_take_validation_points():
    assert Flow(density(2, 1)).fit(lambda n: X[:n], 3, validation=X.numpy()).validation.keys() == {0, 1, 2, 3}


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


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (X, {}, "this flow is conditional: give a context of 1 numbers for each point"),
        (X, {"context": X[:10, :1]}, "each point needs its own context, got 64 points and 10 contexts"),
        (X, {"context": X}, r"contexts of 1 numbers, .* got a tensor of shape \(64, 2\)"),
        (lambda n: X, {}, "this flow is conditional"),
        (lambda n: (X, X, X), {}, "a batch must be points, or points and contexts, got 3 parts"),
    ],
)
def test_contexts_that_do_not_fit(data, options, message):
    with pytest.raises(ValueError, match=message):
        Flow(conditional(2, 1, blocks=1)).fit(data, 3, **options)


def test_a_tensor_of_data_is_left_as_it_is():
    before = X.clone()
    Flow(density(2, 1)).fit(X, 3)
    assert torch.equal(X, before)


@pytest.mark.parametrize("name", ["points", "context", "weights", "validation"])
def test_numbers_below_a_mask_are_refused(name):
    given = {"points": X.numpy(), "context": X.numpy()[:, :1], "weights": np.ones(64), "validation": X.numpy()}
    given[name] = np.ma.array(given[name], mask=np.arange(given[name].size).reshape(given[name].shape) == 9)
    points, validation = given.pop("points"), (given.pop("validation"), X[:, :1])
    place = r"\(4, 1\)" if name in ("points", "validation") else r"\(9,"
    with pytest.raises(ValueError, match=f"data must not be masked, got 1 masked numbers, the first at index {place}"):
        Flow(conditional(2, 1, blocks=1, hidden=(8,))).fit(points, 3, **given, validation=validation)


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]", "complex64"])
def test_numbers_that_are_not_real_are_refused(dtype):
    with pytest.raises(TypeError, match=f"its numbers are {dtype.split('[')[0]}.*, not real; .*(unit|real part)"):
        Flow(density(2, 1)).fit(np.ones((8, 2), np.int64).astype(dtype), 3)
