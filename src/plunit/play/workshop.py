"""All sessions, trained in turns by one thread, so that several pages share the processors fairly."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any

from plunit.base.errors import UserError
from plunit.base.fields import construct, match_name
from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS
from plunit.play.frames import Reply
from plunit.play.session import WATCHED, Session, check_work, estimate_memory
from plunit.play.targets import MEMBERS, MOST_POINTS, Settings, settings_of, task_of

SESSIONS = 8  # pages that train at once
MOST_MEMORY = 2**28  # bytes of one session; all together may have four times as much
IDLE_SECONDS = 10.0  # a session ends when its page has not asked for a frame for this time
ROUND = 0.032  # seconds of a turn of all sessions together
LEAVE = 2.0  # seconds that `close` waits for a running step; a longer one ends with the process
BODY = 10_000_000  # maximum number of bytes of a request
ENDED = "The server has ended. Run plunit play again and open the address that it prints."


class UnknownSession(UserError):
    """The session does not exist, or has ended."""


class Workshop:
    """Answers the calls of pages, such as `call("start", {...})`."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._lock, self._starting = threading.Condition(), threading.Lock()
        self._closed = False
        self._calls: dict[str, Callable[..., Reply]] = {
            "info": self._info,
            "start": self._start,
            "frame": self._frame,
            "command": self._command,
            "export": self._export,
        }
        self._thread = threading.Thread(target=self._train, name="plunit play", daemon=True)
        self._thread.start()

    def call(self, kind: str, body: Any) -> Reply:
        """Answer a call; raise UserError for mistakes of the user."""
        return construct(f"the call {kind}", self._calls[match_name("call", kind, self._calls)], body)

    def answer(self, kind: str, body: Any) -> tuple[int, Reply]:
        """Return the HTTP status of a call, and the reply or {"error": one line}."""
        try:
            return 200, self.call(kind, body)
        except UserError as error:
            status, line = 404 if isinstance(error, UnknownSession) else 400, str(error)
        except MemoryError:
            status, line = 503, "out of memory; use fewer networks"
        except Exception as error:  # an error of plunit; the page must not wait for ever
            status, line = 500, f"plunit failed: {type(error).__name__}: {str(error)[:200]}"
        return status, Reply({"error": " ".join(line.split())})

    def close(self) -> None:
        """End all sessions and the thread; a running call ends later, and finds its session ended."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            for session in self._sessions.values():
                session.end(ENDED)
        self._thread.join(LEAVE)

    def _info(self) -> Reply:
        default = Settings({"kind": "paper", "name": "sine"})
        activations = [
            {"name": name, "title": one.title, "piecewise": one.exact is not None} for name, one in ACTIVATIONS.items()
        ]
        limits = {"networks": MEMBERS.high, "points": MOST_POINTS, "body": BODY, "sessions": SESSIONS}
        return Reply({"activations": activations, "limits": limits, "watched": WATCHED, "defaults": vars(default)})

    def _start(self, settings: Any, replaces: Any = "") -> Reply:
        chosen = settings_of(settings)
        with self._starting:  # one at a time: each counts the memory of those before, and reads its table
            if self._closed:
                raise UserError(ENDED)
            task = task_of(chosen.target)
            check_work(task, chosen)
            with self._lock:
                others = [session.bytes for name, session in self._sessions.items() if name != replaces]
                self._check_room(estimate_memory(task, chosen), others)
                self._drop(str(replaces))
            session = Session(task, chosen)
            name = self._add(session)
        problem = session.problem()
        return Reply({"session": name, "problem": problem.content}, problem.payload)

    def _add(self, session: Session) -> str:
        """Return the name of a new session, which has ended if the workshop is closing."""
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._sessions[name] = session
            self._lock.notify_all()
            if self._closed:
                session.end(ENDED)
        return name

    def _check_room(self, needed: int, others: list[int]) -> None:
        if needed > MOST_MEMORY:
            raise UserError(f"these networks need {needed >> 20} MB; the limit is {MOST_MEMORY >> 20} MB, so use fewer")
        if len(others) >= SESSIONS:
            raise UserError(f"{len(others)} pages are training; the limit is {SESSIONS}, so close one of them")
        if sum(others) + needed > 4 * MOST_MEMORY:
            raise UserError("the other pages need too much memory; close one of them, or use fewer networks")

    def _find(self, name: Any) -> Session:
        session = self._sessions.get(name) if isinstance(name, str) else None
        if session is None:
            raise UnknownSession("this training has ended, because its page was closed or idle; start again")
        return session

    def _frame(self, session: Any, after: Annotated[int, Range(0, 2**53)] = 0) -> Reply:
        frame = self._find(session).frame(after)
        return Reply({"session": session, **frame.content}, frame.payload)

    def _command(self, session: Any, command: Any) -> Reply:
        answer = self._find(session).command(command)
        with self._lock:
            if command == "stop":
                self._drop(session)
            self._lock.notify_all()
        return Reply({"session": session, **answer})

    def _export(self, session: Any, activation: Any, format: Any) -> Reply:
        return self._find(session).export(activation, format)

    def _drop(self, name: str) -> None:
        """Forget a session; the caller holds the lock."""
        if session := self._sessions.pop(name, None):
            session.end("Training was stopped.")

    def _train(self) -> None:
        while not self._closed:
            self._take_turns()

    def _take_turns(self) -> None:
        """Give each session one turn, or wait for one; no reference to a dropped session is kept."""
        with self._lock:
            late = time.monotonic() - IDLE_SECONDS
            for name in [name for name, session in self._sessions.items() if session.asked < late]:
                self._drop(name)
            busy = [session for session in self._sessions.values() if not session.waiting]
            if not busy and not self._closed:
                self._lock.wait(0.5)
        for session in busy:
            try:
                session.round(ROUND / len(busy))
            except Exception as error:  # one training must not end the others
                session.end(f"Training failed: {type(error).__name__}: {str(error)[:200]}")
