"""What the page says when something is wrong: one clear message, and a way on."""

import pytest
from playground import choose, passed, wait_for_step
from waiting import wait_until

from plunit.play.server import serving

MESSAGE = "[data-part=message]"


@pytest.fixture
def ending(browser, opened):
    """A server that a test may end."""
    with serving() as server:
        opened.address = server.address
        yield server


@pytest.mark.parametrize("way", ["ended", "killed"])
def test_server_that_is_gone(opened, ending, kept, way):
    page = opened({})
    wait_for_step(page, 10)
    if way == "killed":  # in the middle of a frame
        page.route("**/call/*", lambda route: route.abort())
    else:
        ending.shutdown()
        ending.server_close()
    page.locator(f"{MESSAGE}:has-text('server has ended')").wait_for()
    asked = len(opened.requests)
    passed(page, 1200)  # longer than the page ever waits
    assert len(opened.requests) == asked  # it has stopped asking
    assert page.locator("[role=alert]").count() == 1
    kept(page, "gone")
    opened.forgiven = "ERR_"  # the browser's own words


def test_what_is_wrong_is_said_and_mended(opened):
    opened.forgiven = "400"  # the browser's own words
    page = opened({"networks": 5000, "activations": ["plu"]})
    page.locator(f"{MESSAGE}:has-text('4')").wait_for()
    page.fill("[name=networks]", "50")
    page.locator(MESSAGE).wait_for(state="hidden")
    wait_for_step(page, 10)
    page.locator("[name=activation][value=plu]").uncheck()
    page.locator(f"{MESSAGE}:has-text('activation')").wait_for()
    page.locator("[name=activation][value=relu]").check()
    page.locator(MESSAGE).wait_for(state="hidden")
    choose(page, "expression")
    page.fill("[name=text]", "foo(x)")
    page.locator(f"{MESSAGE}:has-text('foo')").wait_for()
    page.fill("[name=text]", "cos(x)")
    page.locator(MESSAGE).wait_for(state="hidden")
    wait_for_step(page, 10)


def test_session_that_was_stopped_starts_again(opened, served):
    page = opened({})
    wait_for_step(page, 10)
    for session in list(served.workshop._sessions.values()):
        session.end("Training was stopped.")
    page.locator(f"{MESSAGE}:has-text('stopped')").wait_for()
    page.locator("[data-do=again]").click()
    page.locator(MESSAGE).wait_for(state="hidden")
    wait_for_step(page, 10)


def test_settings_in_a_link_that_cannot_be_read(opened, served):
    page = opened(address=f"{served.address}&settings=%7B%22target%22%3A5%2C%22activations%22%3A7%7D")
    page.locator(f"{MESSAGE}:visible").wait_for()
    page.locator("[data-do=again]").click()
    opened.forgiven = "400"  # the browser's own words


def test_two_pages_train_at_once_and_one_that_closes_stops_its_training(opened, served):
    pages = [opened({"seed": seed}) for seed in (1, 2)]
    for page in pages:
        wait_for_step(page, 30)
    sessions = set(served.workshop._sessions)
    pages[0].goto("about:blank")
    wait_until(lambda: set(served.workshop._sessions) < sessions)
