import pytest

from plunit.ensemble import why_not_native
from plunit.torch.threads import one_thread


@pytest.fixture(scope="package", autouse=True)
def single_thread():
    """The networks trained alone have tensors that are slower on several threads."""
    with one_thread():
        yield


@pytest.fixture(scope="session")
def compiler():
    if reason := why_not_native():
        pytest.skip(reason)


@pytest.fixture(params=["native", "numpy"])
def engine(request):
    if request.param == "native":
        request.getfixturevalue("compiler")
    return request.param
