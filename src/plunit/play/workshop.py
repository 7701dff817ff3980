"""All sessions, trained in turns by one thread: several pages share the processors fairly."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Any

import plunit
from plunit.ensemble import ACTIVATIONS
from plunit.errors import UserError
from plunit.play.exports import FORMATS
from plunit.play.frames import Reply
from plunit.play.session import Session, bytes_of
from plunit.play.settings import COUNTS, NUMBERS, Settings, checked_fields, number, settings_of
from plunit.play.targets import PAPER, POINTS, TURN, task_of
from plunit.ranges import Range

SESSIONS = 8  # pages that train at once
MEMORY = 2**28  # bytes of one session; all together may have four times as much
SECONDS = 10.0  # a session whose page has not asked for a frame for so long is ended
ROUND = 0.032  # seconds of a turn of all sessions together
BODY = 10_000_000  # bytes that a page may send at once


class UnknownSession(Exception):
    """There is no such session, or no longer."""


class Workshop:
    """Answers the calls of pages, such as `call("start", {...})`."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._room: dict[str, int] = {}  # bytes of each session, also of those that are being made
        self._lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._calls: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
            "info": (self._info, (), ()),
            "start": (self._start, ("settings",), ("replaces",)),
            "frame": (self._frame, ("session",), ("after",)),
            "command": (self._command, ("session", "command"), ()),
            "export": (self._export, ("session", "activation", "format"), ()),
        }

    def call(self, kind: str, body: Any) -> Reply:
        """Answer a call; what the user can put right is a UserError."""
        if kind not in self._calls:
            raise UserError(f"unknown call {kind[:40]!r}; there are {', '.join(self._calls)}")
        answer, needed, optional = self._calls[kind]
        given = checked_fields(body, "calls", (*needed, *optional))
        if missing := [name for name in needed if name not in given]:
            raise UserError(f"{kind} needs {missing[0]}")
        reply: Reply = answer(**given)
        return reply

    def answer(self, kind: str, body: Any) -> tuple[int, Reply]:
        """Return the status of HTTP for a call, and the reply or {"error": one line}."""
        try:
            return 200, self.call(kind, body)
        except UserError as error:
            status, line = 400, str(error)
        except UnknownSession as error:
            status, line = 404, str(error)
        except MemoryError:
            status, line = 503, "the memory of this machine does not suffice; take fewer networks"
        except Exception as error:  # a fault of ours; the page must not wait for ever
            status, line = 500, f"plunit failed: {type(error).__name__}: {str(error)[:200]}"
        return status, Reply({"error": " ".join(line.split())})

    def close(self) -> None:
        """End all sessions and the thread."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()
        for session in self._sessions.values():
            session.end("The server has ended. Run plunit play again and open the address that it prints.")

    def _info(self) -> Reply:
        default = Settings({"kind": "expression", "text": "sin(x)", "low": -round(TURN, 6), "high": round(TURN, 6)})
        ranges = {name: [ends.low, ends.high] for name, ends in {**COUNTS, **NUMBERS}.items()}
        more = {"points": POINTS, "body": BODY, "sessions": SESSIONS, "seconds": SECONDS, "megabytes": MEMORY >> 20}
        activations = [
            {"name": name, "title": one.title, "piecewise": one.exact is not None} for name, one in ACTIVATIONS.items()
        ]
        known = {"version": plunit.__version__, "activations": activations, "papers": [*PAPER], "formats": [*FORMATS]}
        return Reply({**known, "limits": {**ranges, **more}, "defaults": vars(default)})

    def _start(self, settings: Any, replaces: Any = "") -> Reply:
        chosen = settings_of(settings)
        task = task_of(chosen.target)
        needed, name = bytes_of(task, chosen), secrets.token_urlsafe(12)
        with self._lock:
            self._check_room(needed, [size for other, size in self._room.items() if other != replaces])
            self._drop(str(replaces))
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

    def _check_room(self, needed: int, others: list[int]) -> None:
        if needed > MEMORY:
            raise UserError(f"this needs {needed >> 20} MB, the limit is {MEMORY >> 20} MB; take fewer networks")
        if self._closed or len(others) >= SESSIONS:
            raise UserError(f"{len(others)} pages are training, the limit is {SESSIONS}; close one of them")
        if sum(others) + needed > 4 * MEMORY:
            raise UserError("the other pages need too much memory; close one of them, or take fewer networks")

    def _find(self, name: Any) -> Session:
        session = self._sessions.get(name) if isinstance(name, str) else None
        if session is None:
            raise UnknownSession(
                "there is no such training, or it has ended, because its page asked for no frames; start again"
            )
        return session

    def _frame(self, session: Any, after: Any = 0) -> Reply:
        made = self._find(session).frame(number("after", after, Range(0, 2**53), whole=True))
        return Reply({"session": session, **made.content}, made.payload)

    def _command(self, session: Any, command: Any) -> Reply:
        answer = self._find(session).command(command)
        with self._lock:
            if command == "stop":
                self._drop(session)
            self._lock.notify_all()
        return Reply({"session": session, **answer})

    def _export(self, session: Any, activation: Any, format: Any) -> Reply:
        return self._find(session).export(activation, str(format))

    def _drop(self, name: str) -> None:
        self._room.pop(name, None)
        if session := self._sessions.pop(name, None):
            session.end("Training was stopped.")

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
