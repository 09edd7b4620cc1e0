"""The servers of a local stack without its services, for as long as they are loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_local.child import ChildFailed
from phronesis_local.cleanup import end_leftovers
from phronesis_local.layout import AlreadyRunning, DataDir
from phronesis_local.parts import servers
from phronesis_local.record import StackRecord
from phronesis_local.settings import LocalSettings
from phronesis_local.stack import Stack
from phronesis_local.stores import StoresRefused, hold_to

from .errors import Failed, Refused
from .places import Places, of_stack, running


@asynccontextmanager
async def idle(data: DataDir | None) -> AsyncIterator[Places]:
    """Stores on which no service runs: servers started for it on a data directory, or a deployment's, which run.

    Raises:
        Refused: a stack runs on the directory.
        Failed: a server does not start.
    """
    if data is None:
        yield running(None)
        return
    data.create()
    try:
        with data.locked():
            hold_to(data, LocalSettings())
            end_leftovers(data)
            async with _servers(data) as places:
                yield places
    except StoresRefused as error:
        raise Refused(str(error)) from error
    except AlreadyRunning as error:
        raise Refused(f"a stack runs on {data.root}: stop it with `phronesis down --data {data.root}`") from error


@asynccontextmanager
async def _servers(data: DataDir) -> AsyncIterator[Places]:
    settings = LocalSettings().model_copy(update={"data": data.root, "port": 0})
    stack = Stack(data, settings, _unseen, servers(settings))
    try:
        await stack.start()
        yield of_stack(data)
    except ChildFailed as error:
        raise Failed(f"a server of the stack did not start: {error}") from error
    finally:
        await stack.stop()


def _unseen(record: StackRecord) -> None:
    """Nobody watches the servers come up: what is done with them is told."""
