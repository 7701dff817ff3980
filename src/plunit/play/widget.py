"""The playground in a notebook: the page of `plunit play`, with anywidget's messages instead of HTTP."""

from __future__ import annotations

import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from plunit.base.errors import missing

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    raise missing(error, "anywidget", user="plunit.play.Widget") from None

from plunit.play.server import page_files
from plunit.play.workshop import Workshop

PARTS = ("theme", "pens", "charts", "pad", "settings", "tour", "take", "stage", "play", "widget")
"""The modules of the page in the order of their imports; a notebook takes one module."""


def one_module(files: dict[str, tuple[str, bytes]]) -> str:
    """Return the parts as one module: without their imports, and with the last export only."""
    texts = [files[f"/{name}.js"][1].decode() for name in PARTS]
    bare = [re.sub(r"^import .*;\n", "", text, flags=re.MULTILINE) for text in texts]
    return "\n".join(re.sub(r"^export (?!default )", "", text, flags=re.MULTILINE) for text in bare)


_FILES = page_files()


class Widget(anywidget.AnyWidget):
    """The playground: draw, type or choose a function, and watch networks learn it.

    Training runs in the kernel, and ends ten seconds after the page or the widget is closed.
    """

    _esm = one_module(_FILES)
    _css = _FILES["/style.css"][1].decode()
    markup = traitlets.Unicode(re.split("</?main>", _FILES["/"][1].decode())[1]).tag(sync=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._workshop = Workshop()
        # a call may wait for a frame, and the kernel must not wait with it
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="plunit play")
        self.on_msg(_receive)
        self._end = weakref.finalize(self, _end, self._workshop, self._threads)

    def close(self) -> None:
        """End the training and remove the page."""
        self._end()
        super().close()


def _receive(widget: Widget, message: Any, buffers: Any) -> None:
    widget._threads.submit(_answer, widget, message)


def _answer(widget: Widget, message: Any) -> None:
    """Answer {"id", "kind", "body"} by {"id", "json"} and a buffer, or by {"id", "error", "status"}."""
    fields = message if isinstance(message, dict) else {}
    status, reply = widget._workshop.answer(str(fields.get("kind")), fields.get("body"))
    if status == 200:
        widget.send({"id": fields.get("id"), "json": reply.content}, [reply.payload])
    else:
        widget.send({"id": fields.get("id"), "status": status, **reply.content})


def _end(workshop: Workshop, threads: ThreadPoolExecutor) -> None:
    workshop.close()
    threads.shutdown(wait=False, cancel_futures=True)
