"""What flows, bijections and networks refuse: one table of calls, each with its error and the words that matter."""

import copy
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import distributions as d
from torch.utils.data import DataLoader

from plunit.densities import Architecture, start
from plunit.invertible import (
    LU,
    PLU,
    RHO,
    Annealing,
    BijectionTransform,
    Chain,
    Conditional,
    Flow,
    Frozen,
    Inverse,
    InvertibleNetwork,
    LeakyReLU,
    Permutation,
    SmoothPLU,
    Tanh,
    conditional,
    density,
    to_flow,
    toy,
)

X = toy("moons", 10, torch.Generator().manual_seed(0))
HOLED = X.clone().index_put((torch.tensor(4), torch.tensor(1)), torch.tensor(math.nan))
MASKED = np.ma.array(X.numpy(), mask=np.arange(20).reshape(10, 2) == 9)
NESTED = torch.nested.as_nested_tensor([X, X], layout=torch.jagged)
PLAIN, GIVEN = Flow(density(2, 1)), Flow(conditional(2, context=3, blocks=1))

FITS = [
    # points
    (HOLED, {}, ValueError, "finite data, got 1 values that are not (in torch.float32), the first at index (4, 1)"),
    (torch.empty(0, 2), {}, ValueError, "n > 0, got a tensor of shape (0, 2)"),
    (torch.ones(10, 3), {}, ValueError, "fit needs points of 2 features, a tensor of shape (n, 2), n > 0, got"),
    ("points", {}, TypeError, "fit expects a tensor, an array or nested lists of points, a function that draws"),
    ([[1.0, 2.0], [3.0]], {}, TypeError, "got list: "),
    (X.to_sparse(), {}, TypeError, "fit expects a dense tensor, got one of torch.sparse_coo; pass tensor.to_dense()"),
    (NESTED, {}, TypeError, "got a nested one; pass torch.cat(tensor.unbind())"),
    (X.to("meta"), {}, TypeError, "got a tensor on the device meta; pass the data itself"),
    (X * 1j, {}, TypeError, "fit expects real numbers, got a tensor of torch.complex64; pass its real part"),
    (MASKED, {}, ValueError, "data must not be masked, got 1 masked values, the first at index (4, 1)"),
    (iter([X] * 2), {}, ValueError, "the loader has no batches left; pass one that can be iterated again"),
    (X[:1], {}, ValueError, "one point has no density; pass at least two different points"),
    # weights, validation and contexts
    (X, {"weights": [0.0] * 9 + [1.0]}, ValueError, "one point has no density"),
    (X, {"weights": torch.ones(9)}, ValueError, "one number for each of the 10 points, got shape (9,)"),
    (X, {"weights": torch.full((10,), -1.0)}, ValueError, "finite and at least 0, and not all 0, got -1.0 to -1.0"),
    (X, {"validation": 0.9}, ValueError, "two to train, got 0.9 of 10 points"),
    (X, {"context": X}, ValueError, "this flow has no context; leave it out, or build the flow with conditional(...)"),
    (lambda n: X, {"weights": torch.ones(10)}, ValueError, "weights needs points as a tensor or an array, got"),
    (DataLoader(X), {"validation": 0.2}, ValueError, "a fraction for validation needs points as a tensor or an array"),
    # options
    (X, {"steps": 0}, ValueError, "steps must be an integer of at least 1, got 0"),
    (X, {"batch": 10**9}, ValueError, "batch must be at most 10,000,000, got 1,000,000,000"),
    (X, {"patience": 0, "validation": 0.1}, ValueError, "patience must be an integer of at least 1, got 0"),
    (X, {"patience": 5}, ValueError, "patience needs validation, got patience=5 without"),
    (X, {"lr": math.inf}, ValueError, "lr must be a positive number, got inf"),
    (X, {"clip": 0.0}, ValueError, "clip must be a positive number, got 0.0"),
    (X, {"anneal": "rho"}, TypeError, "anneal must be an Annealing such as RHO, got 'rho'"),
    (X, {"anneal": RHO}, ValueError, "rho is learned in this bijection, so it cannot be annealed; leave anneal out"),
    (X, {"generator": 5}, TypeError, "generator must be a torch.Generator or None, got 5"),
    (X, {"progress": 5}, TypeError, "progress must be True, False or a function of (steps done, loss), got 5"),
]


@pytest.mark.parametrize(("data", "options", "error", "text"), FITS)
def test_messages_of_fit_which_then_changes_nothing(data, options, error, text):
    flow = copy.deepcopy(PLAIN)
    with pytest.raises(error, match=re.escape(text)):
        flow.fit(data, **{"steps": 3, **options})
    if not hasattr(data, "__next__"):  # an iterator ends after the first steps
        torch.testing.assert_close(flow.state_dict(), PLAIN.state_dict(), rtol=0, atol=0)


