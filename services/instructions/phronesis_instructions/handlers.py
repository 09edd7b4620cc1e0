"""What agents are told: their profiles, the texts that they ask for, and the loading of what ships."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from phronesis_bus import Call
from phronesis_contracts import SYSTEM_TENANT, BadRequest, NotFound, ServiceError, TooLarge, Unavailable
from phronesis_contracts.instructions import (
    MAX_TEXT_BYTES,
    AgentNames,
    AgentProfile,
    AgentRef,
    InstructionText,
    ListAgents,
    RetrieveAt,
    RetrieveInstructions,
)

from .domain.allowing import PURPOSE, allowed, outside
from .domain.library import Found, Library, Profile
from .domain.texts import TIER_1, Text, mode_tag
from .libraries import Libraries
from .ports import Content, Exposures, Store

log = logging.getLogger(__name__)

_LATE = "the instructions are not loaded yet"


class Handlers:
    """The handlers of what is read.

    Args:
        store: where released instructions stand.
        libraries: what was read of it.
        exposures: who is in which arm.
    """

    def __init__(self, store: Store, libraries: Libraries, exposures: Exposures) -> None:
        self._store = store
        self._libraries = libraries
        self._exposures = exposures
        self._loaded = False

    async def agent_get(self, call: Call, request: AgentRef) -> AgentProfile:
        """The profile of an agent; before the content is loaded, an unknown agent may only be late."""
        loaded = self._loaded  # as it was before what is read now
        library = await self._library(call, request.release)
        profile = library.platform.profiles.get(request.agent)
        if profile is None:
            raise NotFound("no such agent") if loaded else Unavailable(_LATE, retry_after=1)
        arms = await self._exposures.arms(call.who, library.touching(profile.tags()))
        texts = {tag: text for tag in profile.tags() if (text := library.text(tag, arms)) is not None}
        if missing := [tag for tag in profile.tags() if tag not in texts]:
            log.error("texts of %s are not active: %s", profile.agent, ", ".join(missing))
            raise Unavailable("the agent's instructions are not all active")
        return _profile(profile, texts, library.release, arms)

    async def agent_list(self, call: Call, request: ListAgents) -> AgentNames:
        """The agents that there are; before the content is loaded, some may only be late."""
        await self.ready()
        library = await self._libraries.of(call.who.tenant)
        return AgentNames(agents=tuple(sorted(library.platform.profiles)))

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
        return _answer("\n\n".join(text.wrapped() for text in found.texts), found, library, arms)

    async def _bundle(self, call: Call, library: Library, mode: str) -> InstructionText:
        tag = mode_tag(mode)
        arms = await self._exposures.arms(call.who, library.touching([tag]))
        text = library.text(tag, arms)
        if text is None:
            log.warning("no active instructions: %s", tag)
            raise NotFound(f"no instructions for mode {mode}; ask with another mode (A to D), or elements by their tags")
        return _answer(text.content, Found((text,)), library, arms)

    async def ready(self) -> None:
        """Raise `Unavailable` until the content is loaded."""
        if not self._loaded:
            raise Unavailable(_LATE, retry_after=1)

    async def tier_1(self) -> None:
        """Raise `Unavailable` unless there is an active tier 1: no analyst is to answer with an empty prompt (N-023)."""
        library = await self._libraries.of(SYSTEM_TENANT)
        if library.text(TIER_1, {}) is None:
            raise Unavailable(f"there is no active {TIER_1}")

    async def load(self, contents: tuple[Content, ...], retry_seconds: float, released: Callable[[], None]) -> None:
        """Release all that ships, trying again for as long as the store is not there.

        Args:
            contents: what the files hold.
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


def _profile(profile: Profile, texts: dict[str, Text], release: str, arms: dict[str, str]) -> AgentProfile:
    prompts = {purpose: texts[tag].content for purpose, tag in profile.prompts.items()}
    listed = prompts.pop(PURPOSE, "")
    return AgentProfile(
        agent=profile.agent,
        version=profile.version,
        loop=profile.loop,
        stages=profile.stages,
        tools=allowed(listed),
        outside=outside(listed),
        prompts=prompts,
        directives={name: texts[tag].content for name, tag in profile.directives.items()},
        phrases=profile.phrases,
        bootstrap=texts[profile.bootstrap].content if profile.bootstrap else "",
        release=release,
        arms=arms,
    )


def _answer(text: str, found: Found, library: Library, arms: dict[str, str]) -> InstructionText:
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise TooLarge("these texts are more than one answer holds; ask for fewer elements", field="elements")
    tokens = sum(one.tokens for one in found.texts)
    tags = tuple(one.tag for one in found.texts)
    log.info("instructions told: %d tokens of %d texts (%s)", tokens, len(tags), ", ".join(tags))
    if found.missing:
        log.warning("no active instructions: %s", ", ".join(found.missing))
    return InstructionText(text=text, tags=tags, missing=found.missing, tokens=tokens, version=library.release, arms=arms)
