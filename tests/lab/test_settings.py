"""--set field=value: types, ranges, names of variants."""

import pytest

from plunit.base.errors import UserError
from plunit.lab import settings
from plunit.lab.experiment import catalogue

SPEC = catalogue()["sine"].spec


@pytest.mark.parametrize(
    ("assignments", "changes"),
    [
        (["lr=0.003"], {"lr": 0.003}),
        ([" lr = 1e-2 ", "alpha=0.25"], {"lr": 0.01, "alpha": 0.25}),
        (["widths=1,8,8,1"], {"widths": (1, 8, 8, 1)}),
        (["steps=10", "steps=20"], {"steps": 20}),
        (["target=sine"], {"target": "sine"}),
        ([], {}),
    ],
)
def test_what_is_parsed(assignments, changes):
    assert settings.parse(SPEC, assignments) == changes
    settings.check(SPEC, changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr", "--set takes field=value"),
        ("lr=", "--set takes field=value"),
        ("lrr=1", "unknown field 'lrr'"),
        ("lrr=1", "did you mean lr?"),
        ("lr=fast", "lr must be a number (1e-09 to 100), got fast"),
        ("lr=nan", "lr must be a number"),
        ("lr=-1", "got -1"),
        ("alpha=1.5", "alpha must be a number (0 to 1), got 1.5"),
        ("steps=2.5", "steps must be a whole number (1 to 1e+06), got 2.5"),
        ("steps=0", "got 0"),
        ("steps=99999999999", "got 99999999999"),
        ("widths=1,x,1", "widths must be whole numbers with commas between (1 to 256), got 1,x,1"),
        ("target=cosine", "target must be sine or curve or saddle, got cosine"),
        ("__class__=1", "unknown field"),
    ],
)
def test_what_cannot_be_parsed_is_one_line_with_value_and_rule(text, said):
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        settings.parse(SPEC, [text])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"widths": (2, 3, 1)}, "widths for sine must be 1,...,1"),
        ({"widths": (1, 1)}, "with hidden layers, got 1,1"),
        ({"low": 3.0, "high": 3.0}, "low must be below high"),
        ({"checkpoints": (5, 5)}, "checkpoints must increase"),
    ],
)
def test_values_that_do_not_go_together(changes, said):
    with pytest.raises(UserError, match=r"^--set: ") as error:
        settings.changed(SPEC, changes)
    assert said in str(error.value)


def test_a_spec_within_a_spec():
    spec = catalogue()["map-sine"].spec
    changes = settings.parse(spec, ["fit.lr=0.5", "fit.steps=3", "alphas=0.1,0.5"])
    changed = settings.changed(spec, changes)
    assert (changed.fit.lr, changed.fit.steps, changed.alphas) == (0.5, 3, (0.1, 0.5))
    with pytest.raises(UserError, match="unknown field 'fit'"):
        settings.parse(spec, ["fit=1"])


@pytest.mark.parametrize("changes", [{"lr": "0.1"}, {"lr": True}, {"steps": 2.0}, {"widths": 3}, {"lr": {}}])
def test_values_of_a_file_are_checked_like_those_of_the_command_line(changes):
    with pytest.raises(UserError):
        settings.check(SPEC, changes)


def test_a_variant_has_a_name_of_its_own():
    sine = catalogue()["sine"]
    varied = sine.varied({"widths": (1, 8, 1), "lr": 0.003})
    assert varied.name == "sine+lr=0.003+widths=1x8x1"
    assert varied.variant == "lr = 0.003, widths = 1x8x1"
    assert varied.spec.lr == 0.003
    assert sine.varied({}) is sine
