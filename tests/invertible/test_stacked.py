"""Members trained side by side are members trained alone."""

import pytest
import torch

from benchmarks import stacked
from plunit.invertible import PLU, Flow, density

STEPS, BATCH, LR = 6, 32, 0.01


def flow(seed, activation):
    return Flow(density(2, 3, activation=activation, generator=torch.Generator().manual_seed(seed)))


def kinds(member):
    return [type(part) for part in member.bijection.parts()]


def draws(seed):
    generator = torch.Generator().manual_seed(100 + seed)
    return lambda n: torch.randn(n, 2, generator=generator) ** 3


@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize("activation", ["smooth", "annealed", "flux", "plain", "leaky"])
def test_each_member_is_as_if_fitted_alone(activation, steps):
    alone, together = ([flow(seed, activation) for seed in range(3)] for _ in range(2))
    expected = [member.fit(draws(seed), steps, batch=BATCH, lr=LR).losses for seed, member in enumerate(alone)]
    sources, told = [draws(seed) for seed in range(3)], []
    losses = stacked.train(
        together,
        lambda call, x: -call((x,)).mean(),
        lambda: (torch.stack([draw(BATCH) for draw in sources]),),
        steps=steps,
        lr=LR,
        progress=told.append,
    )
    assert told == pytest.approx([(i + 1) / steps for i in range(steps)])
    torch.testing.assert_close(losses.T, torch.tensor(expected), rtol=1e-4, atol=1e-4)
    x = torch.randn(20, 2)
    assert [kinds(member) for member in together] == [kinds(member) for member in alone]
    assert (PLU in kinds(together[0])) == (activation in ("annealed", "flux", "plain"))  # buffers come back
    found, wanted = ([member.log_prob(x) for member in members] for members in (together, alone))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)
