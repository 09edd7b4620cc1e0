"""Random calls of somebody who wants what another tenant has: every route, every tool by every face, with its ids and words.

The same seed makes the same calls, but for the ids of the stack at hand.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from phronesis_contracts import Risk, Tool
from phronesis_contracts.catalog import TOOLS
from tests.support.belongings import TOPICS, Belongings

_BLIND = ("", "*", ">", "%", "a", "0", "null", "../..", "' OR 1=1 --", "\u202e", "system", "local", "local/owner")
_MOST = 3


@dataclass(frozen=True)
class Shot:
    """One call."""

    face: str
    """`http`, `sse`, `mcp` or `bus`."""
    what: str
    """The operation, as it is counted."""
    method: str = ""
    """Of HTTP."""
    target: str = ""
    """A path, a tool's name, or a subject."""
    body: Any = None
    query: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    upload: bytes | None = None
    names: str | None = None
    """The foreign id that it names alone: it has to be answered as one that is nobody's."""

    def instead(self, other: str) -> Shot:
        """The same call with another id in place of the one that it names."""
        assert self.names is not None
        body = json.loads(json.dumps(self.body).replace(self.names, other))
        query = {name: other if value == self.names else value for name, value in self.query.items()}
        return Shot(self.face, self.what, self.method, self.target.replace(self.names, other), body, query, self.headers)

    @property
    def said(self) -> str:
        """Everything that it says."""
        return f"{self.target} {json.dumps([self.body, self.query, self.headers], ensure_ascii=False)} {self.upload!r}"


