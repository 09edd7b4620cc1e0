"""Contracts of the orchestrator: turns, conversations, the order and budget of a background task, and the audit trail."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID, uuid5

from pydantic import AwareDatetime, ConfigDict, Field

from .answers import Analysis, AnswerTrace
from .deletions import ConversationDeleted, DeleteConversation, Deletion, DeletionRef
from .errors import BadRequest, ServiceError
from .messages import WRITTEN_AS_NUMBER, Event, Job, Message, Out, Rpc
from .origins import Label, OriginKind
from .tools import Tool


class TaskBudget(Message):
    """What a background task may use; it is held to before each step and each call."""

    seconds: Annotated[float, Field(ge=1.0, le=14_400.0), WRITTEN_AS_NUMBER] = 900.0
    """Seconds of work, from its first step; 1 to 14,400."""
    tokens: Annotated[int, Field(ge=0, le=10**15), WRITTEN_AS_NUMBER] | None = None
    """Tokens of all its model calls together, read and written."""
    usd: Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False), WRITTEN_AS_NUMBER] | None = None
    """US dollars of all its model calls together; a call whose price is not known counts nothing."""
    tool_calls: Annotated[int, Field(ge=0, le=1_000), WRITTEN_AS_NUMBER] = 100
    """Tool calls of all steps together, 0 to 1,000."""


class ChangedThing(Message):
    """A node that changed, or a file that arrived, as the event tells it."""

    id: str = Field(max_length=200)
    """Its id."""
    title: str = Field(default="", max_length=500)
    """What it is called. Whoever wrote it, it is data, and asks for nothing."""


class StartingEvent(Message):
    """The event that started a task."""

    event: Literal["node_changed", "file_arrived"]
    """What happened."""
    things: tuple[ChangedThing, ...] = Field(min_length=1, max_length=10)
    """The nodes or the file; their ids stand in the goal in place of `{node}` or `{file}`."""
    type: str = Field(default="", max_length=64)
    """The nodes' type, or the kind of file; empty where nodes are of several."""
    left_out: int = 0
    """Further nodes of the same change, which were not looked at or would be too many."""
    label: Label
    """Where the titles come from."""


class ScheduledRun(Message):
    """Why a task was started without a person: the time of a schedule, or an event."""

    schedule_id: str
    """The schedule."""
    due: datetime
    """The time of the schedule that it was started for, or when its event was heard of."""
    late: bool = False
    """Whether it was started more than a minute after that, since nobody was there to start it."""
    missed: int = 0
    """Earlier times that passed meanwhile, and that this run stands for too."""
    event: StartingEvent | None = None
    """The event that started it; absent where a time did."""


class TaskOrder(Message):
    """The part of a turn that makes it a background task; its text is the goal."""

    budget: TaskBudget = TaskBudget()
    schedule: ScheduledRun | None = None
    """The schedule that ordered it; no caller can state it."""
    dry_run_of: str | None = Field(default=None, max_length=4_000)
    """The goal of a task that ends with its plan: nothing of it is done, and nothing is learnt.

    The text of the turn is then empty: a service of the version before, which knows of no dry runs, has nothing to work on.
    """


_TURNS = UUID("6d0a1c9e-53b7-5f0e-9b51-6b1f8e8d4a77")
MAX_TEXT = 100_000
"""Characters of a user's message."""
MAX_ATTACHMENTS = 16
MAX_OUTCOMES = 100
"""Tool calls in the news of a turn's end."""
MAX_DETAIL = 500
"""Characters of what an error said."""


class Directive(StrEnum):
    """The four stances an agent may take into the next turn."""

    CURIOUS_EXPLORER = "curious_explorer"
    SUPPORTIVE_COMPANION = "supportive_companion"
    FOCUSED_ANALYST = "focused_analyst"
    CREATIVE_COLLABORATOR = "creative_collaborator"


