import pytest
from random_networks import random_network

from plunit.pieces import activation, curve, network
from plunit.pieces.saving import load_csv, load_json, save_csv, save_json

FORMATS = {"csv": (save_csv, load_csv), "json": (save_json, load_json)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", [0, 1, 4, 12])
@pytest.mark.parametrize("outputs", [1, 3])
def test_round_trip_keeps_every_bit(form, seed, outputs, tmp_path):
    save, load = FORMATS[form]
    found = curve(random_network(seed, 1, 6, 3, outputs), -3.0, 1 / 3)
    save(found, tmp_path / "curve")
    again = load(tmp_path / "curve")
    assert bits(again) == bits(found)
    assert (again.patterns, again.pieces) == (found.patterns, found.pieces)


def bits(line):
    arrays = {name: getattr(line, name) for name in ("knots", "slopes", "intercepts", "values")}
    return {name: (array.shape, array.dtype, array.tobytes()) for name, array in arrays.items()}


def test_json_keeps_the_number_of_patterns(tmp_path):
    found = curve(network([([[1.0]], [0.0]), activation.plu(1.0)]), -2.0, 2.0).merged()
    save_json(found, tmp_path / "curve.json")
    assert (load_json(tmp_path / "curve.json").patterns, len(found.slopes)) == (3, 1)


def test_csv_is_a_table_of_pieces(tmp_path):
    found = curve(random_network(0, 1, 3, 1), -1.0, 1.0)
    save_csv(found, tmp_path / "curve.csv")
    header, *rows = (tmp_path / "curve.csv").read_text().splitlines()
    assert header == "low,high,slope_0,intercept_0,start_0,end_0"
    assert len(rows) == len(found.slopes)


@pytest.mark.parametrize(("load", "text"), [(load_csv, "a,b,c\n1,2,3\n"), (load_json, '{"knots": []}')])
def test_other_files_are_refused(load, text, tmp_path):
    (tmp_path / "other").write_text(text)
    with pytest.raises(ValueError, match="is not a curve"):
        load(tmp_path / "other")
