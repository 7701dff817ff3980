"""What the scripts of figures share: draw what is stored, after storing it anew if asked to."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from plunit.lab.pictures import SETTINGS


def save_stored(draw: Callable[[Any], Figure], stored: Path, path: Path) -> None:
    """Draw what is in a JSON file."""
    with matplotlib.rc_context(SETTINGS):
        draw(json.loads(stored.read_text(encoding="utf-8"))).savefig(path, dpi=140)


def run(
    about: str | None, save: Callable[[Path], None], picture: Path, store: Callable[..., None], **option: Any
) -> None:
    """Store, if --store was given, and draw."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--store", **option)
    if wanted := parser.parse_args().store:
        store(wanted)
    save(picture)
