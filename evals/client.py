"""A stack under test, by HTTP alone: keys for users of its own, uploads, and turns that are waited for."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx

ENDS = ("completed", "failed", "cancelled", "parked")
"""States of a task that has ended."""
_BUSY = (429, 502, 503, 504)
_MOST_WAIT = 10.0
"""Seconds between two tries of a stack that says it is busy."""


class StackError(Exception):
    """The stack refused, failed or did not answer in time; the text says how."""


@dataclass(frozen=True)
class Reply:
    """What came back for one message.

    Args:
        text: what a person reads.
        rows: rows of its tables and charts.
        notes: further sentences of an analyst.
        confidence: as stated, if any.
        reasoner: who wrote it.
        conversation: its conversation.
        seconds: from the request to the end of the turn.
    """

    text: str
    rows: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    confidence: float | None = None
    reasoner: str = ""
    conversation: str = ""
    seconds: float = 0.0


class Client:
    """One caller of a stack.

    Args:
        url: address of the gateway.
        key: a key of it.
        patience: seconds that one turn may take.
    """

    def __init__(self, url: str, key: str, patience: float = 120.0) -> None:
        self.url, self._patience = url, patience
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=patience, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._http.close()

    def user(self, name: str, role: str | None = None) -> Client:
        """The same stack for another user of the same tenant, who has no history. Needs a key that may make keys.

        Args:
            name: the user.
            role: of the key; the stack's own default where none is named.

        Raises:
            StackError: the key may not.
        """
        made = self.call("POST", "/api/v1/keys", json={"user": name, **({"role": role} if role else {})})
        secret = made.get("key") or made.get("secret")
        if not isinstance(secret, str):
            raise StackError("a key without a secret")
        return Client(self.url, secret, self._patience)

    def upload(self, name: str, content: bytes, kind: str) -> str:
        """The id of an uploaded file."""
        return str(self.call("POST", "/api/v1/media", files={"file": (name, content, kind)})["id"])

    def ask(self, text: str, agent: str, conversation: str | None = None, media: tuple[str, ...] = ()) -> Reply:
        """Send a message and wait for the end of its turn.

        Raises:
            StackError: no reply came; the text has the code.
        """
        body: dict[str, Any] = {"currentMessageText": text, "agent": agent}
        if conversation:
            body["conversationId"] = conversation
        if media:
            body["currentMessageMedia"] = [{"mediaId": one} for one in media]
        began = time.monotonic()
        answered = self.call("POST", "/api/v1/conversations/messages", json=body)
        while "user_response" not in answered:
            answered = self._ended(answered, began)
        return _reply(answered, time.monotonic() - began)

    def _ended(self, accepted: dict[str, Any], began: float) -> dict[str, Any]:
        """The reply of a turn that was accepted and not waited for."""
        while time.monotonic() - began < self._patience:
            turn = self.call("GET", f"/api/v1/turns/{accepted['turn_id']}")
            if turn.get("reply"):
                return dict(turn["reply"])
            if turn.get("problem"):
                raise StackError(str(turn["problem"].get("code", "failed")))
            time.sleep(0.5)
        raise StackError("no end of the turn in time")

    def await_task(self, id: str, patience: float, pause: float) -> dict[str, Any]:
        """A task once it has ended. One that waits for a person, or takes longer than `patience` seconds, is cancelled.

        Args:
            id: the task.
            patience: seconds that it may take.
            pause: seconds between two looks.

        Returns:
            The task as it was last seen; its status is `waiting` or `late` where it was cancelled.

        Raises:
            StackError: the stack does not tell.
        """
        path, end = f"/api/v1/tasks/{id}", time.monotonic() + patience
        while True:
            task = self.call("GET", path)
            if task["status"] in ENDS:
                return task
            asked = task["status"] == "waiting" and self._is_asked(task)
            if asked or time.monotonic() > end:
                with suppress(StackError):  # it may have ended by now
                    self.call("DELETE", path)
                return {**task, "status": "waiting" if asked else "late"}
            time.sleep(pause)

    def _is_asked(self, task: dict[str, Any]) -> bool:
        """Whether a task waits for a person's answer or approval; a wait for a date ends by itself."""
        if ((task.get("progress") or {}).get("waiting") or {}).get("kind") == "person":
            return True
        pending = self.call("GET", "/api/v1/approvals", params={"status": "pending"})["approvals"]
        return any(one["turn_id"] == task["task_id"] for one in pending)

    def call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """What a route answers, asked again while the stack is busy.

        Raises:
            StackError: it refused or failed; the text has its status.
        """
        headers = {"Idempotency-Key": uuid4().hex}
        end = time.monotonic() + self._patience
        while True:
            try:
                response = self._http.request(method, path, headers=headers, **arguments)
            except httpx.HTTPError as exc:
                raise StackError(f"{type(exc).__name__}: {exc}") from exc
            if response.is_success:
                return dict(response.json())
            if response.status_code not in _BUSY or time.monotonic() > end:
                raise StackError(f"{response.status_code} {response.text[:200]}")
            time.sleep(min(_MOST_WAIT, float(response.headers.get("Retry-After") or 1)))


def _reply(answered: dict[str, Any], seconds: float) -> Reply:
    analysis = answered.get("analysis") or {}
    confidence = answered.get("confidence", analysis.get("confidence"))
    rows = [row for chart in analysis.get("visualizations", ()) for row in _rows(chart.get("data"))]
    return Reply(
        text=answered["user_response"],
        rows=tuple(rows),
        notes=tuple(str(line) for line in analysis.get("analysis", ())),
        confidence=None if confidence is None else float(confidence),
        reasoner=str(answered.get("reasoner", "")),
        conversation=str(answered["conversation_id"]),
        seconds=seconds,
    )


def _rows(data: object) -> list[dict[str, Any]]:
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
