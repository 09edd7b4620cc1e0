"""Rows that each version of each schema could hold, one statement a line, in the form of that version."""

from __future__ import annotations

_ID = "00000000-0000-4000-8000-{:012}"
_OUTBOX = "INSERT INTO outbox (tenant, subject, body, headers) VALUES ('acme', 'evt.acme.x', 'news', '{\"a\": \"b\"}');"


def _id(number: int) -> str:
    return f"'{_ID.format(number)}'"


def _key(number: int, more: str = "", values: str = "") -> str:
    return (
        f'INSERT INTO keys (id, tenant, "user", role, hash, prefix{more}) '
        f"VALUES ({_id(number)}, 'acme', 'ann', 'noor', decode(repeat('{number:02}', 32), 'hex'), 'phr_'{values});"
    )


ROWS: dict[str, dict[str, str]] = {
    "gateway": {
        "0001-keys": "\n".join((_key(1), _OUTBOX)),
        "0002-bus-keys": _key(2, ", bus, expires_at", ", true, now() + interval '1 day'"),
        "0003-tenants": _OUTBOX,
        "0004-erasures": "\n".join(
            (
                f"INSERT INTO erasures (id, tenant, user_id, requested_by) VALUES ({_id(1)}, 'acme', 'ann', 'root');",
                "INSERT INTO retention (tenant, days, updated_by) VALUES ('acme', '{}', 'root');",
            )
        ),
        "0005-roles": "\n".join(
            (
                _key(3, ", access, agents", ", 'member', '{noor}'"),
                _key(4, ", access, agents", ", 'owner', '{}'"),
                _key(5, ", access, agents", ", 'reader', '{discuss,mind}'"),
                _key(6),
            )
        ),
        "0006-sessions": "\n".join(
            (
                'INSERT INTO sessions (hash, tenant, "user", key, expires_at) VALUES '
                f"(decode(repeat('07', 32), 'hex'), 'acme', 'ann', {_id(6)}, now() + interval '8 hours');",
                "INSERT INTO used_tickets (hash, tenant, expires_at) VALUES "
                "(decode(repeat('08', 32), 'hex'), 'acme', now() + interval '1 minute');",
            )
        ),
        "0007-narrow-keys": "\n".join(
            (
                _key(9, ", access, agents, tools", ", 'member', '{noor}', '{recall}'"),
                _key(10, ", access, agents, expires_at", ", 'member', '{noor}', now() + interval '1 day'"),
            )
        ),
    },
    "instructions": {
        "0001-instructions": "\n".join(
            (
                "INSERT INTO instruction_bundles (tag, content) VALUES ('a/b', 'text');",
                "INSERT INTO instruction_elements (tag, content) VALUES ('c/d', 'text');",
                "INSERT INTO instruction_history (tag, content, version, status) VALUES ('a/b', 'old', '1.0.0', 'active');",
                "INSERT INTO agent_profiles (agent, version, digest, loop, stages, prompts, directives, phrases) "
                "VALUES ('dialogue', '1.0.0', 'd', 'router', '{}', '{}', '{}', '{}');",
                _OUTBOX,
                "INSERT INTO writes (tenant, service, key, arguments) VALUES ('acme', 'x', 'k', 'h');",
            )
        ),
        "0002-tenants": _OUTBOX,
        "0003-releases": "\n".join(
            (
                "UPDATE instruction_elements SET position = 1;",
                "INSERT INTO releases (tenant, number, published_by, active) VALUES ('acme', 1, 'ann', true);",
                "INSERT INTO release_texts (tenant, number, tag, kind, content, version, status) "
                "VALUES ('acme', 1, 'c', 'element', 'text', '1.0.0', 'active');",
                "INSERT INTO experiments (tenant, name) VALUES ('acme', 'e');",
                "INSERT INTO experiment_arms (tenant, experiment, arm, place, weight) VALUES ('acme', 'e', 'a', 0, 1);",
                "INSERT INTO arm_texts (tenant, experiment, arm, tag, content, avg_tokens) "
                "VALUES ('acme', 'e', 'a', 'c', 't', 1);",
                "INSERT INTO exposures (tenant, experiment, user_id, arm) VALUES ('acme', 'e', 'ann', 'a');",
                "INSERT INTO outcomes (tenant, experiment, user_id, metric, count, total) "
                "VALUES ('acme', 'e', 'ann', 'm', 1, 1);",
            )
        ),
        "0004-agents": (
            "INSERT INTO agent_versions (tenant, agent, number, definition, active, published_by) "
            "VALUES ('acme', 'librarian', 1, '{\"name\": \"librarian\"}', true, 'ann');"
        ),
    },
    "memory": {
        "0001-items": "\n".join(
            (
                "INSERT INTO scopes (tenant, owner, kind, items, words) VALUES ('acme', 'ann', 'episode', 1, 3);",
                "INSERT INTO items (id, tenant, owner, kind, external_id, body, metadata, content_hash, version) "
                f"VALUES ({_id(1)}, 'acme', 'ann', 'episode', 'e', 'said', '{{\"conversation_id\": \"c1\"}}', 'h', 1);",
                "INSERT INTO texts (item_id, tenant, owner, kind, family, length, terms, counts) "
                f"VALUES ({_id(1)}, 'acme', 'ann', 'episode', '', 3, '{{1,2,3}}', 'abc');",
                "INSERT INTO words (term, items) VALUES (1, 1), (2, 1), (3, 1);",
                "INSERT INTO embedding (model, dimension) VALUES ('words', 3);",
                "INSERT INTO vectors (item_id, tenant, owner, kind, family, model, dimension, embedding) "
                f"VALUES ({_id(1)}, 'acme', 'ann', 'episode', '', 'words', 3, '[1,0,0]');",
                "INSERT INTO nodes (tenant, key, version) VALUES ('acme', 'n', 1);",
                "INSERT INTO profiles (tenant, user_id, profile) VALUES ('acme', 'ann', '{\"name\": \"Ann\"}');",
                _OUTBOX,
                "INSERT INTO writes (tenant, service, key, arguments) VALUES ('acme', 'x', 'k', 'h');",
            )
        ),
        "0002-forgetting": "\n".join(
            (
                f"INSERT INTO sources (item_id, conversation_id) VALUES ({_id(1)}, 'c2');",
                "INSERT INTO tombstones (tenant, owner, name) VALUES ('acme', 'ann', 'conversation:c3');",
            )
        ),
        "0003-passages": "UPDATE vectors SET passages = ARRAY['[0,1,0]'::halfvec];",
        "0005-tenants": _OUTBOX,
        "0006-vector-changes": "\n".join(
            (
                "INSERT INTO vector_changes (tenant, item_id, owner, kind, family, embedding, passages) "
                f"VALUES ('acme', {_id(1)}, 'ann', 'episode', '', 'ab', '');",
                "INSERT INTO held_news (tenant, subject, body, headers, items) VALUES ('acme', 's', 'b', '{}', '{}');",
            )
        ),
        "0007-links": (
            "INSERT INTO items (id, tenant, owner, kind, body, content_hash, version) "
            f"VALUES ({_id(2)}, 'acme', 'ann', 'fact', 'more', 'h', 2);"
            f"INSERT INTO links (tenant, source, target, type) VALUES ('acme', {_id(1)}, {_id(2)}, 'MENTIONS');"
        ),
        "0008-rooms": (
            "INSERT INTO items (id, tenant, owner, kind, external_id, body, metadata, content_hash, version) "
            f"VALUES ({_id(3)}, 'acme', 'scope:secrets', 'fact', 'k', 'kept', '{{\"confidence\": 1}}', 'h', 3);"
        ),
        "0009-constitution": "\n".join(
            (
                "INSERT INTO constitution_nodes (tenant, node_id, type, layer, tier, lifecycle, title, version, born, "
                "changed_at, body, text_hash, tokens, state) SELECT 'acme', id, 'goal', 'vision', 1, 'active', 'T', 1, "
                "now(), now(), 'goal', 'h', 1, 'current' FROM unnest(ARRAY['a', 'b']) AS id;",
                "INSERT INTO constitution_vectors (tenant, node_id, type, layer, lifecycle, model, dimension, embedding) "
                "VALUES ('acme', 'a', 'goal', 'vision', 'active', 'words', 3, '[1,0,0]');",
                "INSERT INTO constitution_pairs (tenant, one_id, other_id, cosine) VALUES ('acme', 'a', 'b', 0.95);",
                "INSERT INTO constitution_versions (tenant, node_id, born, version, type, layer, operation, at, actor, "
                "changed, fields) VALUES ('acme', 'a', now(), 1, 'goal', 'vision', 'create', now(), 'ann', '{title}', '{}');",
                "INSERT INTO constitution_untold (tenant, node_id) VALUES ('acme', 'a');",
                "INSERT INTO constitution_schedule (name, next_at) VALUES ('nightly', now());",
            )
        ),
        "0010-retrievals": "\n".join(
            (
                "INSERT INTO constitution_retrievals (tenant, id, at, tool, actor, question_hash, arguments, milliseconds, "
                "outcome, tokens, nodes, layers, cached, degraded) "
                f"VALUES ('acme', {_id(1)}, now(), 't', 'ann', 'h', '{{}}', 1, 'ok', 1, 1, '{{}}', false, '{{}}');",
                "INSERT INTO constitution_ratings (tenant, retrieval_id, node_id, rater, relevant) "
                f"VALUES ('acme', {_id(1)}, '', 'ann', true);",
                "INSERT INTO constitution_tuning (tenant, name, value) VALUES ('acme', 'semantic.minSimilarity', 0.5);",
            )
        ),
        "0011-topics": "\n".join(
            (
                "INSERT INTO constitution_topics (tenant, id, keywords) VALUES ('acme', 'topic-1', '{tea}');",
                "INSERT INTO constitution_topic_nodes (tenant, topic_id, node_id, layer, type, closeness) "
                "VALUES ('acme', 'topic-1', 'n', 'mind', 'note', 1);",
                "INSERT INTO constitution_topic_runs (tenant, computed_at, silhouette, unassigned) "
                "VALUES ('acme', now(), 0.5, 0);",
            )
        ),
        "0012-experience": "\n".join(
            (
                "INSERT INTO tool_outcomes (episode_id, place, tenant, owner, tool, ok, ms, at) "
                "SELECT id, 1, tenant, owner, 'tea', true, 1, now() FROM items;",
                "INSERT INTO strategies (item_id, tenant, owner, task_id, approach, score) "
                "SELECT id, tenant, owner, id, 'slowly', 0.8 FROM items;",
            )
        ),
        "0013-facts": "\n".join(
            (
                "INSERT INTO facts (id, tenant, owner, slot, value, kind, subject, predicate, object, body, negated,"
                " valid_from) "
                f"VALUES ({_id(9)}, 'acme', 'ann', 's', 'v', 'fact', 'user', 'p', 'o', 'said', false, now());",
                "INSERT INTO fact_sources (fact_id, source, said_at, origin, confidence) "
                f"VALUES ({_id(9)}, 'turn:t/0', now(), 'user', 0.9);",
                f"INSERT INTO forgettings (id, tenant, owner, ids, turns) VALUES ({_id(8)}, 'acme', 'ann', '{{i}}', '{{t}}');",
            )
        ),
        "0014-documents": (
            "INSERT INTO documents (tenant, owner, conversation_id, media_id, name, kind, passages, characters, length) "
            "VALUES ('acme', 'ann', 'c', 'm', 'a.pdf', 'document', 1, 10, 10);"
        ),
        "0015-memories": (
            "INSERT INTO items (id, tenant, owner, kind, title, body, content_hash, version, said_in, position, occurred_at) "
            f"VALUES ({_id(9)}, 'acme', 'ann', 'message', 'Ada', 'hello', 'h', 9, 'c', 1, now());"
            "INSERT INTO item_versions (item_id, version, body, metadata, since, until) "
            f"VALUES ({_id(9)}, 8, 'hi', '{{}}', now(), now());"
        ),
        "0016-unembedded": f"INSERT INTO unembedded (item_id, tenant, owner) VALUES ({_id(1)}, 'acme', 'ann');",
        "0017-notes": f"UPDATE facts SET predicate = 'noted', kind = 'note' WHERE id = {_id(9)};",
        "0018-expiry": "UPDATE items SET expires_at = now() + interval '1 day';",
        "0019-node-words": "UPDATE constitution_nodes SET body = 'goal\nMore light';",
        "0020-labels": "\n".join(
            f"""UPDATE {table} SET labels = '[{{"kind": "document", "id": "m", "name": "a.pdf"}}]';"""
            for table in ("items", "item_versions", "profiles", "facts", "fact_sources")
        ),
        "0021-derived": "UPDATE writes SET key = 't/step';",
        "0022-strategies-evidence": "\n".join(
            (
                "UPDATE strategies SET agent = 'nova', kind = 'report', ontology = '3', withdrawn = true, edited_at = now();",
                "INSERT INTO strategy_evidence (item_id, task_id, tenant, owner, accepted, verified_by) "
                "SELECT item_id, task_id, tenant, owner, true, 'person' FROM strategies;",
            )
        ),
        "0023-hnsw-links": _OUTBOX,
    },
    "orchestrator": {
        "0001-turns": "\n".join(
            (
                "INSERT INTO conversations (id, tenant, user_id, agent) "
                f"VALUES ({_id(1)}, 'acme', 'ann', 'dialogue'), ({_id(2)}, 'acme', 'bob', 'dialogue');",
                "INSERT INTO turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint, "
                "principal, expires_at) SELECT id, tenant, user_id, id, 1, agent, 'completed', '{}', 'f', '{}', now() "
                "FROM conversations;",
                "INSERT INTO journal (turn_id, step, fence, intent) SELECT id, 'route', 1, '{}' FROM turns;",
                "INSERT INTO messages (conversation_id, seq, turn_id, role, text) SELECT id, 1, id, 'user', 'hi' FROM turns;",
                "INSERT INTO directives (turn_id, conversation_id, directive, reasoning) SELECT id, id, 'd', 'r' FROM turns;",
                "INSERT INTO revoked_keys (key_id) VALUES ('k');",
                "INSERT INTO audit (news_id, tenant, service, who, role, action, outcome, arguments) "
                "VALUES ('n', 'acme', 'x', 'ann', 'noor', 'a', 'done', '{}');",
                _OUTBOX,
            )
        ),
        "0002-deletions": "\n".join(
            (
                f"INSERT INTO deletions (id, tenant, user_id, conversation_id) VALUES ({_id(3)}, 'acme', 'bob', {_id(2)});",
                "INSERT INTO deletion_reports (deletion_id, service, part, parts, removed) "
                f"VALUES ({_id(3)}, 'memory', 1, 1, '{{}}');",
                f"UPDATE conversations SET deleted_at = now() WHERE id = {_id(2)};",
            )
        ),
        "0003-summaries": "UPDATE conversations SET summary = '{}', summary_through = 2;",
        "0004-tenants": _OUTBOX,
        "0005-calendars": (
            "INSERT INTO calendars (tenant, user_id, source, hours, time_zone) "
            "VALUES ('acme', 'ann', 'none', '{8,8,8,8,8,0,0}', 'UTC');"
        ),
        "0006-approvals": (
            "INSERT INTO approvals (id, tenant, user_id, turn_id, conversation_id, agent, step, tool, action, arguments, "
            "digest, risk, irreversible, reason, status, expires_at) "
            "SELECT id, tenant, user_id, id, id, agent, 's', 't', '', '{}', 'd', "
            "'high', true, 'r', 'granted', now() FROM turns;"
        ),
        "0007-ledger": "\n".join(
            (
                "INSERT INTO ledger (tenant, user_id, agent, turn_id, step, purpose, model, outcome, attempts, input_tokens, "
                f"output_tokens, cached_tokens, reasoning_tokens, ms) VALUES ('acme', 'ann', 'dialogue', {_id(1)}, 'route', "
                "'router', 'm', 'ok', 1, 10, 5, 0, 0, 7);",
                "INSERT INTO limits (tenant, agent, user_id, period, tokens) VALUES ('acme', '', '', 'month', 1000);",
                "INSERT INTO traces (turn_id, tenant, user_id, record, memories) "
                f"VALUES ({_id(1)}, 'acme', 'ann', '{{}}', '{{i1}}');",
                "INSERT INTO ran_with (tenant, digest, profile) VALUES ('acme', 'd', '{}');",
            )
        ),
        "0008-outside": (
            "INSERT INTO outside_servers (tenant, name, url, seconds, created_by) "
            "VALUES ('acme', 'out', 'https://tools.example/mcp', 20, 'root');"
        ),
        "0009-learning": "UPDATE turns SET learnt = false, learn_attempts = 1, recalled = '{i}';",
        "0010-tasks": "\n".join(
            (
                f"INSERT INTO task_states (turn_id, tenant, state) VALUES ({_id(1)}, 'acme', '{{}}');",
                "INSERT INTO task_templates (tenant, user_id, signature, turn_id, plan) "
                f"VALUES ('acme', 'ann', 'report', {_id(1)}, '{{}}');",
            )
        ),
        "0011-focus": "UPDATE conversations SET focus = '{}';",
        "0012-acting": "UPDATE audit SET acted_by = 'backend';",
        "0013-labels": (
            """UPDATE turns SET labels = '[{"kind": "document", "id": "m", "name": "a.pdf"}]';"""
            "UPDATE messages SET attached = '{a.pdf}';"
        ),
        "0014-policies": "\n".join(
            (
                "INSERT INTO action_policies (tenant, version, rules, egress, approval_seconds, changed_by) "
                "VALUES ('acme', 1, '[]', '{example.org}', 3600, 'root');",
                "INSERT INTO approval_grants (id, tenant, user_id, approval_id, tool, effect, kinds, host, created_by) "
                f"VALUES ({_id(5)}, 'acme', 'ann', {_id(6)}, 'http_fetch', 'outbound', '{{document}}', 'example.org', 'ann');",
            )
        ),
        "0015-source-forgettings": (
            "INSERT INTO source_forgettings (id, tenant, user_id, principal, media) "
            f"VALUES ({_id(7)}, 'acme', 'ann', '{{}}', '{{m}}');"
        ),
        "0016-schedules": (
            "INSERT INTO schedules (id, tenant, user_id, agent, goal, budget, cron, time_zone, principal, enabled) "
            f"VALUES ({_id(8)}, 'acme', 'ann', 'nova', 'Look', '{{}}', '0 8 * * *', 'UTC', '{{}}', true);"
            "INSERT INTO task_waits (id, tenant, user_id, turn_id, step, kind, due_at) "
            f"VALUES ({_id(9)}, 'acme', 'ann', {_id(1)}, 'task.step.wait', 'date', now());"
        ),
        "0017-triggers": (
            "INSERT INTO schedules (id, tenant, user_id, agent, goal, budget, cron, time_zone, principal, enabled, on_event) "
            f"VALUES ({_id(10)}, 'acme', 'ann', 'nova', 'Look at {{node}}', '{{}}', '', 'UTC', '{{}}', true, "
            '\'{"event": "node_changed"}\');'
            f"INSERT INTO trigger_events (tenant, schedule_id, event_id) VALUES ('acme', {_id(10)}, 'news-1');"
        ),
        "0018-patience": (
            "INSERT INTO turns (id, tenant, user_id, conversation_id, sequence, agent, status, request, fingerprint, "
            "principal, expires_at, lease_until, wait, waited_seconds) "
            f"SELECT {_id(10)}, tenant, user_id, id, 2, agent, 'queued', '{{}}', 'g', '{{}}', now(), now(), "
            '\'{"service": "graph", "code": "unavailable", "tries": 2}\', 3.5 '
            f"FROM conversations WHERE id = {_id(1)};"
        ),
        "0019-shares": _OUTBOX,
        "0020-audit": _OUTBOX,
        "0021-feedback": "UPDATE turns SET helpful = false, remark = 'Too long', rated_at = now();",
        "0022-waiting": _OUTBOX,
    },
}
"""By service and migration, in their order."""

_OF_BOB = f"conversation_id = {_id(2)}"
REMOVED_BY_GOING_BACK: dict[str, dict[str, str]] = {
    "0002-bus-keys": {"keys": "bus"},
    "0007-narrow-keys": {"keys": "tools IS NOT NULL OR (NOT bus AND expires_at IS NOT NULL)"},
    "0015-memories": {"items": "kind = 'message'"},
    "0017-triggers": {"schedules": "on_event IS NOT NULL"},
    "0002-deletions": {
        "conversations": f"id = {_id(2)}",
        "turns": _OF_BOB,
        "messages": _OF_BOB,
        "directives": _OF_BOB,
        "journal": f"turn_id = {_id(2)}",
    },
}
"""By migration and table, rows that the version before could not bear and that its way back removes on purpose."""
