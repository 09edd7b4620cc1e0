"""What agents are told.

Their profiles, the texts that they ask for, and the loading of what ships; each tenant's library is kept at hand until news
of a release drops it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from phronesis_bus import Call, News
from phronesis_contracts import SYSTEM_TENANT, BadRequest, NotFound, Principal, ServiceError, TooLarge, Unavailable
from phronesis_contracts.instructions import (
    MAX_TEXT_BYTES,
    AgentNames,
    AgentProfile,
    AgentRef,
    InstructionText,
    ListAgents,
    Publication,
    PublishInstructions,
    Released,
    ReleaseInfo,
    RetrieveAt,
    RetrieveInstructions,
    RollbackInstructions,
)

from ..agents.definitions import make_profile
from .content import AgentContent, Matrix
from .texts import (
    PURPOSE,
    TIER_1,
    Found,
    Library,
    Overlay,
    OwnAgent,
    Platform,
    Profile,
    Running,
    Text,
    allowed_servers,
    allowed_tools,
    mode_tag,
)

Content = AgentContent | Matrix
"""What ships: an agent's folder, or the matrix."""


class Store(Protocol):
    """Where released instructions stand. Every method raises `Unavailable` while the store is down, or not migrated yet."""

    async def release(self, content: Content) -> bool:
        """Release what ships where it is new, and announce it. Returns whether anything was written."""

    async def platform(self) -> Platform:
        """What ships, as of one moment."""

    async def overlay(self, tenant: str) -> Overlay:
        """A tenant's active release, running experiments and own agents, as of one moment."""

    async def overlay_at(self, tenant: str, number: int) -> Overlay:
        """A release of a tenant, active or not, without experiments, and its own agents as they are now; 0 has no text.

        Raises:
            NotFound: the tenant has no such release.
        """

    async def ping(self) -> None: ...


class Releases(Protocol):
    """The tenants' own releases. Every method raises `Unavailable` while the store is down."""

    async def publish(self, call: Call, request: PublishInstructions) -> Publication:
        """Make a release of what is active with the request's texts over it, and make it the active one.

        Raises:
            Unpublishable: with every fault.
        """

    async def rollback(self, call: Call, request: RollbackInstructions) -> Publication:
        """Make an earlier release active.

        Raises:
            NotFound: the tenant has no such release.
            Conflict: it is active already, or there is none before.
        """

    async def releases(self, tenant: str) -> tuple[ReleaseInfo, ...]: ...

    async def texts(self, tenant: str, number: int) -> Mapping[str, Text]:
        """A release's own texts; those of 0 are none. Raises `NotFound`: the tenant has no such release."""


class Exposures(Protocol):
    """Who is in which arm."""

    async def arms(self, who: Principal, experiments: Sequence[Running]) -> dict[str, str]:
        """By experiment, the arm of a user, who is put into one and counted as exposed where that is new.

        An experiment that was stopped meanwhile is left out.

        Raises:
            Unavailable: the store is down.
        """


_TENANTS = 1_000
"""Tenants whose own texts are kept at most."""


