import pytest

from plunit.programs import libraries


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """The folder of a wheel's libraries, which does not exist yet; the loaded library is forgotten before and after."""
    monkeypatch.setattr(libraries, "LIB", tmp_path / "lib")
    libraries.library.cache_clear()
    yield tmp_path / "lib"
    libraries.library.cache_clear()
