"""Members trained side by side are members trained alone."""

import pytest
import torch

from plunit.invertible import PLU, RHO, Annealing, Flow, density
from plunit.lab.train import stacked

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
    anneal = RHO if activation == "annealed" else None
    alone = [flow(seed, activation) for seed in range(3)]
    expected = [
        member.fit(draws(seed), steps, batch=BATCH, lr=LR, anneal=anneal).losses for seed, member in enumerate(alone)
    ]
    together = [flow(seed, activation) for seed in range(3)]
    sources = [draws(seed) for seed in range(3)]
    losses = stacked.train(
        together,
        lambda call, x: -call((x,)).mean(),
        lambda: (torch.stack([draw(BATCH) for draw in sources]),),
        steps=steps,
        lr=LR,
        anneal=anneal,
    )
    torch.testing.assert_close(losses.T, torch.tensor(expected), rtol=1e-4, atol=1e-4)
    x = torch.randn(20, 2)
    assert [kinds(member) for member in together] == [kinds(member) for member in alone]
    found, wanted = ([member.log_prob(x) for member in members] for members in (together, alone))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def test_progress_is_told():
    told = []
    stacked.train(
        [flow(0, "smooth")],
        lambda call, x: -call((x,)).mean(),
        lambda: (torch.randn(1, 8, 2),),
        steps=4,
        lr=LR,
        progress=told.append,
    )
    assert told == [0.25, 0.5, 0.75, 1.0]


def test_annealed_buffers_come_back():
    member = flow(0, "annealed")
    draw = draws(0)
    stacked.train(
        [member],
        lambda call, x: -call((x,)).mean(),
        lambda: (draw(8)[None],),
        steps=1,
        lr=LR,
        anneal=Annealing(0.4, 0.3, until=1.0),
    )
    assert kinds(member)[1] is PLU
    with pytest.raises(ValueError, match="rho is learned"):
        stacked.train([flow(0, "smooth")], print, print, steps=1, lr=LR, anneal=RHO)
