"""Results of trainings in a JSON file, so that they are not run again."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from plunit.base.files import save_whole


@dataclass(frozen=True)
class Training:
    """The result of a training: parameters, test NLL in nats, and processor seconds on one thread."""

    parameters: int
    nll: float
    seconds: float


def read(path: Path) -> tuple[dict[str, str], dict[str, Training]]:
    """Return the versions and the trainings of a file; exit with one line if it is not such a file."""
    try:
        kept = json.loads(path.read_text())
        return kept["versions"], {key: Training(**one) for key, one in kept["trainings"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        sys.exit(f"{path} is not a file of trainings ({fault!r}): name another file")


class Store:
    """Trainings in a JSON file, by model, toy, seed and steps, with the versions that made them.

    Without a path nothing is kept. A file made with other versions is refused.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        try:
            self.versions = {name: metadata.version(name) for name in ("torch", "zuko", "nflows")}
        except metadata.PackageNotFoundError as error:
            sys.exit(f"{error}; the peers come with: pip install zuko nflows")
        self.trainings: dict[str, Training] = {}
        if path and path.exists():
            versions, self.trainings = read(path)
            if versions != self.versions:
                sys.exit(f"{path} was made with {versions}, this run has {self.versions}: name another file")

    def take(self, path: Path, models: set[str]) -> None:
        """Copy the trainings of these models from another file, whatever its versions."""
        _, others = read(path)
        self.trainings |= {key: one for key, one in others.items() if key.split(";")[0] in models}

    @staticmethod
    def key(model: str, toy: str, seed: int, steps: int) -> str:
        """Return the name of a training in the file."""
        return f"{model}; {toy}; seed {seed}; {steps} steps"

    def fill(self, keys: Sequence[str], make: Callable[[list[int]], Sequence[Training]]) -> list[Training]:
        """Return the trainings of these keys; run and store the missing ones, given by their positions."""
        missing = [place for place, key in enumerate(keys) if key not in self.trainings]
        if missing:
            for place, made in zip(missing, make(missing), strict=True):
                self.trainings[keys[place]] = made
            self._write()
        return [self.trainings[key] for key in keys]

    def _write(self) -> None:
        """Write the file atomically, with the additions of other processes."""
        if self.path is None:
            return
        if self.path.exists():
            self.trainings = read(self.path)[1] | self.trainings
        now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
        rounded = {
            key: {name: round(value, 4) for name, value in asdict(self.trainings[key]).items()}
            for key in sorted(self.trainings)
        }
        text = json.dumps({"date": now, "versions": self.versions, "trainings": rounded}, indent=1)
        save_whole(self.path, text + "\n")
