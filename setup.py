"""Build the native PyTorch op where PyTorch and a C++ compiler are present; install without it where not."""

import os
import runpy
import sys
from pathlib import Path

import setuptools

TORCH = Path("src/plunit/torch")

if int(setuptools.__version__.partition(".")[0]) < 77:  # else 91 lines about project.license
    sys.exit(f"plunit needs setuptools 77, this is {setuptools.__version__}; run: pip install 'setuptools>=77'")


def native() -> dict:
    if os.environ.get("PLUNIT_NATIVE") == "0":
        return {}
    try:
        from torch.utils.cpp_extension import BuildExtension
    except ImportError:
        print("plunit: no PyTorch in this environment, the native op is left out", file=sys.stderr)
        return {}

    class Optional(BuildExtension):
        """Turn a failed build into a message: the package is complete without the native op."""

        def run(self) -> None:
            # what an earlier build left, in build/ or in place, must not pass for this one's result
            for path in {*self.get_outputs(), *self.get_output_mapping().values()}:
                Path(path).unlink(missing_ok=True)
            try:
                super().run()
            except Exception as error:
                print(f"plunit: the native op was not built ({error}); PLU runs on its composite path", file=sys.stderr)

    extension = runpy.run_path(str(TORCH / "extension.py"))["extension"](TORCH / "csrc")
    return {"ext_modules": [extension], "cmdclass": {"build_ext": Optional}}


setuptools.setup(**native())
