"""The page in a notebook: the one module that anywidget gets, in a real browser, with messages instead of HTTP."""

import base64

import pytest
from playground import painted_share, reset, table_of, wait_for_step
from waiting import wait_until

pytest.importorskip("anywidget")

HOST = """async ([module, markup, style]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
  const { default: { render } } = await import(URL.createObjectURL(new Blob([module], { type: "text/javascript" })));
  const hear = [];
  const model = {
    get: (name) => ({ markup })[name],
    on: (kind, act) => hear.push(act),
    send: async ({ id, kind, body }) => {
      const [content, payload] = await window.answer(kind, body);
      const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
      for (const act of hear) act({ id, ...content }, bytes.length ? [new DataView(bytes.buffer)] : []);
    },
  };
  const el = document.createElement("div");
  window.leave = render({ model, el });
  document.body.append(el); // JupyterLab also shows it after creation
}"""


@pytest.fixture
def notebook(opened, monkeypatch):
    """Return a page that holds the widget, and its workshop."""
    from plunit.play import session
    from plunit.play.widget import Widget
    from plunit.play.workshop import Workshop

    monkeypatch.setattr(session, "_PATIENCE", 0.02)  # the browser waits while Python answers
    workshop = Workshop()

    def answer(kind, body):
        status, reply = workshop.answer(kind, body)
        content = {"json": reply.content} if status == 200 else {"status": status, **reply.content}
        return content, base64.b64encode(reply.payload).decode()

    page = opened(address="about:blank")
    page.expose_function("answer", answer)
    page.evaluate(HOST, [Widget._esm, Widget.class_traits()["markup"].default(), Widget._css])
    yield page, workshop
    workshop.close()


def test_widget_trains_and_draws(notebook, kept):
    page, _ = notebook
    wait_for_step(page, 5)
    kept(page, "widget")
    assert sorted(table_of(page)) == ["PLU", "ReLU", "tanh"]
    assert page.locator("[name=paper]").first.is_visible()  # sections are open where there is room
    reset(page)
    assert min(map(painted_share, page.locator(".panels canvas").all())) > 0.15
    assert page.locator("[data-do=link]").is_hidden()  # a notebook has no address for settings


def test_widget_says_errors_and_leaves(notebook):
    page, workshop = notebook
    wait_for_step(page, 5)
    page.locator("[name=networks]").fill("0")
    page.locator("[data-part=message]:has-text('networks')").wait_for()
    page.evaluate("() => window.leave()")
    wait_until(lambda: not workshop._sessions)
