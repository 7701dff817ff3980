"""Where cells are computed: in this process, in local processes, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import torch

from plunit.errors import UserError
from plunit.machine import keep_freed_memory


@contextlib.contextmanager
def here() -> Iterator[Executor]:
    """One cell at a time in this process, on all its cores; the caller's thread stays free for Ctrl-C."""
    executor = ThreadPoolExecutor(1)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Local processes of one thread each, which end when this one does."""
    context = multiprocessing.get_context("spawn")  # a fork would copy PyTorch's threads in an unknown state
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_worker)
    try:
        yield executor
    except BaseException:  # a cell may need hours more; its checkpoint stays
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to the Dask scheduler at an address such as tcp://host:8786; its workers need plunit installed."""
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise UserError("--cluster needs Dask: pip install 'plunit[cluster]'") from None
    if not re.fullmatch(r"\w+://.+:\d+", address):
        raise UserError(f"--cluster takes the address of a Dask scheduler, such as tcp://host:8786, got {address!r}")
    try:
        client: Any = Client(address, timeout="5s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address} ({error or type(error).__name__}); start one with `dask scheduler`"
        ) from error
    with client, client.get_executor(pure=False) as executor:
        try:
            yield executor
        except KilledWorker as error:
            raise UserError(f"one cell ended its worker several times: {error}") from error


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Block Ctrl-C while processes start. They inherit the block, so that Ctrl-C reaches this process alone."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker() -> None:
    """Set up a worker process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops its workers


def _end_with_parent() -> None:
    """Wait until the parent process has ended, for whatever reason, and end this one."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
