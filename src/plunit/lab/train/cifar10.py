"""The paper's convolutional network, trained on CIFAR-10 from its last checkpoint if it has one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plunit.base.ranges import COUNT, RATE, SHARE, WIDTH, Range
from plunit.data import cifar10 as data
from plunit.data.cifar10 import Bytes, Labels
from plunit.lab import scratch as scratch_files
from plunit.lab.cell import Arrays, Cell
from plunit.lab.train.threads import one_thread
from plunit.torch import PLU, init_

SAVE_EVERY, REPORT_EVERY = 500, 20
_TEST_BATCH = 500


@dataclass(frozen=True)
class Cifar10Spec:
    """The paper's network and training; the initialisation, the scale of the input and the tests are ours.

    Attributes:
        steps: steps of Adam.
        batch: images of each step, drawn from the training set with replacement.
        lr: Adam's step size.
        init: "default" for PyTorch's own initialisation, "gain" for `plunit.torch.init_`.
        alpha: PLU's outer slope, the start of a learned one.
        c: the half-width of its inner piece; likewise.
        scale: pixels 0 to 255 are divided by `scale` ...
        shift: ... and `shift` is subtracted: 127.5 and 1 give -1 to 1.
        early: steps after which the test set is evaluated, besides the last ...
        stride: ... and every multiple of `stride`.
    """

    steps: Annotated[int, Range(1, 10**7)] = 100_000
    batch: Annotated[int, Range(1, 50_000)] = 100
    lr: Annotated[float, RATE] = 0.001
    init: Literal["default", "gain"] = "default"
    alpha: Annotated[float, SHARE] = 0.1
    c: Annotated[float, WIDTH] = 1.0
    scale: Annotated[float, Range(1e-3, 1e6)] = 127.5
    shift: float = 1.0
    early: Annotated[tuple[int, ...], COUNT] = (100, 500, 1000)
    stride: Annotated[int, COUNT] = 2500

    def tested(self, step: int) -> bool:
        """Return whether the test set is evaluated after this many steps."""
        return step in self.early or step % self.stride == 0 or step == self.steps


CHOICES: dict[str, Callable[[Cifar10Spec], nn.Module]] = {
    "tanh": lambda spec: nn.Tanh(),
    "relu": lambda spec: nn.ReLU(),
    "plu": lambda spec: PLU(spec.alpha, spec.c),
    "identity": lambda spec: nn.Identity(),
    "leaky_relu": lambda spec: nn.LeakyReLU(),
    "gelu": lambda spec: nn.GELU(),
    "silu": lambda spec: nn.SiLU(),
    "plu_learned": lambda spec: PLU(spec.alpha, spec.c, learnable=True),
}
"""Activation name to the module between two layers."""


def untrained(spec: Cifar10Spec, activation: str, seed: int) -> nn.Sequential:
    """Return the untrained network; all activations get the same weights from the same seed and the default start."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.MaxPool2d(2), CHOICES[activation](spec)]
        layers.append(nn.Flatten())
        for inputs, outputs in ((1024, 256), (256, 64)):
            layers += [nn.Linear(inputs, outputs), CHOICES[activation](spec)]
        model = nn.Sequential(*layers, nn.Linear(64, 10)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return init_(model) if spec.init == "gain" else model  # type: ignore[return-value]


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Train on, from the checkpoint at `scratch` if there is one, and return what was recorded.

    The arrays are loss [steps, 1], that of each step's batch before the step; test_step, test_loss and test_accuracy
    [tests, 1]; seconds [1]; seed [1]. The checkpoint is written every `SAVE_EVERY` steps. A run that is stopped and
    goes on gives the same bits as one that is not: the batch of a step depends on the seed and its number only.
    """
    training = Training(cell.spec, cell.activation, cell.first, data.load())
    training.restore(scratch)
    while training.step < cell.spec.steps:
        training.advance()
        if training.step % REPORT_EVERY == 0:
            scratch_files.write_progress(scratch, training.step / cell.spec.steps)
        if training.step % SAVE_EVERY == 0:
            training.save(scratch)
    training.save(scratch)
    return {
        "seed": np.array([cell.first]),
        "loss": np.array(training.losses, np.float32)[:, None],
        "test_step": np.array([step for step, _, _ in training.tests])[:, None],
        "test_loss": np.array([loss for _, loss, _ in training.tests])[:, None],
        "test_accuracy": np.array([accuracy for _, _, accuracy in training.tests])[:, None],
        "seconds": np.array([training.seconds]),
    }


class Training:
    """A network, its optimiser and what has been recorded so far.

    Attributes:
        step: steps taken.
        losses: the loss of each step's batch.
        tests: (step, loss, accuracy) on the test set.
        seconds: time spent in `advance`.
    """

    def __init__(self, spec: Cifar10Spec, activation: str, seed: int, images: data.Cifar10) -> None:
        self.spec, self.seed = spec, seed
        self._device = torch.get_default_device()
        self._train = _Images(images.train_images, images.train_labels, spec, self._device)
        self._test = _Images(images.test_images, images.test_labels, spec, self._device)
        self.model = untrained(spec, activation, seed).to(self._device)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=spec.lr, fused=True)
        self.step = 0
        self.losses: list[float] = []
        self.tests: list[tuple[int, float, float]] = []
        self.seconds = 0.0

    def advance(self) -> None:
        """Take one step, and evaluate the test set if it is time to."""
        start = time.perf_counter()
        index = np.random.default_rng((self.seed, self.step)).integers(len(self._train), size=self.spec.batch)
        x, labels = self._train.take(torch.from_numpy(index))
        loss = F.cross_entropy(self.model(x), labels)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self.losses.append(loss.item())
        self.step += 1
        if self.spec.tested(self.step):
            self.tests.append((self.step, *evaluate(self.model, self._test)))
        self.seconds += time.perf_counter() - start

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= scratch_files.optimizer_tensors(self._optimizer)
        tensors["losses"] = torch.tensor(self.losses, dtype=torch.float32)
        numbers = {"step": self.step, "steps": self.spec.steps, "tests": self.tests, "seconds": self.seconds}
        scratch_files.write_checkpoint(path, tensors, numbers)

    def restore(self, path: Path) -> None:
        """Go back to the checkpoint at path, if there is a whole one."""
        if not (found := scratch_files.read_checkpoint(path)):
            return
        tensors, numbers = found
        prefix = "model."
        self.model.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
        scratch_files.restore_optimizer(self._optimizer, tensors)
        self.losses = tensors["losses"].tolist()
        self.step, self.seconds = numbers["step"], numbers["seconds"]
        self.tests = [(step, loss, accuracy) for step, loss, accuracy in numbers["tests"]]


class _Images:
    """Images as bytes in channels-last order, scaled when they are taken."""

    def __init__(self, images: Bytes, labels: Labels, spec: Cifar10Spec, device: torch.device) -> None:
        self._images = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 2, 3, 1))).to(device)
        self._labels = torch.from_numpy(labels).to(device)
        self._spec = spec

    def __len__(self) -> int:
        return len(self._labels)

    def take(self, index: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Return images [n, 3, 32, 32] as floats, in the memory order of channels_last, and their labels."""
        x = self._images[index].float().div_(self._spec.scale).sub_(self._spec.shift)
        return x.permute(0, 3, 1, 2), self._labels[index]


@torch.no_grad()
def evaluate(model: nn.Module, images: _Images) -> tuple[float, float]:
    """Return mean cross-entropy and accuracy."""
    loss, right = 0.0, 0
    for first in range(0, len(images), _TEST_BATCH):
        x, labels = images.take(slice(first, first + _TEST_BATCH))
        scores = model(x)
        loss += F.cross_entropy(scores, labels, reduction="sum").item()
        right += int((scores.argmax(1) == labels).sum())
    return loss / len(images), right / len(images)
