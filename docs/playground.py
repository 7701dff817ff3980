"""Store docs/playground.png and docs/playground_phone.png: the page of `plunit play` in Chromium where training pauses.

Run: python docs/playground.py [FOLDER]
"""

import json
import shutil
import sys
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from plunit.play.server import serving

SETTINGS = {"target": {"kind": "paper", "name": "sine"}, "activations": ["tanh", "relu", "plu"], "networks": 1000}
PAUSED = "[data-part=watched]:not([hidden])"
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PICTURES = {  # width of the window, pixels per CSS pixel, and the first and last element shown
    "playground": (1200, 1.5, ".top", "table"),
    "playground_phone": (390, 2, ".heading", ".panels"),
}
MARGIN = 15


def take_picture(browser: Browser, address: str, name: str) -> Image.Image:
    """Return the page from the first to the last element of a picture."""
    width, scale, *ends = PICTURES[name]
    page = browser.new_page(viewport={"width": width, "height": 1600}, device_scale_factor=scale)
    page.goto(f"{address}&settings={quote(json.dumps(SETTINGS))}")
    page.locator(PAUSED).wait_for(timeout=300_000)
    first, last = (page.locator(end).bounding_box() for end in ends)
    low, high = first["y"] - MARGIN, last["y"] + last["height"] + MARGIN
    picture = page.screenshot(clip={"x": 0, "y": low, "width": width, "height": high - low})
    page.close()
    return Image.open(BytesIO(picture)).convert("RGB")


def main(folder: Path) -> None:
    """Start the server and Chromium, and save the pictures."""
    with serving() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name in PICTURES:
            picture = take_picture(browser, server.address, name)
            few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
            few.save(folder / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
