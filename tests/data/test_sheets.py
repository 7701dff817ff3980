"""Sheets and lists of labels become records; anything else is refused."""

import numpy as np
import pytest
from PIL import Image

from plunit.data import sheets
from plunit.data.archive import SourceFailed

NAME = "data_batch_1.bin"


def test_a_sheet_becomes_the_records_to_the_bit(png, sheet, tiny):
    assert sheets.records(png(sheet(tiny.images[NAME])), tiny.labels[NAME].tolist()) == tiny.contents[NAME]


def pixels(rows=4, columns=1024, channels=3):
    return np.zeros((rows, columns, channels)[: 3 if channels > 1 else 2], dtype=np.uint8)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (pixels(rows=5), "1024 x 5 pixels of RGB"),
        (pixels(columns=1025), "1025 x 4 pixels of RGB"),
        (pixels(channels=4), "1024 x 4 pixels of RGBA"),
        (pixels(channels=1), "1024 x 4 pixels of L"),
    ],
)
def test_a_sheet_of_another_shape_is_refused(png, wrong, text):
    with pytest.raises(SourceFailed, match=f"a sheet has {text}"):
        sheets.records(png(wrong), [0] * 4)


@pytest.mark.parametrize("factor", [1.5, 3], ids=["warning", "error"])
def test_a_sheet_too_large_for_pillow_is_refused(png, monkeypatch, factor):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", int(4 * 1024 / factor))
    with pytest.raises(SourceFailed, match=r"a sheet cannot be read: .*decompression bomb"):
        sheets.records(png(pixels()), [0] * 4)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"GIF89a",
        lambda whole: whole[:20],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:60] + b"\0" * 40 + whole[100:],
    ],
    ids=["empty", "another format", "head only", "half", "zeros within"],
)
def test_a_damaged_sheet_is_refused(png, sheet, tiny, damage):
    with pytest.raises(SourceFailed, match="a sheet cannot be read"):
        sheets.records(damage(png(sheet(tiny.images[NAME]))), [0] * 4)


def test_another_format_is_refused(sheet, tiny, tmp_path):
    Image.fromarray(sheet(tiny.images[NAME])).save(tmp_path / "sheet.bmp")
    with pytest.raises(SourceFailed, match="a sheet cannot be read"):
        sheets.records((tmp_path / "sheet.bmp").read_bytes(), [0] * 4)


def test_labels_go_to_their_files(tiny):
    found = sheets.labels(tiny.files, b"[0, 1, 2, 3, 4, 5, 6]", b"[8, 9]")
    assert found == {"data_batch_1.bin": [0, 1, 2, 3], "data_batch_2.bin": [4, 5, 6], "test_batch.bin": [8, 9]}


@pytest.mark.parametrize(
    ("train", "test", "text"),
    [
        (b"[0, 1, 2, 3, 4, 5]", b"[8, 9]", "one label for each image"),
        (b"[0, 1, 2, 3, 4, 5, 6, 0]", b"[8, 9]", "one label for each image"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8]", "one label for each image"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8, 9, 0]", "one label for each image"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8, 10]", "something other than the numbers 0 to 9"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8, -1]", "something other than the numbers 0 to 9"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8, true]", "something other than the numbers 0 to 9"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8, 1.5]", "something other than the numbers 0 to 9"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b'{"8": 9}', "something other than the numbers 0 to 9"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"[8, 9", "cannot be read"),
        (b"[0, 1, 2, 3, 4, 5, 6]", b"\xff\xfe\xff", "cannot be read"),
        (b"[" * 100_000, b"[8, 9]", "cannot be read"),
    ],
)
def test_other_labels_are_refused(tiny, train, test, text):
    with pytest.raises(SourceFailed, match=text):
        sheets.labels(tiny.files, train, test)
