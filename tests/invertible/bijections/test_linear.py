import pytest
import torch

from plunit.invertible import LU, Chain, Orthogonal, ScaleShift


@pytest.mark.parametrize("n", [1, 2, 5])
def test_lu_from_matrix_is_that_matrix(n):
    torch.manual_seed(n)
    weight, bias, x = torch.randn(n, n).double(), torch.randn(n).double(), torch.randn(7, n).double()
    bijection = LU.from_matrix(weight, bias)
    torch.testing.assert_close(bijection.weight, weight)
    torch.testing.assert_close(bijection(x)[0], x @ weight.mT + bias)
    torch.testing.assert_close(bijection(x)[1], torch.linalg.slogdet(weight)[1].expand(7))
    torch.testing.assert_close(bijection.inverse(x)[0], torch.linalg.solve(weight, (x - bias).mT).mT)


@pytest.mark.parametrize("kind", [LU, Orthogonal])
@pytest.mark.parametrize("n", [1, 2, 16])
def test_they_start_as_rotations_which_a_generator_decides(kind, n):
    made = [kind(n, generator=torch.Generator().manual_seed(seed)).double() for seed in (0, 0, 1, 2, 3, 4, 5)]
    bijection, weight = made[0], made[0].weight
    assert torch.equal(weight, made[1].weight)
    assert n == 1 or not torch.equal(weight, made[2].weight)
    assert [torch.linalg.det(one.weight).item() for one in made] == pytest.approx([1] * 7, abs=1e-5)
    exact = 1e-13 if kind is Orthogonal else 1e-6  # the parameters of LU were rounded to float32
    torch.testing.assert_close(weight.mT @ weight, torch.eye(n).double(), rtol=0, atol=exact)
    assert sum(p.numel() for p in bijection.parameters()) == n * n + n


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
        ("lower", torch.tensor([torch.nan]), "lower must be finite"),
        ("raw_diagonal", torch.tensor([0.0, -torch.inf]), "raw_diagonal must be finite"),
        ("raw_diagonal", torch.tensor([0.0, -200.0]), "raw_diagonal must be at most .* numerically singular, got"),
        ("permutation", torch.tensor([1, 1]), r"permutation must name each of 0 to n - 1 once, got \[1, 1\]"),
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
