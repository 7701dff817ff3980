"""`make dist`: build the sdist and the wheel, check them, and use the wheel in an environment with nothing but Python.

1. `python -m build`: the sdist from this folder, the wheel from the sdist. The wheel has the ensemble's libraries, for
   every Python of this platform, and the sources of the native op, but no binary of it, which would be good for one
   release of PyTorch (docs/contribute.md).
2. `twine check`, and the contents: the sdist has every file that git knows, the wheel every file of the package.
3. The wheel is installed into an empty environment, where nothing but NumPy follows it, and used from an empty folder;
   then with the README's install line, whose commands are run; with PyTorch, for which the native op is compiled; with
   JAX, the lab, and all that the README's examples use.
   What is tried at each stage is in `STAGES`. `--stages numpy,torch` leaves out the others.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNPACKAGED = {".gitignore", ".ci"}  # what git knows and nobody needs who has the sdist
GENERATED = {"PKG-INFO", "setup.cfg"}

NUMPY = """
import sys, plunit, plunit.pieces
assert not {"torch", "jax", "keras", "matplotlib"} & set(sys.modules)
assert plunit.__file__.startswith(sys.prefix), plunit.__file__
"""
ENSEMBLE = """
import sys, plunit.ensemble, plunit.programs.libraries
assert plunit.ensemble.engine() == "native", plunit.ensemble.why_not_native()
assert plunit.programs.libraries.origin().startswith("packaged "), plunit.programs.libraries.origin()
assert "torch" not in sys.modules
import numpy as np
network = plunit.ensemble.MLP((1, 3, 1), "plu")
start = plunit.ensemble.initial(network, [np.random.default_rng(seed) for seed in range(20)])
x = np.linspace(-1, 1, 9)[None]
trained = plunit.ensemble.train(network, start, (x, np.sin(x)), steps=1000)
assert np.median(trained.history[-1]) < 0.01, trained.history[-1]
"""
WITHOUT_COMMAND = """
import subprocess, sys
run = subprocess.run(["plunit", "list"], capture_output=True, text=True)
wanted = "plunit: this command needs typer, which is not installed; pip install 'plunit[lab]'\\n"
assert (run.returncode, run.stderr) == (2, wanted), run
"""
NOTICE = """
import warnings, torch, plunit.torch
from plunit.torch.native import MissingNative
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    y = [plunit.torch.plu(torch.tensor([-21.0, 0.5, 21.0])).tolist() for _ in range(2)]
assert y == [[-3.0, 0.5, 3.0]] * 2 and [w.category for w in said] == [MissingNative], (y, said)
"""
NATIVE = """
import torch, plunit.torch
assert plunit.torch.has_native()
assert plunit.torch.plu(torch.tensor([-21.0, 0.5, 21.0])).tolist() == [-3.0, 0.5, 3.0]
"""
JAX = """
import jax, plunit.jax
assert jax.grad(plunit.jax.plu)(2.0).item() == jax.numpy.float32(0.1)
"""
FUNCTIONS = """
import numpy, plunit
y = plunit.plu(numpy.array([-21.0, 0.5, 21.0]))
assert (y.tolist(), plunit.inverse(y).tolist()) == ([-3.0, 0.5, 3.0], [-21.0, 0.5, 21.0]), y
"""
PAGES = {
    name: ["-m", "doctest", "-o", "NORMALIZE_WHITESPACE", str(ROOT / name)]
    for name in ("README.md", "docs/frameworks.md")
}
SINE = "from plunit.cli import main; main()"
RUN = "import shlex, subprocess, sys; subprocess.run(shlex.split(sys.argv[1], comments=True), check=True)"
COMMANDS = re.findall(r"^\$ (plunit .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

STAGES = {
    "numpy": {
        "import plunit": ["-c", NUMPY],
        "training without a compiler": ["-W", "error", "-c", ENSEMBLE],
        "the functions": ["-c", FUNCTIONS],
        "the command without its packages": ["-c", WITHOUT_COMMAND],
    },
    "fit": {f"README.md: {command}": ["-c", RUN, command] for command in COMMANDS},
    "torch": {
        "the notice": ["-c", NOTICE],
        "python -m plunit.torch.build": ["-m", "plunit.torch.build"],
        "the native op": ["-W", "error", "-c", NATIVE],
    },
    "jax": {"plunit.jax": ["-c", JAX]},
    "lab": {"plunit run sine": ["-c", SINE, "run", "sine", "--seeds", "8", "--set", "steps=50", "--out", "runs"]},
    "readme": PAGES,
}
WITHOUT_COMPILER = {"numpy": {"CC": "false", "CXX": "false"}}
EXTRAS = {"numpy": "", "readme": "[keras,equinox,flax]"}  # those of the other stages have the name of the stage


def main() -> None:
    parser = argparse.ArgumentParser(description="Build, check and try the sdist and the wheel.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--stages", default=",".join(STAGES), help="such as numpy,torch")
    options = parser.parse_args()
    stages = options.stages.split(",")
    if unknown := set(stages) - set(STAGES):
        sys.exit(f"stages are {', '.join(STAGES)}, got {', '.join(sorted(unknown))}")
    sdist, wheel = build(options.out)
    run([sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)], "twine check")
    names = {archive: members(archive) for archive in (sdist, wheel)}
    tracked = set(subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines())
    if not tracked:
        sys.exit("make dist compares with what git knows; run it in a checkout")
    if faults := [*sdist_faults(names[sdist], tracked), *wheel_faults(wheel.name, names[wheel], tracked)]:
        sys.exit("\n".join(faults))
    for archive, content in names.items():
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB, {describe(content)}")
    with tempfile.TemporaryDirectory(prefix="plunit-dist-") as folder:
        try_stages(wheel, stages, Path(folder))


def build(out: Path) -> tuple[Path, Path]:
    """Build both into a folder that has no others, and return them."""
    for old in [*out.glob("plunit-*.tar.gz"), *out.glob("plunit-*.whl")]:
        old.unlink()
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    run(command, "python -m build", PLUNIT_NATIVE="ensemble")
    (sdist,), (wheel,) = out.glob("plunit-*.tar.gz"), out.glob("plunit-*.whl")
    return sdist, wheel


def members(archive: Path) -> set[str]:
    """Return the files in an archive, those of an sdist without its folder."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as tar:
        return {member.name.partition("/")[2] for member in tar if member.isfile()}


