"""Tables in Parquet; most need pyarrow, which is optional."""

import hashlib
import sys

import numpy as np
import pytest
from tables import check_line, expected

from plunit.base.errors import UserError
from plunit.data import parquet_table
from plunit.data.tables import read_columns, read_table


def parquet(path, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as module

    module.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_gives_the_same_table(tmp_path):
    a, b, c = expected().T
    path = parquet(tmp_path / "t.bin", a=a, b=b.astype("int32"), c=c.astype("float32"))  # known by its first bytes
    result = read_table(path, "1", ["-1", "b"])
    np.testing.assert_array_equal(np.column_stack([result.x, result.y]), expected()[:, [2, 1, 0]])
    assert (result.inputs, result.target) == (("c", "b"), "a")
    assert result.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_parquet_from_pandas_gives_the_same_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(expected(), columns=list("abc")).to_parquet(tmp_path / "t.parquet")
    result = read_table(tmp_path / "t.parquet", "c")
    np.testing.assert_array_equal(np.column_stack([result.x, result.y]), expected())
    assert result.inputs == ("a", "b")


@pytest.mark.parametrize(
    ("column", "fragments"),
    [
        (["x"] * 12, ["column 'b'", "the type is string", "must hold", "remove the column", "inputs"]),
        ([True, False] * 6, ["the type is bool", "convert"]),
        ([1.0] * 4 + [None, float("nan")] + [2.0] * 6, ["2 of 12 rows", "row 5, column 'b'", "fill them in"]),
        ([1, 2, None] * 4, ["4 of 12 rows", "row 3, column 'b'"]),
        ([1.0, -np.inf] * 6, ["row 2, column 'b': -inf is infinite", "must be finite", "remove the row"]),
    ],
)
def test_each_fault_of_a_parquet_file_gets_one_line(tmp_path, column, fragments):
    path = parquet(tmp_path / "t.parquet", a=np.arange(12.0), b=column)
    with pytest.raises(UserError) as error:
        read_table(path, "a")
    check_line(error, path, fragments)


@pytest.mark.parametrize(
    ("content", "version", "fragments"),
    [
        (b"PAR1 and nothing else", "99", ["could not be read as Parquet", "Write the file again"]),
        (b"a,b\n1,2\n", "99", ["could not be read as Parquet"]),
        (b"PAR1", "14.0.0", ["pyarrow 14.0.0 is not safe", "pip install 'pyarrow>=15'"]),
        (b"PAR1", None, ["reading it needs pyarrow, which is not installed", "pip install 'pyarrow>=15'"]),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, monkeypatch, content, version, fragments):
    if version is None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    else:
        monkeypatch.setattr(pytest.importorskip("pyarrow"), "__version__", version)
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_table(path, "a")
    check_line(error, path, fragments)


def test_too_many_numbers_in_a_parquet_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_table, "MAX_NUMBERS", 35)
    a, b, c = expected().T
    with pytest.raises(UserError, match="more than"):
        read_table(parquet(tmp_path / "t.parquet", a=a, b=b, c=c), "a")


def test_types_of_a_table_as_it_is(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    a, when = np.arange(12.0), np.arange(12).astype("datetime64[D]")
    named = pyarrow.array(["x", "y", None, ""] * 3).dictionary_encode()
    path = parquet(
        tmp_path / "t.parquet", a=a, b=named, c=[True, False, None] * 4, d=when, e=[str(day) for day in when]
    )
    found = read_columns(path, "a", ["b", "c"])
    assert found.x.T.tolist() == [["x", "y", None, None] * 3, ["yes", "no", None] * 4]
    for name, place in (("d", "column 'd': the type"), ("e", "row 1, column 'e': '1970-01-01'")):
        with pytest.raises(UserError) as error:
            read_columns(path, "a", [name])
        check_line(error, path, [place, "is a date or a time", "days since the first"])
