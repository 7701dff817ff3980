"""Tables of numbers as users bring them: each dialect is read, to the bit."""

import csv
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import expected, table, text_of

from plunit.base.errors import UserError
from plunit.data import csv_records, csv_table
from plunit.data.tables import read_columns, read_table

DIALECTS = {
    "comma": text_of({}),
    "semicolon": text_of({}, ";"),
    "tab": text_of({}, "\t"),
    "space": text_of({}, " "),
    "aligned with spaces": text_of({}, "   ").replace("\n", "  \n  "),
    "comma and space": text_of({}, ", "),
    "crlf": text_of({}).replace("\n", "\r\n"),
    "cr": text_of({}).replace("\n", "\r"),
    "bom": b"\xef\xbb\xbf" + text_of({}).encode(),
    "utf-16 little": b"\xff\xfe" + text_of({}).encode("utf-16-le"),
    "utf-16 big": b"\xfe\xff" + text_of({}, "\t").encode("utf-16-be"),
    "no line end at the end": text_of({}).rstrip("\n"),
    "blank lines at the end": text_of({}) + "\n\r\n   \n",
    "comments": "# made by hand, 2024\n\n" + text_of({4: "# units: m, s\n2,4,-2"}) + "# the end",
    "quotes": text_of({n + 2: f'"{n}","{2 * n}.0", "{-n}"' for n in range(12)}),
    "quoted names": text_of({1: '"a","b","c"'}),
    "quotes between spaces": text_of({n + 2: f'"{n}",{2 * n},"{-n}" ' for n in range(12)}, " "),
    "spaces that do not break": text_of({n + 2: f"\u00a0{n},{2 * n}\u00a0,{-n}\x85" for n in range(12)}),
    "exponents": text_of({n + 2: f"+{n}.,{2 * n}00E-2,-.{n:02}e+2" for n in range(12)}),
}


@pytest.mark.parametrize("content", DIALECTS.values(), ids=DIALECTS)
def test_each_dialect_gives_the_same_table(tmp_path, content):
    result = table(tmp_path, content, "c")
    np.testing.assert_array_equal(np.column_stack([result.x, result.y]), expected())
    assert (result.inputs, result.target) == (("a", "b"), "c")
    assert result.x.flags.c_contiguous
    assert result.sha256 == hashlib.sha256((tmp_path / "t.csv").read_bytes()).hexdigest()


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("extra", ["", "# careful path\n"])
def test_a_decimal_comma_is_understood(tmp_path, delimiter, extra):
    lines = [f"{n},5{delimiter}-,{n:02}e1{delimiter}{n}" for n in range(12)]
    result = table(tmp_path, f"a{delimiter}b{delimiter}c\n{extra}" + "\n".join(lines))
    np.testing.assert_array_equal(result.x, [[n + 0.5, -n / 10] for n in range(12)])


COLOURS = ["red", "#FF0000", "#00ff00", "#000000", "# 5", '"#00f, blue"', '#00f "b"']


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("read", [read_table, read_columns])
@pytest.mark.parametrize("block", [1, 2**20])
def test_rows_that_begin_with_a_hash_are_kept_and_comments_are_counted(tmp_path, monkeypatch, delimiter, read, block):
    monkeypatch.setattr(csv_records, "_BLOCK", block)
    lines, path = [], tmp_path / "t.csv"
    rows = [delimiter.join([COLOURS[n % 7], str(n), str(n * n)]) for n in range(60)]
    rows.insert(40, f'#x{delimiter}"units: m')
    rows.insert(7, "#")
    path.write_text("\n".join([f"#made{delimiter}by{delimiter}hand", delimiter.join("abc"), *rows]))
    found = read(path, "c", ["b"] if read is read_table else ["a", "b"], lines.append)
    assert found.y.tolist() == [n * n for n in range(60)]
    assert "3 lines are skipped as comments" in lines[0]
    assert len(lines) == 1
    if read is read_columns:
        assert found.x[:, 0].tolist() == [
            COLOURS[n % 7].strip('"') if n % 7 == 5 else COLOURS[n % 7] for n in range(60)
        ]


def test_without_comments_nothing_is_said_of_them(tmp_path):
    lines = []
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"#{n % 3},{n},{n}\n" for n in range(20)))
    assert read_columns(tmp_path / "t.csv", "c", say=lines.append).x[:4, 0].tolist() == ["#0", "#1", "#2", "#0"]
    assert lines == []


def test_the_rows_choose_the_delimiter_where_the_names_hold_several(tmp_path):
    result = table(tmp_path, text_of({1: "length; in cm,width; in cm,area"}))
    assert result.inputs == ("length; in cm", "width; in cm")


