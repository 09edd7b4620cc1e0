"""A store of instructions in memory, and callers of its handlers."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_bus import Call
from phronesis_contracts import NotFound, Principal, Unavailable
from phronesis_instructions.library.content import AgentContent, Matrix
from phronesis_instructions.library.texts import Overlay, Platform, Profile, Running, Text
from phronesis_instructions.releases.experiments import Standing, propose_arm
from tests.support.personas import Persona

CALL = Call(Principal(tenant="acme", user="ann"), "orchestrator")
EDITOR = Call(Principal(tenant="acme", user="eve", **Persona.EDITOR.rights), "gateway")


class MemoryStore:
    """What was released, in dictionaries; it can be away for a number of tries."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.reads = 0
        self.version = "0.0.0"
        self.texts: dict[str, Text] = {}
        self.profiles: dict[str, Profile] = {}
        self.overlays: dict[str, Overlay] = {}
        self.digests: dict[str, str] = {}

    async def release(self, content: AgentContent | Matrix) -> bool:
        if self.away:
            self.away -= 1
            raise Unavailable("away")
        changed = self.digests.get(content.name) != content.digest()
        self.digests[content.name] = content.digest()
        if isinstance(content, Matrix):
            self.version = content.version
            self.texts |= {text.tag: text for text in content.texts()}
        else:
            self._agent(content)
        return changed

    def _agent(self, content: AgentContent) -> None:
        tagged = {
            **{tag: content.prompts[name] for name, tag in content.prompt_tags().items()},
            **{tag: content.directives[name] for name, tag in content.directive_tags().items()},
        }
        self.texts |= {tag: Text(tag, "bundle", said, content.version, "active", 1) for tag, said in tagged.items()}
        self.profiles[content.agent] = Profile(
            content.agent,
            content.version,
            content.loop,
            content.stages,
            content.prompt_tags(),
            content.directive_tags(),
            content.phrases,
            content.bootstrap,
        )

    async def platform(self) -> Platform:
        self.reads += 1
        return Platform(self.version, dict(self.texts), dict(self.profiles))

    async def overlay(self, tenant: str) -> Overlay:
        return self.overlays.get(tenant, Overlay())

    async def overlay_at(self, tenant: str, number: int) -> Overlay:
        found = self.overlays.get(tenant, Overlay())
        if number not in (0, found.number):
            raise NotFound("there is no such release")
        return Overlay(number, found.texts) if number else Overlay()

    async def ping(self) -> None:
        return None


class HashedArms:
    """Everybody in the arm that the hash proposes."""

    async def arms(self, who: Principal, experiments: Sequence[Running]) -> dict[str, str]:
        return {
            one.name: propose_arm(one.name, who.tenant, who.user, [Standing(arm.name, arm.weight) for arm in one.arms])
            for one in experiments
        }


class Clock:
    """Seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
