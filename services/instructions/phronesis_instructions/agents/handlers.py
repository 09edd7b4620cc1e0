"""What administrators do with their tenant's own agents: list, show, compare, publish, take back and delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts import agents as contract

from ..library.handlers import LibraryCache, LibraryHandlers, base_of, told_profile
from ..library.texts import OwnAgent, Profile
from .definitions import changed_fields, check_definition, diff_definitions
from .store import PostgresAgents, find_version, plan_publication, plan_rollback

Out = TypeVar("Out")


class AgentHandlers:
    """Handlers of own agents.

    Args:
        library: say whether what ships is loaded.
        announce: called after a change, whose event stands in the outbox.
    """

    def __init__(
        self, libraries: LibraryCache, library: LibraryHandlers, agents: PostgresAgents, announce: Callable[[], None]
    ) -> None:
        self._libraries, self._library, self._agents, self._announce = libraries, library, agents, announce

    async def list(self, call: Call, request: contract.ListTenantAgents) -> contract.TenantAgents:
        await self._library.ready()
        library = await self._libraries.of(call.who.tenant)
        packaged = () if request.own else (_packaged_info(one) for one in library.platform.profiles.values())
        own = (_own_info(one) for name, one in library.overlay.agents.items() if name not in library.platform.profiles)
        return contract.TenantAgents(agents=tuple(sorted((*packaged, *own), key=lambda one: one.name)))

    async def show(self, call: Call, request: contract.GetAgent) -> contract.AgentShown:
        """An agent as it is, or an own one as it was. Raises `NotFound`."""
        await self._library.ready()
        library = await self._libraries.of(call.who.tenant)
        own = None
        if request.name not in library.platform.profiles or request.version is not None:
            own = find_version(await self._agents.versions(call.who.tenant, request.name), request.version)
        base = base_of(library, request.name, own)
        if base is None:
            raise NotFound("the packaged agent that it is made from is not there any more")
        profile = told_profile(library, base, own, {})
        return contract.AgentShown(
            agent=_own_info(own) if own else _packaged_info(base),
            active=own is None or own.active,
            definition=own.definition if own else None,
            loop=profile.loop,
            stages=profile.stages,
            tools=(*profile.tools, *(f"outside.{server}" for server in profile.outside)),
            phrases=profile.phrases,
        )

    async def versions(self, call: Call, request: contract.AgentByName) -> contract.AgentVersions:
        """The versions of an own agent. Raises `NotFound`: there never was one."""
        found = await self._agents.versions(call.who.tenant, request.name)
        if not found:
            find_version(found, None)
        rows = (
            contract.AgentVersion(version=one.number, active=one.active, note=one.note, by=one.by, at=one.at) for one in found
        )
        return contract.AgentVersions(name=request.name, versions=tuple(rows))

    async def diff(self, call: Call, request: contract.DiffAgent) -> contract.AgentDiff:
        """How two versions differ. Raises `NotFound`."""
        found = await self._agents.versions(call.who.tenant, request.name)
        before, after = find_version(found, request.before), find_version(found, request.after)
        return contract.AgentDiff(
            name=request.name,
            before=before.number,
            after=after.number,
            changed=changed_fields(before.definition, after.definition),
            diff=diff_definitions(before.definition, after.definition),
        )

    async def publish(self, call: Call, request: contract.PublishAgent) -> contract.AgentPublished:
        """A new version, unless the active one says the same.

        Raises:
            AgentRefused: it could not work so.
            Forbidden: the caller may not publish agents, or not use a tool that it lists.
            Conflict: the tenant has too many agents.
        """
        definition = request.definition()
        await self._check(call, definition)
        if request.dry_run:
            planned = plan_publication(await self._agents.versions(call.who.tenant, request.name), definition)
            return planned.model_copy(update={"dry_run": True})
        return self._changed(call, await self._agents.publish(call, request))

    async def rollback(self, call: Call, request: contract.RollBackAgent) -> contract.AgentPublished:
        """Make an earlier version active. Raises as `publish` does, and `NotFound`."""
        packaged = await self._packaged(call)

        def check(definition: contract.AgentDefinition) -> None:
            check_definition(definition, packaged, call.who)

        if request.dry_run:
            planned, wanted = plan_rollback(await self._agents.versions(call.who.tenant, request.name), request)
            check(wanted.definition)
            return planned.model_copy(update={"dry_run": True})
        return self._changed(call, await self._agents.roll_back(call, request, check))

    async def delete(self, call: Call, request: contract.AgentByName) -> contract.AgentDeleted:
        """Nobody can talk to it any more. Raises `NotFound`."""
        return self._changed(call, await self._agents.delete(call, request))

    async def _check(self, call: Call, definition: contract.AgentDefinition) -> None:
        check_definition(definition, await self._packaged(call), call.who)

    async def _packaged(self, call: Call) -> dict[str, Profile]:
        await self._library.ready()
        return dict((await self._libraries.of(call.who.tenant)).platform.profiles)

    def _changed(self, call: Call, result: Out) -> Out:
        self._libraries.drop(call.who.tenant)
        self._announce()
        return result


def _packaged_info(profile: Profile) -> contract.AgentInfo:
    return contract.AgentInfo(name=profile.agent, description=profile.phrases.get("about", "").strip())


def _own_info(own: OwnAgent) -> contract.AgentInfo:
    definition = own.definition
    return contract.AgentInfo(
        name=definition.name,
        own=True,
        description=definition.description,
        based_on=definition.base,
        version=own.number,
        at=own.at,
        by=own.by,
    )
