"""The routes of agents: packaged ones and a tenant's own, each by a tool of the catalog."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field, StrictBool
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts import BadRequest
from phronesis_contracts.agents import (
    AGENT_VERSIONS_TOOL,
    DELETE_AGENT_TOOL,
    DIFF_AGENT_TOOL,
    LIST_AGENTS_TOOL,
    PUBLISH_AGENT_TOOL,
    ROLL_BACK_AGENT_TOOL,
    SHOW_AGENT_TOOL,
    AgentDeleted,
    AgentDiff,
    AgentName,
    AgentPublished,
    AgentShown,
    AgentVersions,
    PublishAgent,
    TenantAgents,
)

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, authenticated_route
from ..auth.keys import READ
from ..http.requests import Given
from ..http.responses import PROBLEMS, route_responses
from .offers import Offers, tool_response

AGENTS = "/api/v1/agents"
Name = Annotated[AgentName, Path(description="The name of one of the tenant's own agents.")]
AnyName = Annotated[str, Path(min_length=1, max_length=64, description="An agent's name.")]
_NUMBER = 2**31 - 1
Version = Annotated[
    int | None, Query(ge=1, le=_NUMBER, description="Number of a version; the active one where it is left out.")
]
From = Annotated[int, Query(ge=1, le=_NUMBER, description="Number of the version to compare from.")]
To = Annotated[
    int | None, Query(ge=1, le=_NUMBER, description="Number of the version to compare to; the active one where it is left out.")
]


class AgentGiven(PublishAgent, defer_build=False):  # a body of a route: FastAPI wants it complete
    """An agent to publish."""


class NamedAgentGiven(PublishAgent, defer_build=False):
    """An agent to publish under the name in the path."""

    name: str = Field(default="", max_length=40, json_schema_extra={"format": "name-in-path"})
    """May be left out; where it is stated it is the one in the path."""


class RollbackGiven(Given):
    """The version to make active again; the one before by default."""

    version: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Number of the version to make active; the one before the active one where it is left out, of a deleted agent its
    newest."""
    dry_run: StrictBool = False
    """Whether to say what would change, and change nothing."""


def agents_router(authenticator: Authenticator, bus: Bus, offers: Offers) -> APIRouter:
    # What a tool needs, its risk says.
    routes = APIRouter(route_class=authenticated_route(authenticator, READ, tools=True), responses=PROBLEMS, tags=["agents"])

    asked = partial(tool_response, bus, offers)

    @routes.get(AGENTS, responses=route_responses(TenantAgents))
    async def list_agents(
        who: Caller, own: Annotated[bool, Query(description="Only the tenant's own agents.")] = False
    ) -> Response:
        """List the agents.

        Those that the caller may talk to: packaged ones and the tenant's own; with `own` only the latter.
        """
        return await asked(who, LIST_AGENTS_TOOL, {"own": own})

    @routes.post(AGENTS, status_code=201, responses=route_responses(AgentPublished, 201) | route_responses(AgentPublished))
    async def publish_agent(given: AgentGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Publish an agent.

        It becomes a new version of one of the tenant's own agents and answers from then on. With `dry_run` nothing changes:
        the answer is a 200 that tells what would. For editors and administrators.
        """
        stated = given.model_dump(mode="json", exclude_unset=True)
        return await asked(who, PUBLISH_AGENT_TOOL, stated, key, created=None if given.dry_run else f"{AGENTS}/{given.name}")

    @routes.get(AGENTS + "/{name}", responses=route_responses(AgentShown))
    async def get_agent(name: AnyName, who: Caller, version: Version = None) -> Response:
        """Get an agent.

        With what it is made of; of one of the tenant's own any version that is kept. For editors and administrators.
        """
        return await asked(who, SHOW_AGENT_TOOL, {"name": name, "version": version})

    @routes.put(AGENTS + "/{name}", responses=route_responses(AgentPublished))
    async def put_agent(name: Name, given: NamedAgentGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Publish an agent under the name in the path.

        Otherwise as `POST` does.
        """
        stated = given.model_dump(mode="json", exclude_unset=True)
        if given.name not in ("", name):
            raise BadRequest("the name is not the one in the path", field="name")
        return await asked(who, PUBLISH_AGENT_TOOL, {**stated, "name": name}, key)

    @routes.delete(AGENTS + "/{name}", responses=route_responses(AgentDeleted))
    async def delete_agent(name: Name, who: Caller, key: IdempotencyKey) -> Response:
        """Delete an agent.

        Nobody can talk to it any more. Its versions stay, and a rollback brings it back; a second time changes nothing. Only
        for the tenant's own.
        """
        return await asked(who, DELETE_AGENT_TOOL, {"name": name}, key)

    @routes.get(AGENTS + "/{name}/versions", responses=route_responses(AgentVersions))
    async def list_agent_versions(name: Name, who: Caller) -> Response:
        """List the versions of an agent.

        The newest first. Only for the tenant's own.
        """
        return await asked(who, AGENT_VERSIONS_TOOL, {"name": name})

    @routes.get(AGENTS + "/{name}/diff", responses=route_responses(AgentDiff))
    async def diff_agent(name: Name, who: Caller, before: From, after: To = None) -> Response:
        """Compare two versions of an agent.

        From `before` to `after`, which is the active version where it is left out.
        """
        return await asked(who, DIFF_AGENT_TOOL, {"name": name, "before": before, "after": after})

    @routes.post(AGENTS + "/{name}/rollback", responses=route_responses(AgentPublished))
    async def roll_back_agent(name: Name, given: RollbackGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Make an earlier version of an agent active again.

        The one before the active version where none is stated. With `dry_run` the answer only tells what would change. For
        editors and administrators.
        """
        return await asked(who, ROLL_BACK_AGENT_TOOL, {"name": name, **given.model_dump(mode="json")}, key)

    return routes
