"""A small table as files write it, and the check of the line for a faulty one."""

import numpy as np

from plunit.data.tables import read_table


def silent(_line):
    """Take a reported line and drop it."""


def table(path, content, target="-1", inputs=(), say=silent):
    path = path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, target, inputs, say)


def text_of(fields, delimiter=",", rows=12):
    """Return a file with a header and growing numbers, in which some lines are replaced."""
    lines = {1: "a,b,c"} | {n + 2: f"{n},{2 * n},{-n}" for n in range(rows)} | fields
    return "\n".join(lines[n] for n in sorted(lines)).replace(",", delimiter) + "\n"


def expected(rows=12):
    return np.array([[n, 2 * n, -n] for n in range(rows)], dtype=float)


def check_line(error, path, fragments):
    """Assert that an error is one line, names the file and holds the fragments."""
    line = str(error.value)
    assert line.isprintable()  # so it is one line
    for fragment in fragments:
        assert fragment in line
    if "The target" not in line and "The input" not in line:
        assert str(path) in line
