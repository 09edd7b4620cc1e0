"""A constitutional graph that works in memory, behind the fake gateway: what the command is tested against."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.constitution.registry import TYPES, lifecycle_of
from tests.support.fake_routes import FakeGateway

_AT = "2026-01-05T08:00:00Z"


class FakeConstitution:
    """Answers the tools that the command calls.

    Args:
        gateway: where it is reached.
    """

    def __init__(self, gateway: FakeGateway) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.links: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.embedded: list[str] = []
        self.asked: list[dict[str, Any]] = []
        """Bodies of searches and backups."""
        self.findings: list[str] = []
        """What is wrong with the vectors."""
        gateway.tools |= {
            "constitution.load.v1": self._load,
            "graph.getAll.v1": self._all,
            "embeddings.regenerate.v1": self._regenerate,
            "embeddings.status.v1": self._vectors,
            "node.get.v1": self._get,
            "semantic.search.v1": self._semantic,
            "hybrid.search.v1": self._hybrid,
            "discuss_goal_ladder": self._ladder,
            "session.start.v1": self._session,
            "schema.inventory.v1": self._inventory,
            "backup.restore.v1": self._backup,
        }

    def _load(self, body: dict[str, Any]) -> dict[str, Any]:
        there = [id for id in body.get("remove", ()) if self.nodes.pop(id, None)]
        nodes = {node["id"]: node for node in body.get("nodes", ())}
        created = len(nodes.keys() - self.nodes.keys())
        before = len(self.links)
        self.nodes |= {id: self._shown(node) for id, node in nodes.items()}
        for link in body.get("relationships", ()):
            triple = link["fromId"], link["type"], link["toId"]
            self.links.setdefault(triple, {"id": f"r{len(self.links)}", **link})
        figures = {"created": created, "updated": 0, "unchanged": len(nodes) - created, "removed": len(there)}
        return figures | {"relationships": len(self.links) - before}

    def _shown(self, node: dict[str, Any]) -> dict[str, Any]:
        times = {"createdAt": _AT, "updatedAt": _AT, "version": 1}
        return {"status": "active", **node, "layer": TYPES[node["type"]].layer.value, **times}

    def _all(self, body: dict[str, Any]) -> dict[str, Any]:
        of_status = [node for node in self.nodes.values() if lifecycle_of(node["status"]).value == body["status"]]
        start = int(body.get("cursor") or 0)
        page = of_status[start : start + 10]
        next = str(start + 10) if start + 10 < len(of_status) else None
        return {"nodes": page, "relationships": [], "stats": {}, "nextCursor": next}

    def _regenerate(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = body.get("ids") or list(self.nodes)
        self.embedded += ids
        return {"embedded": len(ids), "unchanged": 0, "skipped": 0, "failed": 0, "removed": 0}

    def _vectors(self, body: dict[str, Any]) -> dict[str, Any]:
        checks = [{"nodeId": id, "norm": 1.0, "rank": 1} for id in list(self.nodes)[: body.get("spotCheck", 0)]]
        return {"findings": self.findings, "scopes": [], "counts": [], "spotChecks": checks}

    def _get(self, body: dict[str, Any]) -> dict[str, Any]:
        links = [link for link in self.links.values() if body["id"] in (link["fromId"], link["toId"])]
        return {"node": self.nodes[body["id"]], "relationships": links}

    def _semantic(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        hits = [{"node": node, "score": 0.5} for node in list(self.nodes.values())[: body["topK"]]]
        return {"results": hits, "stats": {"totalResults": len(hits), "avgScore": 0.5, "tokenEstimate": 99}}

    def _hybrid(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        anchor = self.nodes[body["anchorNodeId"]]
        link = next(link for link in self.links.values() if link["fromId"] == anchor["id"])
        found = self.nodes[link["toId"]]
        path = [
            {"nodeId": anchor["id"], "type": anchor["type"], "title": anchor["title"]},
            {"nodeId": found["id"], "type": found["type"], "title": found["title"]}
            | {"relationship": link["type"], "direction": "out"},
        ]
        scores = {"structuralScore": 1.0, "semanticScore": 0.25, "finalScore": 0.7}
        return {"results": [{"node": found, **scores, "path": path}], "stats": {"totalResults": 1, "tokenEstimate": 42}}

    def _ladder(self, body: dict[str, Any]) -> dict[str, Any]:
        found, at = [], body["id"]
        while at:
            found.append({key: self.nodes[at][key] for key in ("id", "type", "title")})
            up = (link["toId"] for link in self.links.values() if (link["fromId"], link["type"]) == (at, "SUPPORTED_BY"))
            at = next((id for id in up if self.nodes[id]["type"] in ("goal", "vision")), "")
        return {"ladder": found, "depth": len(found) - 1, "tokenEstimate": 12}

    def _session(self, body: dict[str, Any]) -> dict[str, Any]:
        by_layer = {name: [n for n in self.nodes.values() if n["layer"] == name] for name in ("foundation", "vision")}
        capacity = {"availableHours": 40.0, "scheduledHours": 31.0, "utilizationPercent": 77.5, "zone": "yellow"}
        workload = {"startDate": "2026-01-05", "endDate": "2026-01-12", "capacity": capacity}
        stats = {"totalNodes": 17, "totalTokens": 3, "foundationTokens": 1, "visionTokens": 1, "workloadTokens": 1}
        return by_layer | {
            "sessionId": "s",
            "workload": workload | {"tasks": {}, "calendar": {}, "recommendations": ["Take on nothing new this week."]},
            "stats": stats | {"loadTime": 12.0},
            "warnings": ["calendar: not set"],
        }

    def _inventory(self, body: dict[str, Any]) -> dict[str, Any]:
        row = {
            "type": "goal",
            "label": "Goal",
            "layer": "vision",
            "tier": "P1",
            "retrieval": "always",
            "properties": {},
            "statuses": ["active"],
        }
        return {
            "layers": ["foundation", "vision"],
            "retrieval": {"vision": "always"},
            "types": [row | {"count": len(self.nodes)}],
            "relationshipTypes": [{"type": "SPEAKS_FOR", "declared": False, "count": len(self.links)}],
            "indexes": [{"name": "odei_node_status", "type": "RANGE", "state": "ONLINE", "populationPercent": 100.0}],
            "totalNodes": len(self.nodes),
            "totalRelationships": len(self.links),
        }

    def _backup(self, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        if body["operation"] == "restore":
            return {"restoredNodes": 45, "restoredRelationships": 48, "restoredEmbeddings": 36, "removedNodes": 2}
        one = {"id": "b1", "createdAt": _AT, "nodes": 45, "relationships": 48, "embeddings": 36, "bytes": 9000, "digest": "d"}
        return {"backups": [one]} | ({"confirmation": "heron"} if body["operation"] == "verify" else {})
