"""Where the platform keeps what can be made or fetched again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return plunit's folder in the user's cache; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _platform_cache(), "plunit")


def _platform_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"
