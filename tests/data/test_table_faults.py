"""Tables that cannot be read: one line with the place, the value, the rule and the remedy, in bounded memory."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables import check_line, expected, silent, table, text_of

from plunit.base.errors import UserError
from plunit.data import csv_records, csv_table, tables
from plunit.data.tables import read_columns, read_table

REFUSED = {
    "empty": (b"", {}, ["is empty (0 bytes)", "needs rows of numbers"]),
    "gzip": (gzip.compress(text_of({}).encode()), {}, ["is compressed. Unpack it first"]),
    "only comments": ("# a\n\n \n", {}, ["only blank lines and comments", "needs rows of numbers"]),
    "text": (text_of({5: "3,tall,4"}), {}, ["line 5, column 'b': 'tall'", "not a number", "remove", "inputs"]),
    "text in the target": (text_of({5: "3,4,tall"}), {}, ["line 5, column 'c': 'tall'", "target"]),
    "formula": (text_of({5: "3,=1+1,4"}), {}, ["'=1+1' is not a number"]),
    "code": (text_of({5: "3,__import__('os'),4"}), {}, ["\"__import__('os')\" is not a number"]),
    "underscore": (text_of({5: "3,1_000,4"}), {}, ["'1_000' is not a number", "-1500 or 2.5e3"]),
    "hexadecimal": (text_of({5: "3,0x10,4"}), {}, ["'0x10' is not a number"]),
    "foreign digits": (text_of({5: "3,\u0661\u0662,4"}), {}, ["'\u0661\u0662' is not a number"]),
    "thousands": (text_of({5: '3,"1,234",4'}), {}, ["'1,234' is not a number"]),
    "long text": (text_of({5: f"3,{'x' * 99},4"}), {}, [f"'{'x' * 40}...' is not a number"]),
    "line end in text": (text_of({5: '3,"p\nq",4'}), {}, [r"line 5, column 'b': 'p\nq' is not a number"]),
    "line after a long record": (text_of({5: '3,4,"\n5"', 7: "x,1,1"}), {}, ["line 8, column 'a': 'x'"]),
    "line end in a number": (text_of({5: '3,"1\n2",4'}), {}, [r"'1\n2' is not a number"]),
    "spreadsheet error": (text_of({5: "#DIV/0!,2,4"}), {}, ["line 5, column 'a': '#DIV/0!' is not a number"]),
    "lone sign": (text_of({5: "3,-,4"}), {}, ["'-' is not a number"]),
    "infinite": (
        text_of({5: "3,-Infinity,4"}),
        {},
        ["line 5", "'b': '-Infinity' is infinite", "finite", "remove the row"],
    ),
    "too large": (text_of({5: "3,1e999,4"}), {}, ["'1e999' is beyond the largest", "must be finite", "correct"]),
    "too few fields": (text_of({5: "3,4"}), {}, ["line 5: 2 fields", "first row has 3", "correct the line"]),
    "too many fields": (text_of({5: "3,4,5,6"}), {}, ["line 5: 4 fields", "delimiter ','", "quotes"]),
    "shifted fields": (text_of({5: "3,4", 6: "5,6,7,8"}), {}, ["line 5: 2 fields"]),
    "row names without a name": (text_of({1: "b,c"}), {}, ["line 2: 3 fields", "first row has 2"]),
    "rows within a field": (text_of({5: '3,6,"4\n5|6|7"'}), {}, [r"'4\n5|6|7' is not a number"]),
    "same name twice": (text_of({1: "a,b,a"}), {}, ["columns 1 and 3", "named 'a'", "must differ", "rename"]),
    "bars": (
        text_of({}, "|"),
        {},
        ["only one column", "'a|b|c'", "'|' is not a delimiter", "semicolon, tab, comma, space"],
    ),
    "one column": ("a\n1\n2\n", {}, ["only one column", "'a'", "needs a target and an input"]),
    "latin-1": (text_of({1: "é,b,c"}).encode("latin-1"), {}, ["line 1: the byte 0xe9", "not UTF-8", "CSV in UTF-8"]),
    "latin-1 below": (text_of({5: "é,1,2"}).encode("latin-1"), {}, ["line 5: the byte 0xe9"]),
    "latin-1 after a mark": (b"\xef\xbb\xbf" + text_of({}).encode() + b"\xff,1,2\n", {}, ["line 14: the byte 0xff"]),
    "utf-16 cut": (b"\xff\xfe" + text_of({}).encode("utf-16-le")[:-1], {}, ["not valid UTF-16", "truncated"]),
    "NUL": (text_of({5: "3,\0,4"}), {}, ["line 5: a NUL byte", "not a text file", "CSV in UTF-8"]),
    "utf-16 without bom": (text_of({}).encode("utf-16-le"), {}, ["line 1: a NUL byte"]),
    "excel": (b"PK\x03\x04\x14\0\0\0", {}, ["NUL byte", "Save the table as CSV"]),
    "object array": (b"\x93NUMPY\x01\0v\0{'descr': '|O'}", {}, ["line 1: the byte 0x93"]),
    "open quote": (text_of({5: '3,"4,5'}), {}, ["line 5: the quotes", "Close every quote"]),
    "text after a quote": (text_of({5: '3,"4"x,5'}), {}, ["line 5: the quotes", 'as "".']),
    "mixed decimal marks": (text_of({5: "1,5;2.25;3"}, ";").replace("1;5", "1,5"), {}, ["'2.25' has a decimal point"]),
    "thousands or decimals": (
        "a;b;c\n" + "1,234;950;-9,999\n" * 12,
        {},
        ["line 2, column 'a': '1,234' may", "thousands"],
    ),
    "nine rows": (text_of({}, rows=9), {}, ["has 9 rows", "At least 10", "add rows"]),
    "one row": (text_of({}, rows=1), {}, ["has 1 row of", "At least 10"]),
    "a header alone": ("a,b,c\n", {}, ["has 0 rows"]),
    "constant target": (
        "a,b\n" + "".join(f"{n},2\n" for n in range(12)),
        {},
        ["target 'b' is 2.0 in every", "vary", "target"],
    ),
    "constant inputs": ("a,b\n" + "".join(f"2,{n}\n" for n in range(12)), {}, ["no input column", "vary", "inputs"]),
    "unknown column": (
        text_of({1: "Price,b,c"}),
        {"target": "prize"},
        ["no column 'prize'", "mean 'Price'?", "'Price', 'b', 'c'."],
    ),
    "no near name": (text_of({}), {"target": "weight"}, ["no column 'weight'. The columns are 'a', 'b', 'c'."]),
    "a row of tabs": (text_of({5: ",,"}, "\t"), {}, ["1 of 12 rows have missing values"]),
    "far down": (text_of({40_001: "1,x,2"}, rows=40_000), {}, ["line 40001, column 'b': 'x' is not a number"]),
    "digits without end": (text_of({5: f"1,{'1' * 100_000}x,2"}), {}, ["1...' is not a number"]),
    "many columns": (",".join(f"v{n}" for n in range(99)), {"target": "w"}, ["'v7', ... (99 in all)"]),
    "column 0": (text_of({}), {"target": "0"}, ["no column 0", "from 1 to 3", "-1 (the last) to -3"]),
    "column 4": (text_of({}), {"target": "4"}, ["no column 4", "'a', 'b', 'c'"]),
    "column -4": (text_of({}), {"inputs": ["-4"]}, ["no column -4"]),
    "target among inputs": (
        text_of({}),
        {"target": "c", "inputs": ["3", "a"]},
        ["target 'c' is among", "Remove it"],
    ),
    "input twice": (text_of({}), {"inputs": ["a", "1"]}, ["input 'a' is given twice", "once"]),
    "too many columns": ("0," * 10_000 + "1\n", {}, ["line 1: 10,001 columns", "limit is 10,000", "fewer columns"]),
}


@pytest.mark.parametrize(("content", "options", "fragments"), REFUSED.values(), ids=REFUSED)
def test_each_fault_gets_one_line(tmp_path, content, options, fragments):
    with pytest.raises(UserError) as error:
        table(tmp_path, content, **options)
    check_line(error, tmp_path / "t.csv", fragments)


@pytest.mark.parametrize("block", [1, 9, 2**20])
@pytest.mark.parametrize(
    "name", ["text", "NUL", "line after a long record", "too few fields", "utf-16 cut", "latin-1 below"]
)
def test_lines_and_offsets_do_not_depend_on_the_blocks(tmp_path, monkeypatch, block, name):
    with pytest.raises(UserError) as expected_error:
        table(tmp_path, REFUSED[name][0])
    monkeypatch.setattr(csv_records, "_BLOCK", block)
    with pytest.raises(UserError) as error:
        table(tmp_path, REFUSED[name][0])
    assert str(error.value) == str(expected_error.value)


TOKENS = [
    *(b"a red 1.2.2024 1 2.5 3,5 , , ; # | nan inf 1e999 - 1_0 \" \"".split(b" ")), b"\n", b"\n", b"\r", b"\t", b" ",
    b"\xff", b"\xff\xfe", b"\0", b"\x1f\x8b", b"\x0c", b"\xc2\x85", b"\xe2\x80\xa8",
]  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from([b"", text_of({}).encode(), text_of({}, "\t").encode()]),
    tokens=st.lists(st.sampled_from(TOKENS), max_size=40),
    rest=st.sampled_from([b"", text_of({}).encode()]),
    block=st.sampled_from([1, 5, 2**20]),
)
def test_any_bytes_give_a_table_or_one_line_whatever_the_path(tmp_path, start, tokens, rest, block):
    content = start + b"".join(tokens) + rest
    result = outcome(tmp_path, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_BLOCK", block)
        patch.setattr(csv_table, "_plain", lambda *_: None)
        careful = outcome(tmp_path, content)
    np.testing.assert_array_equal(result, careful)
    as_it_is = outcome(tmp_path, content, read_columns)
    assert len(as_it_is) >= len(result)
    if len(result):
        np.testing.assert_array_equal(as_it_is, result)


def outcome(path, content, read=read_table):
    """Return the values of a table, or none where a line says why."""
    (path / "t.csv").write_bytes(content)
    try:
        result = read(path / "t.csv", "-1", say=silent)
    except UserError as error:
        if not str(error).isprintable():
            raise AssertionError(f"more than one line: {error}") from error
        return np.empty((0, 0))
    both = np.column_stack([result.x, result.y])
    assert np.isfinite(both if read is read_table else result.y).all()
    assert len(both) >= 10
    return both


@pytest.mark.parametrize("token", ["", "  ", "NA", "n/a", "#N/A", "NaN", "-nan", "null", "None", "?"])
def test_missing_values_are_counted_and_the_first_is_shown(tmp_path, token):
    content = text_of({5: f"3,{token},4", 7: f"{token},{token},4", 9: f"1,2,{token}"})
    with pytest.raises(UserError) as error:
        table(tmp_path, content)
    place = f"3 of 12 rows have missing values, the first at line 5, column 'b': {token!r}"
    check_line(error, tmp_path / "t.csv", [place, "must be given", "fill them in, remove the rows", "inputs"])


def test_columns_that_are_not_chosen_may_hold_anything_else(tmp_path):
    result = table(tmp_path, text_of({5: "3,tall,-3", 6: "4,inf,-4", 7: "5,,-5", 8: "6,1e999,-6"}), "c", ["a"])
    np.testing.assert_array_equal(result.x, expected()[:, :1])


DATES = [
    "2024-01-{}",
    "2024/1/{} 12:30:00",
    "{}.12.2024",
    "{}/1/24",
    "{} Jan 2024",
    "March {}, 2024",
    "{}:30",
    "1:{} pm",
]
NO_GROUPS = {
    **{date: (date, "column 'b': '", "date or a time. Inputs must be numbers or names of groups") for date in DATES},
    "units": ("{} kg", "line 2, column 'b': '10 kg'", "is not a number"),
    "currency": ("$1,{}3.50", "line 2, column 'b': '$1,103.50'", "is not a number"),
}


@pytest.mark.parametrize(("form", "place", "rule"), NO_GROUPS.values(), ids=NO_GROUPS)
def test_dates_and_numbers_with_units_are_no_names_of_groups(tmp_path, form, place, rule):
    rows = [f'{n},"{form.format(n)}",{n}' for n in range(10, 35)]
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join([*rows[:20], "1,NA,1", *rows[20:]]))
    with pytest.raises(UserError) as error:
        read_columns(tmp_path / "t.csv", "c")
    check_line(error, tmp_path / "t.csv", [place, rule, "out of the inputs" if "date" in rule else "inputs"])
    assert read_columns(tmp_path / "t.csv", "c", ["a"]).inputs == ("a",)


AS_THEY_ARE = {
    "a slip in numbers": (text_of({5: "3,tall,4"}), ["line 5, column 'b': 'tall' is not a number"]),
    "infinite": (text_of({5: "3,inf,4", 6: "x,1,2", 7: "y,1,3"}), ["line 5, column 'b': 'inf' is infinite"]),
    "a target of text": (text_of({n: f"{n},1,red" for n in range(2, 14)}), ["the target 'c' is text", "PLUClassifier"]),
    "too few fields": (text_of({n: f"red,{n},{n}" for n in range(2, 12)} | {12: "1,2"}), ["line 12: 2 fields"]),
    "no target": (text_of({n: f"{n},1,NA" for n in range(2, 8)}), ["has 6 rows", "At least 10"]),
    "names of rows": ("a,b\n" + "".join(f"row {n},{n}\n" for n in range(12)), ["no input column is left"]),
    "no value": ("a,b\n" + "".join(f"NA,{n}\n" for n in range(12)), ["no input column is left"]),
}


@pytest.mark.parametrize(("content", "fragments"), AS_THEY_ARE.values(), ids=AS_THEY_ARE)
def test_faults_of_a_table_as_it_is(tmp_path, content, fragments):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(UserError) as error:
        read_columns(tmp_path / "t.csv", "-1", say=silent)
    check_line(error, tmp_path / "t.csv", fragments)


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_table_with_text_has_a_limit(tmp_path, monkeypatch, end):
    path = tmp_path / f"t.{end}"
    path.write_text("a,b,c\n" + "".join(f"{'rb'[n % 2]},{n},{n}\n" for n in range(30)))
    if end == "parquet":
        pytest.importorskip("pandas").read_csv(path).to_parquet(path)
    monkeypatch.setattr(csv_table, "MAX_TEXTS", 60)
    assert len(read_columns(path, "c").y) == 30
    monkeypatch.setattr(csv_table, "MAX_TEXTS", 59)
    with pytest.raises(UserError, match="more than 59 values next to text"):
        read_columns(path, "c")


def test_a_slip_beyond_the_limit_of_text_is_still_a_slip_and_no_more_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "MAX_TEXTS", 30)
    content = text_of({20: "1,tall,2"}, rows=40)
    assert len(csv_table.CsvTable.of(content.encode())._keep([0, 1, 2])[0]) == 16  # rows of two inputs
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(UserError, match="line 20, column 'b': 'tall' is not a number"):
        read_columns(tmp_path / "t.csv", "c")


@pytest.mark.parametrize("others", [1, 2])
def test_a_tenth_of_other_values_makes_a_column_one_of_text(tmp_path, others):
    (tmp_path / "t.csv").write_text(text_of({n: f"{n},tall,{n}" for n in range(5, 5 + others)}, rows=20))
    if others == 2:
        assert read_columns(tmp_path / "t.csv", "c").texts == (1,)
    else:
        with pytest.raises(UserError, match="'tall' is not a number"):
            read_columns(tmp_path / "t.csv", "c")


UNREADABLE = {
    "none.csv": ["does not exist", "Check the name"],
    "": ["is a folder", "must be a file", "name a CSV"],
    "pipe": ["is a pipe or a device", "must be a file"],
    "a\nb.csv": [r"a\nb.csv does not exist"],
    "locked.csv": ["Permission denied", "Check the file's permissions"],
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_readable_file(tmp_path, monkeypatch, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "locked.csv").touch()
    if name == "locked.csv":
        monkeypatch.setattr(Path, "open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(UserError) as error:
        read_table(tmp_path / name, "c")
    check_line(error, tmp_path, UNREADABLE[name])


def test_a_file_is_read_once(tmp_path, monkeypatch):
    """So what is parsed is what was hashed, even where a decimal comma needs several passes."""
    path, opened, before = tmp_path / "t.csv", [], Path.open
    path.write_text("a;b\n" + "".join(f"{n},5;{n}\n" for n in range(12)))
    monkeypatch.setattr(Path, "open", lambda path, *mode: opened.append(path) or before(path, *mode))
    assert read_table(path, "b", say=silent).x[0, 0] == 0.5
    assert opened == [path]


LIMITS = {
    "bytes of a file": (
        tables,
        "MAX_FILE",
        100,
        text_of({}),
        text_of({}) + "\n",
        ["has more than 100 bytes", "fewer rows"],
    ),
    "numbers": (csv_table, "MAX_NUMBERS", 36, text_of({}), text_of({}, rows=13), ["more than 36 numbers", "inputs"]),
    "numbers one by one": (
        *(csv_table, "MAX_NUMBERS", 36, "# careful\n" + text_of({}), "# careful\n" + text_of({}, rows=13)),
        ["more than 36 numbers"],
    ),
    "a line": (csv_records, "MAX_LINE", 9, text_of({}), text_of({3: "1,2,3333.0"}), ["longer than 9 characters"]),
    "a first line": (csv_records, "MAX_LINE", 99, text_of({}), "1" * 300 + "\n" + text_of({}), ["longer than 99 char"]),
    "one line": (csv_records, "MAX_LINE", 99, text_of({}), "1" * 300, ["longer than 99 characters", "line ends"]),
}


@pytest.mark.parametrize(("module", "name", "limit", "allowed", "beyond", "fragments"), LIMITS.values(), ids=LIMITS)
def test_the_limit_itself_is_allowed(tmp_path, monkeypatch, module, name, limit, allowed, beyond, fragments):
    monkeypatch.setattr(module, name, limit)
    assert len(table(tmp_path, allowed).x) == 12
    with pytest.raises(UserError) as error:
        table(tmp_path, beyond)
    check_line(error, tmp_path / "t.csv", ["limit", *fragments])


def test_short_rows_are_said_before_dates(tmp_path):
    """Also if the text that is read first is in a column that short rows lack."""
    rows = ["NA,u"] * 12 + [f"2020-01-{i + 10},u,{'uv'[i % 2]},{i}" for i in range(10)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,y", *rows]))
    with pytest.raises(UserError, match="line 2: 2 fields were found"):
        read_columns(tmp_path / "t.csv", "y", ["c", "a"], lambda line: None)
