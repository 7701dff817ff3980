import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.data.held import HeldText
from plunit.data.tables import read_table

TEXT = "a;b\n" + "".join(f"{n},5;{n * n}\n" for n in range(12))


def test_a_held_text_is_read_as_the_same_file(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    held, file = (read_table(source, "b") for source in (HeldText.of("t.csv", TEXT), tmp_path / "t.csv"))
    np.testing.assert_array_equal(held.x, file.x)
    np.testing.assert_array_equal(held.y, file.y)
    assert (held.inputs, held.target, held.sha256) == (file.inputs, file.target, file.sha256)


def test_the_file_of_that_name_is_not_read(tmp_path):
    (tmp_path / "t.csv").write_text("something else")
    assert len(read_table(HeldText.of(str(tmp_path / "t.csv"), TEXT), "b").y) == 12


def test_messages_have_the_name():
    with pytest.raises(UserError, match=r"numbers\.csv has 1 row of numbers"):
        read_table(HeldText.of("numbers.csv", "a,b\n1,2\n"), "b")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_text_that_calls_itself_parquet_opens_no_file(tmp_path, name):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    secret = tmp_path / "secret.parquet"
    parquet.write_table(pyarrow.table({"a": list(range(12)), "b": list(range(12))}), secret)
    assert len(read_table(secret, "b").y) == 12
    with pytest.raises(UserError, match="could not be read as Parquet"):
        read_table(HeldText.of(name, "PAR1" + TEXT, title=str(secret)), "b")
