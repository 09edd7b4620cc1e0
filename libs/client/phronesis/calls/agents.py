"""Calls about agents: packaged ones and the tenant's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from phronesis_contracts.agents import (
    AgentDefinition,
    AgentDeleted,
    AgentDiff,
    AgentPublished,
    AgentShown,
    AgentVersions,
    TenantAgents,
)

from ..request import Request, path_segment, without_none

AGENTS = "/api/v1/agents"


def _path(name: str, more: str = "") -> str:
    return f"{AGENTS}/{path_segment(name, 'name')}{more}"


def list_agents(own: bool = False) -> Request[TenantAgents]:
    """The agents that the caller may talk to: packaged ones and the tenant's own, or with `own` those alone."""
    params = {"own": "true"} if own else {}
    return Request("GET", AGENTS, TenantAgents.model_validate, params=params, reads=True)


def get_agent(name: str, version: int | None = None) -> Request[AgentShown]:
    """An agent, with what it is made of; of an own one any version that is kept. For editors and administrators."""
    return Request("GET", _path(name), AgentShown.model_validate, params={"version": version}, reads=True)


def publish_agent(
    agent: AgentDefinition | Mapping[str, Any], note: str = "", dry_run: bool = False, idempotency_key: str | None = None
) -> Request[AgentPublished]:
    """Publish an agent of the tenant's own as a new version, or with `dry_run` report what would change.

    Args:
        agent: its definition, as a message or as the fields of one.
        note: why; kept with the version.

    Raises:
        AgentRefused: it could not work so; `field` is what is at fault.
        Forbidden: the caller may not publish agents, or not use a tool that it lists.
    """
    stated = agent.model_dump(mode="json", exclude_defaults=True) if isinstance(agent, AgentDefinition) else dict(agent)
    body = {**stated, **({"note": note} if note else {}), **({"dry_run": True} if dry_run else {})}
    return Request("POST", AGENTS, AgentPublished.model_validate, json=body, key=idempotency_key or uuid4().hex)


def list_versions(name: str) -> Request[AgentVersions]:
    """The versions of an own agent, the newest first."""
    return Request("GET", _path(name, "/versions"), AgentVersions.model_validate, reads=True)


def diff_versions(name: str, before: int, after: int | None = None) -> Request[AgentDiff]:
    """How a version of an own agent differs from another one, the active one by default."""
    params = {"before": before, "after": after}
    return Request("GET", _path(name, "/diff"), AgentDiff.model_validate, params=params, reads=True)


def roll_back(
    name: str, version: int | None = None, dry_run: bool = False, idempotency_key: str | None = None
) -> Request[AgentPublished]:
    """Make an earlier version of an own agent active again, by default the one before; of a deleted agent its newest."""
    body = without_none({"version": version, "dry_run": dry_run})
    return Request(
        "POST", _path(name, "/rollback"), AgentPublished.model_validate, json=body, key=idempotency_key or uuid4().hex
    )


def delete_agent(name: str, idempotency_key: str | None = None) -> Request[AgentDeleted]:
    """Delete an own agent. Its versions stay, and a rollback brings it back."""
    return Request("DELETE", _path(name), AgentDeleted.model_validate, key=idempotency_key or uuid4().hex)
