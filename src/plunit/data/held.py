"""A table that is held in memory, for the readers of this package, which take files."""

from __future__ import annotations

import io
import pathlib
import sys
from typing import IO, Any

if sys.platform == "win32":
    _Path = pathlib.WindowsPath
else:
    _Path = pathlib.PosixPath


class HeldText(_Path):
    r"""A text that `read_table` reads as if it were a file of that name; no file is opened, whatever the name.

    >>> from plunit.data.tables import read_table
    >>> text = HeldText.of("squares.csv", "side,area\n" + "".join(f"{n},{n * n}\n" for n in range(10)))
    >>> read_table(text, "area").x.shape
    (10, 1)
    """

    content: bytes = b""
    title: str = ""

    @classmethod
    def of(cls, name: str, text: str, title: str = "") -> HeldText:
        """Return a text under a name, whose ending chooses the reader; messages show the title, or else the name."""
        held = cls(name)
        held.title = title or name
        held.content = text.encode(errors="surrogatepass")
        return held

    def __str__(self) -> str:
        return self.title or super().__str__()

    def exists(self, **_: Any) -> bool:
        """Return True."""
        return True

    def is_file(self, **_: Any) -> bool:
        """Return True."""
        return True

    def open(self, *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]
        """Return the bytes of the text as a file."""
        return io.BytesIO(self.content)
