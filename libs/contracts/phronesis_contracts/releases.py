"""Contracts of a tenant's own releases of the instructions: look, compare, publish, take back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from .errors import BadRequest
from .messages import Message, Rpc
from .principal import Role
from .tools import Risk, Tool

EDITORS = frozenset({Role.EDITOR, Role.ADMIN})
Tag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]{0,63}(/[A-Za-z0-9_]{1,64}){0,3}$")]
"""The name of a text: `EntityProject`, `tier1_bootstrap`, `noor/final`."""
Status = Literal["active", "deprecated", "draft"]
Version = Annotated[str, StringConstraints(pattern=r"^\d{1,9}\.\d{1,9}\.\d{1,9}$")]
MAX_TEXT = 20_000
"""Characters of one text."""
MAX_CHANGED = 500
"""Texts of one release that are the tenant's own."""


class Unpublishable(BadRequest):
    """Texts that would not work; the detail lists every fault, and nothing was published."""

    code = "instructions.unpublishable"


class TextInfo(Message):
    """One text without its content."""

    tag: str
    kind: Literal["bundle", "element"]
    tier: int | None = None
    category: str | None = None
    version: str
    status: Status
    tokens: int
    """Counted with the vocabulary of the models that are asked."""
    dependencies: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()
    own: bool = False
    """Whether it is the tenant's own, over the platform's."""


class ListInstructions(Message):
    """Which texts to list; all where nothing is stated."""

    model_config = ConfigDict(extra="forbid")

    tier: int | None = Field(default=None, ge=1, le=3)
    status: Status | None = None
    own: bool = False
    """Only the tenant's own."""


class InstructionList(Message):
    """The texts by tag."""

    release: str
    texts: tuple[TextInfo, ...]


class ShowInstruction(Message):
    """One text by its tag."""

    model_config = ConfigDict(extra="forbid")

    tag: Tag


class InstructionShown(Message):
    """The text as it is served now."""

    release: str
    info: TextInfo
    content: str


class NewText(Message):
    """A text to publish. What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    tag: Tag
    content: str | None = Field(default=None, min_length=1, max_length=MAX_TEXT)
    status: Status | None = None
    version: Version | None = None
    """Higher than the one it replaces; without one, that one's third number grows."""
    dependencies: tuple[Tag, ...] | None = Field(default=None, max_length=20)
    use_cases: tuple[str, ...] | None = Field(default=None, max_length=20)


class PublishInstructions(Message):
    """Texts that become a release together, or not at all."""

    model_config = ConfigDict(extra="forbid")

    texts: tuple[NewText, ...] = Field(min_length=1, max_length=MAX_CHANGED)
    note: str = Field(default="", max_length=500)
    """Why."""
    dry_run: bool = False
    """Only say what would change."""


class TextChange(Message):
    """How one text differs."""

    tag: str
    change: Literal["added", "changed", "removed"]
    before: str | None = None
    """Its version."""
    after: str | None = None
    diff: str = ""
    """Lines in the unified form; cut where it is very long."""


class Publication(Message):
    """What became of it."""

    release: str
    number: int
    """Of the tenant's release that is active now; 0 is the platform's own texts."""
    changes: tuple[TextChange, ...]


class RollbackInstructions(Message):
    """Make an earlier release active again."""

    model_config = ConfigDict(extra="forbid")

    to: int | None = Field(default=None, ge=0)
    """Its number; 0 is the platform's own texts. Without one, the release before the active one."""


class DiffInstructions(Message):
    """Compare two releases by number; 0 is the platform's own texts."""

    model_config = ConfigDict(extra="forbid")

    before: int = Field(default=0, ge=0)
    after: int | None = Field(default=None, ge=0)
    """The active one where it is left out."""


class InstructionDiff(Message):
    """What differs, by tag."""

    before: int
    after: int
    changes: tuple[TextChange, ...]


class ListReleases(Message):
    """The tenant's releases."""

    model_config = ConfigDict(extra="forbid")


class ReleaseInfo(Message):
    """One release of the tenant."""

    number: int
    active: bool
    texts: int
    """How many of its texts are the tenant's own."""
    note: str
    by: str
    created_at: datetime


class ReleaseList(Message):
    """The newest first; older than the last hundred are not kept."""

    release: str
    releases: tuple[ReleaseInfo, ...]


LIST_INSTRUCTIONS = Rpc("instructions.v1.texts.list", ListInstructions, InstructionList)
SHOW_INSTRUCTION = Rpc("instructions.v1.texts.show", ShowInstruction, InstructionShown)
DIFF_INSTRUCTIONS = Rpc("instructions.v1.releases.diff", DiffInstructions, InstructionDiff)
PUBLISH_INSTRUCTIONS = Rpc("instructions.v1.releases.publish", PublishInstructions, Publication, timeout=15.0)
ROLLBACK_INSTRUCTIONS = Rpc("instructions.v1.releases.rollback", RollbackInstructions, Publication, timeout=15.0)
LIST_RELEASES = Rpc("instructions.v1.releases.list", ListReleases, ReleaseList)

LIST_INSTRUCTIONS_TOOL = Tool(
    "list_instructions",
    "List the texts that agents are told, with version, status and tokens.",
    LIST_INSTRUCTIONS,
    roles=EDITORS,
)
SHOW_INSTRUCTION_TOOL = Tool(
    "show_instruction", "Show one text as it is served to the caller's tenant now.", SHOW_INSTRUCTION, roles=EDITORS
)
DIFF_INSTRUCTIONS_TOOL = Tool(
    "diff_instructions", "Compare two releases of the caller's tenant, text by text.", DIFF_INSTRUCTIONS, roles=EDITORS
)
PUBLISH_INSTRUCTIONS_TOOL = Tool(
    "publish_instructions",
    "Publish texts for the caller's tenant as one release, all or none; what is not published stays the platform's own.",
    PUBLISH_INSTRUCTIONS,
    risk=Risk.HIGH,
    roles=EDITORS,
)
ROLLBACK_INSTRUCTIONS_TOOL = Tool(
    "rollback_instructions",
    "Make an earlier release of the caller's tenant active again; 0 is the platform's own texts.",
    ROLLBACK_INSTRUCTIONS,
    risk=Risk.HIGH,
    roles=EDITORS,
)
LIST_RELEASES_TOOL = Tool("list_releases", "List the releases of the caller's tenant.", LIST_RELEASES, roles=EDITORS)
