"""Build the native PyTorch op where PyTorch and a C++ compiler are present; install without it where not."""

import platform
import sys
from pathlib import Path

from setuptools import setup

CSRC = Path("src/plunit/torch/csrc")


def native() -> dict:
    try:
        from torch.utils.cpp_extension import BuildExtension, CppExtension
    except ImportError:
        print("plunit: no PyTorch in this environment, the native op is left out", file=sys.stderr)
        return {}

    class Optional(BuildExtension):
        """Turn a failed build into a message: the package is complete without the native op."""

        def run(self) -> None:
            try:
                super().run()
            except Exception as error:
                print(f"plunit: the native op was not built ({error}); PLU runs on its composite path", file=sys.stderr)

    # PyTorch's own threads are OpenMP; without the flag at::parallel_for runs on one
    openmp = [] if platform.system() == "Darwin" else ["-fopenmp"]
    # no contraction to fused multiply-add: the composite path, which rounds twice, must give the same bits
    flags = ["-O3", "-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
    if platform.system() == "Windows":
        openmp, flags = ["/openmp"], ["/O2", "/std:c++20", "/fp:precise"]
    extension = CppExtension(
        "plunit.torch._native",
        sources=sorted(str(path) for path in CSRC.glob("*.cpp")),
        depends=sorted(str(path) for path in CSRC.glob("*.h")),
        extra_compile_args=[*flags, *openmp],
        extra_link_args=openmp,
    )
    return {"ext_modules": [extension], "cmdclass": {"build_ext": Optional}}


setup(**native())
