"""What ships becomes the live rows: texts, agents' profiles, and the platform's own releases."""

from __future__ import annotations

from collections.abc import Iterable

import phronesis_tokens as tokens
from phronesis_contracts import SYSTEM_TENANT
from phronesis_postgres import Connection

from ..domain.agents import AgentContent
from ..domain.matrix import Matrix
from ..domain.ordering import replaces
from ..domain.texts import Text

_KEPT = 100
"""The platform's releases that are kept, without their texts: those are in `instruction_history`."""
_BUNDLE = """
INSERT INTO instruction_bundles AS live (tag, content, version, status, avg_tokens, category)
VALUES ($1, $2, $3, 'active', $4, $5)
ON CONFLICT (tag) DO UPDATE SET content = excluded.content, version = excluded.version, status = 'active',
    avg_tokens = excluded.avg_tokens, category = excluded.category
WHERE (live.content, live.status, live.category) IS DISTINCT FROM (excluded.content, 'active', excluded.category)
RETURNING tag
"""
_ELEMENT = """
INSERT INTO instruction_elements AS live
    (tag, content, version, status, avg_tokens, tier, dependencies, use_cases, position)
VALUES ($1, $2, $3, 'active', $4, $5, $6, $7, $8)
ON CONFLICT (tag) DO UPDATE SET content = excluded.content, version = excluded.version, status = 'active',
    avg_tokens = excluded.avg_tokens, tier = excluded.tier, dependencies = excluded.dependencies,
    use_cases = excluded.use_cases, position = excluded.position
WHERE (live.content, live.status, live.tier, live.dependencies, live.use_cases, live.position)
    IS DISTINCT FROM (excluded.content, 'active', excluded.tier, excluded.dependencies, excluded.use_cases, excluded.position)
RETURNING tag
"""
_PROFILE = """
INSERT INTO agent_profiles (agent, version, digest, loop, stages, prompts, directives, phrases, bootstrap)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (agent) DO UPDATE SET version = excluded.version, digest = excluded.digest, loop = excluded.loop,
    stages = excluded.stages, prompts = excluded.prompts, directives = excluded.directives, phrases = excluded.phrases,
    bootstrap = excluded.bootstrap, released_at = now()
"""
_LAST = "SELECT number, version, digest, tags FROM releases WHERE tenant = $1 AND active"
_RELEASE = """
INSERT INTO releases (tenant, number, version, digest, tags, active, published_by) VALUES ($1, $2, $3, $4, $5, true, $6)
"""


async def ship_matrix(connection: Connection, matrix: Matrix, by: str) -> list[str] | None:
    """Write the matrix; returns the tags of what changed, or `None` where it is not new."""
    last = await connection.fetchrow(_LAST, SYSTEM_TENANT)
    if not replaces(matrix.version, matrix.digest(), None if last is None else (last["version"], last["digest"])):
        return None
    texts = matrix.texts()
    changed = await _write(connection, texts)
    tags = [text.tag for text in texts]
    number = 1
    if last is not None:
        changed += await _retire(connection, set(last["tags"]) - set(tags))
        number = last["number"] + 1
        await connection.execute("UPDATE releases SET active = false WHERE tenant = $1 AND active", SYSTEM_TENANT)
    await connection.execute(_RELEASE, SYSTEM_TENANT, number, matrix.version, matrix.digest(), tags, by)
    await connection.execute("DELETE FROM releases WHERE tenant = $1 AND number <= $2", SYSTEM_TENANT, number - _KEPT)
    return changed


async def ship_agent(connection: Connection, content: AgentContent) -> list[str] | None:
    """Write an agent's texts and its profile; returns the tags of what changed, or `None` where it is not new."""
    last = await connection.fetchrow("SELECT * FROM agent_profiles WHERE agent = $1", content.agent)
    if not replaces(content.version, content.digest(), None if last is None else (last["version"], last["digest"])):
        return None
    texts = _texts(content)
    changed = await _write(connection, texts)
    if last is not None:
        had = {*last["prompts"].values(), *last["directives"].values()}
        changed += await _retire(connection, had - {text.tag for text in texts})
    await connection.execute(
        _PROFILE,
        content.agent,
        content.version,
        content.digest(),
        content.loop,
        list(content.stages),
        content.prompt_tags(),
        content.directive_tags(),
        content.phrases,
        content.bootstrap,
    )
    return [*changed, f"agent/{content.agent}"]


def _texts(content: AgentContent) -> list[Text]:
    def text(tag: str, said: str) -> Text:
        if tag in bundles:
            return Text(tag, "bundle", said, content.version, "active", tokens.count(said), category="agent_prompt")
        return Text(tag, "element", said, content.version, "active", tokens.count(said), tier=1, use_cases=("directive",))

    bundles = {tag: content.prompts[purpose] for purpose, tag in content.prompt_tags().items()}
    directives = {tag: content.directives[name] for name, tag in content.directive_tags().items()}
    return [text(tag, said) for tag, said in {**bundles, **directives}.items()]


async def _write(connection: Connection, texts: Iterable[Text]) -> list[str]:
    """Write live texts; returns the tags of those that changed."""
    changed = []
    for text in texts:
        written = (text.tag, text.content, text.version, text.tokens)
        if text.kind == "bundle":
            tag = await connection.fetchval(_BUNDLE, *written, text.category)
        else:
            more = (list(text.dependencies) or None, list(text.use_cases), text.position)
            tag = await connection.fetchval(_ELEMENT, *written, text.tier, *more)
        if tag:
            changed.append(text.tag)
    return changed


async def _retire(connection: Connection, tags: set[str]) -> list[str]:
    """Deprecate texts that there are no more; returns their tags."""
    for table in ("instruction_bundles", "instruction_elements"):
        await connection.execute(f"UPDATE {table} SET status = 'deprecated' WHERE tag = ANY($1)", list(tags))  # noqa: S608
    return sorted(tags)