def without_gradients():
    with torch.inference_mode():
        PLAIN.fit(X, 3)


def with_nan(*shape):
    context = torch.zeros(shape)
    context[..., 1] = math.nan
    return context


def spoiled(bijection, **values):
    return bijection.load_state_dict({**bijection.state_dict(), **values})


def sharp_network(rho):
    return replace(start(Architecture(2, 3), np.random.default_rng(0)), rho=rho)


def batch_of_normals():
    return d.Independent(d.Normal(torch.zeros(3, 2), torch.ones(3, 2)), 1)


NETWORK = InvertibleNetwork(2, 1)
C3 = torch.zeros(3)

CALLS = [
    # flows
    (without_gradients, RuntimeError, "fit needs gradients, which torch.inference_mode() forbids; call fit outside"),
    (lambda: PLAIN.frozen().fit(X, 3), ValueError, "this flow has no trainable parameters"),
    (lambda: GIVEN.fit(X), ValueError, "this flow is conditional: give a context of 3 numbers for each point"),
    (lambda: GIVEN.fit(X, context=torch.ones(9, 3)), ValueError, "its own context, got 10 points and 9 contexts"),
    (lambda: GIVEN.fit(X, context=X), ValueError, "fit needs contexts of 3 numbers, a tensor of shape (n, 3)"),
    (lambda: GIVEN.fit(lambda n: (X, X, X)), ValueError, "a batch must be points, or points and contexts, got 3 parts"),
    (lambda: PLAIN.log_prob([[0.0, 0.0]]), TypeError, "log_prob expects a tensor, got list; convert it"),
    (lambda: PLAIN.log_prob(X.to_sparse()), TypeError, "log_prob expects a dense tensor, got one of"),
    (lambda: PLAIN.at(C3), ValueError, "this flow has no context; build its bijection with conditional(...)"),
    (lambda: PLAIN.sample(0), ValueError, "number of samples must be an integer of at least 1, got 0"),
    (lambda: GIVEN.log_prob(X), ValueError, "this flow is conditional: give a context of 3 numbers"),
    (lambda: GIVEN.sample(2, torch.Generator()), TypeError, "pass a random generator as generator="),
    (lambda: GIVEN.log_prob(X[0], torch.zeros(4)), ValueError, "3 numbers on its last axis, got (4,)"),
    (lambda: GIVEN.log_prob(X[0], [0.0] * 3), TypeError, "context must be a tensor, got list"),
    (lambda: GIVEN.log_prob(X[0], C3.double()), TypeError, "holds torch.float32 and got torch.float64"),
    (lambda: GIVEN.log_prob(X, torch.zeros(7, 3)), ValueError, "shape (10, 2) and contexts of shape (7, 3)"),
    (lambda: GIVEN.at(torch.zeros(10, 3).to_sparse()), TypeError, "context expects a dense tensor, got one of"),
    (lambda: GIVEN.sample(5, with_nan(4, 3)), ValueError, "contexts must be finite, got nan at index (0, 1); drop or"),
    (lambda: GIVEN.at(torch.zeros(2, 3)), ValueError, "pass one context, shape (3,), got shape (2, 3)"),
    (lambda: GIVEN.frozen(), ValueError, "flow.at(context).frozen()"),
    (lambda: Flow(PLU(2), d.Normal), TypeError, "the base must be a Distribution of torch.distributions, got"),
    (lambda: Flow(PLU(2), d.Categorical(X[0].abs())), ValueError, "vectors of 2 features, got event shape (); wrap it"),
    (lambda: Flow(PLU(2), batch_of_normals()), ValueError, "one distribution, got a batch of shape (3,)"),
    (
        lambda: Flow(PLU(2), d.MultivariateNormal(X[0], torch.eye(2))).sample(1, generator=torch.Generator()),
        ValueError,
        "does not accept a generator",
    ),
    (lambda: to_flow(sharp_network(0.3)), ValueError, "without rounded corners, got rho = 0.3"),
    (lambda: toy("ring", 5), ValueError, "unknown toy density 'ring'; choose one of moons, gaussians"),
    # annealing and roundings
    (lambda: Annealing(0.9, 0.1, until=2.0), ValueError, "until must lie in (0, 1], got 2.0; the default is 0.7"),
    (lambda: Annealing(0.9, -0.1), ValueError, "rho must lie strictly between 0 and 1, got -0.1"),
    (lambda: Annealing(math.inf, 0.1), ValueError, "rho must lie strictly between 0 and 1, got inf"),
    *(
        (lambda rho=rho: SmoothPLU(2, rho=rho), ValueError, "rho must lie strictly between 0 and 1, got")
        for rho in (0.0, 1.0, math.nan)
    ),
    # bijections
    *(
        (lambda user=user: user(NETWORK), TypeError, "expects a bijection, got InvertibleNetwork; pass network.")
        for user in (Flow, Inverse, Frozen, Chain, BijectionTransform)
    ),
    (lambda: Chain(torch.nn.Linear(2, 2)), TypeError, "a Chain expects a bijection, got Linear"),
    (lambda: Chain(), ValueError, "a Chain needs at least one bijection, got none"),
    (lambda: Chain(PLU(2), PLU(3)), ValueError, "same number of features, got [2, 3]"),
    (lambda: PLU(0), ValueError, "features must be at least 1, got 0"),
    (lambda: PLU(True), TypeError, "features must be an integer, the size of the last axis, got True"),
    (lambda: LU(2.5), TypeError, "features must be an integer, the size of the last axis, got 2.5"),
    *(
        (lambda kind=kind, a=a: kind(2, a), ValueError, "alpha must be positive and finite in a bijection, 1.2e-07 to")
        for kind in (PLU, SmoothPLU, LeakyReLU)
        for a in (0.0, math.nan, 1e30)
    ),
    (lambda: SmoothPLU(2, c=-1.0), ValueError, "c must be positive and finite in a bijection"),
    (lambda: PLU(2, X[0]), TypeError, "must be a number, the initial value of all features, got Tensor"),
    (lambda: PLU(2, boundary="flux"), TypeError, "boundary must be True or False, got 'flux'"),
    (
        lambda: LU.from_matrix(torch.ones(2, 2)),
        ValueError,
        "an invertible matrix with pivots of size 1.2e-07 to 8.4e+06",
    ),
    (lambda: LU.from_matrix(torch.eye(2) * math.nan), ValueError, "finite numbers, got NaN or infinity"),
    (lambda: LU.from_matrix(torch.eye(2).long()), TypeError, "float32 or float64, got torch.int64"),
    (lambda: LU.from_matrix(1e-9 * torch.eye(2)), ValueError, "scale the data or use float64"),
    (lambda: LU.from_matrix(torch.eye(2), torch.ones(3)), ValueError, "LU needs a bias of 2 finite numbers, got"),
    (lambda: LU.from_matrix(torch.eye(2), X[0] * math.nan), ValueError, "LU needs a bias of 2 finite numbers, got"),
    (lambda: Permutation([0, 0]), ValueError, "a permutation must name each of 0 to n - 1 once, got [0, 0]"),
    (lambda: Permutation([-1, 0]), ValueError, "a permutation must name each of 0 to n - 1 once, got [-1, 0]"),
    (lambda: Frozen(density(2, 1)).sharp(), TypeError, "freeze the sharp one: Frozen(bijection.sharp())"),
    # states
    (lambda: spoiled(PLU(2), fixed_alpha=torch.tensor([0.1, 0])), RuntimeError, "fixed_alpha must be positive and"),
    (lambda: spoiled(LU(2), raw_diagonal=torch.empty(0)), RuntimeError, "size mismatch"),
    (
        lambda: spoiled(Permutation([1, 0]), order=torch.zeros(2).long()),
        RuntimeError,
        "order must name each of 0",
    ),
    # networks
    (lambda: InvertibleNetwork(2, 1, linear="dense"), ValueError, 'must be "lu", "orthogonal" or a function, got'),
    *(
        (lambda made=made: InvertibleNetwork(2, 1, activation=made), TypeError, "a function of (features, index of the")
        for made in ("plu", PLU, PLU(2))
    ),
    (lambda: InvertibleNetwork(2, -1), ValueError, "depth, the number of blocks, must be an"),
    (lambda: density(2, 2.5), ValueError, "blocks must be an integer of at least 0, got 2.5"),
    (lambda: conditional(2, 1, -1), ValueError, "blocks must be an integer of at least 0, got -1"),
    (lambda: density(2, activation="relu"), ValueError, "unknown activation 'relu'; choose one of smooth"),
    (lambda: conditional(2, 0), ValueError, "context must be an integer of at least 1, got 0"),
    (lambda: conditional(2, 1, hidden=(4, True)), ValueError, "each of hidden must be an integer of at least 1, got"),
    (lambda: conditional(2, 1, hidden=5), TypeError, "units of each hidden layer, such as (64, 64), got 5"),
    (lambda: Conditional(Chain(LU(2), Tanh(2)), 1), ValueError, "Conditional needs learned elementwise parts"),
]


@pytest.mark.parametrize(("call", "error", "text"), CALLS)
def test_messages(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
