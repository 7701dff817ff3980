"""Store docs/playground.png: the page of `plunit play` in Chromium where training pauses.

Run: python docs/playground.py [FILE]
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


def take_picture(browser: Browser, address: str) -> Image.Image:
    """Return the page down to the table of numbers."""
    page = browser.new_page(viewport={"width": 1200, "height": 1300}, device_scale_factor=1.5)
    page.goto(f"{address}&settings={quote(json.dumps(SETTINGS))}")
    page.locator(PAUSED).wait_for(timeout=300_000)
    table = page.locator("table").bounding_box()
    picture = page.screenshot(clip={"x": 0, "y": 0, "width": 1200, "height": table["y"] + table["height"] + 24})
    page.close()
    return Image.open(BytesIO(picture)).convert("RGB")


def main(file: Path) -> None:
    """Start the server and Chromium, and save the picture."""
    with serving() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        few = take_picture(browser, server.address).quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(file, optimize=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png")))
