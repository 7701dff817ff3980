"""The four activations of section 5: the lab's cells in parallel, compared with a plain script."""

import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.op import paper_formula
from benchmarks.timing import Bar, show
from plunit.lab.cifar10_data import Cifar10
from plunit.lab.experiment import catalogue
from plunit.lab.running import processes
from plunit.lab.train.cifar10 import Training

STEPS, ROUNDS, IMAGES = 60, 3, 5000
SPEC, ACTIVATIONS = catalogue()["cifar10"].spec, catalogue()["cifar10"].activations


class PaperPLU(nn.Module):
    """PLU typed as in the paper."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the formula."""
        return paper_formula(x)


PLAIN = {"tanh": nn.Tanh, "relu": nn.ReLU, "plu": PaperPLU, "identity": nn.Identity}


def images() -> Cifar10:
    """Noise in the shape of the data set: its content does not change the time."""
    rng = np.random.default_rng(0)
    x, labels = rng.integers(0, 256, (IMAGES, 3, 32, 32), dtype=np.uint8), rng.integers(0, 10, IMAGES)
    return Cifar10(x, labels, x[:100], labels[:100])


def ours(activation: str) -> tuple[float, float]:
    """Train one cell in a worker of the lab; return when its steps began and ended."""
    training = Training(SPEC, activation, 0, images())
    for _ in range(5):
        training.advance()
    start = time.time()
    for _ in range(STEPS):
        training.advance()
    return start, time.time()


def plain(activation: str) -> float:
    """Train as a script would: PyTorch's defaults, all cores for one network; return the seconds of the steps."""
    data, act = images(), PLAIN[activation]
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.MaxPool2d(2), act()]
    model = nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(1024, 256), act(), nn.Linear(256, 64), act(), nn.Linear(64, 10)
    )
    adam = torch.optim.Adam(model.parameters(), lr=SPEC.lr)
    x, labels = torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels)

    def step() -> None:
        index = torch.randint(IMAGES, (SPEC.batch,))
        loss = F.cross_entropy(model(x[index].float() / SPEC.scale - SPEC.shift), labels[index])
        adam.zero_grad()
        loss.backward()
        adam.step()
        loss.item()

    for _ in range(5):
        step()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return time.perf_counter() - start


def main() -> None:
    """Print images per second of both, and their ratio."""
    torch.set_num_threads(2)
    suite = SPEC.batch * STEPS * len(ACTIVATIONS)
    print(f"cifar10: {STEPS} steps of {', '.join(ACTIVATIONS)}, medians of {ROUNDS} alternating rounds")
    mine, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(suite / sum(map(plain, ACTIVATIONS)))
        with processes(2) as pool:
            mine.append(_throughput(list(pool.map(ours, ACTIVATIONS))))
    print(f"images per second: lab {statistics.median(mine):,.0f}, plain script {statistics.median(theirs):,.0f}")
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    show("throughput of the suite, lab / plain script", statistics.median(ratios), Bar(1.8, at_least=True))


def _throughput(spans: list[tuple[float, float]]) -> float:
    """Images per second while two workers train: those of all cells over half the time spent in them."""
    return SPEC.batch * STEPS * len(spans) / (sum(end - start for start, end in spans) / 2)
