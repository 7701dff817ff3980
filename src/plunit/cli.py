"""The `plunit` command: the lab's commands, or one line where their packages are missing."""

from __future__ import annotations

import sys

_EXTRA = {"PIL", "jinja2", "matplotlib", "rich", "safetensors", "sklearn", "torch", "typer"}


def main() -> None:
    """Run the command line."""
    try:
        from plunit.lab import commands

        commands.main()
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        if package not in _EXTRA:
            raise
        print(f"plunit: {package} is not installed: pip install 'plunit[lab]'", file=sys.stderr)
        raise SystemExit(2) from None