def test_a_quoted_text_may_hold_delimiters_quotes_comments_and_line_ends_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_records, "_BLOCK", 64)
    rows = "".join(f'{n},"Lee, A. ""{n}""\n# of\n\n3,4",{n * n}\n' for n in range(40))
    result = table(tmp_path, 'x,"who\nis, it",y\n' + rows, "y", ["x"])
    np.testing.assert_array_equal(result.x[:, 0], np.arange(40.0))
    np.testing.assert_array_equal(result.y, np.arange(40.0) ** 2)


@pytest.mark.parametrize("block", [1, 7, 64, 2**20])
@pytest.mark.parametrize("name", ["cr", "crlf", "utf-16 little", "comments", "bom", "quotes"])
def test_the_size_of_a_block_does_not_matter(tmp_path, monkeypatch, block, name):
    monkeypatch.setattr(csv_records, "_BLOCK", block)
    monkeypatch.setattr(csv_table, "_FIELDS", 15)  # of the careful path, in chunks of its own
    np.testing.assert_array_equal(table(tmp_path, DIALECTS[name]).x, expected()[:, :2])


@pytest.mark.parametrize("delimiter", [",", ";", "   ", "\t"])
def test_plain_blocks_take_the_fast_path(tmp_path, monkeypatch, delimiter):
    monkeypatch.setattr(csv_table.CsvTable, "_convert", None)
    np.testing.assert_array_equal(table(tmp_path, text_of({}, delimiter)).x, expected()[:, :2])


SAID = {
    "1,-2.5,3e2": (("1", "2"), ["first row is data, because it holds only numbers", "numbered from 1 to 3"]),
    "5.1,red,c": (("5.1", "red"), ["'red' is not a number", "'5.1'", "add a header line"]),
    ",b,c": (("column 1", "b"), []),
    "a,b,c": (("a", "b"), []),
}


@pytest.mark.parametrize("first", SAID)
def test_a_first_row_that_may_be_data_or_names_is_reported(tmp_path, first):
    lines, (names, fragments) = [], SAID[first]
    result = table(tmp_path, text_of({1: first}), "-1", say=lines.append)
    assert (result.inputs, len(lines), len(result.x)) == (names, bool(fragments), 12 + (names == ("1", "2")))
    assert all(fragment in lines[0] for fragment in fragments)


@pytest.mark.parametrize("first", ["0,inf,0", "nan,0,0", ",0,0"])
def test_a_first_row_of_numbers_with_a_fault_is_data_too(tmp_path, first):
    with pytest.raises(UserError, match="line 1, column"):
        table(tmp_path, text_of({1: first}))


@pytest.mark.parametrize(
    ("target", "inputs", "names"),
    [
        ("a", [], ("b", "c", "a")),
        ("-1", ["-3"], ("a", "c")),
        ("+1", ["3", "b"], ("c", "b", "a")),
    ],
)
def test_columns_by_name_and_number(tmp_path, target, inputs, names):
    result = table(tmp_path, text_of({}), target, inputs)
    order = ["abc".index(name) for name in names]
    assert (*result.inputs, result.target) == names
    np.testing.assert_array_equal(np.column_stack([result.x, result.y]), expected()[:, order])


def test_a_name_goes_before_a_number(tmp_path):
    result = table(tmp_path, text_of({1: "3,b,-1"}), "3", ["-1"])
    np.testing.assert_array_equal(result.y, expected()[:, 0])
    np.testing.assert_array_equal(result.x, expected()[:, 2:])


def test_constant_inputs_are_left_out_with_a_line(tmp_path):
    lines = []
    result = table(tmp_path, "a,b,c\n" + "".join(f"{n},-3,{n}\n" for n in range(12)), say=lines.append)
    assert result.inputs == ("a",)
    assert result.x.shape == (12, 1)
    assert lines == [f"{tmp_path / 't.csv'}: inputs with one value in all rows are left out: 'b'."]


@pytest.mark.parametrize("skipped", ["# " + "x" * 60 + "\n", "\n"])
def test_the_table_may_begin_after_the_first_block(tmp_path, monkeypatch, skipped):
    monkeypatch.setattr(csv_records, "_BLOCK", 100)
    np.testing.assert_array_equal(table(tmp_path, skipped * 200 + text_of({})).x, expected()[:, :2])


NAMES = ["é", "a", "b", "c", 'ü, "d"']
FINITE = st.floats(-1e100, 1e100)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(FINITE, FINITE, FINITE), min_size=10, max_size=30),
    delimiter=st.sampled_from(",;\t "),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    extra=st.sampled_from(["", "# careful\n"]),
)
def test_round_trip_to_the_bit(tmp_path_factory, rows, delimiter, quoting, ending, encoding, extra):
    rows = [(float(n), -float(n), *row) for n, row in enumerate(rows)]
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=ending)
    writer.writerows([NAMES, *rows])
    content = (extra + stream.getvalue()).encode(encoding)
    folder = tmp_path_factory.mktemp("round")
    result = table(folder, content, "é")
    columns = [NAMES.index(name) for name in ("é", *result.inputs)]
    assert np.column_stack([result.y, result.x]).tobytes() == np.array(rows)[:, columns].tobytes()