class Calls:
    """Makes calls.

    Args:
        seed: of the choice.
        theirs: what the other tenant has.
        bus: the tenant whose subjects an outside system of one's own may use; `None` leaves the bus out.
    """

    def __init__(self, seed: int, theirs: Belongings, bus: str | None) -> None:
        self._random = random.Random(seed)
        self._theirs = theirs
        self._bus = bus
        self._ids = sorted(id for ids in theirs.ids.values() for id in ids)
        self._words = [*sorted(theirs.secrets), *TOPICS, *_BLIND]
        kinds: list[tuple[int, Callable[[], Shot]]] = [
            (30, self._thing),
            (8, self._list),
            (6, self._watch),
            (2, self._turn),
            (3, self._key),
            (2, self._profile),
            (1, self._upload),
            (20, self._tool_by_http),
            (12, self._tool_by_mcp),
            (2, self._mcp),
            (20 if bus else 0, self._tool_by_bus),
        ]
        self._weights, self._kinds = zip(*kinds, strict=True)

    def next(self) -> Shot:
        """The next call."""
        kind: Callable[[], Shot] = self._random.choices(self._kinds, self._weights)[0]
        return kind()

    def _one(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def _thing(self) -> Shot:
        """A thing of theirs, or a try at one, at the place where things of its kind stand or at another's."""
        method, template, kind = self._one(
            ("GET", "/api/v1/turns/{}", "turns"),
            ("DELETE", "/api/v1/turns/{}", "turns"),
            ("GET", "/api/v1/turns/{}/trace", "turns"),
            ("POST", "/api/v1/turns/{}/ticket", "turns"),
            ("POST", "/api/v1/turns/{}/retry", "turns"),
            ("GET", "/api/v1/conversations/{}", "conversations"),
            ("DELETE", "/api/v1/conversations/{}", "conversations"),
            ("GET", "/api/v1/deletions/{}", "deletions"),
            ("GET", "/api/v1/media/{}", "media"),
            ("GET", "/api/v1/keys/{}", "keys"),
            ("DELETE", "/api/v1/keys/{}", "keys"),
        )
        id = self._random.choice(self._theirs.ids[kind] if self._random.random() < 0.7 else self._ids)
        headers = self._claims() if self._random.random() < 0.2 else {}
        path = template.format(id if self._random.random() < 0.85 else self._mangled(id))
        names = id if path == template.format(id) else None
        return Shot("http", f"{method} {template.format('{id}')}", method, path, headers=headers, names=names)

    def _watch(self) -> Shot:
        """The events of a turn of theirs: with a key, or with a ticket that was made up."""
        id = self._random.choice(self._theirs.ids["turns"])
        place = self._one("/api/v1/turns/{}/events", "/api/v1/tasks/{}/events")
        headers = {"Last-Event-ID": str(self._random.randint(0, 99))} if self._random.random() < 0.5 else {}
        query, names = {}, id
        if self._random.random() < 0.3:
            query, names = {"ticket": self._one("", "x", f"{id}.{id}", "W10.W10", "eyJhbGciOiJub25lIn0.e30")}, None
        return Shot("sse", f"GET {place.format('{id}')}", "GET", place.format(id), query=query, headers=headers, names=names)

    def _mangled(self, id: str) -> str:
        other = self._one("*", "%2e%2e", f"{self._theirs.tenant}.{id}", f"{self._theirs.tenant}%2F{id}")
        return str(self._one(id.upper(), id[:-1], f"{id}%00", f"{id}%20", f"%2e%2e/{id}", f"{id};", other))

    def _claims(self) -> dict[str, str]:
        """Headers that grant nothing."""
        tenant, user = self._theirs.tenant, self._theirs.chief.user
        return dict(
            self._random.sample(
                [
                    ("X-Tenant", tenant),
                    ("X-User", user),
                    ("Phronesis-Principal", json.dumps({"tenant": tenant, "user": user, "role": "admin"})),
                    ("Phronesis-Service", "orchestrator"),
                    ("X-Forwarded-User", user),
                    ("Cookie", f"tenant={tenant}"),
                    ("Idempotency-Key", self._random.choice(self._ids)),
                ],
                2,
            )
        )

    def _list(self) -> Shot:
        path, names = self._one(
            ("/api/v1/turns", ("conversation_id", "limit", "status", "tenant", "user")),
            ("/api/v1/conversations", ("cursor", "limit", "tenant")),
            ("/api/v1/keys", ("tenant", "limit", "user")),
            ("/api/v1/tools", ("role",)),
            ("/api/v1/profile", ("user", "tenant")),
        )
        chosen = self._random.sample(names, self._random.randint(0, len(names)))
        query = {name: self._queried(name) for name in chosen}
        return Shot("http", f"GET {path}", "GET", path, query=query, headers=self._claims())

    def _queried(self, name: str) -> Any:
        match name:
            case "limit":
                return self._random.randint(1, 100)
            case "status":
                return self._one("completed", "failed", "running", "parked")
            case "tenant":
                return self._one(self._theirs.tenant, "system", "*")
            case "user":
                return self._theirs.user.user
        return self._random.choice(self._ids)

    def _turn(self) -> Shot:
        """A message: about what is theirs, or in what is theirs. What it says is kept, so it holds no secret."""
        body: dict[str, Any] = {"currentMessageText": f"What do you know of the {self._one(*TOPICS)}?"}
        match self._random.randint(0, 5):
            case 0 | 1 | 2:
                body["conversationId"] = self._random.choice(self._theirs.ids["conversations"])
            case 3 | 4:
                body["currentMessageMedia"] = [{"mediaId": self._random.choice(self._theirs.ids["media"])}]
        path = self._one("/api/v1/turns", "/api/v1/conversations/messages")
        named = body.get("conversationId") or (body.get("currentMessageMedia") or [{}])[0].get("mediaId")
        return Shot("http", f"POST {path}", "POST", path, body, names=named)

    def _key(self) -> Shot:
        body = {
            "user": self._theirs.chief.user,
            "role": self._one("owner", "admin", "member", "reader", "noor"),
            "tenant": self._theirs.tenant,
        }
        if self._random.random() < 0.3:
            body = {"user": "mallory", "scopes": ["operator"]}
        path = self._one("/api/v1/keys", "/api/v1/keys/bus")
        return Shot("http", f"POST {path}", "POST", path, body)

    def _profile(self) -> Shot:
        body = {"profile": {"likes": self._one(*TOPICS)}}
        return Shot("http", "PUT /api/v1/profile", "PUT", "/api/v1/profile", body, headers=self._claims())

    def _upload(self) -> Shot:
        """A file with the name of theirs, or its beginning: what is read once for them is not read for others."""
        return Shot("http", "POST /api/v1/media", "POST", "/api/v1/media", upload=b"The contract number is unknown.")

    def _tool(self) -> tuple[Tool[Any, Any], dict[str, Any]]:
        tool = TOOLS[self._random.choice(sorted(TOOLS))]
        if tool.name == "recall" and self._random.random() < 0.7:
            return tool, {"query": self._random.choice(self._words) or "anything", "limit": 100}
        words = self._words if tool.risk is Risk.READ else list(TOPICS)
        schema = tool.rpc.input.model_json_schema()
        made: dict[str, Any] = self._value(schema, schema.get("$defs", {}), words)
        return tool, made

    def _value(self, schema: dict[str, Any], defs: dict[str, Any], words: Sequence[str], depth: int = 0) -> Any:
        """Something of the form of `schema`, with their ids and `words` in place of texts."""
        if "$ref" in schema:
            return self._value(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, words, depth)
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self._value(self._random.choice(schema[several]), defs, words, depth)
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                needed = schema.get("required", ())
                fields = schema.get("properties", {}).items()
                chosen = [(name, each) for name, each in fields if name in needed or self._random.random() < 0.4]
                return {name: self._value(each, defs, words, depth + 1) for name, each in chosen} if depth < 6 else {}
            case "array":
                count = self._random.randint(schema.get("minItems", 0), max(_MOST, schema.get("minItems", 0)))
                return [self._value(schema.get("items", {}), defs, words, depth + 1) for _ in range(count)]
            case "integer" | "number":
                low, high = schema.get("minimum", 0), schema.get("maximum", 100)
                return self._random.randint(int(low), int(high))
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
        return self._text(schema, words)

    def _text(self, schema: dict[str, Any], words: Sequence[str]) -> str:
        if "pattern" in schema:
            return str(self._one("Q1", "2024", "a"))
        # What a write would keep is not taken for a leak when it is read again: it names no secret but ids of nothing.
        ids = self._ids if words is self._words else [uuid4().hex]
        return str(self._random.choice(ids if self._random.random() < 0.6 else words))

    def _tool_by_http(self) -> Shot:
        tool, given = self._tool()
        headers = {"Idempotency-Key": self._random.choice(self._ids)} if self._random.random() < 0.2 else {}
        path = f"/api/v1/tools/{tool.name}"
        return Shot("http", f"tool {tool.name}", "POST", path, given, headers=headers, names=self._alone(tool, given))

    def _tool_by_mcp(self) -> Shot:
        tool, given = self._tool()
        return Shot("mcp", f"tool {tool.name}", target=tool.name, body=given, names=self._alone(tool, given))

    def _mcp(self) -> Shot:
        """The tools that MCP has beside, with their ids."""
        name, field = self._one(("turn_get", "turn_id"), ("ask", "conversation_id"))
        id = self._random.choice(self._ids)
        body = {field: id} | ({"message": "Hello!", "wait": 0} if name == "ask" else {})
        return Shot("mcp", name, target=name, body=body, names=id)

    def _tool_by_bus(self) -> Shot:
        """A tool by its subject: in one's own tenant mostly, in theirs else, where the broker has to refuse it."""
        tool, given = self._tool()
        own = self._random.random() < 0.95
        subject = tool.rpc.on(self._bus if own and self._bus else self._theirs.tenant)
        names = self._alone(tool, given) if own else None
        return Shot("bus", f"tool {tool.name}" if own else "a subject of theirs", target=subject, body=given, names=names)

    def _alone(self, tool: Tool[Any, Any], given: dict[str, Any]) -> str | None:
        """The id of a call that holds nothing else."""
        [name, value] = next(iter(given.items()), ("", None)) if len(given) == 1 else ("", None)
        alone = name.endswith("_id") and value in self._ids
        return str(value) if alone and tool.risk is Risk.READ else None
