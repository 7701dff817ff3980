import pytest

from plunit.torch import has_native, op


@pytest.fixture(params=["native", "composite"])
def path(request, monkeypatch):
    """Run a test on the native kernel and on PyTorch's own ops."""
    if request.param == "composite":
        monkeypatch.setattr(op, "_native", None)
    elif not has_native():
        pytest.skip("the native op was not built")
    return request.param