class TurnStatus(StrEnum):
    """Where a turn is. The last four are ends; a turn has exactly one end."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PARKED = "parked"

    @property
    def ended(self) -> bool:
        """Whether this is an end."""
        return self in _ENDS


_ENDS = frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED, TurnStatus.PARKED})


def turn_id(tenant: str, user: str, idempotency_key: str) -> str:
    """The id of the turn that this caller's key stands for; the same key gives the same turn on every side of the bus."""
    return str(uuid5(_TURNS, f"{tenant}\x00{user}\x00{idempotency_key}"))


class ModelRequired(BadRequest):
    """What is asked for takes a language model that is not set up here, or that cannot do it."""

    code = "model_required"


class AnswerUnfit(ServiceError):
    """The model was asked twice and did not answer in the form that the client asks for, or without a call that it requires."""

    code = "answer_unfit"
    status = 422


MAX_CLIENT_TOOLS = 128
MAX_CLIENT_STEPS = 256
"""Answers of the agent and results of tools that a client sends with one message."""
MAX_CLIENT_TEXT = 32_000
"""Characters of a client's instructions."""
MAX_CLIENT_BYTES = 250_000
"""Bytes of all that a client adds to a message, as JSON."""
TOOL_NAME = r"^[A-Za-z0-9_-]{1,64}$"


class ClientTool(Message):
    """A tool that the client program runs itself."""

    name: str = Field(pattern=TOOL_NAME)
    description: str = Field(default="", max_length=10_000)
    parameters: dict[str, Any] = Field(default_factory=dict)
    """JSON Schema of its arguments."""
    strict: bool = False
    """Whether arguments that do not fit the schema are an error."""


class ClientToolCall(Message):
    """A call of a client's tool."""

    id: str = Field(min_length=1, max_length=100)
    """Its id, to send the result under."""
    name: str = Field(pattern=TOOL_NAME)
    """The tool to call."""
    arguments: str = Field(max_length=100_000)
    """The arguments as JSON, as the model wrote them."""


class ClientStep(Message):
    """What stands behind the message in the client's record: calls that the agent made, and what the client's tools gave."""

    text: str = Field(default="", max_length=MAX_TEXT)
    """What the agent said beside its calls; of a result, the result."""
    calls: tuple[ClientToolCall, ...] = Field(default=(), max_length=MAX_CLIENT_TOOLS)
    result_of: str | None = Field(default=None, max_length=100)
    """The call that this is the result of."""


class AnswerForm(Message):
    """The form that a client asks for: one JSON object."""

    name: str = Field(default="answer", pattern=TOOL_NAME)
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON Schema of the object; any object will do without it."""
    strict: bool = False
    """Whether the schema is in the form that providers' strict modes ask for."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, validate_by_name=True, serialize_by_alias=True)


class ClientRequest(Message):
    """What a client program adds to its user's message.

    None of it is the user's: it is data with the origin `client`. It grants no right, no tool of the agent's is called for it,
    and nothing of it is remembered as said by the user.
    """

    origin: Literal["client"] = "client"
    instructions: str = Field(default="", max_length=MAX_CLIENT_TEXT)
    """Wishes of tone, form and language; the agent's own instructions stand above them."""
    tools: tuple[ClientTool, ...] = Field(default=(), max_length=MAX_CLIENT_TOOLS)
    tool_choice: str = Field(default="auto", pattern=TOOL_NAME)
    """`auto`, `none`, `required`, or `call` with the tool in `tool`."""
    tool: str | None = Field(default=None, pattern=TOOL_NAME)
    """The tool that has to be called, with the choice `call`."""
    parallel: bool = True
    """Whether one answer may make several calls."""
    steps: tuple[ClientStep, ...] = Field(default=(), max_length=MAX_CLIENT_STEPS)
    form: AnswerForm | None = None

    @property
    def offers(self) -> bool:
        """Whether a tool may be called."""
        return bool(self.tools) and self.tool_choice != "none"


