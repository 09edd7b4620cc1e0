"""Where the platform works on the rows of every tenant: in few places, and all of them are named here."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = {
    "libs/postgres/phronesis_postgres/writes.py": {"unsent", "waiting", "sent"},
    "libs/postgres/phronesis_postgres/pool.py": {"reach_of", "begin_statements"},
    "libs/postgres/phronesis_postgres/schemas.py": {"_uri"},
    "services/gateway/phronesis_gateway/auth/store.py": {
        *("by_hash", "by_id", "of", "revoke", "revoked_of_bus", "key_of", "end")
    },
    "services/gateway/phronesis_gateway/auth/users.py": {"claim_erasure", "claim_retention", "end_expired_keys"},
    "services/memory/phronesis_memory/constitution/pgvector.py": {"warm"},
    "services/memory/phronesis_memory/constitution/queue.py": {"take", "renew", "left", "look"},
    "services/memory/phronesis_memory/constitution/weaviate.py": {"clear"},
    "services/memory/phronesis_memory/constitution/search_store.py": {"prune"},
    "services/memory/phronesis_memory/documents/store.py": {"claim"},
    "services/memory/phronesis_memory/facts/forgetting.py": {"repeat"},
    "services/memory/phronesis_memory/memories/ending.py": {"expire"},
    "services/memory/phronesis_memory/memories/store.py": {"claim"},
    "services/memory/phronesis_memory/vectors/pgvector.py": {"scan", "clear"},
    "services/memory/phronesis_memory/vectors/sync.py": {"look", "drain", "_left", "_sweep"},
    "services/memory/phronesis_memory/items/store.py": {"count_items", "walk_items", "find_existing"},
    "services/memory/phronesis_memory/vectors/weaviate_index.py": {"clear"},
    "services/memory/phronesis_memory/rebuild.py": {"_put"},
    "services/orchestrator/phronesis_orchestrator/turns/store.py": {"claim", "renew", "look"},
    "services/orchestrator/phronesis_orchestrator/conversations/forgetting.py": {"claim"},
    "services/orchestrator/phronesis_orchestrator/learning/store.py": {"claim"},
    "services/orchestrator/phronesis_orchestrator/approvals/store.py": {"expire"},
    "services/orchestrator/phronesis_orchestrator/tasks/schedules.py": {"start_due"},
    "services/orchestrator/phronesis_orchestrator/tasks/store.py": {"end_due"},
}
"""By file the functions that say `EVERY_TENANT`; `docs/reference/tenants-in-postgres.md` lists each file with its reason."""


def _functions(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text if "EVERY_TENANT" in text else "")
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        function.name
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == "EVERY_TENANT"
    }


def test_only_the_platforms_own_work_reaches_every_tenant() -> None:
    files = [path for folder in ("libs", "services", "deploy") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): functions for path in files if (functions := _functions(path))}
    assert found == PLACES


def test_what_reaches_every_tenant_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "tenants-in-postgres.md").read_text(encoding="utf-8")
    section = page.partition("## What reaches every tenant")[2].partition("\n## ")[0]
    assert {path for path in PLACES if path.split("/", 2)[2] not in section} == set()
