"""Who asks: the verified caller of a message, the roles, and the permissions to act as agents."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationInfo,
    model_serializer,
    model_validator,
)

Token = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
"""A name that can stand as one token of a subject: tenants, users, services."""


class Role(StrEnum):
    """What a caller may do: each role may do all that the one after it may."""

    OWNER = "owner"
    """Does what an administrator does, and makes and revokes the keys of owners."""
    ADMIN = "admin"
    """Manages the tenant: its keys, instructions, agents, limits, outside tools and graphs. Acts as every agent."""
    MEMBER = "member"
    """Uses agents and its own memory, and does what the agents may that it is permitted to act as."""
    READER = "reader"
    """Reads what the agents may read that it is permitted to act as, and changes nothing."""


class Agent(StrEnum):
    """A permission beside the role: which agent's rights a caller acts with."""

    NOOR = "noor"
    """The analyst: reads the twin, and memories of the user, the department and the ministry."""
    MAESTRO = "maestro"
    """The executive analyst: reads and keeps memories of every scope, and changes all graphs."""
    CURATOR = "curator"
    """Corrects the twin, its ontology and the knowledge graph."""
    DISCUSS = "discuss"
    """Reads the constitution."""
    DECISIONS = "decisions"
    """Reads the constitution, and changes its strategy and execution."""
    EXECUTE = "execute"
    """Reads the constitution, and changes its tactics, execution and track."""
    MIND = "mind"
    """Reads the constitution, and changes its mind layer."""
    EDITOR = "editor"
    """Changes what the tenant's agents are told, and the tenant's own agents; writes no memory."""


EVERYONE: frozenset[Agent] = frozenset(Agent)
"""Every permission."""
ADMINISTRATORS_ALONE: frozenset[Agent] = frozenset()
"""Of what no agent may do, and administrators may."""
ADMINISTRATORS = frozenset({Role.OWNER, Role.ADMIN})
"""Roles that manage a tenant. They need no permission to act as an agent."""
ELEVATED = frozenset({Agent.EDITOR, Agent.MAESTRO, Agent.CURATOR, Agent.EXECUTE})
"""Permissions of those who have more rights than a member by itself, as administrators have."""


def _normal(agents: tuple[Agent, ...], info: ValidationInfo) -> tuple[Agent, ...]:
    if info.data.get("role") in ADMINISTRATORS:
        return ()
    if not agents:
        raise ValueError("name at least one agent")
    return tuple(sorted(set(agents)))


def default_agents(data: dict[str, Any]) -> tuple[Agent, ...]:
    """Of a field with agents that are not stated: `noor`, and none for administrators, who may act as all."""
    return () if data.get("role") in ADMINISTRATORS else (Agent.NOOR,)


Agents = Annotated[tuple[Agent, ...], AfterValidator(_normal), Field(max_length=2 * len(EVERYONE))]
"""Agents that a role, which stands in the field `role` before it, may act as: sorted, each once; none for administrators."""


def is_old_role(word: object) -> bool:
    """Whether this is a role of the version before, and none any more."""
    return isinstance(word, str) and word in EVERYONE


def translate_old_role(stated: Any) -> Any:
    """Fields of a caller, in which a role of the version before became a member's permission to act as the agent of that name.

    That version had one word for both. `admin` is the same in both versions.
    """
    if isinstance(stated, Mapping) and "agents" not in stated and is_old_role(stated.get("role")):
        return {**stated, "role": Role.MEMBER, "agents": (stated["role"],)}
    return stated


def find_old_role(role: Role, agents: tuple[Agent, ...]) -> str:
    """The word by which the version before gives no right that these do not.

    It is `reader`, which that version refuses, where there is none.
    """
    if role in ADMINISTRATORS:
        return Role.ADMIN.value
    if role is Role.READER:
        return role.value
    # Of several one that is elevated, so that a copy of the version before acts for no user who has it.
    return min(agents, key=lambda agent: (agent not in ELEVATED, agent is not Agent.MAESTRO, agent)).value


def describe_rights(role: Role, agents: tuple[Agent, ...]) -> str:
    """A role with its permissions in words, the same for the same rights: `admin`, `member (noor)`."""
    return role.value if role in ADMINISTRATORS else f"{role.value} ({', '.join(agents)})"


class Principal(BaseModel):
    """The caller a message acts for.

    It is verified from a signed token by `serve()` and `take()`; no body and no other header ever names the caller.

    Written out, its role stands in `access`, and `role` holds a word that services of the version before understand: they may
    run beside this one while an installation is updated.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    tenant: Token
    user: Token
    role: Role = Role.MEMBER
    agents: Agents = Field(default_factory=default_agents)
    """Agents that it may act as; empty for administrators, who may act as all."""
    department: str | None = None
    ministry: str | None = None
    scopes: tuple[str, ...] = ()
    key: str | None = None
    """Id of the gateway key that this principal came from; revoking that key ends its turns."""
    tools: tuple[str, ...] | None = None
    """Names of the only tools that it may call; `None` where its role and agents say which."""
    acted_by: Token | None = None
    """The user of the key that acts for this one; `None` where the key is the user's own."""
    inbox: str | None = None
    """For an outside system: the prefix that its reply subjects must have. `None` for the platform's own services."""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, stated: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(stated, Mapping) or "access" not in stated:
            return read(translate_old_role(stated))
        made = read({**stated, "role": stated["access"]})
        if stated.get("role") != made._old_role:
            raise ValueError("role and access do not fit")
        return made

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written = cast(dict[str, Any], write(self))
        return {**written, "role": self._old_role, "access": self.role.value}

    @property
    def _old_role(self) -> str:
        # No version before knows of tools: it takes such a principal for nobody's.
        return Role.READER.value if self.tools is not None else find_old_role(self.role, self.agents)

    @property
    def administers(self) -> bool:
        """Whether it manages its tenant."""
        return self.role in ADMINISTRATORS

    @property
    def elevated(self) -> bool:
        """Whether it has more rights than a member by itself."""
        return self.administers or not ELEVATED.isdisjoint(self.agents)

    @property
    def rights(self) -> str:
        """Its role and permissions in words, the same for the same rights: `admin`, `member (noor)`."""
        return describe_rights(self.role, self.agents)

    def acts_as(self, agents: frozenset[Agent]) -> bool:
        """Whether it may act as one of these agents."""
        return self.administers or not agents.isdisjoint(self.agents)

    def writes_as(self, agents: frozenset[Agent]) -> bool:
        """Whether it may act as one of these agents, and change something."""
        return self.role is not Role.READER and self.acts_as(agents)


SYSTEM_TENANT = "system"
"""The tenant of the platform's own questions (health); no key can be made for it."""