class SubmitTurn(Message):
    """A user's message to an agent. The id of its turn is `turn_id(tenant, user, idempotency_key)`."""

    idempotency_key: str = Field(min_length=1, max_length=255)
    conversation_id: str | None = None
    """An existing conversation of the caller; a new one is begun without it."""
    text: str = Field(default="", max_length=MAX_TEXT)
    media: tuple[str, ...] = Field(default=(), max_length=MAX_ATTACHMENTS)
    """Ids of accepted uploads."""
    agent: str = "dialogue"
    fingerprint: str | None = Field(default=None, max_length=128)
    """Hash of the body as the caller sent it; computed from this message when absent."""
    retry_of: str | None = None
    """The parked or failed turn that this one tries again."""
    task: TaskOrder | None = None
    """Makes the turn a background task in a conversation of its own; `text` is its goal."""
    client: ClientRequest | None = None
    """What the program that sends the message adds to it."""


class Problem(Message):
    """Why a turn was refused, failed or was parked: the body of a `ServiceError`."""

    code: str
    """Which problem it is. Stable: programs may depend on it."""
    status: int
    """The HTTP status that stands for it."""
    detail: str = ""
    """What happened, for people; the wording may change."""
    field: str | None = None
    """The part of the input that is at fault."""
    retry_after: float | None = None
    """Seconds after which another attempt may succeed."""
    waiting_for: str | None = None
    """The service or store that a turn waited for when it expired."""


class TurnProgress(Message):
    """One line of a turn's progress. `ended` is a hint; `TURN_GET` is the truth, and what `turn` says where it is there."""

    turn_id: str
    kind: str
    """`accepted`, `refused`, `phase`, `waiting` (for an approval, whose id and tool stand in `detail`), `live` (a piece of the
    reply as a model writes it, which is provisional), `restart` (drop what came by `live`) or `ended`."""
    conversation_id: str | None = None
    phase: str | None = None
    """For `phase`: `preprocessed`, `routed`, `retrieved` or `answered`; of analysts `classified` and `tools` too, and
    of agents that think ahead `intent`, `preflight` and `reflected`. `waiting_for` says that a service or store, which `detail`
    names as `waiting_for`, does not answer: the turn goes on when it does."""
    problem: Problem | None = None
    detail: dict[str, Any] = Field(default_factory=dict)
    attempt: int | None = None
    """For `live` and `restart`: the attempt at the turn that says it; what an earlier one said is void."""
    offset: int | None = None
    """For `live`: characters of the reply before this piece."""
    text: str | None = None
    """For `live`: the piece."""
    turn: Turn | None = None
    """For `ended`: the turn as its row states it; absent where it is too large for a line, or somebody stopped it."""


class Source(Message):
    """What an answer rests on."""

    id: str
    """Its id, in memory or among the caller's uploads."""
    type: str
    """What it is, for example `note`, `fact`, `message` or `document`."""
    title: str
    """A heading to show it under."""
    score: float
    """How well it fitted the message, 0 to 1."""
    snippet: str
    """The passage that was used, cut where it is long."""


class Usage(Message):
    """What a turn used."""

    input_tokens: int = 0
    """Tokens that its models read."""
    output_tokens: int = 0
    """Tokens that its models wrote."""
    model_calls: int = 0
    """Calls of models."""
    ms: int = 0
    """Milliseconds from acceptance to the end."""
    cost_usd: float | None = None
    """What its model calls cost by the list of prices; absent where no model was asked or a price is not known."""
    instruction_tokens: int = 0
    """Tokens of the instructions that its tools loaded."""
    release: str = ""
    """The release of the instructions that the agent ran with."""
    arms: dict[str, str] = Field(default_factory=dict)
    """The arm of each running experiment that its user is in."""


class Reply(Message):
    """The end of a completed turn, as the messages endpoint returns it."""

    conversation_id: str
    """The conversation; name it in the next message to go on with it."""
    turn_id: str
    """The turn that this reply ended."""
    user_response: str
    """The reply's text, in Markdown."""
    next_agent_directive: Directive
    """The stance in which the agent takes the next message."""
    reasoner: str
    """What wrote the reply: the name of a model's provider, or `extractive` where rules did."""
    degraded: tuple[str, ...] = ()
    """What the turn had to do without, for example `memory` or `model`; empty where nothing failed."""
    sources: tuple[Source, ...] = ()
    """What the reply rests on."""
    usage: Usage = Usage()
    """What the turn used."""
    analysis: Analysis | None = None
    """The whole answer of an analyst (noor, maestro)."""
    tool_calls: tuple[ClientToolCall, ...] = ()
    """Calls of the client's own tools; where there are any, the client makes them and sends the message again with results."""


