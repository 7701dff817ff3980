"""What one takes along from the page: files of the network, pictures, a link, lines that repeat the result."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image
from playground import choose, pause, saved, settings_of, wait_for_step

from plunit.pieces import load


def paused(page, steps=100):
    """Train for some steps and pause, so that the best network stays the best."""
    wait_for_step(page, steps)
    pause(page)
    return page


def test_files_of_the_network_are_saved_under_the_step_they_are_of(opened, tmp_path):
    """tests/play/test_exports.py has their values."""
    page = paused(opened({"target": {"kind": "paper", "name": "saddle"}}))
    step = page.locator("[data-part=step]").inner_text().replace(",", "")
    found = [saved(page, f"[data-take={form}]", tmp_path) for form in ("c", "json", "onnx", "torch")]
    assert [path.name for path in found] == [f"plu_{step}{end}" for end in (".h", ".json", ".onnx", "_torch.py")]
    assert f"void plu_{step}(const double *x, double *y)" in found[0].read_text()
    assert load(found[1]).widths == load(found[2]).widths == (2, 3, 3, 1)


def test_smooth_network_is_no_c_and_the_page_says_so(opened):
    page = paused(opened({"activations": ["tanh", "plu"]}), 10)
    exact = [page.locator(f"[data-take={name}]") for name in ("c", "onnx", "json")]
    assert [(one.get_attribute("aria-disabled"), one.get_attribute("title")) for one in exact] == [("false", "")] * 3
    page.select_option("[data-part=take-activation]", "tanh")
    smooth = "tanh is smooth. Export it for PyTorch, or choose a piecewise-linear activation."
    assert [(one.get_attribute("aria-disabled"), one.get_attribute("title")) for one in exact] == [("true", smooth)] * 3
    assert page.locator("[data-take=torch]").get_attribute("aria-disabled") is None
    exact[0].click(force=True)  # who clicks all the same is told, too
    page.locator("[data-part=taken]:has-text('tanh')").wait_for()
    assert page.locator("[data-part=message]").is_hidden()
    opened.forgiven = "400"  # the browser's own words


def test_lines_repeat_the_result(opened, tmp_path):
    page = paused(opened({}, permissions=["clipboard-read", "clipboard-write"]))
    page.locator("[data-take=fit]").click()
    page.locator("[data-do=copy]").click()
    page.locator("[data-part=taken]:has-text('copied')").wait_for()
    text = page.evaluate("() => navigator.clipboard.readText()")
    assert "plunit fit" in text
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    shown = page.locator("[data-activation=plu] .muted").inner_text().split("best ")[1]
    assert float(done.stdout.split()[-1]) == pytest.approx(float(shown), rel=0.06)


def test_picture_as_svg_and_png(opened, tmp_path):
    page = paused(opened({"activations": ["relu", "plu"]}))
    root = ElementTree.parse(saved(page, "[data-do=svg]", tmp_path)).getroot()
    words = " ".join(root.itertext())
    assert "ReLU, median loss" in words
    assert "PLU, median loss" in words
    tags = [element.tag.partition("}")[2] for element in root.iter()]
    assert tags.count("image") == 2  # the clouds
    assert tags.count("polyline") > 10
    with Image.open(saved(page, "[data-do=png]", tmp_path)) as picture:
        assert picture.size[0] == 2320
        assert len(picture.convert("RGB").getcolors(10**7)) > 200


SETTINGS = {
    "target": {"kind": "expression", "text": "x**3 - x", "low": -1.5, "high": 1.5},
    "activations": ["relu", "plu", "elu"],
    "alpha": 0.25,
    "c": 0.5,
    "depth": 3,
    "width": 4,
    "lr": 0.03,
    "networks": 77,
    "seed": 12,
    "method": "adam",
}


def test_link_restores_the_settings_and_holds_no_token(opened, served):
    page = opened(SETTINGS, permissions=["clipboard-read", "clipboard-write"])
    wait_for_step(page, 10)
    page.locator("[data-do=link]").click()
    page.locator("[data-part=taken]:has-text('copied')").wait_for()
    link = page.evaluate("() => navigator.clipboard.readText()")
    assert served.token not in link
    assert settings_of(link) == SETTINGS
    other = opened()
    wait_for_step(other, 10)
    other.evaluate("link => { location.href = link; }", link)  # as one who pastes it into the address bar
    other.wait_for_function("() => document.querySelector('[name=networks]').value === '77'")
    wait_for_step(other, 10)
    assert settings_of(other.url) == SETTINGS
    assert other.locator("[name=text]").input_value() == "x**3 - x"
    assert other.locator("[name=activation]:checked").count() == 3
    assert other.locator(".panels figure").count() == 3


def test_link_restores_a_drawing_and_without_a_token_says_what_to_do(opened, served):
    points = [[x / 8, abs(x) / 32 - 1] for x in range(-32, 33)]
    page = opened({"target": {"kind": "drawn", "points": points}})
    wait_for_step(page, 10)
    np.testing.assert_allclose(settings_of(page.url)["target"]["points"], points, atol=1e-3)
    assert page.locator("[data-part=pad]").is_visible()
    page = opened(address=f"http://127.0.0.1:{served.server_port}/#settings=%7B%7D")
    page.locator("[data-part=message]:has-text('plunit play')").wait_for()


def test_long_table_stays_out_of_the_link(opened):
    short, long = ("x,y\n" + "\n".join(f"{i},{i % 7}" for i in range(count)) for count in (60, 3000))
    page = opened({"target": {"kind": "csv", "name": "t.csv", "text": short}})
    wait_for_step(page, 10)
    assert settings_of(page.url)["target"]["kind"] == "csv"
    choose(page, "csv")
    page.set_input_files("[name=file]", {"name": "long.csv", "mimeType": "text/csv", "buffer": long.encode()})
    page.wait_for_function("() => !location.hash.includes('csv')")
    page.locator("[data-do=link]").click()
    page.locator("[data-part=taken]:has-text('leaves it out')").wait_for()
