"""The page for everyone: with the keyboard only, on a phone, in the dark, with less motion, for screen readers."""

import re
from itertools import pairwise

import pytest
from playground import pause, redrawn, settings_of, wait_for_step
from waiting import wait_until

FOCUS = """() => {
  const at = document.activeElement;
  const shown = at.closest(".tabs label")?.querySelector("span") ?? at;
  const style = getComputedStyle(shown);
  return { name: at.name || at.dataset.do || at.dataset.take || at.dataset.part || at.tagName.toLowerCase(),
           seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
}"""


def press_to(page, selector, most=60):
    """Press Tab until an element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{selector} cannot be reached with the Tab key")


def test_tab_reaches_everything_in_order_and_focus_is_seen(opened):
    page = opened({})
    wait_for_step(page, 10)
    stops = []
    for _ in range(45):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement === document.body"):
            break
        stops.append(page.evaluate(FOCUS))
    assert [stop["name"] for stop in stops if not stop["seen"]] == []
    names = [stop["name"] for stop in stops]
    wanted = "tour toggle step reset source paper activation alpha c depth width networks lr seed"
    wanted += " take-activation c onnx json torch fit svg png link"
    places = iter(names)
    assert [name for name in wanted.split() if name not in places] == []  # each after the one before


def test_by_keyboard_alone(opened, kept):
    page = opened({})
    wait_for_step(page, 10)
    press_to(page, "[name=source]")
    page.keyboard.press("ArrowRight")  # from Pick to Type
    press_to(page, "[name=text]")
    page.keyboard.press("Control+A")
    page.keyboard.type("x*x")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('x*x')")
    for key in ("Shift+Tab", "ArrowRight", "Tab"):  # to Draw, and into the drawing
        page.keyboard.press(key)
    for key in ("Home", "ArrowRight", "PageUp", "ArrowUp", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    kept(page, "keyboard")
    page.wait_for_function("() => location.hash.includes('drawn')")
    wanted = {-4: 0, -3: 0.6, -2: -0.1, 0: 0}
    wait_until(lambda: wanted.items() <= dict(map(tuple, settings_of(page.url)["target"]["points"])).items())
    page.locator("[data-do=tour]").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.locator("[data-do=toggle]:text-is('Continue')").wait_for()
    page.keyboard.press("Tab")
    before = page.locator("[data-part=step]").inner_text()
    page.keyboard.press("Enter")  # one step
    page.wait_for_function("old => document.querySelector('[data-part=step]').textContent !== old", arg=before)


def test_phone_needs_no_sideways_scrolling(opened, kept):
    page = opened({"target": {"kind": "paper", "name": "saddle"}}, width=390, height=844, has_touch=True)
    wait_for_step(page, 30)
    for summary in page.locator("summary").all():
        summary.click()
    redrawn(page)
    kept(page, "phone-saddle")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    outside = """() => [...document.querySelectorAll("button, input, select, canvas, figure, td")].filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width && (box.left < 0 || box.right > 390);
    }).map((element) => element.outerHTML)"""
    assert page.evaluate(outside) == []


def test_finger_draws(opened):
    page = opened({}, width=390, height=844, has_touch=True)
    wait_for_step(page, 10)
    page.locator("summary").first.click()
    page.locator(".tabs label:has(input[value=drawn])").tap()
    box = page.locator("[data-part=pad]").bounding_box()
    client = page.context.new_cdp_session(page)
    for kind, share in (("touchStart", 0.1), ("touchMove", 0.5), ("touchMove", 0.9), ("touchEnd", None)):
        at = [] if share is None else [{"x": box["x"] + share * box["width"], "y": box["y"] + share * box["height"]}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
    page.wait_for_function("() => location.hash.includes('drawn')")
    points = dict(map(tuple, settings_of(page.url)["target"]["points"]))
    assert points[-2] == pytest.approx(1, abs=0.1)
    assert points[2] == pytest.approx(-1, abs=0.1)


NAMES = "ink muted accent alarm tanh relu plu plu_learned leaky_relu gelu silu elu identity hardtanh"
COLOURS = """names => {
  const style = getComputedStyle(document.querySelector(".plunit-play"));
  return names.map((name) => style.getPropertyValue(`--${name}`).trim());
}"""


PIXELS = "() => document.querySelector('[data-part=losses]').toDataURL()"


def luminance(colour):
    """Return the relative luminance of WCAG 2 of #rrggbb."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_have_contrast(opened, kept, scheme):
    page = opened({}, color_scheme=scheme)
    wait_for_step(page, 30)
    kept(page, scheme)
    texts = NAMES.split()
    grounds = page.evaluate(COLOURS, ["paper", "card"])
    assert (luminance(grounds[0]) < 0.1) == (scheme == "dark")
    faint = {}
    for name, colour in zip(texts, page.evaluate(COLOURS, texts), strict=True):
        light, dark = sorted([luminance(colour), luminance(grounds[1])], reverse=True)
        faint[name] = round((light + 0.05) / (dark + 0.05), 2)
    assert {name: ratio for name, ratio in faint.items() if ratio < 4.5} == {}
    pause(page)
    pixels = page.evaluate(PIXELS)
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")  # while the page is open
    wait_until(lambda: page.evaluate(PIXELS) != pixels)


FRAMES = "() => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/call/frame'))"


def test_less_motion_means_few_frames(opened):
    page = opened({}, reduced_motion="reduce")
    page.wait_for_function(f"() => ({FRAMES})().length >= 3")
    spans = page.evaluate(f"() => ({FRAMES})().map(({{ startTime, responseEnd }}) => [startTime, responseEnd])")
    assert min(start - end for (_, end), (start, _) in pairwise(spans)) > 900


def test_names_for_screen_readers(opened):
    page = opened({})
    wait_for_step(page, 50)
    nameless = """() => [...document.querySelectorAll("button, input, select, canvas, section, [role]")].filter((one) =>
      !(one.getAttribute("aria-label") || one.labels?.[0]?.textContent.trim() || one.textContent.trim())
      && !one.matches("[role=alert], [role=status], [hidden] *")).map((one) => one.outerHTML)"""
    assert page.evaluate(nameless) == []
    label = page.locator("[data-activation=plu] canvas").get_attribute("aria-label")
    assert re.fullmatch(r"PLU: median loss [\d.e-]+, best loss [\d.e-]+", label)
    page.locator("[data-do=toggle]").click()
    page.locator("[data-part=summary]:has-text('Median loss')").wait_for(state="attached")


COUNTED = """() => { window.changes = {}; for (const name of ["summary", "step"]) {
  window.changes[name] = 0;
  new MutationObserver(() => window.changes[name]++).observe(
    document.querySelector(`[data-part=${name}]`), { childList: true, characterData: true, subtree: true });
} }"""


def test_summary_is_not_chatty(opened):
    page = opened({})
    page.evaluate(COUNTED)
    page.wait_for_function("() => window.changes.step >= 10")
    assert page.evaluate("() => window.changes.summary") <= 2
