"""The record format, written out by hand, and the published table."""

import hashlib

import numpy as np
import pytest

from plunit.data import layout


def test_a_record_is_a_label_and_the_channels_one_after_another():
    image = np.arange(3072).astype(np.uint8).reshape(1, 3, 32, 32)
    content = layout.pack([7], image)
    assert content == bytes([7]) + bytes(range(256)) * 12
    assert content[1 + 1024 * 2 + 32 * 3 + 5] == image[0, 2, 3, 5]


def test_unpack_joins_files_in_order(tiny):
    names = ["data_batch_1.bin", "data_batch_2.bin"]
    images, labels = layout.unpack([tiny.contents[name] for name in names])
    np.testing.assert_array_equal(images, np.concatenate([tiny.images[name] for name in names]), strict=True)
    np.testing.assert_array_equal(labels, np.concatenate([tiny.labels[name] for name in names]), strict=True)


def test_a_description_matches_its_content_only(tiny):
    content = tiny.contents["test_batch.bin"]
    file = layout.described(content)
    assert file == (hashlib.sha1(content).hexdigest(), 2)
    assert file.size == len(content)
    assert file.matches(content)
    assert not file.matches(content[:-1] + bytes([content[-1] ^ 1]))


def test_the_published_table_has_six_files_of_ten_thousand():
    assert [*layout.FILES] == [*(f"data_batch_{i}.bin" for i in range(1, 6)), layout.TEST]
    assert {file.size for file in layout.FILES.values()} == {30_730_000}
    assert len({file.sha1 for file in layout.FILES.values()}) == 6


def test_labels_and_images_must_be_as_many(tiny):
    with pytest.raises(ValueError, match="reshape"):
        layout.pack([1], tiny.images["test_batch.bin"])
