"""What `fit` takes: arrays of all kinds, functions, loaders; converted once to the precision of the flow."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from plunit.invertible import Flow, conditional, density, toy

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
