"""All sessions, trained in turns by one thread: several pages share the processors fairly."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import plunit
from plunit.ensemble import ACTIVATIONS
from plunit.errors import UserError
from plunit.play.courses import bytes_of
from plunit.play.exports import FORMATS, export
from plunit.play.frames import Reply
from plunit.play.session import Session
from plunit.play.settings import COUNTS, NUMBERS, TITLES, Settings, fields_of, number, settings_of
from plunit.play.targets import PAPER, POINTS, task_of

SESSIONS = 8
"""At most so many pages train at once."""

MEMORY = 2**28
"""Bytes of one session; all together may have four times as much."""

SECONDS = 10.0
"""A session whose page has not asked for a frame for so long is ended."""

ROUND = 0.03
"""Seconds of a turn of all sessions together."""

BODY = 10_000_000
"""The most bytes that a page may send at once."""


class UnknownSession(Exception):
    """There is no such session, or no longer."""


class Workshop:
    """Answers the calls of pages: `call("start", {...})`."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._room: dict[str, int] = {}
        self._lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._calls: dict[str, tuple[tuple[str, ...], Callable[..., Reply]]] = {
            "info": ((), self._info),
            "start": (("settings", "replaces"), self._start),
            "frame": (("session", "after"), self._frame),
            "command": (("session", "command"), self._command),
            "export": (("session", "activation", "format"), self._export),
        }

    def call(self, kind: str, body: Any) -> Reply:
        """Answer a call; what the user can put right is a UserError."""
        if kind not in self._calls:
            raise UserError(f"unknown call {kind[:40]!r}; there are {', '.join(self._calls)}")
        names, answer = self._calls[kind]
        given = fields_of(body, "calls", names)
        needed = [name for name in names if name not in ("replaces", "after")]
        if missing := [name for name in needed if name not in given]:
            raise UserError(f"{kind} needs {missing[0]}")
        return answer(**given)

    def close(self) -> None:
        """End all sessions and the thread."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        for session in self._sessions.values():
            session.end("The server has ended.")

    def _info(self) -> Reply:
        ranges = {name: list(ends) for name, ends in {**COUNTS, **NUMBERS}.items()}
        more = {"points": POINTS, "body": BODY, "sessions": SESSIONS, "seconds": SECONDS, "megabytes": MEMORY >> 20}
        defaults = vars(Settings({"kind": "expression", "text": "sin(x)", "low": -6.283185, "high": 6.283185}))
        return Reply(
            {
                "version": plunit.__version__,
                "activations": [
                    {"name": name, "title": TITLES.get(name, name), "piecewise": one.exact is not None}
                    for name, one in ACTIVATIONS.items()
                ],
                "papers": list(PAPER),
                "formats": list(FORMATS),
                "limits": {**ranges, **more},
                "defaults": {name: value for name, value in defaults.items() if name != "paused"},
            }
        )

    def _start(self, settings: Any, replaces: Any = None) -> Reply:
        chosen = settings_of(settings)
        task = task_of(chosen.target)
        needed = bytes_of(task, chosen)
        if needed > MEMORY:
            raise UserError(
                f"this needs {needed >> 20} MB, the limit is {MEMORY >> 20} MB; take fewer networks or smaller ones"
            )
        with self._lock:
            self._drop(replaces if isinstance(replaces, str) else "")
            self._check_room(needed)
            name = secrets.token_urlsafe(12)
            self._room[name] = needed
        try:
            session = Session(task, chosen)
        except BaseException:
            self._room.pop(name)
            raise
        with self._lock:
            self._sessions[name] = session
            if self._thread is None:
                self._thread = threading.Thread(target=self._train, name="plunit play", daemon=True)
                self._thread.start()
            self._lock.notify_all()
        problem = session.problem()
        return Reply({"session": name, "problem": problem.content}, problem.payload)

    def _check_room(self, needed: int) -> None:
        if self._closed:
            raise UserError("the server is ending")
        if len(self._room) >= SESSIONS:
            raise UserError(f"{len(self._room)} pages are training, the limit is {SESSIONS}; close one of them")
        if sum(self._room.values()) + needed > 4 * MEMORY:
            raise UserError("the other pages need too much memory; close one of them, or take fewer networks")

    def _find(self, name: Any) -> Session:
        session = self._sessions.get(name) if isinstance(name, str) else None
        if session is None:
            raise UnknownSession("this training has ended, because its page asked for no frames; start again")
        return session

    def _frame(self, session: Any, after: Any = 0) -> Reply:
        made = self._find(session).frame(number("after", after, 0, 2**53, whole=True))
        return Reply({"session": session, **made.content}, made.payload)

    def _command(self, session: Any, command: Any) -> Reply:
        found = self._find(session)
        answer = found.command(command)
        with self._lock:
            if found.ended:
                self._drop(session)
            self._lock.notify_all()
        return Reply({"session": session, **answer})

    def _export(self, session: Any, activation: Any, format: Any) -> Reply:
        found = self._find(session)
        return export(found.task, found.settings, found.latest(str(activation)), str(format))

    def _drop(self, name: str) -> None:
        self._room.pop(name, None)
        if session := self._sessions.pop(name, None):
            session.end("Training was replaced.")

    def _train(self) -> None:
        """Give each session its turn, until the workshop closes."""
        while not self._closed:
            with self._lock:
                late = time.monotonic() - SECONDS
                for name in [name for name, session in self._sessions.items() if session.asked < late]:
                    self._drop(name)
                busy = [session for session in self._sessions.values() if not session.waiting]
                if not busy:
                    self._lock.wait(0.5)
            for session in busy:
                try:
                    session.round(ROUND / len(busy))
                except Exception as error:  # one training must not end the others
                    session.end(f"Training failed: {type(error).__name__}: {str(error)[:200]}")
