"""The user's cache folder on each platform."""

import sys
from pathlib import Path

import pytest

from plunit import cache


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_each_platform_has_its_own(monkeypatch, platform, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache.user_cache() == Path.home() / expected / "plunit"


def test_the_environment_chooses_another(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.user_cache() == Path("/elsewhere/plunit")
