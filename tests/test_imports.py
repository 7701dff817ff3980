"""Imports go one way, by `LEVELS`.

And a module has another name than what it holds, so that `from package import name` cannot mean either.
"""

import ast
import collections
import subprocess
import sys
from pathlib import Path

import pytest

import plunit

ROOT = Path(plunit.__file__).parent
ORDER = [
    ["base", "functional", "learned", "smooth", "numpy", "gains"],
    ["programs", "data"],
    ["pieces"],  # proofs run in a compiled program
    ["expressions", "torch", "jax", "keras", "ensemble"],
    ["densities"],  # between the ensemble, whose arrays it uses, and those that use it
    ["dispatch", "equinox", "flax", "invertible"],
    ["sklearn"],  # densities become flows of PyTorch
    ["fitting", "lab"],
    ["play"],
    ["cli"],
]
LEVELS = {part: level for level, parts in enumerate(ORDER) for part in parts}
ROOMS = [["core"], ["exact"], ["proofs", "fixed", "segments"], ["formats"], ["all of pieces"]]
ROOM_LEVELS = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def part_of(module):
    """Return the part of plunit a dotted module name belongs to, or None."""
    names = module.split(".")
    return names[1] if names[0] == "plunit" and len(names) > 1 and names[1] in LEVELS else None


def room_of(module):
    """Return the room of `pieces` a dotted name belongs to, or None; files of the folder itself are the core.

    A name that the package finds in one of its modules, as `curve`, belongs to all of it.
    """
    names = module.split(".")
    if names[:2] != ["plunit", "pieces"] or len(names) < 3:
        return None
    is_file = (ROOT / "pieces" / f"{names[2]}.py").exists()
    return names[2] if names[2] in ROOM_LEVELS else "core" if is_file else "all of pieces"


def imported_names(source):
    """Return the dotted names a source text imports, wherever in the text it does."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            names = [word.value for word in node.args if isinstance(word, ast.Constant)]
        else:
            continue
        found |= set(names)
    return found


def upward(part, source):
    """Return the imported parts that a part must not know: those of a higher level, or another of its own."""
    parts = {part_of(name) for name in imported_names(source)} - {None, part}
    return {other for other in parts if LEVELS[other] >= max(LEVELS[part], 1)}


def upward_in_pieces(room, source):
    """Return the imported rooms of `pieces` that a room must not know: those of a higher level, or of its own."""
    rooms = {room_of(name) for name in imported_names(source)} - {None, room}
    return {other for other in rooms if ROOM_LEVELS[other] >= ROOM_LEVELS[room]}


ALLOWED = {"pieces/formats/reading.py": {"torch"}}
"""Files of PyTorch are read by what knows PyTorch, when there is such a file."""

FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def test_no_file_imports_upwards():
    parts = {path: path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert set(parts.values()) == set(LEVELS), "give each part a level"
    found = {str(path.relative_to(ROOT)): upward(part, path.read_text()) for path, part in parts.items()}
    assert {name: others for name, others in found.items() if others} == ALLOWED


def test_no_room_of_pieces_imports_upwards():
    paths = [path.relative_to(ROOT / "pieces") for path in (ROOT / "pieces").rglob("*.py")]
    rooms = {path: path.parts[0] if len(path.parts) > 1 else "core" for path in paths if path != Path("__init__.py")}
    assert set(rooms.values()) == {*ROOM_LEVELS} - {"all of pieces"}, "give each room a level"
    found = {str(path): upward_in_pieces(room, (ROOT / "pieces" / path).read_text()) for path, room in rooms.items()}
    assert {name: others for name, others in found.items() if others} == {}


def namesakes(name, source):
    """Return the functions and classes of a module that have its name."""
    kinds = ast.FunctionDef | ast.ClassDef
    return [node.name for node in ast.parse(source).body if isinstance(node, kinds) and node.name == name]


def test_no_module_holds_something_of_its_own_name():
    assert [path.relative_to(ROOT) for path in FILES if namesakes(path.stem, path.read_text())] == []


def shadowed(package, files, source):
    """Return the names that a package imports from elsewhere and that are those of its own modules."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom))
    names = [alias.name for node in imports if node.module != package for alias in node.names]
    return [name for name in names if name in files]


def test_no_package_exports_a_name_of_one_of_its_modules():
    for path in ROOT.rglob("__init__.py"):
        package = ".".join(("plunit", *path.parent.relative_to(ROOT).parts))
        files = [each.stem for each in path.parent.iterdir() if each.suffix == ".py" or each.is_dir()]
        assert shadowed(package, files, path.read_text()) == [], package


CONTRACTS = {
    *("PLU", "SmoothPLU", "plu", "inverse", "slope", "log_slope", "NAMESPACE"),  # of each framework
    *("forward",),  # of PLU and of a network
    *("check", "formula", "inverse_formula", "slope_formula", "log_slope_formula"),  # of PLU and of SmoothPLU
    *("advance", "EXPERIMENTS", "compute", "IMPORTER", "main"),  # of each engine, experiment, format and program
}
"""Names that several files define on purpose: each gives its own answer to one question."""

REPEATS = {
    *("CHECKED", "Column", "FLOOR", "Function", "LARGEST"),
    *("LIMIT", "LOSSES", "PACKAGE", "PATIENCE", "Part"),
    *("Source", "Step", "affine", "clean", "curve", "evaluate", "fraction", "gradient", "join"),
    *("load", "points", "read", "relu", "run", "save", "search", "start"),
}
"""Names that still stand for several things. The list may become shorter, not longer."""


