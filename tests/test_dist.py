"""What an sdist and a wheel hold, whatever lies about in the folder they are built from. `make dist` tries them out."""

import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import plunit
from plunit.base.errors import EXTRAS
from plunit.programs import compiling

pytest.importorskip("setuptools", minversion="77")

ROOT = Path(__file__).parents[1]
BINARY = f"plunit/torch/torch-0123456789abcdef{sysconfig.get_config_var('EXT_SUFFIX')}"
LIB = "plunit/programs/lib/"
LEVELS = compiling.levels()
PROGRAMS = ("train", "chain", "prove")
PLATFORM = re.sub(r"[-.]", "_", sysconfig.get_platform()).replace("universal2", platform.machine())
LITTER = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "*.so", "*.pyd", "build", "dist", "runs", "reference", "gallery"
)
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


# Instead of compiling, write the target's flag.
WRITE = """
import pathlib, sys
target = next(word for word in sys.argv if word.startswith("-march="))
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text(target)
"""
# Instead of compiling the op, write its name.
OP = f"""
import pathlib, sys
pathlib.Path(sys.argv[1], {Path(BINARY).name!r}).touch()
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of this folder, in which tests have run."""
    folder = tmp_path_factory.mktemp("checkout") / "plunit"
    shutil.copytree(ROOT, folder, ignore=LITTER)
    shutil.copytree(ROOT / ".github", folder / ".github")
    (folder / "tests" / "__pycache__").mkdir()
    (folder / "tests" / "__pycache__" / "test_dist.pyc").touch()
    return folder


def leave_binaries(checkout):
    """Put stale binaries where builds leave them, and return their paths."""
    platform = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    paths = [checkout / "build" / folder / BINARY for folder in (platform, "lib")] + [checkout / "src" / BINARY]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"stale")
    return paths


@pytest.fixture
def writing(tmp_path):
    """The command of a compiler that writes its target."""
    (tmp_path / "write.py").write_text(WRITE)
    return shlex.join([sys.executable, "-S", "-E", str(tmp_path / "write.py")])


def libraries(wheel):
    """Return the ensemble's libraries in a wheel and what is in them, without the checksum of their sources."""
    with zipfile.ZipFile(wheel) as content:
        return {name: content.read(name).decode() for name in content.namelist() if re.match(rf"{LIB}.*\.so", name)}


def run(checkout, *command, **environment):
    """Run Python in the checkout, without what is set in this process."""
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PLUNIT_NATIVE")}
    settings.update(environment)
    return subprocess.run([sys.executable, *command], cwd=checkout, env=settings, capture_output=True, text=True)


def built(kind, checkout, out, **environment):
    """Build, and return the archive and what was said."""
    done = run(checkout, "-c", BUILD, f"build_{kind}", str(out), **environment)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1], done.stderr


