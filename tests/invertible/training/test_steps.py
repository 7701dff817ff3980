"""The loop that `Flow.fit` and `stacked.train` share, on models small enough to know every number."""

import math

import pytest
import torch

from plunit.invertible import RHO
from plunit.invertible.training.likelihood import minimise

STEPS, LR = 11, 0.3


class Recorder:
    """A model with one rounding and another buffer that writes down what happens to it."""

    def __init__(self):
        self.events = []
        self.buffers = {"part.raw_rho": torch.zeros(2), "part.bias": torch.zeros(())}

    def named_buffers(self):
        return self.buffers.items()

    def sharpen(self):
        self.events.append("sharpen")
        self.buffers.pop("part.raw_rho")

    def note(self):
        """Write down the buffers as they are when a loss is computed."""
        rho = self.buffers["part.raw_rho"][0].sigmoid().item() if "part.raw_rho" in self.buffers else None
        self.events.append((rho, self.buffers["part.bias"].item()))


def run(w, model=None, **options):
    """Minimise w, whose gradient is 1: a step of plain descent changes w by the step size."""
    model = model or Recorder()

    def losses():
        model.note()
        return 1.0 * w

    return minimise(model, losses, torch.optim.SGD([w], LR), STEPS, **options)


def test_the_steps_follow_a_half_cosine_to_zero():
    w = torch.tensor([5.0, -2.0], dtype=torch.float64, requires_grad=True)
    history = run(w)
    sizes = [LR * (1 + math.cos(math.pi * step / STEPS)) / 2 for step in range(STEPS)]
    walked = torch.tensor([sum(sizes[:step]) for step in range(STEPS)], dtype=torch.float64)
    torch.testing.assert_close(history, torch.tensor([5.0, -2.0], dtype=torch.float64) - walked[:, None])
    torch.testing.assert_close(w.detach(), torch.tensor([5.0, -2.0], dtype=torch.float64) - sum(sizes))
    assert not history.requires_grad


def test_a_member_that_diverges_leaves_the_others_alone():
    w = torch.tensor([5.0, math.nan], requires_grad=True)
    alone = torch.tensor([5.0], requires_grad=True)
    torch.testing.assert_close(run(w), torch.cat([run(alone), torch.full((STEPS, 1), math.nan)], 1), equal_nan=True)


def test_rho_is_set_before_each_loss_and_the_corners_are_removed_once():
    model = Recorder()
    run(torch.ones(1, requires_grad=True), model=model, anneal=RHO)
    values = [0.9 * (0.02 / 0.9) ** (step / 7) for step in range(7)]  # 0.7 of the steps 0, ..., 10
    assert [rho for rho, _ in model.events[:7]] == pytest.approx(values, rel=1e-5)
    assert model.events[7:] == ["sharpen"] + [(None, 0.0)] * 4


def test_nothing_is_annealed_unless_asked_for():
    model = Recorder()
    run(torch.ones(1, requires_grad=True), model=model)
    assert model.events == [(0.5, 0.0)] * STEPS


def test_a_step_is_checked_before_and_reported_after_it_is_taken():
    w = torch.tensor(5.0, requires_grad=True)
    checks, reports = [], []
    history = run(
        w,
        check=lambda step, loss: checks.append((step, loss.item(), w.item())),
        progress=lambda done, loss: reports.append((done, loss.item(), w.item())),
    ).tolist()
    assert checks == list(zip(range(STEPS), history, history, strict=True))
    assert reports == list(zip(range(1, STEPS + 1), history, [*history[1:], w.item()], strict=True))


def test_a_check_that_raises_stops_before_the_step():
    w = torch.tensor(5.0, requires_grad=True)
    reports, seen = [], []

    def check(step, loss):
        seen.append(loss.item())
        if step == 4:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        run(w, check=check, progress=lambda done, loss: reports.append(done))
    assert w.item() == seen[4]  # the loss is w itself
    assert reports == [1, 2, 3, 4]
