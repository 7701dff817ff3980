"""The playground: a local page on which a thousand networks fit a function, live (`plunit play`).

Calls of a page enter through `server.py`, or `widget.py` in a notebook, and are answered by `workshop.py`, the file to
open first. A session trains networks (`live_training.py`) and paints frames of them (`frames.py`).
`targets.py` has the functions to learn, `exports.py` the files to save, `page/` the JavaScript. In a notebook,
`plunit.play.Widget()` needs the extra `notebook`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plunit.play.widget import Widget

__all__ = ["Widget"]


def __getattr__(name: str) -> Any:
    if name != "Widget":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plunit.play.widget import Widget

    return Widget


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
