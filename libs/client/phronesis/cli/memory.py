"""`phronesis remember`, `phronesis recall` and `phronesis forget`."""

from __future__ import annotations

import time

from phronesis_contracts import BadRequest
from phronesis_contracts.deletions import DeletionState, SourceForgetting, SourcePreview
from phronesis_contracts.memory import Forgotten, ItemKind, Recalled, RecalledItem, RememberItem

from ..request import validate_message
from ..sync import Client
from . import output
from .output import Stack

KINDS = tuple(kind for kind in ItemKind if kind not in (ItemKind.NODE, ItemKind.STRATEGY))


def remember(client: Client, text: str, title: str | None, kind: str, external_id: str | None) -> None:
    """Store one item and print its id and status."""
    if kind not in KINDS:
        raise BadRequest(f"the kinds are {', '.join(KINDS)}", field="kind")
    item = validate_message(RememberItem, {"text": text, "title": title, "kind": kind, "external_id": external_id})
    for one in client.memory.remember([item]).items:
        output.out(f"{one.id}  {one.status}")


def show_recalled(found: Recalled) -> None:
    """Print what was found, best first."""
    for number, item in enumerate(found.items, 1):
        output.out(f"{number}. {_line(item)}")
    if found.degraded:
        output.note(f"[degraded: {', '.join(found.degraded)}]")
    if not found.items:
        output.note("nothing found")


def show_forgotten(done: Forgotten) -> None:
    for id in done.ids:
        output.out(id)
    output.note(f"{done.count} forgotten")


def keep(client: Client, scope: str, key: str | None, content: str) -> None:
    """Keep one memory in a scope and print its id and status."""
    if key is None:
        raise BadRequest("what is kept in a scope needs an --external-id", field="external_id")
    kept = client.memory.keep_memory(scope, key, content)
    output.out(f"{kept.id}  {kept.status}")


def recall_scope(stack: Stack, client: Client, scope: str, query: str, limit: int) -> None:
    """Print what a scope holds, best first, and where it comes from if that is another scope."""
    found = client.memory.recall_memory(scope, query, limit)
    if stack.as_json(found):
        return
    for number, one in enumerate(found.snippets, 1):
        output.out(
            f"{number}. {one.key} (score {one.score:.2f}, confidence {one.confidence:.2f})\n   {output.cut(one.content)}"
        )
    if found.scope != scope:
        output.note(f"[from the scope {found.scope}]")
    if found.degraded:
        output.note(f"[degraded: {', '.join(found.degraded)}]")
    if not found.snippets:
        output.note("nothing found")


def forget_scope(stack: Stack, client: Client, scope: str, keys: list[str]) -> None:
    """Remove memories of a scope, one by one, and print the ids of those that there were."""
    gone = [client.memory.forget_memory(scope, key) for key in keys]
    if all([stack.as_json(one) for one in gone]):
        return
    ids = [one.id for one in gone if one.id is not None]
    for id in ids:
        output.out(id)
    output.note(f"{len(ids)} forgotten")


def _line(item: RecalledItem) -> str:
    return f"{item.title or item.id} ({item.kind}, score {item.score:.2f})\n   {output.cut(item.text)}"


_PAUSE, _PATIENCE = 0.5, 120.0
"""Seconds between two looks, and seconds that are waited at most; the forgetting goes on after them."""


def forget_source(
    stack: Stack, document: str | None, conversation: str | None, origin: str | None, *, preview: bool, yes: bool
) -> None:
    """Show what came of a source, have it forgotten, and print the proof."""
    kind, _, id = (origin or "").partition(":")
    source = (document, conversation, kind or None, id or None)
    if sum(one is not None for one in (document, conversation, origin)) != 1:
        raise BadRequest("name ids, or either a --document, a --conversation or an --origin", field="ids")
    with stack.client() as client:
        if preview or not yes:
            shown = client.forgettings.preview(*source)
            if preview:
                stack.show(shown, _print_preview)
                return
            output.counts("forgets", shown.held, 11)
            output.sure("Forget all of it for good?", yes)
        found = client.forgettings.begin(*source)
        end = time.monotonic() + _PATIENCE
        while found.state is DeletionState.PENDING and time.monotonic() < end:
            time.sleep(_PAUSE)
            found = client.forgettings.get(found.forgetting_id)
    stack.show(found, _print_forgetting)
    if found.state is DeletionState.PENDING:
        output.note("the forgetting is still going on")


def _print_preview(found: SourcePreview) -> None:
    for one in found.things:
        output.out(f"{one.kind:<9} {one.id}  {output.cut(one.text)}")
    output.counts("forgets", found.held, 11)
    if found.detached:
        output.note(f"{found.detached} facts stay, since you said them yourself")
    if found.total > len(found.things):
        output.note(f"{len(found.things)} of {found.total}")


def _print_forgetting(found: SourceForgetting) -> None:
    output.out(f"forgetting  {found.forgetting_id}")
    output.out(f"state       {found.state}")
    output.counts("before", found.before, 11)
    if found.completed_at is not None:
        output.counts("after", found.after, 11)
        output.out(f"done        {found.completed_at:%Y-%m-%d %H:%M:%S} UTC")
        output.out(f"sha256      {found.digest}")
