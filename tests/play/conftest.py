"""A real browser, the real server, and pages that must not complain."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from browsers import open_browser
from calls import threads

from plunit.play import session
from plunit.play.server import serving

PICTURES = Path(__file__).parents[2] / "build" / "play"
SMALL = {"target": {"kind": "paper", "name": "sine"}, "networks": 64}


@pytest.fixture(autouse=True)
def full_speed(monkeypatch):
    """Training is not slowed down for watching, and does not pause."""
    monkeypatch.setattr(session, "WATCHED", 0)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def served():
    """A server for all tests of a file that leave it running."""
    with serving() as server:
        yield server


@pytest.fixture
def site():
    """A server for one test, after which no thread is left."""
    before = threads()
    with serving() as server:
        yield server
    assert threads() == before


@pytest.fixture(scope="module")
def idle():
    """A server for requests that train nothing."""
    with serving() as server:
        yield server
        assert not server.workshop._sessions


class Opened:
    """Opens pages and keeps what they complain about and ask for."""

    def __init__(self, browser, address):
        self.browser, self.address, self.contexts = browser, address, []
        self.complaints, self.requests = [], []
        self.forgiven = "no such word"

    def __call__(self, settings=None, *, address=None, width=1200, height=900, **options):
        context = self.browser.new_context(viewport={"width": width, "height": height}, **options)
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # other work may keep the machine busy
        loud = ("error", "warning")
        page.on("console", lambda message: message.type in loud and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        more = "" if settings is None else f"&settings={quote(json.dumps({**SMALL, **settings}))}"
        page.goto((address or self.address) + more)
        if settings is not None:  # what is done before the form is there is lost
            page.locator("[name=activation]").first.wait_for(state="attached")
        return page


@pytest.fixture
def opened(browser, served):
    """Return a function that opens the page; at the end no page has complained, but with the word `forgiven`."""
    opener = Opened(browser, served.address)
    yield opener
    complaints = [text for text in opener.complaints if opener.forgiven not in text]
    for context in opener.contexts:  # what a page says while it is closed does not count
        context.close()
    assert complaints == []


@pytest.fixture
def kept():
    """Return a function that keeps a picture of a page in build/play."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return lambda page, name, full_page=True: page.screenshot(path=PICTURES / f"{name}.png", full_page=full_page)
