import pytest

from plunit.programs import loading


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """The folder of a wheel's libraries, which does not exist yet; the loaded library is forgotten before and after."""
    monkeypatch.setattr(loading, "LIB", tmp_path / "lib")
    loading.library.cache_clear()
    yield tmp_path / "lib"
    loading.library.cache_clear()