def sdist_faults(names: set[str], tracked: set[str]) -> list[str]:
    """Return the tracked files that an sdist lacks, and its files that are not tracked."""
    wanted = {name for name in tracked if name.split("/")[0] not in UNPACKAGED}
    extra = {name for name in names - wanted - GENERATED if ".egg-info/" not in name}
    lines = [f"the sdist lacks {name}; add it to MANIFEST.in" for name in sorted(wanted - names)]
    return lines + [f"the sdist has {name}, which git does not know" for name in sorted(extra)]


def wheel_faults(wheel: str, names: set[str], tracked: set[str]) -> list[str]:
    """Return the missing and the unexpected files of a wheel, or its wrong tag."""
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/plunit/")}
    compiling = runpy.run_path(str(ROOT / "src" / "plunit" / "programs" / "compiling.py"))
    package |= {f"plunit/programs/lib/{name}" for name in compiling["file_names"]()}
    extra = {name for name in names - package if ".dist-info/" not in name}
    lines = [f"the wheel lacks {name}; see setup.py and package-data" for name in sorted(package - names)]
    if not re.search(r"-py3-none-(?!any)\w+\.whl$", wheel):
        lines.append(f"the wheel {wheel} must be for every Python of one platform: py3-none-PLATFORM")
    return lines + [f"the wheel has {name}, which is not a file of the package" for name in sorted(extra)]


def describe(names: set[str]) -> str:
    """Return the number of files of each kind.

    >>> describe({"a.py", "b/c.py", "LICENSE"})
    '3 files: 2 .py, 1 others'
    """
    kinds = [Path(name).suffix or "others" for name in names]
    counts = sorted(
        {kind: kinds.count(kind) for kind in kinds}.items(), key=lambda pair: (pair[0] == "others", -pair[1])
    )
    return f"{len(names)} files: " + ", ".join(f"{count} {kind}" for kind, count in counts)


def try_stages(wheel: Path, stages: list[str], folder: Path) -> None:
    """Install the wheel with one extra after the other, and use it from an empty folder."""
    run([sys.executable, "-m", "venv", str(folder / "env")], "an empty environment")
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    (folder / "empty").mkdir()
    environment = {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
        "KERAS_BACKEND": "torch",
    }
    options = ["--no-compile", "--constraint", str(ROOT / "constraints.txt")]  # most modules are never imported
    pip = [str(scripts / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *options]
    for stage in stages:
        extra = EXTRAS.get(stage, f"[{stage}]")
        run([*pip, f"{wheel}{extra}"], f"pip install plunit{extra}")
        for what, arguments in STAGES[stage].items():
            settings = {**environment, **WITHOUT_COMPILER.get(stage, {})}
            run([str(scripts / "python"), *arguments], what, folder / "empty", **settings)


def run(command: list[str], what: str, folder: Path = ROOT, **environment: str) -> None:
    """Run a command in a folder; print its duration, or its output if it fails."""
    start = time.monotonic()
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PLUNIT_NATIVE")}
    done = subprocess.run(command, cwd=folder, env={**clean, **environment}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\n{what}: failed")
    print(f"{time.monotonic() - start:6.1f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
