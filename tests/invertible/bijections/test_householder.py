"""Reflections against their definition, one by one; the battery of test_bijection.py has the rest."""

import pytest
import torch

from plunit.invertible import Flow, Householder, density


def reflection(v):
    return torch.eye(len(v), dtype=v.dtype) - 2 * torch.outer(v, v) / v.dot(v)


@pytest.mark.parametrize(("features", "reflections"), [(1, 2), (2, 2), (5, 4), (7, 16), (40, 6)])
def test_the_matrix_is_the_product_of_reflections_and_scales(perturb, features, reflections):
    torch.manual_seed(0)
    layer = perturb(Householder(features, reflections)).double()
    expected = torch.eye(features, dtype=torch.float64)
    for v in layer.vectors.detach().T:
        expected = expected @ reflection(v)
    expected = expected @ layer.raw_scale.detach().exp().diag()
    torch.testing.assert_close(layer.weight.detach(), expected, rtol=0, atol=1e-12)
    x = torch.randn(6, features, dtype=torch.float64)
    torch.testing.assert_close(layer(x)[0].detach(), x @ expected.T + layer.bias.detach(), rtol=0, atol=1e-12)
    torch.testing.assert_close(layer(x)[1][0].detach(), torch.linalg.slogdet(expected)[1], rtol=0, atol=1e-12)
    assert torch.linalg.det(expected) > 0  # it keeps orientation


def test_a_vector_of_length_zero_reflects_nothing():
    layer = Householder(4, 4).double()
    with torch.no_grad():
        layer.vectors[:, 1:3] = 0
    expected = reflection(layer.vectors.detach()[:, 0]) @ reflection(layer.vectors.detach()[:, 3])
    torch.testing.assert_close(layer.weight.detach(), expected, rtol=0, atol=1e-12)
    layer(torch.randn(3, 4, dtype=torch.float64))[0].sum().backward()
    assert layer.vectors.grad.isfinite().all()


def test_gradients_agree_with_differences():
    torch.manual_seed(0)
    layer = Householder(5, 4).double()
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    parameters = dict(layer.named_parameters())

    def value(x, *tensors):
        return torch.func.functional_call(layer, dict(zip(parameters, tensors, strict=True)), (x,))

    assert torch.autograd.gradcheck(value, (x, *parameters.values()))


@pytest.mark.parametrize("reflections", [0, 3, -2, 2.0, True])
def test_the_number_of_reflections_is_even(reflections):
    with pytest.raises(ValueError, match="reflections must be an even integer of at least 2, got"):
        Householder(4, reflections)


def test_the_cost_grows_with_the_features_and_not_with_their_square():
    sizes = {n: sum(p.numel() for p in density(n, 12, linear="householder").parameters()) for n in (392, 784)}
    assert sizes[784] == 13 * 784 * 18 + 12 * 3 * 784 == 2 * sizes[392]
    lu = 13 * (784 * 784 + 784) + 12 * 3 * 784
    assert sizes[784] < lu / 37


def test_many_features_are_learned():
    """784 features that follow 5 factors: the flow finds the correlation that a diagonal normal cannot."""
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(5, 784, generator=generator) / 5**0.5

    def draw(n):
        x = torch.randn(n, 5, generator=generator) @ mixing + 0.5 * torch.randn(n, 784, generator=generator)
        return x / 1.25**0.5

    flow = Flow(density(784, 2, linear="householder", generator=generator))
    flow.fit(draw, 60, batch=128, lr=0.02)
    test = draw(500)
    sample = flow.sample(2, generator=generator)
    with torch.no_grad():
        nll = -flow.log_prob(test).mean().item() / 784
    diagonal = 0.5 * (1 + torch.tensor(2 * torch.pi).log().item())
    assert nll < diagonal - 0.1
    assert sample.shape == (2, 784)
