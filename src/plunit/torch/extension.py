"""How the native op is compiled, stated once for setup.py and `plunit.torch.build`.

setup.py loads this file by its path. So nothing of plunit is imported here, and PyTorch only where it is needed.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

NAME = "plunit.torch._native"
CSRC = Path(__file__).with_name("csrc")


def flags() -> tuple[list[str], list[str]]:
    """Return the flags of the compiler and of the linker on this system."""
    if platform.system() == "Windows":  # never tried
        return ["/O2", "/std:c++20", "/fp:precise", "/openmp"], []
    # PyTorch's own threads are OpenMP; without the flag at::parallel_for runs on one
    openmp = [] if platform.system() == "Darwin" else ["-fopenmp"]
    # no contraction to fused multiply-add: the composite path, which rounds twice, must give the same bits
    numerics = ["-O3", "-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    # no debugging symbols: they are 14 of 15 MB
    return [*numerics, "-fvisibility=hidden", "-g0", *openmp], openmp


def units(csrc: Path) -> list[Path]:
    """Return the files to compile."""
    return sorted(csrc.glob("*.cpp"))


def headers(csrc: Path) -> list[Path]:
    """Return the files that they include."""
    return sorted(csrc.glob("*.h"))


def native_op(csrc: Path) -> Any:
    """Return the native op as an extension module for setuptools; `csrc` is its folder, relative in setup.py."""
    from torch.utils.cpp_extension import CppExtension

    compiler, linker = flags()
    return CppExtension(  # type: ignore[no-untyped-call]
        NAME,
        sources=[str(path) for path in units(csrc)],
        depends=[str(path) for path in headers(csrc)],
        extra_compile_args=compiler,
        extra_link_args=linker,
    )