def files_below(folder):
    """Return the files that belong to a folder of this checkout."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    litter = r"__pycache__|docs/(reference|gallery)|\.(so|pyd|pyc)$"
    return {name for path in paths if not re.search(litter, name := str(path.relative_to(ROOT)))}


def test_the_wheel_has_the_package_and_nothing_else(checkout, tmp_path):
    leave_binaries(checkout)
    wheel, _ = built("wheel", checkout, tmp_path, PLUNIT_NATIVE="0")
    assert wheel.name == f"plunit-{plunit.__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == {
        name.removeprefix("src/") for name in files_below("src/plunit")
    }


def test_the_sdist_has_what_its_tests_need(checkout, tmp_path):
    leave_binaries(checkout)
    sdist, _ = built("sdist", checkout, tmp_path, PLUNIT_NATIVE="0")
    with tarfile.open(sdist) as tar:
        names = {member.name.partition("/")[2] for member in tar if member.isfile()}
    folders = ("src/plunit", "tests", "benchmarks", "docs", "examples", "results", "tools", ".github")
    assert set().union(*map(files_below, folders)) <= names
    assert {"conftest.py", "constraints.txt", "Makefile", "MANIFEST.in", "setup.py", "CITATION.cff"} <= names
    assert not [name for name in names if re.search(r"__pycache__|\.(so|pyd|pyc)$", name)]


@pytest.mark.skipif(not LEVELS, reason="wheels have no libraries for this processor")
def test_the_published_wheel_has_the_libraries_of_the_ensemble(checkout, tmp_path, writing):
    leave_binaries(checkout)
    wheel, _ = built("wheel", checkout, tmp_path, PLUNIT_NATIVE="ensemble", CXX=writing)
    assert re.fullmatch(rf"plunit-.*-py3-none-{PLATFORM}\.whl", wheel.name)
    expected = {f"{LIB}{program}-{level}.so": f"-march={level}" for level in LEVELS.values() for program in PROGRAMS}
    assert libraries(wheel) == expected
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (about,) = [content.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL")]
        assert content.read(f"{LIB}sources.sha256").decode().strip() == compiling.source_hash()
    assert BINARY not in names
    assert f"Root-Is-Purelib: false\nTag: py3-none-{PLATFORM}\n" in about


def test_a_wheel_with_the_native_op_is_for_one_python(checkout, tmp_path):
    build = checkout / "src" / "plunit" / "torch" / "build.py"
    content = build.read_text()
    (tmp_path / "torch.py").write_text("")  # PyTorch is there
    (build.parent / "__init__.py").rename(tmp_path / "init")
    build.write_text(OP)
    try:
        wheel, _ = built("wheel", checkout, tmp_path, CXX="false", PYTHONPATH=str(tmp_path))
    finally:
        build.write_text(content)
        (tmp_path / "init").rename(build.parent / "__init__.py")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{python}-{python}" in wheel.name
    assert BINARY in zipfile.ZipFile(wheel).namelist()


def test_an_editable_install_compiles_no_libraries(checkout, tmp_path):
    wheel, said = built("editable", checkout, tmp_path, PLUNIT_NATIVE="ensemble", CXX="false")
    assert wheel.name.endswith("py3-none-any.whl")
    assert "the compiled programs" not in said


@pytest.mark.parametrize("has_torch", [False, True])
def test_without_a_compiler_the_wheel_is_pure_and_the_build_says_so(checkout, tmp_path, has_torch):
    if has_torch:
        pytest.importorskip("torch")
    else:
        (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    leave_binaries(checkout)
    wheel, said = built("wheel", checkout, tmp_path, PYTHONPATH=str(tmp_path), CXX="false")
    lines = [line for line in said.splitlines() if line.startswith("plunit: the compiled programs were not built (")]
    assert len(lines) == 1
    assert "CXX=false: the command ended with exit code 1" in lines[0]
    assert libraries(wheel) == {}
    assert wheel.name.endswith("-py3-none-any.whl")
    assert BINARY not in zipfile.ZipFile(wheel).namelist()
    assert (
        "plunit: the native op is not built: CXX=false: " if has_torch else "needs torch, which is not installed"
    ) in said


def test_an_old_setuptools_is_one_line(checkout, tmp_path):
    (tmp_path / "setuptools" / "command").mkdir(parents=True)
    (tmp_path / "setuptools" / "__init__.py").write_text("__version__ = '76.1.0'")
    (tmp_path / "setuptools" / "command" / "build_py.py").write_text("build_py = object")
    done = run(checkout, "setup.py", "--version", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == "plunit needs setuptools 77, this is 76.1.0; run: pip install 'setuptools>=77'\n"


TRACKED = {"setup.py", "tests/test_a.py", "src/plunit/a.py", "src/plunit/csrc/a.h", ".gitignore", ".ci/run"}
SDIST = {"setup.py", "tests/test_a.py", "src/plunit/a.py", "src/plunit/csrc/a.h", "PKG-INFO", "plunit.egg-info/x.txt"}
LIBRARIES = {f"{LIB}{name}" for name in compiling.file_names()}
WHEEL = {"plunit/a.py", "plunit/csrc/a.h", "plunit-1.dist-info/METADATA"} | LIBRARIES


NAME = "plunit-1-py3-none-linux_x86_64.whl"
FAULTS = [
    ("sdist_faults", (SDIST,), []),
    ("sdist_faults", (SDIST - {"tests/test_a.py"},), ["the sdist lacks tests/test_a.py"]),
    ("sdist_faults", (SDIST | {"notes.txt"},), ["the sdist has notes.txt"]),
    ("wheel_faults", (NAME, WHEEL), []),
    ("wheel_faults", (NAME, WHEEL - {"plunit/csrc/a.h"}), ["the wheel lacks plunit/csrc/a.h"]),
    ("wheel_faults", (NAME, WHEEL - {f"{LIB}sources.sha256"}), [f"the wheel lacks {LIB}sources.sha256"]),
    ("wheel_faults", (NAME, WHEEL | {"tests/test_a.py"}), ["the wheel has tests/test_a.py"]),
    *(
        ("wheel_faults", (f"plunit-1-{tag}.whl", WHEEL), [f"the wheel plunit-1-{tag}.whl must be for every Python"])
        for tag in ("py3-none-any", "cp311-cp311-linux_x86_64")
    ),
]


@pytest.mark.parametrize(("check", "given", "faults"), FAULTS)
def test_make_dist_names_what_is_missing_too_much_or_for_one_python(check, given, faults):
    found = runpy.run_path(str(ROOT / "tools" / "dist.py"))[check](*given, TRACKED)
    assert len(found) == len(faults)
    assert all(line.startswith(fault) for line, fault in zip(found, faults, strict=True))


@pytest.fixture(scope="module")
def extras():
    """What each extra names."""
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def packages_of(extra, extras):
    """Return the packages that an extra installs, with those of the extras that it names."""
    found = set()
    for line in extras[extra]:
        name, inner = re.match(r"([\w-]+)(?:\[(.*)\])?", line).groups()
        found |= set().union(*(packages_of(one, extras) for one in inner.split(","))) if inner else {name}
    return found


def test_everything_that_development_needs_is_pinned(extras):
    pins = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    wanted = {re.match(r"[\w.-]+", line)[0].lower() for lines in extras.values() for line in lines}
    assert wanted - pins == {"plunit"}


@pytest.mark.parametrize("package", EXTRAS)
def test_messages_name_the_smallest_extra_that_has_a_package(package, extras):
    name = {"PIL": "pillow", "sklearn": "scikit-learn"}.get(package, package)
    named = EXTRAS[package]
    assert name in packages_of(named, extras)
    inner = set(re.findall(r"[a-z]+", " ".join(re.findall(r"plunit\[(.*?)\]", " ".join(extras[named])))))
    assert not [extra for extra in inner if name in packages_of(extra, extras)]


def test_fit_and_play_are_without_pytorch_and_all_has_what_users_have(extras):
    assert not {"torch", "jax", "keras"} & (packages_of("fit", extras) | packages_of("play", extras))
    users = set(extras) - {"bench", "docs", "dev"}
    assert packages_of("all", extras) == set().union(*(packages_of(extra, extras) for extra in users))
    listed = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/install.md").read_text(), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(listed))) == users


def test_the_versions_of_python_that_are_claimed_are_tested():
    claimed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    tested = re.findall(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert tested == [", ".join(f'"{version}"' for version in claimed)] * 2  # with PyTorch, and with NumPy alone


def test_the_citation_is_of_this_version():
    assert f'\nversion: "{plunit.__version__}"\n' in (ROOT / "CITATION.cff").read_text()