class LibraryCache:
    """A cache over the store.

    Args:
        seconds: how long what was read is served without asking the store; news of a release is sooner.
    """

    def __init__(self, store: Store, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._platform: tuple[float, Platform] | None = None
        self._overlays: OrderedDict[str, tuple[float, Overlay]] = OrderedDict()
        self._drops = 0

    async def of(self, tenant: str) -> Library:
        """The texts of a tenant. Raises `Unavailable`: they are not at hand, and the store is down."""
        return Library(await self._shipped(), await self._own(tenant))

    async def at(self, tenant: str, number: int) -> Library:
        """The texts of a tenant as of one of its releases, without experiments; 0 is the platform's own.

        Raises:
            NotFound: the tenant has no such release.
            Unavailable: the store is down.
        """
        return Library(await self._shipped(), await self._store.overlay_at(tenant, number))

    def drop(self, tenant: str) -> None:
        self._drops += 1
        if tenant == SYSTEM_TENANT:
            self._platform = None
        self._overlays.pop(tenant, None)

    async def on_released(self, news: News, released: Released) -> None:
        self.drop(news.tenant)

    async def _shipped(self) -> Platform:
        if self._platform is not None and self._clock() < self._platform[0]:
            return self._platform[1]
        drops = self._drops
        platform = await self._store.platform()
        if drops == self._drops:  # else it may have been read just before the release
            self._platform = (self._clock() + self._seconds, platform)
        return platform

    async def _own(self, tenant: str) -> Overlay:
        kept = self._overlays.get(tenant)
        if kept is not None and self._clock() < kept[0]:
            self._overlays.move_to_end(tenant)
            return kept[1]
        drops = self._drops
        overlay = await self._store.overlay(tenant)
        if drops == self._drops:
            self._overlays[tenant] = (self._clock() + self._seconds, overlay)
            if len(self._overlays) > _TENANTS:
                self._overlays.popitem(last=False)
        return overlay


log = logging.getLogger(__name__)

_LATE = "the instructions are not loaded yet"


class LibraryHandlers:
    def __init__(self, store: Store, libraries: LibraryCache, exposures: Exposures) -> None:
        self._store = store
        self._libraries = libraries
        self._exposures = exposures
        self._loaded = False

    async def agent_get(self, call: Call, request: AgentRef) -> AgentProfile:
        """The profile of an agent; before the content is loaded, an unknown agent may only be late."""
        loaded = self._loaded  # as it was before what is read now
        library = await self._library(call, request.release)
        # What ships goes before what a tenant has made: a packaged agent may be newer than an own one of its name.
        own = None if request.agent in library.platform.profiles else library.overlay.agents.get(request.agent)
        base = base_of(library, request.agent, own)
        if base is None:
            raise NotFound("no such agent") if loaded else Unavailable(_LATE, retry_after=1)
        arms = await self._exposures.arms(call.who, library.touching(base.tags()))
        return told_profile(library, base, own, arms)

    async def agent_list(self, call: Call, request: ListAgents) -> AgentNames:
        await self.ready()
        library = await self._libraries.of(call.who.tenant)
        return AgentNames(agents=tuple(sorted({*library.platform.profiles, *library.overlay.agents})))

    async def retrieve_instructions(self, call: Call, request: RetrieveInstructions) -> InstructionText:
        """The bundle of a data mode, or elements by tag with what they depend on.

        Raises:
            BadRequest: neither is stated, or both are.
            NotFound: nothing of it is there.
            TooLarge: it is more than one answer holds.
        """
        return await self._retrieved(call, await self._library(call, None), request)

    async def retrieve_at(self, call: Call, request: RetrieveAt) -> InstructionText:
        """The same as of a release of the tenant. Raises as `retrieve_instructions`, and `NotFound` for no such release."""
        return await self._retrieved(call, await self._library(call, request.release), request.wanted)

    async def _library(self, call: Call, release: int | None) -> Library:
        tenant = call.who.tenant
        return await (self._libraries.of(tenant) if release is None else self._libraries.at(tenant, release))

    async def _retrieved(self, call: Call, library: Library, request: RetrieveInstructions) -> InstructionText:
        if (request.mode is None) == (request.elements is None):
            raise BadRequest("give either mode or elements")
        if request.mode is not None:
            return await self._bundle(call, library, request.mode)
        tags = request.elements or ()
        arms = await self._exposures.arms(call.who, library.touching(library.closure(tags)))
        found = library.elements(tags, arms)
        if not found.texts:
            log.warning("no active instructions: %s", ", ".join(tags))
            raise NotFound(
                f"no instructions by these tags: {', '.join(tags)}; ask with a mode (A to D), or elements by their tags"
            )
        return _text_answer("\n\n".join(text.wrapped() for text in found.texts), found, library, arms)

    async def _bundle(self, call: Call, library: Library, mode: str) -> InstructionText:
        tag = mode_tag(mode)
        arms = await self._exposures.arms(call.who, library.touching([tag]))
        text = library.text(tag, arms)
        if text is None:
            log.warning("no active instructions: %s", tag)
            raise NotFound(f"no instructions for mode {mode}; ask with another mode (A to D), or elements by their tags")
        return _text_answer(text.content, Found((text,)), library, arms)

    async def ready(self) -> None:
        if not self._loaded:
            raise Unavailable(_LATE, retry_after=1)

    async def tier_1(self) -> None:
        """Raise `Unavailable` unless there is an active tier 1: no analyst is to answer with an empty prompt."""
        library = await self._libraries.of(SYSTEM_TENANT)
        if library.text(TIER_1, {}) is None:
            raise Unavailable(f"there is no active {TIER_1}")

    async def load(self, contents: tuple[Content, ...], retry_seconds: float, released: Callable[[], None]) -> None:
        """Release all that ships, trying again for as long as the store is not there.

        Args:
            retry_seconds: between tries.
            released: called after a release that wrote something.
        """
        missing = contents
        while True:
            missing = tuple([content for content in missing if not await self._released(content, released)])
            if not missing:
                break
            await asyncio.sleep(retry_seconds)
        self._libraries.drop(SYSTEM_TENANT)  # another copy may have released some of it, and its news is still on the way
        self._loaded = True

    async def _released(self, content: Content, released: Callable[[], None]) -> bool:
        try:
            wrote = await self._store.release(content)
        except ServiceError as error:
            log.warning("%s is not released yet: %s", content.name, error.code)
            return False
        except Exception:
            # The task may not end: the service would stay unready with nobody to notice why.
            log.exception("%s is not released yet", content.name)
            return False
        if wrote:
            self._libraries.drop(SYSTEM_TENANT)
            released()
        return True


def base_of(library: Library, name: str, own: OwnAgent | None) -> Profile | None:
    """The packaged agent of a name, or the one that an own agent is made from; `None` where there is none."""
    return library.platform.profiles.get(own.definition.base if own else name)


def told_profile(library: Library, base: Profile, own: OwnAgent | None, arms: Mapping[str, str]) -> AgentProfile:
    """What a turn is told of a packaged agent, or of an own one that is made from it.

    Raises:
        Unavailable: a text that it needs is not active.
    """
    profile = _packaged_profile(library, base, arms)
    return profile if own is None else make_profile(profile, own)


def _packaged_profile(library: Library, profile: Profile, arms: Mapping[str, str]) -> AgentProfile:
    texts = {tag: text for tag in profile.tags() if (text := library.text(tag, arms)) is not None}
    if missing := [tag for tag in profile.tags() if tag not in texts]:
        log.error("texts of %s are not active: %s", profile.agent, ", ".join(missing))
        raise Unavailable("the agent's instructions are not all active")
    prompts = {purpose: texts[tag].content for purpose, tag in profile.prompts.items()}
    listed = prompts.pop(PURPOSE, "")
    return AgentProfile(
        agent=profile.agent,
        version=profile.version,
        loop=profile.loop,
        stages=profile.stages,
        tools=allowed_tools(listed),
        outside=allowed_servers(listed),
        prompts=prompts,
        directives={name: texts[tag].content for name, tag in profile.directives.items()},
        phrases=profile.phrases,
        bootstrap=texts[profile.bootstrap].content if profile.bootstrap else "",
        release=library.release,
        arms=dict(arms),
    )


def _text_answer(text: str, found: Found, library: Library, arms: dict[str, str]) -> InstructionText:
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise TooLarge("these texts are more than one answer holds; ask for fewer elements", field="elements")
    tokens = sum(one.tokens for one in found.texts)
    tags = tuple(one.tag for one in found.texts)
    log.info("instructions told: %d tokens of %d texts (%s)", tokens, len(tags), ", ".join(tags))
    if found.missing:
        log.warning("no active instructions: %s", ", ".join(found.missing))
    return InstructionText(text=text, tags=tags, missing=found.missing, tokens=tokens, version=library.release, arms=arms)
