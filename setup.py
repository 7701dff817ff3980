"""Build the native PyTorch op and the compiled programs if that is possible; install without them if it is not."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import setuptools
from setuptools.command.build_py import build_py

WANTED = os.environ.get("PLUNIT_NATIVE", "")  # "0": nothing is compiled; "ensemble": no native op

if int(setuptools.__version__.partition(".")[0]) < 77:  # older releases print 91 lines about project.license
    sys.exit(f"plunit needs setuptools 77, this is {setuptools.__version__}; run: pip install 'setuptools>=77'")

from setuptools.command.bdist_wheel import bdist_wheel  # not in older ones  # noqa: E402


class Fresh(build_py):
    """Build into an empty folder, because what an earlier build left there would be packed; add the libraries."""

    def run(self) -> None:
        shutil.rmtree(Path(self.build_lib, "plunit"), ignore_errors=True)
        super().run()
        if self.editable_mode or WANTED == "0":
            return
        compile_into(Path(self.build_lib, "plunit", "programs", "lib"), "plunit.programs.compiling")
        if WANTED != "ensemble":
            compile_into(Path(self.build_lib, "plunit", "torch"), "plunit.torch.build")


class Platform(bdist_wheel):
    """Tag a wheel with binaries: for this Python if the native op is among them, else for every Python."""

    has_op = False

    def run(self) -> None:
        self.run_command("build")
        package = Path(self.get_finalized_command("build").build_lib, "plunit")
        self.has_op = any(package.glob("torch/torch-*"))
        if self.has_op or (package / "programs" / "lib").exists():
            self.root_is_pure = False
            self.distribution.has_ext_modules = lambda: True  # decides where in the wheel setuptools puts the package
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, system = super().get_tag()
        if self.root_is_pure or self.has_op:
            return python, abi, system
        # the libraries are for this processor alone, even if Python is for two
        return "py3", "none", system.replace("universal2", platform.machine())


def compile_into(folder: Path, module: str) -> None:
    """Run the module that compiles into a folder; a failure is its message, because plunit works without binaries."""
    paths = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-m", module, folder], env={**os.environ, "PYTHONPATH": paths})


setuptools.setup(cmdclass={"build_py": Fresh, "bdist_wheel": Platform})