MAX_REMARK = 1_000
"""Characters of a remark on an answer."""


class Feedback(Message):
    """What a turn's user thinks of its answer."""

    helpful: bool
    """Whether the answer was of help."""
    remark: str = Field(default="", max_length=MAX_REMARK)
    """What they said about it; its first 200 characters in lists."""
    at: datetime
    """When they said so last."""


class Turn(Message):
    """The state of a turn."""

    turn_id: str
    """Its id."""
    conversation_id: str
    """The conversation that it belongs to."""
    agent: str
    """The agent that answers."""
    status: TurnStatus
    """Where it is."""
    sequence: int
    """Its place in the conversation, from 1."""
    attempts: int
    """How often work on it was begun; more than one where a worker was lost or a store was away."""
    created_at: datetime
    """When the message was taken."""
    ended_at: datetime | None = None
    """When it ended; absent until then."""
    trace_id: str | None = None
    """Id of the trace of its requests, as in the header `traceparent`."""
    retry_of: str | None = None
    """The turn that it tries again."""
    reply: Reply | None = None
    """The reply of a completed turn."""
    problem: Problem | None = None
    """Why a failed or parked turn has no reply."""
    expires_at: datetime | None = None
    """When it fails, unless it has ended by then: nobody need wait for it any longer."""
    approval_id: str | None = None
    """The approval that it waits for, or waited for last."""
    waiting_for: str | None = None
    """The service or store that did not answer and that it waits for, while it does: it is tried again until it expires."""
    trace: AnswerTrace | None = None
    """The whole trace of its answer, where it was asked for."""
    opening: str = ""
    """The first 240 characters of its message; in lists."""
    usage: Usage | None = None
    """What it used; absent until it has ended well."""
    user: str = ""
    """Whose it is; in lists."""
    feedback: Feedback | None = None
    """What its user thinks of the answer, where they said so."""


TurnProgress.model_rebuild()


class TurnRef(Message):
    """One turn by id."""

    turn_id: str


class RateTurn(Message):
    """What the caller thinks of the answer of an ended turn of theirs; without `helpful` what they said is taken back."""

    turn_id: str
    helpful: bool | None = None
    remark: str = Field(default="", max_length=MAX_REMARK)


class ListTurns(Message):
    """The caller's turns, newest first, or for an administrator those of others."""

    conversation_id: str | None = None
    status: TurnStatus | None = None
    agent: str | None = Field(default=None, max_length=64)
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    """Only turns whose message was taken before this."""
    before: str | None = None
    """Only turns ahead of this one, by id: the last of a page, for the next page."""
    helpful: bool | None = None
    """Only turns whose user said that the answer was of help, or that it was not."""
    user: str | None = Field(default=None, max_length=200)
    """Whose turns, in place of the caller's; `*` for everybody's. For administrators."""
    limit: int = Field(default=20, ge=1, le=200)


class Turns(Message):
    """A list of turns, without their replies."""

    turns: tuple[Turn, ...]
    """The turns, the newest first."""


class ConversationRef(Message):
    """One conversation by id, with its newest `limit` messages before sequence `before`."""

    conversation_id: str
    limit: int = Field(default=50, ge=1, le=200)
    before: int | None = None
    turns: bool = False
    """Whether the messages' turns are wanted too."""


class ConversationMessage(Message):
    """One message of a conversation."""

    seq: int
    """Its place in the conversation; give the lowest of a page as `before` for the messages ahead of it."""
    turn_id: str
    """The turn that it belongs to."""
    role: str
    """`user` or `assistant`."""
    text: str
    """What was said."""
    attached: tuple[str, ...] = ()
    """Names of the files that were attached to it."""
    created_at: datetime
    """When it was said."""


