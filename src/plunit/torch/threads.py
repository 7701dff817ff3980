"""The number of threads of PyTorch's operations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch's operations on one thread.

    The tensors of small networks are too small to share: two threads gain little on idle cores, and if another process
    uses one of the cores, each operation waits (measured: a hundred times slower).
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
