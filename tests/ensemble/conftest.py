import pytest

from plunit.ensemble import one_thread, why_not_native


@pytest.fixture(scope="package", autouse=True)
def single_thread():
    """Tensors this small are slower on several threads."""
    with one_thread():
        yield


@pytest.fixture(scope="session")
def compiler():
    if reason := why_not_native():
        pytest.skip(reason)


@pytest.fixture(params=["native", "eager"])
def engine(request):
    if request.param == "native":
        request.getfixturevalue("compiler")
    return request.param
