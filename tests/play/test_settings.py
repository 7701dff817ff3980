import pytest

from plunit.base.errors import UserError
from plunit.play.targets import Settings, settings_of

TARGET = {"kind": "paper", "name": "sine"}


def test_what_is_not_said_has_its_default():
    assert settings_of({"target": TARGET}) == Settings(TARGET)


def test_what_is_said_is_taken():
    numbers = {"depth": 1, "width": 7, "alpha": 0, "c": 2.5, "lr": 0.1, "networks": 9, "seed": 3}
    given = {"activations": ["relu", "plu"], **numbers}
    found = settings_of({"target": TARGET, "paused": True, **given})
    assert {**vars(found), "activations": list(found.activations)} == {"target": TARGET, "paused": True, **given}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lr": "0.1"}, "lr must be a number (1e-05 to 1), got '0.1'"),
        ({"networks": 4097}, "networks must be a whole number (1 to 4096), got 4097"),
        ({"activations": []}, "activations must be a list of names"),
        ({"activations": ["plu", "os"]}, "unknown activation 'os'; there are tanh, relu"),
        ({"activations": ["plu", "plu"]}, "each activation can be named once, got plu, plu"),
        ({"activations": ["plu_learned"], "alpha": 0}, "learned PLU needs 0 < alpha < 1"),
    ],
)
def test_messages(given, said):
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        settings_of({"target": TARGET, **given})
    assert said in str(error.value)
