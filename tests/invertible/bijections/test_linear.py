import pytest
import torch

from plunit.invertible import LU, Chain, Orthogonal, ScaleShift
from plunit.invertible.bijections.linear import solve


@pytest.mark.parametrize("n", [1, 2, 5])
def test_lu_from_matrix_is_that_matrix(n):
    torch.manual_seed(n)
    weight, bias, x = torch.randn(n, n).double(), torch.randn(n).double(), torch.randn(7, n).double()
    bijection = LU.from_matrix(weight, bias)
    torch.testing.assert_close(bijection.weight, weight)
    torch.testing.assert_close(bijection(x)[0], x @ weight.mT + bias)
    torch.testing.assert_close(bijection(x)[1], torch.linalg.slogdet(weight)[1].expand(7))
    torch.testing.assert_close(bijection.inverse(x)[0], torch.linalg.solve(weight, (x - bias).mT).mT)


def test_lu_has_as_many_parameters_as_a_matrix_and_a_bias():
    assert sum(p.numel() for p in LU(5).parameters()) == 30


@pytest.mark.parametrize("kind", [LU, Orthogonal])
@pytest.mark.parametrize("n", [1, 2, 16])
def test_lu_and_orthogonal_start_orthogonal(kind, n):
    weight = kind(n, generator=torch.Generator().manual_seed(n)).double().weight
    torch.testing.assert_close(weight.mT @ weight, torch.eye(n).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [LU, Orthogonal])
def test_a_generator_decides_the_start(kind):
    one, two, other = (kind(3, generator=torch.Generator().manual_seed(seed)).weight for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("raw", [-1e4, 1e4])
def test_lu_is_invertible_whatever_the_parameters(raw):
    bijection = LU(3)
    with torch.no_grad():
        bijection.raw_diagonal.fill_(raw)
    assert bijection(torch.zeros(3))[1].isfinite()
    assert bijection.inverse(torch.zeros(3))[0].isfinite().all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lower", torch.tensor([torch.nan]), "lower holds 1 values that are not finite"),
        ("raw_diagonal", torch.tensor([0.0, -torch.inf]), "raw_diagonal holds 1 values that are not finite"),
        ("raw_diagonal", torch.tensor([0.0, -200.0]), "raw_diagonal reaches -200.*singular to rounding"),
        ("permutation", torch.tensor([1, 1]), r"permutation must order 0 to n - 1, got \[1, 1\]"),
        ("sign", torch.tensor([1.0, 0.0]), r"sign must hold 1 and -1, got \[1.0, 0.0\]"),
    ],
)
def test_bad_states_are_refused_and_leave_the_layer_as_it_was(tmp_path, name, value, message):
    chain = Chain(LU(2), ScaleShift(2))
    before = chain.bijections[0].weight.detach().clone()
    state = chain.state_dict() | {f"bijections.0.{name}": value}
    torch.save(state, tmp_path / "weights.pt")
    with pytest.raises(RuntimeError, match=rf"bijections.0.{message}"):
        chain.load_state_dict(torch.load(tmp_path / "weights.pt"))
    assert torch.equal(chain.bijections[0].weight, before)


def test_orthogonal_stays_orthogonal_in_another_precision():
    bijection = Orthogonal(8).double()
    weight = bijection.weight
    torch.testing.assert_close(weight.mT @ weight, torch.eye(8).double(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_lu_starts_from_a_rotation_and_keeps_the_orientation(n):
    torch.manual_seed(0)
    signs = [torch.linalg.det(LU(n).weight).sign().item() for _ in range(20)]
    assert signs == [1] * 20


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_the_solution_fits(upper, left):
    full = torch.eye(3).double() + torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double() / 4
    triangle = full.triu() if upper else full.tril()
    x = torch.arange(9.0).double().view(3, 3)
    right = triangle @ x if left else x @ triangle
    torch.testing.assert_close(solve(triangle, right, upper=upper, left=left), x)