def definitions(source):
    """Return name -> text of each public definition at the top level of a module, and of each class anywhere."""
    tree, found = ast.parse(source), []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and "overload" not in map(ast.unparse, node.decorator_list):
            found.append((node.name, ast.unparse(node)))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            found += [(name, ast.unparse(node.value)) for name in names if node.value]
    found += [(node.name, ast.unparse(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {name: text for name, text in found if not name.startswith("_") or f"class {name}" in text}


def repeated(sources):
    """Return the names that modules define differently: functions, classes, constants and aliases."""
    texts = collections.defaultdict(set)
    for source in sources:
        for name, text in definitions(source).items():
            texts[name].add(text)
    return {name for name, different in texts.items() if len(different) > 1}


def test_a_public_name_stands_for_one_thing():
    """A class, a function, a constant or an alias; one that is only for its own file begins with an underscore."""
    assert repeated(path.read_text() for path in FILES) - CONTRACTS == REPEATS


ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        *((name, name, name) for name in ("jax", "equinox", "flax", "keras")),
        ("sklearn", "sklearn", "fit"),
        ("torch", "invertible", "torch"),
    ],
)
def test_a_missing_package_is_one_line(name, module, extra):
    program = ABSENT.format(name=name) + f"import plunit.{module}"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    remedy = f"plunit.{module} needs {name}, which is not installed; pip install 'plunit[{extra}]'"
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {remedy}"
    assert done.stderr.count("Traceback") == 1


LOADED = {
    "plunit; plunit.plu(2.0); plunit.gain()": "",
    "plunit.pieces": "",
    "plunit.ensemble": "",
    "plunit.data.tables": "",
    "plunit.densities": "",
    "plunit.sklearn": "sklearn",
    "plunit.torch": "torch",
    "plunit.jax": "jax",
    "plunit.equinox": "equinox jax",
    "plunit.flax": "flax jax",
}
HEAVY = ("equinox", "flax", "jax", "keras", "matplotlib", "onnx", "sklearn", "tensorflow", "torch")


@pytest.mark.parametrize(("imported", "expected"), LOADED.items())
def test_no_import_loads_another_framework_and_most_take_no_half_a_second(imported, expected):
    """Beyond the package that they are for. Time is that of the processor."""
    for name in expected.split():
        pytest.importorskip(name)
    first = {"sklearn": "sklearn.base", "flax jax": "flax.nnx"}.get(expected, expected.replace(" ", ", ") or "numpy")
    program = (
        f"import sys, time, {first}; start = time.process_time()\n"
        f"import {imported}\n"
        f"print(time.process_time() - start, *(name for name in {HEAVY} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    seconds, *frameworks = done.stdout.split()
    assert frameworks == expected.split()
    assert float(seconds) < 0.5


def test_plu_of_pytorch_loads_no_exact_networks():
    program = "import sys, plunit.torch; print([name for name in sys.modules if 'pieces' in name or 'exact' in name])"
    program += "; print(plunit.torch.to_network.__module__, 'plunit.pieces' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", "plunit.torch.exact.network True"]


def set_twice(source):
    """Return the names that a module sets more than once at its top level; the later value holds for all of it."""
    targets = [target for node in ast.parse(source).body if isinstance(node, ast.Assign) for target in node.targets]
    names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return sorted({name for name in names if names.count(name) > 1})


def test_no_constant_is_set_twice():
    """Two constants of one name, as merged modules may have them, change numbers and raise nothing."""
    assert {str(path): found for path in ROOT.rglob("*.py") if (found := set_twice(path.read_text()))} == {}


PIECES = "from plunit.pieces import activation\nfrom plunit.pieces.exact.line_curves import curve, curves"
CORE = "from plunit.pieces import activation\nfrom plunit.pieces.networks import Network"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (upward("torch", "from plunit.lab import store"), {"lab"}),
        (upward("jax", "import plunit.torch"), {"torch"}),
        (upward("functional", "def f():\n    from plunit import torch"), {"torch"}),
        (upward("pieces", 'importlib.import_module("plunit.torch.exact.saved")'), {"torch"}),
        (upward_in_pieces("core", "from plunit.pieces.exact.tolerance import Units"), {"exact"}),
        (upward_in_pieces("exact", "def f():\n    from plunit.pieces.proofs import linear"), {"proofs"}),
        (upward_in_pieces("fixed", "import plunit.pieces.segments.sums"), {"segments"}),
        (upward_in_pieces("formats", "from plunit.pieces import curve"), {"all of pieces"}),
        (upward_in_pieces("core", CORE), set()),
        (upward_in_pieces("formats", CORE + "\nfrom plunit.pieces.fixed.integers import FixedNetwork"), set()),
        (namesakes("gain", "def gain(): ...\nclass Gain: ...\ngains = 1"), ["gain"]),
        (shadowed("plunit.pieces", ["activation", "curve", "line"], PIECES), ["curve"]),
        (repeated(["class A: ...\nclass B: ...", "def f():\n    class A: x = 1"]), {"A"}),
        (repeated(["def f(): ...\n_g = X = 1\nY: int = 2", "def f(): return 1\n_g = X = 2\nY = 2"]), {"f", "X"}),
        (set_twice("A, B = 1, 2\nB = 3\nC = B"), ["B"]),
    ],
)
def test_the_rules_can_fail(found, expected):
    assert found == expected
