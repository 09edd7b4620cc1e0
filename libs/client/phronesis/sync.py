"""The SDK for blocking code."""

# Generated from aio.py by `make docs`.

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from phronesis_contracts import ServiceError

from .calls import account, agents, memory, turns
from .endpoint import Endpoint, find
from .models import Readiness, TurnEvent
from .request import Request, Retries
from .sse import Following

P = ParamSpec("P")
T = TypeVar("T")


class _Connection:
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.http = httpx.Client(base_url=endpoint.url, headers=endpoint.headers, trust_env=not endpoint.is_local)

    def call(self, request: Request[T]) -> T:
        retries = Retries(request, self.endpoint.url, self.endpoint.hint)
        while True:
            try:
                return request.result(self.http.request(**request.arguments()))
            except (ServiceError, httpx.HTTPError, httpx.InvalidURL) as exc:
                wait = retries.after(exc)
            time.sleep(wait)


class _Resource:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection


def _calls(describe: Callable[P, Request[T]]) -> Callable[Concatenate[_Resource, P], T]:
    @wraps(describe)
    def method(self: _Resource, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._connection.call(describe(*args, **kwargs))

    return method


class Conversations(_Resource):
    """Talking and reading back, and having it deleted."""

    send = _calls(turns.send)
    list = _calls(turns.list_conversations)
    get = _calls(turns.get_conversation)
    delete = _calls(turns.delete_conversation)
    deletion = _calls(turns.get_deletion)


class Turns(_Resource):
    """Turns by id: what `send` waits for, in the open."""

    submit = _calls(turns.submit)
    get = _calls(turns.get_turn)
    list = _calls(turns.list_turns)
    cancel = _calls(turns.cancel_turn)
    retry = _calls(turns.retry_turn)
    rate = _calls(turns.rate_turn)
    unrate = _calls(turns.unrate_turn)
    trace = _calls(turns.trace)
    explain = _calls(account.explain_turn)
    replay = _calls(account.replay_turn)

    def events(self, turn_id: str, after: str | None = None) -> Iterator[TurnEvent]:
        """The progress of a turn until its end, over broken connections.

        Args:
            turn_id: the turn.
            after: id of an event that was seen already; the stream goes on behind it.

        Raises:
            ServiceError: the turn is not the caller's, or the stream cannot be reached any more.
        """
        connection = self._connection
        following = Following(turn_id, after, connection.endpoint.url)
        while not following.done:
            problem: ServiceError | httpx.TransportError | None = None
            try:
                with closing(_stream(connection.http, following)) as events:
                    yield from events
            except (ServiceError, httpx.TransportError) as exc:
                problem = exc
            if not following.done:
                time.sleep(following.broken(problem))


def _stream(http: httpx.Client, following: Following) -> Generator[TurnEvent]:
    with http.stream("GET", following.path, headers=following.headers(), timeout=following.timeout) as response:
        if not response.is_success:
            response.read()
        if following.opened(response):
            for chunk in response.iter_bytes():
                yield from following.feed(chunk)
                if following.done:
                    return


class Approvals(_Resource):
    """What agents want to do and a person has to allow first."""

    list = _calls(turns.list_approvals)
    get = _calls(turns.get_approval)
    answer = _calls(turns.answer_approval)
    grants = _calls(turns.list_grants)
    revoke = _calls(turns.revoke_grant)


class ActionPolicies(_Resource):
    """What agents may do because of texts that are not the user's; a tenant's admins set it."""

    get = _calls(turns.get_action_policy)
    versions = _calls(turns.list_action_policies)
    set = _calls(turns.set_action_policy)
    restore = _calls(turns.restore_action_policy)


class Tasks(_Resource):
    """Background tasks; `turns.events` follows one, for its id is that of its turn."""

    submit = _calls(turns.submit_task)
    get = _calls(turns.get_task)
    list = _calls(turns.list_tasks)
    cancel = _calls(turns.cancel_task)
    answer = _calls(turns.answer_task)
    report = _calls(turns.get_report)
    set_outcome = _calls(turns.set_task_outcome)


class Schedules(_Resource):
    """Tasks that are started at the times of a cron expression."""

    add = _calls(turns.add_schedule)
    get = _calls(turns.get_schedule)
    list = _calls(turns.list_schedules)
    change = _calls(turns.change_schedule)
    pause = _calls(turns.pause_schedule)
    resume = _calls(turns.resume_schedule)
    remove = _calls(turns.remove_schedule)


class Strategies(_Resource):
    """How tasks were done whose results were accepted: what later tasks are shown."""

    list = _calls(turns.list_strategies)
    get = _calls(turns.get_strategy)
    update = _calls(turns.update_strategy)
    retire = _calls(turns.retire_strategy)
    effect = _calls(turns.strategy_effect)


class MediaFiles(_Resource):
    """Uploads."""

    upload = _calls(turns.upload)


class Tools(_Resource):
    """Tools by name."""

    list = _calls(memory.list_tools)
    call = _calls(memory.call_tool)


class Agents(_Resource):
    """The agents to talk to, and making a tenant's own."""

    list = _calls(agents.list_agents)
    get = _calls(agents.get_agent)
    publish = _calls(agents.publish_agent)
    versions = _calls(agents.list_versions)
    diff = _calls(agents.diff_versions)
    roll_back = _calls(agents.roll_back)
    delete = _calls(agents.delete_agent)


class Memory(_Resource):
    """The caller's memory."""

    add = _calls(memory.add)
    search = _calls(memory.search)
    get = _calls(memory.get)
    list = _calls(memory.list_memories)
    update = _calls(memory.update)
    history = _calls(memory.history)
    delete = _calls(memory.delete)
    context = _calls(memory.context)
    remember = _calls(memory.remember)
    recall = _calls(memory.recall)
    forget = _calls(memory.forget)
    recall_memory = _calls(memory.recall_memory)
    query = _calls(memory.memory_query)
    keep_memory = _calls(memory.keep_memory)
    forget_memory = _calls(memory.forget_memory)
    list_facts = _calls(memory.list_facts)
    recall_facts = _calls(memory.recall_facts)
    import_memory = _calls(memory.import_memory)
    preview_forgetting = _calls(memory.preview_forgetting)
    forget_for_good = _calls(memory.forget_for_good)
    forgetting = _calls(memory.forgetting)


class Ledger(_Resource):
    """What model calls used, and the limits."""

    usage = _calls(account.get_usage)
    limits = _calls(account.get_limits)
    set_limit = _calls(account.set_limit)


class Keys(_Resource):
    """Keys of the gateway."""

    create = _calls(account.create_key)
    create_for_bus = _calls(account.create_bus_key)
    list = _calls(account.list_keys)
    revoke = _calls(account.revoke_key)


class Users(_Resource):
    """All that is held of a user: previewed, and erased with a proof."""

    preview_erasure = _calls(account.preview_erasure)
    erase = _calls(account.erase_user)
    erasure = _calls(account.get_erasure)
    erasures = _calls(account.list_erasures)


class Forgettings(_Resource):
    """Sources that are forgotten with all that came of them: previewed, and forgotten with a proof."""

    preview = _calls(account.preview_source)
    begin = _calls(account.forget_source)
    get = _calls(account.get_forgetting)
    list = _calls(account.list_forgettings)


class RetentionOfTenant(_Resource):
    """For how long the tenant keeps what."""

    get = _calls(account.get_retention)
    set = _calls(account.set_retention)


class ProfileOfCaller(_Resource):
    """What is known of the caller."""

    get = _calls(account.get_profile)
    put = _calls(account.put_profile)
    update = _calls(account.update_profile)
    delete = _calls(account.delete_profile)


class Client:
    """A stack of Phronesis, for blocking code; safe to share between threads.

    Args:
        base_url: address of the gateway. Without it: `data` where stated, else `PHRONESIS_URL`, else the local stack
            of `PHRONESIS_DATA` or `~/.phronesis`.
        api_key: a key of the gateway; a local stack's own when absent.
        data: data directory of a local stack.
        user_id: your own name for the user that all calls are made for; the key needs the scope `act_for_users`.

    Raises:
        Unavailable: there is no local stack.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        data: Path | str | None = None,
        user_id: str | None = None,
    ) -> None:
        self._connection = connection = _Connection(replace(find(base_url, api_key, data), user=user_id))
        self.conversations = Conversations(connection)
        self.turns = Turns(connection)
        self.tasks = Tasks(connection)
        self.schedules = Schedules(connection)
        self.strategies = Strategies(connection)
        self.approvals = Approvals(connection)
        self.action_policy = ActionPolicies(connection)
        self.media = MediaFiles(connection)
        self.tools = Tools(connection)
        self.agents = Agents(connection)
        self.memory = Memory(connection)
        self.ledger = Ledger(connection)
        self.keys = Keys(connection)
        self.users = Users(connection)
        self.forgettings = Forgettings(connection)
        self.retention = RetentionOfTenant(connection)
        self.profile = ProfileOfCaller(connection)

    @property
    def url(self) -> str:
        """Address of the gateway that was found."""
        return self._connection.endpoint.url

    def ready(self) -> Readiness:
        """Whether the stack is ready, and what is down if not."""
        return self._connection.call(account.ready())

    def close(self) -> None:
        """Close the connections to the gateway."""
        self._connection.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
