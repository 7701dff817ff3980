"""What tests do again and again on the page of the playground."""

import json
from urllib.parse import parse_qs, urlsplit

STEP = "least => Number(document.querySelector('[data-part=step]').textContent.replaceAll(',', '')) >= least"
MEDIAN = """([title, bound]) => {
  const row = [...document.querySelectorAll("tbody tr")].find((row) => row.cells[0].textContent === title);
  return parseFloat(row?.cells[1].textContent) < bound;
}"""
SETTINGS = """wanted => {
  const found = JSON.parse(new URLSearchParams(location.hash.slice(1)).get("settings") ?? "{}");
  return Object.entries(wanted).every(([name, value]) => JSON.stringify(found[name]) === JSON.stringify(value));
}"""
PAINTED = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, i) => i % 4 === 3 && value > 0).length / (data.length / 4);
}"""
DROP = "([name, text]) => { const t = new DataTransfer(); t.items.add(new File([text], name)); return t; }"


def wait_for_step(page, least):
    """Wait until at least this number of steps is shown."""
    page.wait_for_function(STEP, arg=least)


def wait_for_median(page, title, bound):
    """Wait until the median loss of an activation, as the table shows it, is below a bound."""
    page.wait_for_function(MEDIAN, arg=[title, bound], timeout=300_000)


def wait_for_settings(page, **wanted):
    """Wait until the page trains with these settings."""
    page.wait_for_function(SETTINGS, arg=wanted)


def table_of(page):
    """Return title -> what the table says: median loss, best loss, pieces, dead units."""
    rows = page.locator("tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def reset(page):
    """Press Reset, and wait until the networks before training are drawn."""
    page.locator("[data-do=reset]").click()
    page.wait_for_function("() => document.querySelector('[data-part=step]').textContent === '0'")


def passed(page, milliseconds):
    """Let the page's own timers that are due within a time act: one that is set now acts after them."""
    page.evaluate("time => new Promise((done) => setTimeout(done, time))", milliseconds)


def settled(page):
    """Wait until the answer to a frame that was asked for from now on is drawn; the page asks for the next one then."""
    for _ in range(2):
        with page.expect_request("**/call/frame"):
            pass
    redrawn(page)


def redrawn(page):
    """Wait until the screen has been repainted."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pause(page):
    """Press Pause, and wait until the last step is drawn."""
    page.locator("[data-do=toggle]:text-is('Pause')").click()
    page.locator("[data-do=toggle]:text-is('Continue')").wait_for()
    settled(page)


def painted_share(canvas):
    """Return the fraction of a canvas that is not blank: lines make a tenth, a cloud or a surface more."""
    return canvas.evaluate(PAINTED)


def settings_of(address):
    """Return the settings in the fragment of an address."""
    return json.loads(parse_qs(urlsplit(address).fragment)["settings"][0])


def choose(page, source):
    """Choose where the function comes from: paper, expression, drawn or csv."""
    page.locator(f".tabs label:has(input[value={source}])").click()


def drop(page, name, text):
    """Drop a file on the page."""
    transfer = page.evaluate_handle(DROP, [name, text])
    page.dispatch_event(".views", "drop", {"dataTransfer": transfer})


def saved(page, button, folder):
    """Press a button that saves a file, and return the file's path."""
    with page.expect_download() as download:
        page.locator(button).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path
