"""What the fake gateway remembers and answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

OPENED = "2026-01-02T03:04:05Z"


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    query: str
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


Fault = Callable[[], Response]


def problem(status: int, code: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Fault:
    """A fault: a problem document."""
    body = {"type": f"urn:phronesis:problem:{code}", "code": code, "status": status, "detail": detail, **more}
    return lambda: JSONResponse(body, status, headers, media_type="application/problem+json")


def _span(id: str, parent: str | None, service: str, name: str, start: int, end: int) -> dict[str, Any]:
    about = {"trace_id": "a" * 32, "span_id": id, "parent_id": parent, "service": service, "name": name}
    return about | {"start_ns": start * 1_000_000, "end_ns": end * 1_000_000}


SPANS = [
    _span("3", "2", "memory", "rpc retrieve", 4, 9),
    _span("1", None, "gateway", "POST messages", 1, 12),
    _span("2", "1", "orchestrator", "job turn", 2, 11),
]


def _not_found(detail: str) -> Response:
    return problem(404, "not_found", detail)()


@dataclass
class FakeGateway:
    """The state of the fake, and its switches."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    """Answered first, one a request, instead of the real answers."""
    cuts: deque[tuple[int, str]] = field(default_factory=deque)
    """Events, by id and kind, in the middle of which a stream breaks; one a stream."""
    turns: dict[str, dict[str, Any]] = field(default_factory=dict)
    conversations: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    items: list[dict[str, Any]] = field(default_factory=list)
    scopes: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    """First results by idempotency key."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    """Of the profile."""
    deletions: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: int = 2
    """How many times a deletion is looked at before it is complete."""
    approvals: dict[str, dict[str, Any]] = field(default_factory=dict)
    grants: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: list[dict[str, Any]] = field(
        default_factory=lambda: [{"policy": {"version": 0, "rules": [], "egress": [], "approval_seconds": 604800.0}}]
    )
    reports: dict[str, bytes] = field(default_factory=dict)
    """The report of every task, by its form; a form that is not there is of a task that goes on."""
    down: tuple[str, ...] = ()
    problem: dict[str, Any] | None = None
    """The problem that turns end with instead of a reply."""
    silent: bool = False
    """Whether turns stay running, and their streams open."""
    tools: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    """Further tools, by name."""
    closing: threading.Event = field(default_factory=threading.Event)

    def on(self, path: str) -> list[Seen]:
        """The requests that arrived on a path."""
        return [one for one in self.seen if one.path == path]

    def app(self) -> ASGIApp:
        """The routes."""
        routes = [
            Route("/health/ready", self._ready),
            Route("/api/v1/conversations/messages", self._send, methods=["POST"]),
            Route("/api/v1/conversations", self._conversations),
            Route("/api/v1/conversations/{id}", self._conversation),
            Route("/api/v1/conversations/{id}", self._delete, methods=["DELETE"]),
            Route("/api/v1/deletions/{id}", self._deletion),
            Route("/api/v1/turns", self._submit, methods=["POST"]),
            Route("/api/v1/turns", self._list),
            Route("/api/v1/turns/{id}", self._turn),
            Route("/api/v1/turns/{id}", self._cancel, methods=["DELETE"]),
            Route("/api/v1/turns/{id}/retry", self._retry, methods=["POST"]),
            Route("/api/v1/turns/{id}/events", self._events),
            Route("/api/v1/turns/{id}/trace", self._trace),
            Route("/api/v1/approvals", self._approvals),
            Route("/api/v1/approvals/{id}", self._approval, methods=["GET", "POST"]),
            Route("/api/v1/approval-grants", self._grants),
            Route("/api/v1/approval-grants/{id}", self._revoke_grant, methods=["DELETE"]),
            Route("/api/v1/action-policy", self._policy, methods=["GET", "PUT"]),
            Route("/api/v1/action-policy/versions", self._policy_versions),
            Route("/api/v1/tasks/{id}/report", self._report),
            Route("/api/v1/media", self._media, methods=["POST"]),
            Route("/api/v1/tools", self._tools),
            Route("/api/v1/tools/{name}", self._tool, methods=["POST"]),
            Route("/api/v1/keys", self._new_key, methods=["POST"]),
            Route("/api/v1/keys", self._keys),
            Route("/api/v1/keys/{id}", self._revoke, methods=["DELETE"]),
            Route("/api/v1/profile", self._profile, methods=["GET", "PUT", "PATCH", "DELETE"]),
        ]
        return Starlette(routes=routes)

    async def _ready(self, request: Request) -> Response:
        return JSONResponse({"ready": not self.down, "down": self.down}, 503 if self.down else 200)

    async def _send(self, request: Request) -> Response:
        turn = self._new_turn(await request.json(), request.headers["idempotency-key"])
        if turn["reply"] is None:
            return self._accepted(turn)
        return JSONResponse(turn["reply"])

    async def _submit(self, request: Request) -> Response:
        turn = self._new_turn(await request.json(), request.headers["idempotency-key"])
        return self._accepted(turn)

    def _accepted(self, turn: dict[str, Any]) -> Response:
        return JSONResponse({name: turn[name] for name in ("turn_id", "conversation_id", "status")}, 202)

    def _new_turn(self, body: dict[str, Any], key: str) -> dict[str, Any]:
        if key in self.results:
            return self.turns[self.results[key]]
        turn, conversation = str(uuid4()), body.get("conversationId") or str(uuid4())
        self.results[key] = turn
        said = self.conversations.setdefault(conversation, [])
        text = body["currentMessageText"]
        answer = f"answer {len(said) // 2 + 1} to: {text}"
        for role, words in (("user", text), ("assistant", answer)):
            said.append({"seq": len(said) + 1, "turn_id": turn, "role": role, "text": words, "created_at": OPENED})
        self.turns[turn] = self._row(turn, conversation, answer)
        return self.turns[turn]

    def _row(self, turn: str, conversation: str, answer: str) -> dict[str, Any]:
        reply = {
            "conversation_id": conversation,
            "turn_id": turn,
            "user_response": answer,
            "next_agent_directive": "focused_analyst",
            "reasoner": "extractive",
            "degraded": ["graph"],
            "sources": [{"id": "s1", "type": "Concept", "title": "A source", "score": 0.75, "snippet": "words"}],
            "usage": {"input_tokens": 1, "output_tokens": 2, "model_calls": 0, "ms": 3},
        }
        ended = self.problem is None and not self.silent
        return {
            "turn_id": turn,
            "conversation_id": conversation,
            "agent": "dialogue",
            "status": "running" if self.silent else "failed" if self.problem else "completed",
            "sequence": len(self.turns) + 1,
            "attempts": 1,
            "created_at": OPENED,
            "reply": reply if ended else None,
            "problem": self.problem,
        }

    async def _conversation(self, request: Request) -> Response:
        id = request.path_params["id"]
        if id not in self.conversations:
            return _not_found("no such conversation")
        about = {"conversation_id": id, "agent": "dialogue", "directive": "focused_analyst", "created_at": OPENED}
        return JSONResponse(about | {"messages": self.conversations[id]})

    async def _conversations(self, request: Request) -> Response:
        limit, after = int(request.query_params["limit"]), int(request.query_params.get("cursor", "0"))
        ids = list(reversed(self.conversations))
        shown = [self._about(id) for id in ids[after : after + limit]]
        more = len(ids) > after + limit
        return JSONResponse({"conversations": shown, "next": str(after + limit) if more else None})

    def _about(self, id: str) -> dict[str, Any]:
        said = self.conversations[id]
        about = {"conversation_id": id, "agent": "dialogue", "directive": "focused_analyst", "created_at": OPENED}
        return about | {"title": said[0]["text"], "updated_at": OPENED, "turns": len(said) // 2}

    async def _delete(self, request: Request) -> Response:
        id = request.path_params["id"]
        known = next((one for one in self.deletions.values() if one["conversation_id"] == id), None)
        if known is None:
            if self.conversations.pop(id, None) is None:
                return _not_found("no such conversation")
            known = {"deletion_id": str(uuid4()), "conversation_id": id, "state": "pending", "requested_at": OPENED}
            self.deletions[known["deletion_id"]] = known
        return JSONResponse(known, 202)

    async def _deletion(self, request: Request) -> Response:
        found = self.deletions.get(request.path_params["id"])
        if found is None:
            return _not_found("no such deletion")
        self.looks -= 1
        if self.looks <= 0:
            found |= {"state": "complete", "completed_at": OPENED, "removed": {"memory": {"items": 2, "sources": 2}}}
        return JSONResponse(found)

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"turns": [{**turn, "reply": None} for turn in reversed(self.turns.values())]})

    async def _turn(self, request: Request) -> Response:
        turn = self.turns.get(request.path_params["id"])
        return JSONResponse(turn) if turn else _not_found("no such turn")

    async def _approvals(self, request: Request) -> Response:
        wanted = request.query_params.get("status")
        return JSONResponse({"approvals": [one for one in self.approvals.values() if wanted in (None, one["status"])]})

    async def _approval(self, request: Request) -> Response:
        found = self.approvals.get(request.path_params["id"])
        if found is None:
            return _not_found("no such approval")
        if request.method == "POST":
            given = await request.json()
            status = {"approve": "granted", "refuse": "refused"}[given["decision"]]
            if found["status"] not in ("pending", status):
                return problem(409, "approval_answered", f"the approval is {found['status']}")()
            found |= {"status": status, "note": given["note"], "scope": given["scope"], "answered_by": "ann"}
        return JSONResponse(found)

    async def _grants(self, request: Request) -> Response:
        every = request.query_params["revoked"] == "true"
        return JSONResponse({"grants": [one for one in self.grants.values() if every or one["revoked_at"] is None]})

    async def _revoke_grant(self, request: Request) -> Response:
        found = self.grants.get(request.path_params["id"])
        if found is None:
            return problem(404, "unknown_grant", "no such grant")()
        found |= {"revoked_at": OPENED, "revoked_by": "ann"}
        return JSONResponse(found)

    async def _policy(self, request: Request) -> Response:
        if request.method == "PUT":
            given = await request.json()
            if given["replaces"] != len(self.policies) - 1:
                return problem(409, "policy_changed", "another version is in force")()
            base = given if "restores" not in given else self.policies[given["restores"]]["policy"]
            policy = {name: base[name] for name in ("rules", "egress", "approval_seconds")}
            made = {"policy": {"version": len(self.policies), **policy}, "changed_at": OPENED, "changed_by": "ann"}
            self.policies.append({**made, "restores": given.get("restores")})
        version = request.query_params.get("version")
        return JSONResponse(self.policies[-1 if version is None else int(version)])

    async def _policy_versions(self, request: Request) -> Response:
        return JSONResponse({"versions": self.policies[:0:-1]})

    async def _cancel(self, request: Request) -> Response:
        turn = self.turns[request.path_params["id"]]
        if turn["status"] != "running":
            return problem(409, "turn_ended", f"the turn is {turn['status']}")()
        turn["status"] = "cancelled"
        return JSONResponse(turn)

    async def _retry(self, request: Request) -> Response:
        old = self.turns[request.path_params["id"]]
        new = str(uuid4())
        self.turns[new] = self._row(new, old["conversation_id"], "again") | {"retry_of": old["turn_id"]}
        return JSONResponse(self.turns[new], 202)

    async def _events(self, request: Request) -> Response:
        turn = request.path_params["id"]
        if turn not in self.turns:
            return _not_found("no such turn")
        after = int(request.headers.get("last-event-id", "0"))
        return StreamingResponse(self._lines(turn, after), media_type="text/event-stream")

    async def _lines(self, turn: str, after: int) -> AsyncIterator[bytes]:
        yield b"retry: 10\n: hello\n\n"
        for id, kind, data in self._told(turn):
            if id <= after and kind in ("accepted", "phase"):
                continue
            if kind == "ended" and self.silent:
                await asyncio.to_thread(self.closing.wait)
                return
            text = f"id: {id}\nevent: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
            if self.cuts and self.cuts[0] == (id, kind):
                self.cuts.popleft()
                yield text[: len(text) // 2]
                raise ConnectionError("the stream is cut here")
            yield text

    def _told(self, turn: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """The events of a turn; those of its end share the id of the last progress."""
        yield 1, "accepted", {"turn_id": turn}
        yield 2, "phase", {"phase": "routed"}
        yield 3, "phase", {"phase": "an\u2028swered"}
        yield 4, "ended", {"turn_id": turn}
        yield 4, "text", {"k": 1, "n": 2, "text": "one "}
        yield 4, "text", {"k": 2, "n": 2, "text": "two"}
        yield 4, "done", self.turns[turn]

    async def _trace(self, request: Request) -> Response:
        turn = request.path_params["id"]
        return JSONResponse({"turn_id": turn, "trace_id": "a" * 32, "spans": SPANS, "missing": ["media"]})

    async def _report(self, request: Request) -> Response:
        made = self.reports.get(request.query_params["format"])
        return Response(made) if made is not None else problem(409, "task.not_ended", "the task is running")()

    async def _media(self, request: Request) -> Response:
        async with request.form() as form:
            file: Any = form["file"]
            content, id = await file.read(), str(uuid4())
            self.uploads[id] = content
            about = {"id": id, "name": file.filename, "type": "text/plain", "kind": "document", "sha256": "0" * 64}
        return JSONResponse(about | {"size": len(content)}, 201)

    async def _tools(self, request: Request) -> Response:
        return JSONResponse(
            {"tools": [{"name": "recall", "description": "Find.", "parameters": {"type": "object"}, "risk": "read"}]}
        )

    async def _tool(self, request: Request) -> Response:
        body, key = await request.json(), request.headers.get("idempotency-key")
        if key is not None and key in self.results:
            return JSONResponse(self.results[key])
        match request.path_params["name"]:
            case "remember":
                result = self._remember(body)
            case "recall":
                result = {"items": self.items[: body.get("limit", 10)]}
            case "forget":
                result = self._forget(body)
            case "keep_memory" | "recall_memory" | "forget_memory" as name:
                result = self._scoped(name, body)
            case "graph_upsert":
                result = self._upsert(body)
            case name if name in self.tools:
                result = self.tools[name](body)
            case _:
                return _not_found("no such tool")
        if key is not None:
            self.results[key] = result
        return JSONResponse(result)

    def _remember(self, body: dict[str, Any]) -> dict[str, Any]:
        stored = []
        for item in body["items"]:
            id = str(uuid4())
            about = {"id": id, "external_id": item.get("external_id"), "kind": item.get("kind", "fact")}
            self.items.append(about | {"title": item.get("title"), "text": item["text"], "score": 0.5, "why": {"text": 1.0}})
            stored.append({"id": id, "external_id": item.get("external_id"), "status": "created"})
        return {"items": stored}

    def _forget(self, body: dict[str, Any]) -> dict[str, Any]:
        gone = [item for item in self.items if item["id"] in body["ids"] or item["external_id"] in body["ids"]]
        self.items = [item for item in self.items if item not in gone]
        return {"count": len(gone), "ids": [item["id"] for item in gone]}

    def _scoped(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        held = self.scopes.setdefault(body["scope"], {})
        match name:
            case "keep_memory":
                status = "updated" if body["key"] in held else "created"
                held[body["key"]] = {name: body[name] for name in ("key", "content", "confidence")} | {"score": 0.5}
                return {"id": body["key"], "status": status}
            case "forget_memory":
                return {"id": (held.pop(body["key"], None) or {}).get("key")}
        fallback = body["scope"] == "departmental" and not held
        found = self.scopes.get("global", {}) if fallback else held
        return {"snippets": list(found.values())[: body["limit"]], "scope": "global" if fallback else body["scope"]}

    def _upsert(self, body: dict[str, Any]) -> dict[str, Any]:
        for node in body["nodes"]:
            key = f"{node['type']}/{node['id']}/{node['year']}"
            about = {"id": key, "external_id": key, "kind": "node", "title": node["name"], "text": node["name"]}
            self.items.append(about | {"score": 0.5, "why": {}})
        return {"nodes_created": len(body["nodes"])}

    async def _new_key(self, request: Request) -> Response:
        id = str(uuid4())
        self.keys[id] = {"id": id, **await request.json(), "created_at": OPENED, "revoked_at": None}
        return JSONResponse({**self.keys[id], "key": f"phr_{id}"}, 201)

    async def _keys(self, request: Request) -> Response:
        return JSONResponse({"keys": list(self.keys.values())})

    async def _revoke(self, request: Request) -> Response:
        key = self.keys.get(request.path_params["id"])
        if key is None:
            return _not_found("no such key")
        key["revoked_at"] = OPENED
        return Response(status_code=204)

    async def _profile(self, request: Request) -> Response:
        expected = request.headers.get("if-match")
        if request.method != "GET" and expected not in (None, f'"{self.version}"'):
            return problem(412, "memory.profile_changed", "the profile has changed", field="If-Match")()
        match request.method:
            case "PUT":
                self.profile = (await request.json())["profile"]
            case "PATCH":
                changed = self.profile | (await request.json())["profile"]
                self.profile = {name: value for name, value in changed.items() if value is not None}
            case "DELETE":
                self.profile = {}
        self.version += request.method != "GET"
        return JSONResponse({"profile": self.profile, "version": self.version})
