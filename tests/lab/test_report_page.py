"""The report in a browser: on a desk and on a phone every verdict is on the screen, next to its numbers."""

import dataclasses

import pytest

from plunit.lab.report import write_report

NAMES = ("sine", "surface", "depth")
SIZES = {"desk": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def report(tmp_path_factory, quick_lab, compute):
    parts = quick_lab(*NAMES, seeds=6)
    parts["sine"] = dataclasses.replace(parts["sine"], activations=("tanh", "relu", "plu", "gelu"))  # and a matrix
    folder = tmp_path_factory.mktemp("report")
    write_report(folder, parts, compute(folder, parts))
    return (folder / "report.html").as_uri()


@pytest.fixture(params=SIZES)
def page(browser, report, request):
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height})
    opened = context.new_page()
    opened.goto(report)
    opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    yield opened
    context.close()


def test_nothing_is_wider_than_the_screen(page):
    wide = """() => [...document.querySelectorAll('body *')].filter(
        one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5
    ).map(one => one.outerHTML.slice(0, 80))"""
    assert page.evaluate(wide) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_number_interval_range_and_verdict_of_a_claim_are_seen_together(page):
    row = page.locator("#statement-sine-tanh tr").first
    texts = {cell.get_attribute("data-label"): cell for cell in row.locator("td[data-label]").all()}
    assert [*texts] == ["Estimate", "95 % interval", "Claimed", "Verdict"]
    places = [cell.bounding_box() for cell in texts.values()]
    height = max(box["y"] + box["height"] for box in places) - min(box["y"] for box in places)
    assert height < page.viewport_size["height"] / 3
    assert texts["Claimed"].inner_text() == "0.5 to 2"
    assert texts["Verdict"].inner_text().split(";")[0] in ("holds", "refuted", "undecided")


def test_every_statement_shows_its_verdict(page):
    statements = page.locator("tbody[id^=statement-]")
    assert statements.count() > 10
    shown = [one.locator(".verdict").first.bounding_box() for one in statements.all()]
    assert all(0 <= box["x"] < box["x"] + box["width"] <= page.viewport_size["width"] for box in shown)
