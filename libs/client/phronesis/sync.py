"""The SDK for blocking code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from phronesis_contracts import ServiceError

from . import calls
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

    send = _calls(calls.send)
    list = _calls(calls.list_conversations)
    get = _calls(calls.get_conversation)
    delete = _calls(calls.delete_conversation)
    deletion = _calls(calls.get_deletion)


class Turns(_Resource):
    """Turns by id: what `send` waits for, in the open."""

    submit = _calls(calls.submit)
    get = _calls(calls.get_turn)
    list = _calls(calls.list_turns)
    cancel = _calls(calls.cancel_turn)
    retry = _calls(calls.retry_turn)
    trace = _calls(calls.trace)
    explain = _calls(calls.explain_turn)
    replay = _calls(calls.replay_turn)

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
                yield from _stream(connection.http, following)
            except (ServiceError, httpx.TransportError) as exc:
                problem = exc
            if not following.done:
                time.sleep(following.broken(problem))


def _stream(http: httpx.Client, following: Following) -> Iterator[TurnEvent]:
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

    list = _calls(calls.list_approvals)
    get = _calls(calls.get_approval)
    answer = _calls(calls.answer_approval)


class Tasks(_Resource):
    """Background tasks; `turns.events` follows one, for its id is that of its turn."""

    submit = _calls(calls.submit_task)
    get = _calls(calls.get_task)
    list = _calls(calls.list_tasks)
    cancel = _calls(calls.cancel_task)


class MediaFiles(_Resource):
    """Uploads."""

    upload = _calls(calls.upload)


class Tools(_Resource):
    """Tools by name."""

    list = _calls(calls.list_tools)
    call = _calls(calls.call_tool)


class Memory(_Resource):
    """The caller's memory."""

    remember = _calls(calls.remember)
    recall = _calls(calls.recall)
    forget = _calls(calls.forget)
    recall_memory = _calls(calls.recall_memory)
    query = _calls(calls.memory_query)
    keep_memory = _calls(calls.keep_memory)
    forget_memory = _calls(calls.forget_memory)
    list_facts = _calls(calls.list_facts)
    recall_facts = _calls(calls.recall_facts)
    import_memory = _calls(calls.import_memory)
    preview_forgetting = _calls(calls.preview_forgetting)
    forget_for_good = _calls(calls.forget_for_good)
    forgetting = _calls(calls.forgetting)


class Ledger(_Resource):
    """What model calls used, and the limits."""

    usage = _calls(calls.get_usage)
    limits = _calls(calls.get_limits)
    set_limit = _calls(calls.set_limit)


class Keys(_Resource):
    """Keys of the gateway."""

    create = _calls(calls.create_key)
    create_for_bus = _calls(calls.create_bus_key)
    list = _calls(calls.list_keys)
    revoke = _calls(calls.revoke_key)


class ProfileOfCaller(_Resource):
    """What is known of the caller."""

    get = _calls(calls.get_profile)
    put = _calls(calls.put_profile)
    update = _calls(calls.update_profile)
    delete = _calls(calls.delete_profile)


class Client:
    """A stack of Phronesis, for blocking code; safe to share between threads.

    Args:
        base_url: address of the gateway. Without it: `data` where stated, else `PHRONESIS_URL`, else the local stack
            of `PHRONESIS_DATA` or `~/.phronesis`.
        api_key: a key of the gateway; a local stack's own when absent.
        data: data directory of a local stack.

    Raises:
        Unavailable: there is no local stack.
    """

    def __init__(self, base_url: str | None = None, api_key: str | None = None, data: Path | str | None = None) -> None:
        self._connection = connection = _Connection(find(base_url, api_key, data))
        self.conversations = Conversations(connection)
        self.turns = Turns(connection)
        self.tasks = Tasks(connection)
        self.approvals = Approvals(connection)
        self.media = MediaFiles(connection)
        self.tools = Tools(connection)
        self.memory = Memory(connection)
        self.ledger = Ledger(connection)
        self.keys = Keys(connection)
        self.profile = ProfileOfCaller(connection)

    @property
    def url(self) -> str:
        """Address of the gateway that was found."""
        return self._connection.endpoint.url

    def ready(self) -> Readiness:
        """Whether the stack is ready, and what is down if not."""
        return self._connection.call(calls.ready())

    def close(self) -> None:
        """Close the connections."""
        self._connection.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
