"""The sine experiment of the paper, float32: seed-steps per second of the ensemble and of its alternatives.

Bars: 1024 seeds x 2048 steps at 300 times the plain PyTorch loop of one seed and 3 times jax.vmap over seeds with
lax.scan over steps; a loss history that costs at most 10 %. Compilation is not counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

import plunit.torch
from benchmarks.timing import Bar, best, ratio, show
from plunit import ensemble
from plunit.programs import libraries

SEEDS, STEPS = 1024, 2048
ALONE = 512  # steps of the plain loop that are timed
WIDTHS = (1, 3, 3, 1)
X = np.linspace(-2 * math.pi, 2 * math.pi, 50, dtype=np.float32)


def training(activation: str, seeds: int, steps: int, stride: int, engine: str | None) -> Callable[[], object]:
    """Return the ensemble's training, ready to be called."""
    network = ensemble.MLP(WIDTHS, activation)
    start = ensemble.initial(network, [np.random.default_rng(seed) for seed in range(seeds)])
    data = (X[None], np.sin(X[None]))
    return lambda: ensemble.train(network, start, data, steps=steps, stride=stride, engine=engine)


def ours(activation: str, seeds: int = SEEDS, steps: int = STEPS, engine: str | None = None) -> float:
    """Seed-steps per second of the ensemble, the loss recorded every 16 steps."""
    return seeds * steps / best(training(activation, seeds, steps, 16, engine), 4)[0]


def history_cost(activation: str, stride: int) -> float:
    """Time with the loss recorded every `stride` steps, over the time with it recorded once."""
    recorded, without = (training(activation, SEEDS, STEPS, every, None) for every in (stride, STEPS))
    return ratio(recorded, without, rounds=15)


def plain_loop(activation: str) -> float:
    """Seed-steps per second of one nn.Sequential; the faster of one thread and all."""
    module = {"tanh": nn.Tanh, "relu": nn.ReLU, "plu": plunit.torch.PLU}[activation]
    net = nn.Sequential(nn.Linear(1, 3), module(), nn.Linear(3, 3), module(), nn.Linear(3, 1))
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    x = torch.from_numpy(X)[:, None]
    y = x.sin()

    def train() -> None:
        for _ in range(ALONE):
            loss = nn.functional.mse_loss(net(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    threads = torch.get_num_threads()
    rates = []
    for count in {1, threads}:
        torch.set_num_threads(count)
        rates.append(ALONE / best(train, 4)[0])
    torch.set_num_threads(threads)
    return max(rates)


def jax_scan(activation: str) -> float:
    """Seed-steps per second of jax.vmap over seeds, lax.scan over steps and optax's Adam, as one jitted program."""
    import jax
    import jax.numpy as jnp
    import optax

    import plunit.jax

    function = {"tanh": jnp.tanh, "relu": jax.nn.relu, "plu": plunit.jax.plu}[activation]
    x = jnp.asarray(X)[:, None]
    y = jnp.sin(x)
    optimiser = optax.adam(0.01)

    def start(key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        shapes = list(itertools.pairwise(WIDTHS))
        keys = jax.random.split(key, len(shapes))
        return [(jax.random.normal(k, shape), jnp.zeros(shape[1])) for k, shape in zip(keys, shapes, strict=True)]

    def loss(parameters: list[tuple[jax.Array, jax.Array]]) -> jax.Array:
        h = x
        for weight, bias in parameters[:-1]:
            h = function(h @ weight + bias)
        weight, bias = parameters[-1]
        return jnp.mean((h @ weight + bias - y) ** 2)

    def train(key: jax.Array) -> jax.Array:
        def step(carry: tuple, _: None) -> tuple:
            parameters, state = carry
            value, gradient = jax.value_and_grad(loss)(parameters)
            updates, state = optimiser.update(gradient, state)
            return (optax.apply_updates(parameters, updates), state), value

        parameters = start(key)
        return jax.lax.scan(step, (parameters, optimiser.init(parameters)), None, length=STEPS)[1][::16]

    program = jax.jit(jax.vmap(train))
    keys = jax.random.split(jax.random.key(0), SEEDS)
    return SEEDS * STEPS / best(lambda: program(keys).block_until_ready(), 3)[0]


def products(widths: Sequence[int], points: int) -> int:
    """Floating-point operations of the matrix products of a step: forward, and the gradients in weights and inputs."""
    sizes = [before * after for before, after in itertools.pairwise(widths)]
    return 2 * points * (3 * sum(sizes) - sizes[0])


def wider(hidden: Sequence[int], members: int = 64, rows: int = 800, inputs: int = 10, steps: int = 100) -> float:
    """GFLOP/s of an ensemble on a table: the matrix products over the time of whole steps."""
    network, rng = ensemble.MLP((inputs, *hidden, 1), "plu"), np.random.default_rng(0)
    scales = [1 / math.sqrt(width) for width in network.widths[:-1]]
    start = ensemble.initial(network, [np.random.default_rng(seed) for seed in range(members)], scales=scales)
    x = rng.standard_normal((inputs, rows), dtype=np.float32)
    seconds, _ = best(lambda: ensemble.train(network, start, (x, x[:1] * x[1:2]), steps=steps), 8)
    return members * steps * products(network.widths, rows) / seconds / 1e9


def limit(n: int = 1024) -> float:
    """GFLOP/s of a large matrix product in PyTorch, an upper limit."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return 2 * n**3 / best(lambda: a @ b, 22)[0] / 1e9


def flops() -> None:
    """Print GFLOP/s of ensembles and of a large matrix product."""
    most = limit()
    print(f"a product of two 1,024 x 1,024 matrices in PyTorch: {most:.0f} GFLOP/s")
    for hidden in ((16,), (16, 16), (32, 32), (64, 64)):
        rate = wider(hidden)
        print(f"64 networks, 800 rows, 10 inputs, hidden {hidden!s:8} {rate:6.0f} GFLOP/s, {rate / most:.2f} of that")


def peers(activation: str) -> list[tuple[str, float]]:
    """Time the peers that are installed."""
    rows = [("plain PyTorch loop, one seed", plain_loop(activation))]
    try:
        rows.append(("jax.vmap + lax.scan + optax", jax_scan(activation)))
    except ImportError as missing:
        print(f"{missing.name} is not installed: pip install jax optax; that peer is left out")
    return rows


def main() -> None:
    """Print seed-steps per second and ratios."""
    engine = ensemble.engine()
    program = f"native engine, {libraries.origin()}" if engine == "native" else "numpy engine"
    print(f"sine, {SEEDS} seeds x {STEPS} steps, float32, {torch.get_num_threads()} threads, {program}")
    for activation in ("tanh", "relu", "plu"):
        fast = ours(activation)
        taken = f"{SEEDS * STEPS / fast:.2f} s, {fast * products(WIDTHS, len(X)) / 1e9:.0f} GFLOP/s"
        print(f"{activation:6} {'ensemble':32} {fast:14,.0f} seed-steps/s   {taken}")
        for name, rate in peers(activation):
            print(f"{'':6} {name:32} {rate:14,.0f} seed-steps/s   ensemble is {fast / rate:,.1f} times as fast")
    for stride in (16, 1):
        show(f"loss recorded every {stride} steps / once, PLU", history_cost("plu", stride), Bar(1.10))
    if engine == "native":
        flops()
        slow = ours("plu", 256, 64, "numpy")
        print(f"plu    {'ensemble, NumPy, 256 seeds':32} {slow:14,.0f} seed-steps/s")


if __name__ == "__main__":
    main()
