"""The tour: five steps with live networks."""

from playground import pause, redrawn, table_of, wait_for_median, wait_for_settings, wait_for_step

STEPS = [
    ("Three activations", ["tanh", "relu", "plu"], "Median loss"),
    ("Why ReLU fails", ["relu", "plu"], "Median loss"),
    ("What alpha and c do", ["plu", "plu_learned"], "Median loss"),
    ("straight pieces", ["relu", "plu", "leaky_relu"], "Pieces"),
    ("Units that die", ["relu", "plu"], "Dead units"),
]
BOXES = "(names) => names.map((name) => document.querySelector(name).getBoundingClientRect().toJSON())"


def test_five_steps_with_live_networks(opened, kept):
    page = opened({})
    wait_for_step(page, 1)
    page.locator("[data-do=tour]").click()
    for number, (title, activations, live) in enumerate(STEPS, start=1):
        page.locator(f".tour h2:has-text('{title}')").wait_for()
        assert page.locator("[data-part=tour-count]").inner_text() == f"Step {number} of 5"
        wait_for_settings(page, activations=activations)
        page.locator(f"[data-part=tour-live]:has-text('{live}')").wait_for()
        wait_for_step(page, 10)
        assert page.evaluate("() => document.activeElement.tagName") == "H2"
        kept(page, f"tour-{number}")
        page.locator("[data-do=tour-next]").click()
    page.locator("[data-part=tour]").wait_for(state="hidden")
    assert page.locator(".spot").count() == 0


def test_back_to_try_alpha_and_c_and_end(opened):
    page = opened({})
    wait_for_step(page, 1)
    page.locator("[data-do=tour]").click()
    assert page.locator("[data-do=tour-back]").is_disabled()
    page.locator("[data-do=tour-next]").click()
    page.locator("[data-do=tour-back]").click()
    page.locator(".tour h2:has-text('Three activations')").wait_for()
    for _ in range(2):
        page.locator("[data-do=tour-next]").click()
    for words, alpha, c in (("alpha = 1", 1, 1), ("c = 3", 0.1, 3)):
        page.locator(f"[data-try]:text-is('{words}')").click()
        wait_for_settings(page, alpha=alpha, c=c)
        wait_for_step(page, 20)
    page.locator("[data-do=tour-end]").click()
    assert page.locator("[data-part=tour]").is_hidden()


def test_what_the_tour_says_is_so(opened):
    page = opened({"activations": ["relu", "plu"], "networks": 300, "lr": 0.03})
    wait_for_median(page, "PLU", 0.1)
    pause(page)
    table = table_of(page)
    pieces = {title: int(row[2].split()[0]) for title, row in table.items()}
    assert float(table["ReLU"][0]) > 2 * float(table["PLU"][0])
    assert pieces["PLU"] > pieces["ReLU"]
    assert float(table["ReLU"][3].removesuffix(" %")) > 10
    assert table["PLU"][3] == "0.0 %"


def test_on_a_phone_the_tour_scrolls_to_what_it_describes(opened, kept):
    page = opened({}, width=390, height=844)
    page.locator("[data-do=tour]").click()
    for number in range(1, 6):
        page.locator(f"[data-part=tour-count]:has-text('Step {number} of 5')").wait_for()
        page.locator(".spot").wait_for()
        page.locator("[data-part=tour-live]:not(:empty)").wait_for()
        redrawn(page)
        tour, spot, onward = page.evaluate(BOXES, [".tour", ".spot", "[data-do=tour-next]"])
        assert 0 <= tour["top"] < tour["bottom"] <= spot["top"] < 844 - 20
        assert onward["bottom"] <= tour["bottom"]
        kept(page, f"phone-tour-{number}", full_page=False)
        page.locator("[data-do=tour-next]").click()
