import json

import pytest

from plunit.base.errors import UserError
from plunit.play.settings import COUNTS, RANGES, Settings, settings_of

TARGET = {"kind": "paper", "name": "sine"}


def test_what_is_not_said_has_its_default():
    assert settings_of({"target": TARGET}) == Settings(TARGET)


def test_what_is_said_is_taken():
    numbers = {"depth": 1, "width": 7, "alpha": 0, "c": 2.5, "lr": 0.1, "networks": 9, "seed": 3}
    given = {"activations": ["relu", "plu"], **numbers}
    found = settings_of({"target": TARGET, "paused": True, **given})
    assert {**vars(found), "activations": list(found.activations)} == {"target": TARGET, "paused": True, **given}


@pytest.mark.parametrize(("name", "allowed"), RANGES.items())
@pytest.mark.parametrize("end", ["low", "high"])
def test_ends_are_allowed_and_what_is_beyond_is_not(name, allowed, end):
    value = getattr(allowed, end)
    assert getattr(settings_of({"target": TARGET, name: value}), name) == value
    beyond = value + (1 if end == "high" else -1) * (1 if name in COUNTS else 1e-6)
    with pytest.raises(UserError, match=f"{name} must be a"):
        settings_of({"target": TARGET, name: beyond})


WRONG = {
    "no object": ([], "settings must be an object, got list"),
    "no target": ({}, "settings must have a field 'target'"),
    "unknown field": ({"target": TARGET, "__class__": 1}, "settings can have no field '__class__'; there are target"),
    "text for a number": ({"target": TARGET, "lr": "0.1"}, "lr must be a number from 1e-05 to 1, got '0.1'"),
    "true for a number": ({"target": TARGET, "seed": True}, "seed must be a whole number"),
    "part of a network": ({"target": TARGET, "networks": 1.5}, "networks must be a whole number from 1 to 4096"),
    "NaN": ({"target": TARGET, "alpha": float("nan")}, "alpha must be a number from 0 to 1, got nan"),
    "more than 64 bits": ({"target": TARGET, "seed": 10**400}, "seed must be a whole number"),
    "infinity": ({"target": TARGET, "c": float("inf")}, "c must be a number"),
    "no activation": ({"target": TARGET, "activations": []}, "activations must be a list of some of tanh, relu"),
    "unknown activation": ({"target": TARGET, "activations": ["plu", "os"]}, "activations must be a list"),
    "nested activation": ({"target": TARGET, "activations": [["plu"]]}, "activations must be a list"),
    "twice": ({"target": TARGET, "activations": ["plu", "plu"]}, "each activation can be named once"),
    "text for a pause": ({"target": TARGET, "paused": "x"}, "paused must be true or false, got 'x'"),
    "number for a pause": ({"target": TARGET, "paused": 1}, "paused must be true or false, got 1"),
    "learned flat": ({"target": TARGET, "activations": ["plu_learned"], "alpha": 0}, "learned PLU needs 0 < alpha < 1"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_line(given, message):
    with pytest.raises(UserError) as error:
        settings_of(json.loads(json.dumps(given)))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
