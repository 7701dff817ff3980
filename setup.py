"""Build the native PyTorch op and the compiled programs if that is possible; install without them if it is not."""

import os
import platform
import runpy
import shutil
import sys
from pathlib import Path

import setuptools
from setuptools.command.build_py import build_py

TORCH = Path("src/plunit/torch")
PROGRAMS = Path("src/plunit/programs")
WANTED = os.environ.get("PLUNIT_NATIVE", "")  # "0": nothing is compiled; "ensemble": no native op

if int(setuptools.__version__.partition(".")[0]) < 77:  # older releases print 91 lines about project.license
    sys.exit(f"plunit needs setuptools 77, this is {setuptools.__version__}; run: pip install 'setuptools>=77'")

from setuptools.command.bdist_wheel import bdist_wheel  # not in older ones  # noqa: E402


class Fresh(build_py):
    """Build into an empty folder, because what an earlier build left there would be packed; add the libraries."""

    def run(self) -> None:
        shutil.rmtree(Path(self.build_lib, "plunit"), ignore_errors=True)
        super().run()
        if not self.editable_mode and WANTED != "0":
            build_libraries(Path(self.build_lib, "plunit", "programs", "lib"))


class Platform(bdist_wheel):
    """Tag a wheel that has the ensemble's libraries, and no native op, as one for every Python of this platform."""

    def run(self) -> None:
        self.run_command("build")
        if Path(self.get_finalized_command("build").build_lib, "plunit", "programs", "lib").exists():
            self.root_is_pure = False
            self.distribution.has_ext_modules = lambda: True  # decides where in the wheel setuptools puts the package
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, system = super().get_tag()
        if self.root_is_pure or self.distribution.ext_modules:
            return python, abi, system
        # the libraries are for this processor alone, even if Python is for two
        return "py3", "none", system.replace("universal2", platform.machine())


def build_libraries(folder: Path) -> None:
    """Compile the programs; a failure is a message, because they can be compiled at first use."""
    compiling = runpy.run_path(str(PROGRAMS / "compiling.py"))
    try:
        compiling["write_libraries"](folder)
    except compiling["CannotCompile"] as reason:
        print(f"plunit: the compiled programs were not built ({reason})", file=sys.stderr)


def native() -> tuple[list, dict]:
    """Return the extension module and the command that builds it, or neither."""
    if WANTED in ("0", "ensemble"):
        return [], {}
    try:
        from torch.utils.cpp_extension import BuildExtension
    except ImportError:
        print("plunit: no PyTorch in this environment, the native op is left out", file=sys.stderr)
        return [], {}

    class Optional(BuildExtension):
        """Turn a failed build into a message: the package is complete without the native op."""

        def run(self) -> None:
            for path in self.get_output_mapping().values():  # in place: remove the result of an earlier build
                Path(path).unlink(missing_ok=True)
            try:
                super().run()
            except Exception as error:
                print(f"plunit: the native op was not built ({error}); PLU runs on its composite path", file=sys.stderr)

    extension = runpy.run_path(str(TORCH / "extension.py"))["native_op"](TORCH / "csrc")
    return [extension], {"build_ext": Optional}


modules, commands = native()
setuptools.setup(ext_modules=modules, cmdclass={"build_py": Fresh, "bdist_wheel": Platform, **commands})
