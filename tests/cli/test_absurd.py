"""Absurd command lines: each ends with exit code 2 and one line, before any work."""

import os
from pathlib import Path

import pytest
from commands import run

from plunit.pieces import network, save_json

PROPERTY = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= 0 X_0 1)) (assert (>= Y_0 3))"

WORDS = ("", "\0", "\n", "\udcff", "x" * 5000, "/", "folder", "loop", "--nope", "-z")
"""Arguments that no command has a use for."""

TAKEN = {("fit", word) for word in ("x" * 5000, "-z", "folder")} | {("list", word) for word in WORDS if word[:1] != "-"}
TAKEN |= {("play", "")}
"""Except that x...x, -z and folder are functions, that a list needs no folder, and that a page needs no link."""

OPTIONS = {
    "fit x": """
        --low nan; --high inf; --low 5 --high 1; --starts 0; --starts -1; --starts 1e9; --seed -1
        --seed 1e99; --hidden 0; --hidden ,; --hidden x; --hidden 1,999; --pieces 0; --error nan; --error 0; --error -1
        --error inf; --pieces 2 --error 1; --bits 9; --bits 16; --bits 8 --save f.json; --save .; --save folder
        --save loop; --save loop.h; --save f.txt; --save no/such.h; --save /dev/null; --save f.h --save f.h
        --plot f.gif; --page folder; --page loop; --range x; --range x=1; --range x=1:1; --range y=0:1; --range x=nan:1
        --range x=0:1 --range x=0:1; --activation swish; --target y; --inputs x; --splits 3; --drop-missing
        --splits 101
    """,
    "fit": "1/0; (((; sin; __import__('os'); x;y; [x]; x==x; a+b+c+d+e+f+g+h+i+j+k; log(-x**2-1); 1e999*x; y=x; x^^2",
    "fit table.csv": """
        --quick; --target z; --target 99; --target 0; --target y --inputs ,; --target y --inputs y; --target y --low 1
        --target y --inputs x,x; --target y --splits 101; --target y --pieces 40; --target y --save table.csv
        --target y --page table.csv
    """,
    "fit --target y": "empty.csv; folder.csv; pipe.csv; loop.csv; none.csv; net.json.csv",
    "pieces": """
        net.json --box a; net.json --box 1; net.json --box 1 1; net.json --box 0 inf; net.json --box 0 1e999; none; loop
        net.json --shape 0; net.json --shape -1; net.json --shape 1,1; net.json --save f; net.json --save no/f.h
        net.json --save folder; net.json --save loop.h; empty.csv; folder; /dev/null; net.json net.json
        table.csv
    """,
    "prove": """
        net.json; p.vnnlib net.json; net.json net.json; p.vnnlib p.vnnlib; net.json p.vnnlib --time-limit -1; none none
        net.json p.vnnlib --witness net.json; net.json p.vnnlib --witness folder; net.json p.vnnlib --witness loop
        p.vnnlib --network f; p.vnnlib --network =x; p.vnnlib --network f=net.json --network f=net.json; folder p.vnnlib
        net.json p.vnnlib x; empty.csv p.vnnlib; net.json empty.csv; p.vnnlib --network f=net.json; loop loop
    """,
    "run sine --out runs": """
        --seeds 0; --seeds 1e3; --seeds 100001; --activations ,; --activations x; --set x; --set lr=; --set =3; --nope
        --set lr=nan; --set lr=-1; --set widths=0; --set target=nonsense; --set steps=1.5; --workers -1; --workers 9999
        --cluster x; --cluster tcp://127.0.0.1:1 --workers 1; --engine x; cosine
    """,
    "run": "density --set data=nonsense; sine --out /dev/null; sine --out loop; sine --out table.csv; compare",
    "compare": """
        table.csv; table.csv --target z; table.csv --target y --test 0; table.csv --target y --test nan
        none.csv --target y; table.csv --target y --widths 0; table.csv --target y --set path=x; empty.csv --target y
        folder --target y; loop.csv --target y; table.csv --target y --seeds 0
    """,
    "reproduce": "--only x; --only ,; --only compare; --seeds 0; --workers x; --engine x; --cluster x; x",
    "play": "x; #settings=; --port 99999; --port -1; --port x",
    "data": "mnist; --to folder",
}
"""The beginnings of command lines, and their ends."""


def split(ends):
    """Return the ends of command lines in a text: they stand between semicolons, or on lines of their own."""
    return [part.split() for line in ends.strip().splitlines() for part in line.strip().split("; ")]


LINES = [
    *([command, word] for command in (*OPTIONS, "report", "clean", "list") if " " not in command for word in WORDS),
    *([*start.split(), *end] for start, ends in OPTIONS.items() for end in split(ends)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with files of many kinds."""
    place = tmp_path_factory.mktemp("absurd")
    save_json(network([([[2.0]], [0.0])]), place / "net.json")
    (place / "p.vnnlib").write_text(PROPERTY)
    (place / "table.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(30)))
    (place / "net.json.csv").write_bytes((place / "net.json").read_bytes())
    (place / "empty.csv").touch()
    for name in ("folder", "folder.csv"):
        (place / name).mkdir()
    os.mkfifo(place / "pipe.csv")
    for name in ("loop", "loop.h", "loop.csv"):
        (place / name).symlink_to(name)
    return place


def test_the_table_has_many_lines():
    assert len([words for words in LINES if tuple(words) not in TAKEN]) >= 169


@pytest.mark.parametrize("words", [words for words in LINES if tuple(words) not in TAKEN], ids=ascii)
def test_an_absurd_command_line_is_one_line(words, folder):
    before = {path: path.lstat().st_mtime_ns for path in folder.iterdir()}
    code, out, err = run(*words, folder=folder)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("plunit: ")
    assert err.removesuffix("\n").isprintable()
    made = {path.name for path in folder.iterdir() if before.get(path) != path.lstat().st_mtime_ns}
    assert made <= {"runs"}  # which a run makes before it looks for a cluster


def test_a_link_to_itself_stays_one(folder):
    assert [name for name in ("loop", "loop.h", "loop.csv") if Path(folder / name).is_symlink()] == [
        "loop",
        "loop.h",
        "loop.csv",
    ]