class Conversation(Message):
    """A conversation with its messages, oldest first."""

    conversation_id: str
    """Its id."""
    agent: str
    """The agent that answers in it."""
    directive: Directive
    """The stance in which the agent takes the next message."""
    created_at: datetime
    """When its first message was taken."""
    messages: tuple[ConversationMessage, ...]
    """Its messages, the oldest first; long ones are fewer than asked for, as many as one answer holds."""
    more: bool = False
    """Whether there are messages ahead of these."""
    turns: tuple[Turn, ...] = ()
    """The turns of these messages with their replies, the oldest first, where they were asked for. Those that one answer has no
    room for are left out: read them by their ids."""


class ListConversations(Message):
    """A page of the caller's conversations, newest activity first."""

    limit: int = Field(default=20, ge=1, le=100)
    cursor: str | None = Field(default=None, max_length=200)
    """`next` of the page before; good for the caller it was made for and for nobody else."""
    text: str = Field(default="", max_length=200)
    """Only conversations in which one message holds each of these words, in letters of any case."""


class ConversationSummary(Message):
    """A conversation as a list shows it."""

    conversation_id: str
    """Its id."""
    title: str
    """The first words of its first message; empty where that had none."""
    agent: str
    """The agent that answers in it."""
    directive: Directive
    """The stance in which the agent takes the next message."""
    created_at: datetime
    """When its first message was taken."""
    updated_at: datetime
    """When a message was last taken or answered."""
    turns: int
    """Messages that were taken, answered or not."""
    excerpt: str = ""
    """Where words were asked for, what stands around the first of them in the newest message that holds them."""


class ConversationPage(Message):
    """Conversations, newest activity first."""

    conversations: tuple[ConversationSummary, ...]
    """The conversations of the page, newest activity first. Where words are asked for, a page before the last may hold none."""
    next: str | None = None
    """The cursor of the page behind; absent on the last one."""


class FindConversation(Message):
    """The caller's conversation with an agent that ends as a client's record of it does, for clients that keep no ids."""

    agent: str = Field(min_length=1, max_length=64)
    exchanges: tuple[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], ...] = Field(min_length=1, max_length=3)
    """The last exchanges, oldest first: of each the SHA-256 of what was said and of what was answered, each without the space
    around it, with U+001F between them."""
    whole: bool
    """Whether the client's record holds no more than these."""


class FoundConversation(Message):
    """The newest such conversation, where there is one."""

    conversation_id: str | None = None


class ToolOutcome(Message):
    """What came of one tool call of a turn."""

    name: str = Field(max_length=200)
    ok: bool
    code: str | None = Field(default=None, max_length=100)
    """Of the error, where it failed."""
    detail: str = Field(default="", max_length=MAX_DETAIL)
    """What the error said, cut."""
    ms: int = Field(default=0, ge=0)
    """Milliseconds that the call took."""


class TurnEndedNews(Message):
    """A turn has ended. It carries the texts, since followers may not ask the orchestrator."""

    turn_id: str
    conversation_id: str
    user: str
    agent: str
    status: TurnStatus
    user_text: str = ""
    attached: tuple[str, ...] = Field(default=(), max_length=MAX_ATTACHMENTS)
    """Names of the files that were attached to the message."""
    reply_text: str = ""
    tier: str | None = None
    """The tier that the turn ran in, where it was given one."""
    task: str | None = Field(default=None, max_length=100)
    """The background task that the turn was."""
    code: str | None = None
    """Why it has no reply."""
    tools: tuple[ToolOutcome, ...] = Field(default=(), max_length=MAX_OUTCOMES)
    """What came of its tool calls, in their order."""
    labels: tuple[Label, ...] = (Label(kind=OriginKind.UNKNOWN),)
    """Where the texts come from that its reply may rest on. `user_text` holds the user's own words alone."""
    at: datetime | None = None
    """When it ended."""


class Audited(Message):
    """One write, one refusal, or one finding of a service that acted for nobody, as its owner saw it."""

    who: str
    role: str
    action: str
    outcome: str
    """`done` or `refused`."""
    code: str | None = None
    acted_by: str | None = None
    """The user of the key that acted for `who`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The arguments with secrets masked and long texts cut."""


