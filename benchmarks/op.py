"""PLU against PyTorch's own activations: ratio medians in one run, float32 where no dtype is named, 2 threads.

Rows with `native off` use PyTorch's own ops, as GPU tensors and installations without a compiler do.
"""

import contextlib
import timeit
from collections.abc import Iterator

import torch
from torch import nn

from benchmarks.timing import Bar, ratio, show
from plunit.torch import PLU, has_native, op, plu

LARGE = (1_000_000, 4_000_000, 16_000_000)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def paper_formula(x: torch.Tensor, alpha: float = 0.1, c: float = 1.0) -> torch.Tensor:
    """PLU as the paper prints it, typed in PyTorch."""
    return torch.maximum(alpha * (x + c) - c, torch.minimum(alpha * (x - c) + c, x))


def forward(n: int) -> float:
    """Time module(x) / nn.ReLU()(x)."""
    x, ours, theirs = torch.randn(n), PLU(), nn.ReLU()
    with torch.no_grad():
        return ratio(lambda: ours(x), lambda: theirs(x))


def against_copy(n: int) -> None:
    """Print the limit of forward: a clone allocates memory and moves the same bytes.

    GB/s are those of a copy into allocated memory, read and written.
    """
    x, y, ours = torch.randn(n), torch.zeros(n), PLU()
    speed = 2 * x.nbytes / min(timeit.repeat(lambda: y.copy_(x), number=1, repeat=41)) / 1e9
    with torch.no_grad():
        show(f"PLU forward / clone, {n:,} elements (a copy: {speed:.0f} GB/s)", ratio(lambda: ours(x), x.clone))


def backward(n: int) -> float:
    """Time the backward pass of PLU / relu's."""
    x, grad = torch.randn(n, requires_grad=True), torch.randn(n)
    ours, theirs = plu(x), torch.relu(x)
    return ratio(
        lambda: torch.autograd.grad(ours, x, grad, retain_graph=True),
        lambda: torch.autograd.grad(theirs, x, grad, retain_graph=True),
    )


def both(ours: object, theirs: object, *shape: int, dtype: torch.dtype = torch.float32) -> float:
    """Time forward and backward, with the gradients of all parameters."""
    x, grad = torch.randn(shape).to(dtype).requires_grad_(), torch.randn(shape).to(dtype)

    def step(module):  # type: ignore[no-untyped-def]
        wanted = [x, *(module.parameters() if isinstance(module, nn.Module) else ())]
        return lambda: torch.autograd.grad(module(x), wanted, grad)

    return ratio(step(ours), step(theirs))


@contextlib.contextmanager
def native_off() -> Iterator[None]:
    """Let the composite serve CPU tensors."""
    native, op._native = op._native, None
    try:
        yield
    finally:
        op._native = native


def every_dtype() -> None:
    """Print the rows of forward and backward in float32 and in half precision, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for n in (100_000, 1_000_000, 10_000_000):
        for dtype in DTYPES:
            work = f"PLU forward+backward / relu, {n:,} elements, {str(dtype).removeprefix('torch.')}, 1 thread"
            show(work, both(PLU(), nn.ReLU(), n, dtype=dtype), Bar(1.5))
    torch.set_num_threads(threads)


def without_native() -> None:
    """Print the rows of the composite."""
    for n, limit in ((1000, 2.0), (100_000, None), (1_000_000, 1.8), (16_000_000, 1.6)):
        bar = Bar(limit) if limit else None
        show(f"PLU forward+backward / relu, {n:,} elements, native off", both(PLU(), nn.ReLU(), n), bar)
    learned = {(1000, 1000): 1, (100, 16, 32, 32): 16, (100, 64, 8, 8): 64}
    for shape, channels in learned.items():
        value = both(PLU(learnable=True, num_parameters=channels), nn.PReLU(channels), *shape)
        kind = "per-channel" if channels > 1 else "one-value"
        show(f"learnable {kind} PLU / nn.PReLU, forward+backward, {shape}, native off", value, Bar(2))


def main() -> None:
    """Print the table."""
    torch.set_num_threads(2)
    print(f"op: {torch.get_num_threads()} threads, native op: {'yes' if has_native() else 'NO'}")
    for n in (100_000, 400_000, *LARGE):
        bar = Bar(1.10 if n in LARGE else 1.25)
        show(f"PLU module forward / nn.ReLU forward, {n:,} elements", forward(n), bar)
    for n in LARGE:
        against_copy(n)
    for n in (100_000, 400_000, *LARGE):
        show(f"PLU backward / relu backward, {n:,} elements", backward(n), Bar(1.10))
    show("PLU forward+backward / relu, 1,000 elements", both(PLU(), nn.ReLU(), 1000), Bar(1.5))
    every_dtype()
    for shape in ((100, 16, 32, 32), (100, 64, 8, 8)):
        channels = shape[1]
        learnable, peer = PLU(learnable=True, num_parameters=channels), nn.PReLU(channels)
        show(
            f"learnable per-channel PLU / nn.PReLU, forward+backward, {shape}", both(learnable, peer, *shape), Bar(0.6)
        )
    typed = both(paper_formula, PLU(), 1_000_000)
    show("the paper's formula typed in PyTorch / PLU, forward+backward, 1,000,000", typed, Bar(5, at_least=True))
    with native_off():
        without_native()


if __name__ == "__main__":
    main()
