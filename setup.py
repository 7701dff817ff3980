"""Build the native PyTorch op where PyTorch and a C++ compiler are present; install without it where not."""

import os
import runpy
import shutil
import sys
from pathlib import Path

import setuptools
from setuptools.command.build_py import build_py

TORCH = Path("src/plunit/torch")

if int(setuptools.__version__.partition(".")[0]) < 77:  # else 91 lines about project.license
    sys.exit(f"plunit needs setuptools 77, this is {setuptools.__version__}; run: pip install 'setuptools>=77'")


class Fresh(build_py):
    """Build into an empty folder: what an earlier build left there would be packed."""

    def run(self) -> None:
        shutil.rmtree(Path(self.build_lib, "plunit"), ignore_errors=True)
        super().run()


def native() -> tuple[list, dict]:
    """Return the extension module and the command that builds it, or neither."""
    if os.environ.get("PLUNIT_NATIVE") == "0":
        return [], {}
    try:
        from torch.utils.cpp_extension import BuildExtension
    except ImportError:
        print("plunit: no PyTorch in this environment, the native op is left out", file=sys.stderr)
        return [], {}

    class Optional(BuildExtension):
        """Turn a failed build into a message: the package is complete without the native op."""

        def run(self) -> None:
            for path in self.get_output_mapping().values():  # in place: an earlier result must not pass for this one
                Path(path).unlink(missing_ok=True)
            try:
                super().run()
            except Exception as error:
                print(f"plunit: the native op was not built ({error}); PLU runs on its composite path", file=sys.stderr)

    extension = runpy.run_path(str(TORCH / "extension.py"))["native_op"](TORCH / "csrc")
    return [extension], {"build_ext": Optional}


modules, commands = native()
setuptools.setup(ext_modules=modules, cmdclass={"build_py": Fresh, **commands})
