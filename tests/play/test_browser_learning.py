"""The function by text, drawing, table or choice, in a real browser, and what the networks make of it."""

import math

import pytest
from playground import (
    choose,
    drop,
    painted_share,
    passed,
    reset,
    settings_of,
    settled,
    wait_for_median,
    wait_for_settings,
    wait_for_step,
)

from plunit.play import session, workshop


def test_page_loads_without_complaint_and_asks_no_one_else(opened, served, kept):
    page = opened()
    wait_for_step(page, 30)
    kept(page, "desktop")
    assert page.title() == "plunit play"
    assert page.locator("[name=source]:checked").input_value() == "paper"
    assert page.locator(".panels figure").count() == 3
    assert {url.split("/")[2] for url in opened.requests} == {f"127.0.0.1:{served.server_port}"}


def test_a_reset_right_after_typing_waits(opened):
    page = opened({})
    page.fill("[name=seed]", "7")
    page.locator("[data-do=reset]").click()
    passed(page, 500)  # longer than the page waits for more digits
    settled(page)
    assert page.locator("[data-do=toggle]").inner_text() == "Start"


def test_drawing_with_the_mouse(opened, kept):
    page = opened({"width": 8})
    choose(page, "drawn")
    box = page.locator("[data-part=pad]").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 0.25 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.75 * box["height"], steps=9)
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 0.25 * box["height"], steps=9)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('drawn')")
    points = settings_of(page.url)["target"]["points"]
    wanted = [[x, abs(x) / 2 - 1] for x, _ in points]  # a V on [-4, 4], between 1 and -1
    assert max(math.dist(a, b) for a, b in zip(points, wanted, strict=True)) < 0.15
    wait_for_median(page, "PLU", 0.02)
    kept(page, "drawn")


def test_a_drawing_is_continued_to_its_ends_and_strokes_are_joined(opened):
    page = opened({})
    choose(page, "drawn")
    box = page.locator("[data-part=pad]").bounding_box()
    wanted = {-4: 1, -2: 1, -1: 0, 0: -1, 1: -1, 2: -1, 4: -1}
    for strokes in ([(0.25, 0.25), (0.5, 0.75)], [(0.75, 0.25), (0.8, 0.25)]):
        before = page.evaluate("() => location.hash")
        for (x, y), act in zip(strokes, (page.mouse.down, page.mouse.up), strict=True):
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=9)
            act()
        page.wait_for_function("hash => location.hash.includes('drawn') && location.hash !== hash", arg=before)
        found = dict(settings_of(page.url)["target"]["points"])
        assert {x: found[x] for x in wanted} == pytest.approx(wanted, abs=0.1)
        wanted |= {1: 0, 2: 1, 4: 1}


def test_what_students_type_is_read_and_the_page_says_how(opened):
    page = opened({})
    choose(page, "expression")
    page.fill("[name=text]", "2x^2")
    page.locator("[data-part=notes] li:text-is('Read as 2*x**2')").wait_for()
    assert page.locator("[data-part=message]").is_hidden()
    page.fill("[name=text]", "2x^2 + sn(x)")
    page.locator("[data-part=message]:has-text('column 8: unknown function')").wait_for()
    opened.forgiven = "400"  # the browser's own words


def test_words_are_explained_in_place_by_keyboard(opened):
    page = opened({})
    page.locator(".help summary").focus()
    page.keyboard.press("Enter")
    assert page.locator(".help dt").all_inner_texts() == ["Loss", "Knots", "Pieces", "Dead units"]
    assert page.locator(".help dd").last.is_visible()
    assert all(head.get_attribute("title") for head in page.locator("thead th").all()[1:])


def test_drawing_needs_a_stroke(opened):
    page = opened({})
    wait_for_step(page, 10)
    choose(page, "drawn")
    passed(page, 600)
    settled(page)
    assert settings_of(page.url)["target"]["kind"] == "paper"
    assert page.locator("[data-part=message]").is_hidden()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("line.csv", "x,y\n" + "\n".join(f"{i / 10},{2 * i / 10 + 1}" for i in range(-20, 21))),
        ("plane.csv", "a,b,z\n" + "\n".join(f"{i},{j},{i - 2 * j}" for i in range(-3, 4) for j in range(-3, 4))),
    ],
)
def test_dropped_table_is_fitted(opened, kept, name, text):
    page = opened({"width": 6, "lr": 0.03})
    drop(page, name, text)
    page.wait_for_function("() => location.hash.includes('csv')")
    wait_for_median(page, "PLU", 0.1)
    assert page.locator("[data-part=file-name]").inner_text().startswith(name)
    assert page.locator(".panels figure").count() == 3
    kept(page, name.removesuffix(".csv"))


@pytest.mark.parametrize(("name", "figures", "share"), [("sine", 3, 0.15), ("parametric", 3, 0.05), ("saddle", 4, 0.5)])
def test_functions_of_the_paper(opened, kept, name, figures, share):
    page = opened({})
    choose(page, "paper")
    page.locator(f"[name=paper][value={name}]").check()
    wait_for_settings(page, target={"kind": "paper", "name": name})
    wait_for_step(page, 50)
    kept(page, name)
    assert page.locator(".panels figure").count() == figures
    reset(page)
    assert min(map(painted_share, page.locator(".panels canvas").all())) > share


def test_training_pauses_where_the_paper_stops_and_continues_on_demand(opened, monkeypatch):
    for module in (session, workshop):
        monkeypatch.setattr(module, "WATCHED", 40)
    page = opened({"networks": 8})
    hint, toggle = page.locator("[data-part=watched]"), page.locator("[data-do=toggle]")
    hint.wait_for()
    settled(page)
    assert (page.locator("[data-part=step]").inner_text(), toggle.inner_text()) == ("40", "Continue")
    toggle.click()
    wait_for_step(page, 60)
    assert hint.is_hidden()


def test_pause_step_and_reset(opened):
    page = opened({"networks": 8})
    wait_for_step(page, 20)
    reset(page)
    step, toggle = page.locator("[data-part=step]"), page.locator("[data-do=toggle]")
    assert toggle.inner_text() == "Start"
    for count in "12":
        page.locator("[data-do=step]").click()
        page.wait_for_function("n => document.querySelector('[data-part=step]').textContent === n", arg=count)
    settled(page)
    assert step.inner_text() == "2"
    toggle.click()
    wait_for_step(page, 20)
    assert toggle.inner_text() == "Pause"


def test_every_setting_restarts(opened):
    page, settings = opened({"networks": 8}), {}
    wait_for_step(page, 10)
    for field, value in {"alpha": 0.5, "c": 2, "depth": 1, "width": 5, "networks": 9, "seed": 3}.items():
        settings[field] = value
        page.locator(f"[name={field}]").fill(str(value))
        wait_for_settings(page, **settings)
