import pytest
import torch

from plunit.invertible import LU, Householder
from plunit.invertible.bijections.linear import solve


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_the_solution_fits(upper, left):
    full = torch.eye(3).double() + torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double() / 4
    triangle = full.triu() if upper else full.tril()
    x = torch.arange(9.0).double().view(3, 3)
    right = triangle @ x if left else x @ triangle
    torch.testing.assert_close(solve(triangle, right, upper=upper, left=left), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", [LU, Householder])
def test_half_precision_is_refused_with_the_remedy(kind, dtype):
    with pytest.raises(TypeError, match=rf"needs float32 or float64, got {dtype}; convert the module by \.float\(\)"):
        kind(2).to(dtype).inverse(torch.zeros(1, 2, dtype=dtype))
