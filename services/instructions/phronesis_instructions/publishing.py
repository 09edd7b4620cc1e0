"""What editors do with the texts of their tenant: list, show, compare, publish, take back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts import releases as contract

from .domain.library import Library, Overlay
from .domain.publishing import differences, published
from .domain.texts import Text
from .libraries import Libraries
from .ports import Releases


class Publishing:
    """The handlers.

    Args:
        libraries: what is told now.
        releases: the tenants' own releases.
        announce: called after a change, whose news stands in the outbox.
    """

    def __init__(self, libraries: Libraries, releases: Releases, announce: Callable[[], None]) -> None:
        self._libraries = libraries
        self._releases = releases
        self._announce = announce

    async def list_instructions(self, call: Call, request: contract.ListInstructions) -> contract.InstructionList:
        """Every text that fits, by tag."""
        library = await self._libraries.of(call.who.tenant)
        infos = (text.info() for _, text in sorted(library.all().items()))
        fitting = (
            info
            for info in infos
            if request.tier in (None, info.tier) and request.status in (None, info.status) and (info.own or not request.own)
        )
        return contract.InstructionList(release=library.release, texts=tuple(fitting))

    async def show_instruction(self, call: Call, request: contract.ShowInstruction) -> contract.InstructionShown:
        """One text as the caller's tenant has it now, whatever its status."""
        library = await self._libraries.of(call.who.tenant)
        text = library.all().get(request.tag)
        if text is None:
            raise NotFound("there is no text with this tag")
        return contract.InstructionShown(release=library.release, info=text.info(), content=text.content)

    async def list_releases(self, call: Call, request: contract.ListReleases) -> contract.ReleaseList:
        """The tenant's releases."""
        library = await self._libraries.of(call.who.tenant)
        return contract.ReleaseList(release=library.release, releases=await self._releases.releases(call.who.tenant))

    async def diff_instructions(self, call: Call, request: contract.DiffInstructions) -> contract.InstructionDiff:
        """How two releases of the tenant differ."""
        library, tenant = await self._libraries.of(call.who.tenant), call.who.tenant
        after = library.overlay.number if request.after is None else request.after
        old, new = [await self._releases.texts(tenant, number) for number in (request.before, after)]
        return contract.InstructionDiff(before=request.before, after=after, changes=_changes(library, old, new))

    async def publish_instructions(self, call: Call, request: contract.PublishInstructions) -> contract.Publication:
        """Publish texts for the tenant, or say what that would change."""
        if request.dry_run:
            library = await self._libraries.of(call.who.tenant)
            own = published(library, request.texts)
            changes = _changes(library, library.overlay.texts, own)
            return contract.Publication(release=library.release, number=library.overlay.number, changes=changes)
        return self._done(call, await self._releases.publish(call, request))

    async def rollback_instructions(self, call: Call, request: contract.RollbackInstructions) -> contract.Publication:
        """Make an earlier release of the tenant active."""
        return self._done(call, await self._releases.rollback(call, request))

    def _done(self, call: Call, done: contract.Publication) -> contract.Publication:
        self._libraries.drop(call.who.tenant)
        self._announce()
        return done


def _changes(library: Library, old: Mapping[str, Text], new: Mapping[str, Text]) -> tuple[contract.TextChange, ...]:
    before, after = (Library(library.platform, Overlay(0, texts)).all() for texts in (old, new))
    return differences(before, after)