class ListUsers(Message):
    """Who has talked to agents of the tenant, by name, with others whom the asker knows of. For administrators."""

    after: str = Field(default="", max_length=200)
    """Only names behind this one, in the order of their characters' numbers."""
    text: str = Field(default="", max_length=200)
    """Only names that hold this."""
    also: tuple[str, ...] = Field(default=(), max_length=201)
    """Names of others that are wanted too."""
    limit: int = Field(default=50, ge=1, le=201)
    """Names at most, beside those of `also`."""


class SeenUser(Message):
    """When a user was last seen, and how much there is of them."""

    user: str
    conversations: int = 0
    last_seen: datetime | None = None
    """When they last talked to an agent or changed something, or something was refused to them."""


class SeenUsers(Message):
    """Users by name."""

    users: tuple[SeenUser, ...]


class ListAudit(Message):
    """Entries of the tenant's audit trail, newest first. For administrators."""

    who: str | None = Field(default=None, max_length=200)
    """Only what was done for this user."""
    action: str | None = Field(default=None, max_length=200)
    """Only actions that begin so."""
    outcome: Literal["done", "refused"] | None = None
    text: str | None = Field(default=None, max_length=200)
    """Only entries that hold this anywhere, in letters of any case."""
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    """Only entries from before this."""
    before: int | None = Field(default=None, ge=1, lt=2**63)
    """Only entries behind this one, by id: `next` of the page before."""
    limit: int = Field(default=50, ge=1, le=200)


class AuditEntry(Message):
    """One write, or one refusal, as the service that it was asked of saw it."""

    id: int
    """Its number in the trail."""
    at: datetime
    """When it was entered."""
    service: str
    """The service that entered it."""
    who: str
    """The user that it was done for."""
    role: str
    """The role and the agents that they had then."""
    acted_by: str | None = None
    """The user of the key that acted for `who`, where one did."""
    action: str
    """What was done, such as `keys.create`, or the name of a tool."""
    outcome: str
    """`done` or `refused`."""
    code: str | None = None
    """Why it was refused."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What it was done with: secrets masked, long texts cut; empty where they went with what they were about."""


class AuditPage(Message):
    """Entries of the audit trail, newest first."""

    entries: tuple[AuditEntry, ...]
    """The entries of the page; with a `text` there may be fewer than asked for, or none, although there are more pages."""
    next: int | None = None
    """What to give as `before` for the page behind; absent on the last one."""


TURN = Job("orchestrator.v1.turn", SubmitTurn)
PROGRESS = Out("orchestrator.v1.turn", TurnProgress)
TURN_GET = Rpc("orchestrator.v1.turn.get", TurnRef, Turn)
TURN_GET_TOOL = Tool(
    "turn.get", "Where one of the caller's turns is, with its reply or its problem once it has ended.", TURN_GET
)
TURN_CANCEL = Rpc("orchestrator.v1.turn.cancel", TurnRef, Turn)
TURN_RETRY = Rpc("orchestrator.v1.turn.retry", TurnRef, Turn)
TURN_RATE = Rpc("orchestrator.v1.turn.rate", RateTurn, Turn)
TURN_LIST = Rpc("orchestrator.v1.turn.list", ListTurns, Turns)
CONVERSATION_GET = Rpc("orchestrator.v1.conversation.get", ConversationRef, Conversation)
CONVERSATION_LIST = Rpc("orchestrator.v1.conversation.list", ListConversations, ConversationPage)
CONVERSATION_FIND = Rpc("orchestrator.v1.conversation.find", FindConversation, FoundConversation)
CONVERSATION_DELETE = Rpc("orchestrator.v1.conversation.delete", DeleteConversation, Deletion, timeout=10.0)
DELETION_GET = Rpc("orchestrator.v1.deletion.get", DeletionRef, Deletion)
CONVERSATION_DELETED = Event("orchestrator.v1.conversation.deleted", ConversationDeleted, followers=("memory", "media"))
USER_LIST = Rpc("orchestrator.v1.user.list", ListUsers, SeenUsers, timeout=10.0)
AUDIT_LIST = Rpc("orchestrator.v1.audit.list", ListAudit, AuditPage, timeout=10.0)
TURN_ENDED = Event("orchestrator.v1.turn.ended", TurnEndedNews, followers=("memory",))
