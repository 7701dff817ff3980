"""field=value for a spec, specs within specs, and names of variants; tests/base/test_fields.py has types and ranges."""

import pytest

from plunit.base.errors import UserError
from plunit.lab import settings
from plunit.lab.experiment import catalogue

SPEC = catalogue()["sine"].spec


@pytest.mark.parametrize(
    ("assignments", "changes"),
    [
        ([" lr = 1e-2 ", "alpha=0.25"], {"lr": 0.01, "alpha": 0.25}),
        (["widths=1,8,8,1", "target=sine"], {"widths": (1, 8, 8, 1), "target": "sine"}),
        (["steps=10", "steps=20"], {"steps": 20}),
        ([], {}),
    ],
)
def test_what_is_parsed_is_written_and_read_again(assignments, changes):
    assert settings.parse(SPEC, assignments) == changes
    assert settings.parse(SPEC, settings.assignments(changes)) == changes
    stored = {name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()}
    assert settings.check(SPEC, stored) == changes


def test_a_spec_within_a_spec():
    spec = catalogue()["map-sine"].spec
    changed = settings.changed(spec, settings.parse(spec, ["fit.lr=0.5", "fit.steps=3", "alphas=0.1,0.5"]))
    assert (changed.fit.lr, changed.fit.steps, changed.alphas) == (0.5, 3, (0.1, 0.5))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("sine", "lr", "a setting must be field=value"),
        ("sine", "lr=", "a setting must be field=value"),
        ("sine", "lrr=1", "did you mean lr?"),
        ("sine", "lr=-1", "lr must be a number (1e-09 to 100), got -1"),
        ("sine", "__class__=1", "unknown field '__class__'"),
        ("map-sine", "fit=1", "unknown field 'fit'; there are fit.FIELD, "),
        ("map-sine", "fit.=3", "unknown field 'fit.'"),
        ("map-sine", "__class__.lr=1", "unknown field '__class__.lr'"),
        ("sine", "widths=2,3,1", "widths for sine must be 1,...,1"),
        ("sine", "widths=1,1", "with hidden layers, got 1,1"),
        ("sine", "low=10", "low must be below high"),
        ("sine", "checkpoints=5,5", "checkpoints must increase"),
    ],
)
def test_messages(name, text, said):
    spec = catalogue()[name].spec
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        settings.changed(spec, settings.parse(spec, [text]))
    assert said in str(error.value)


def test_a_variant_has_a_name_of_its_own_but_other_steps_of_a_long_experiment_make_none():
    varied = catalogue()["sine"].varied({"widths": (1, 8, 1), "lr": 0.003})
    assert (varied.name, varied.spec.lr) == ("sine+lr=0.003+widths=1x8x1", 0.003)
    assert varied.variant == "lr = 0.003, widths = 1x8x1"
    assert catalogue()["sine"].varied({}) == catalogue()["sine"]
    short = catalogue()["warp"].varied({"steps": 5})
    assert (short.name, short.variant, short.spec.steps) == ("warp", "", 5)
    assert catalogue()["sine"].varied({"steps": 5}).name == "sine+steps=5"