def test_bytes_in_memory_are_read_as_the_same_file_and_nothing_is_opened(tmp_path):
    path, content = tmp_path / "t.parquet", text_of({}, ";").encode()
    held, file = read_table(path, "b", say=print, content=content), table(tmp_path, content, "b")
    np.testing.assert_array_equal(held.x, file.x)
    np.testing.assert_array_equal(held.y, file.y)
    assert (held.inputs, held.target, held.sha256) == (file.inputs, file.target, file.sha256)


def test_bytes_in_memory_have_the_name_in_messages_and_are_never_parquet():
    with pytest.raises(UserError, match=r"^numbers\.csv has 1 row of numbers"):
        read_table(Path("numbers.csv"), "b", content=b"a,b\n1,2\n")
    with pytest.raises(UserError, match="has no column 'b'"):
        read_table(Path("t.parquet"), "b", content=b"PAR1,x\n1,2\n")


MIXED = """colour,size,day,code,who,flat,y
red,1.5,Mon,A1,p 0,3,0
"blue, dark",?,Tue,7,p 1,3,1
 red ,2.5,Mon,7,p 2,3,2
NA,3.5,null,8,p 3,,3
red,4,Mon,9,p 4,3,
""" + "".join(f"red,{n},Mon,B{n % 2},p {n},3,{n}\n" for n in range(5, 20))


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_table_as_it_is(tmp_path, end):
    lines, path = [], tmp_path / f"t.{end}"
    path.write_text(MIXED)
    if end == "parquet":
        pandas = pytest.importorskip("pandas")
        kept = {"keep_default_na": False, "na_values": ["NA", "null", "?", ""], "dtype": {"code": str}}
        pandas.read_csv(io.StringIO(MIXED), **kept).to_parquet(path)
    found = read_columns(path, "y", say=lines.append)
    colour, size, day, code, flat = found.x.T
    assert found.texts == (0, 2, 3)
    assert found.inputs == ("colour", "size", "day", "code", "flat")
    assert colour.tolist() == ["red", "blue, dark", "red", None, *["red"] * 15]
    np.testing.assert_array_equal(size.astype(float), [1.5, np.nan, 2.5, 3.5, *range(5, 20)])
    assert day.tolist()[:4] == ["Mon", "Tue", "Mon", None]
    assert code.tolist()[:5] == ["A1", "7", "7", "8", "B1"]
    np.testing.assert_array_equal(flat.astype(float), [3, 3, 3, np.nan, *[3] * 15])
    np.testing.assert_array_equal(found.y, [0, 1, 2, 3, *range(5, 20)])
    said = [
        "1 of 20 rows are left out, because they have no target",
        "text inputs that differ in every row are left out: 'who'",
    ]
    assert [text in line for text, line in zip(said, lines, strict=True)] == [True, True]
    whole = read_columns(path, "y", ["colour", "size"], lines.append, drop_missing=True)
    assert (whole.y.tolist(), "3 of 20 rows" in lines[2]) == ([0, 2, *range(5, 20)], True)


def test_two_texts_of_which_each_is_given_once_are_kept(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nu,0\nv,1\n" + "".join(f"NA,{n}\n" for n in range(12)))
    assert read_columns(tmp_path / "t.csv", "b").texts == (0,)


def test_columns_of_text_are_counted_among_those_that_are_kept(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,d\n" + "".join(f"7,{n},{'uv'[n % 2]},{n}\n" for n in range(12)))
    found = read_columns(tmp_path / "t.csv", "d", say=lambda line: None)
    assert (found.inputs, found.texts, found.x[0].tolist()) == (("b", "c"), (1,), [0.0, "u"])


def test_a_column_without_any_value_drops_no_row(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(f"{n},NA,{n}\n" for n in range(11)) + ",NA,11\n")
    found = read_columns(tmp_path / "t.csv", "c", say=(lines := []).append, drop_missing=True)
    assert (found.inputs, len(found.y)) == (("a",), 11)
    assert ["1 of 12 rows are left out" in lines[0], "left out: 'b'" in lines[1]] == [True, True]


def test_numbers_as_they_are_have_the_same_bits(tmp_path):
    (tmp_path / "t.csv").write_text(text_of({}))
    found, strict = (read(tmp_path / "t.csv", "c") for read in (read_columns, read_table))
    assert (found.x.tobytes(), found.texts, found.sha256) == (strict.x.tobytes(), (), strict.sha256)
    assert (found.y.tobytes(), found.inputs, found.target) == (strict.y.tobytes(), strict.inputs, strict.target)
