"""What stands in for the history while its store does not answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phronesis_contracts import Unavailable
from phronesis_contracts.orchestrator import Directive, Reply
from phronesis_orchestrator.agents.cognition.state import RecentHistory
from phronesis_orchestrator.conversations.history import Past, PastMessage, PastTurn
from phronesis_orchestrator.turns.turn import Completed
from tests.unit.orchestrator.fakes import FakeConversations, claim

SAID = (PastMessage("user", "My cat is Tom."), PastMessage("assistant", "Noted."))


def completed(text: str, reply: str) -> Completed:
    """The good end of a turn."""
    whole = Reply(
        conversation_id="c", turn_id="t", user_response=reply, next_agent_directive=Directive.FOCUSED_ANALYST, reasoner="x"
    )
    return Completed(whole, text, Directive.FOCUSED_ANALYST, "")


@pytest.mark.req("V-017", "V-156", "V-T10")
async def test_the_store_is_read_where_it_answers_and_what_was_kept_where_it_does_not() -> None:
    store, pasts = FakeConversations(history=SAID), RecentHistory()
    first = await pasts.read(store, "acme", "c1")
    assert (first.window, first.stale) == ((PastTurn(1_001, "My cat is Tom.", "Noted."),), False)
    store.history = (PastMessage("user", "Changed."), PastMessage("assistant", "Yes."))
    assert (await pasts.read(store, "acme", "c1")).window[0].user == "Changed."
    store.error = Unavailable("away")
    again = await pasts.read(store, "acme", "c1")
    assert (again.window[0].user, again.stale) == ("Changed.", True)


@pytest.mark.req("V-017")
async def test_what_was_kept_holds_the_turn_that_ended_since() -> None:
    store, pasts, turn = FakeConversations(history=SAID), RecentHistory(), claim()
    await pasts.read(store, "acme", turn.conversation_id)
    pasts.note(turn, completed("And a dog.", "Noted too."))
    store.error = Unavailable("away")
    found = await pasts.read(store, "acme", turn.conversation_id)
    assert found.window[-1] == PastTurn(1_003, "And a dog.", "Noted too.")
    assert found.directive is Directive.FOCUSED_ANALYST


async def test_what_was_said_in_place_of_a_failed_answer_is_not_shown_again() -> None:
    store, pasts, turn = FakeConversations(history=SAID), RecentHistory(), claim()
    await pasts.read(store, "acme", turn.conversation_id)
    end = completed("And a dog.", "I am sorry.")
    pasts.note(turn, replace(end, reply=end.reply.model_copy(update={"degraded": ("final",)})))
    store.error = Unavailable("away")
    assert (await pasts.read(store, "acme", turn.conversation_id)).window[-1] == PastTurn(1_003, "And a dog.", "")


@pytest.mark.req("V-161")
async def test_conversations_and_tenants_never_mix() -> None:
    store, pasts = FakeConversations(history=SAID), RecentHistory()
    await pasts.read(store, "acme", "c1")
    store.error = Unavailable("away")
    for tenant, conversation in (("acme", "c2"), ("other", "c1")):
        with pytest.raises(Unavailable):
            await pasts.read(store, tenant, conversation)


async def test_only_so_many_conversations_are_kept_and_long_messages_are_cut() -> None:
    pasts = RecentHistory()
    long = FakeConversations(history=(PastMessage("user", "x" * 9_000), PastMessage("assistant", "y")))
    for number in range(300):
        await pasts.read(long, "acme", str(number))
    long.error = Unavailable("away")
    kept = await pasts.read(long, "acme", "299")
    assert len(kept.window[0].user) == 2_000
    with pytest.raises(Unavailable):
        await pasts.read(long, "acme", "3")


async def test_a_turn_of_a_conversation_that_was_not_read_is_not_kept() -> None:
    pasts, turn = RecentHistory(), claim()
    pasts.note(turn, completed("a", "b"))
    with pytest.raises(Unavailable):
        await pasts.read(FakeConversations(error=Unavailable("away")), "acme", turn.conversation_id)


async def test_a_tenant_that_forgets_has_nothing_kept_and_another_keeps_all() -> None:
    store, pasts = FakeConversations(history=SAID), RecentHistory()
    for tenant in ("acme", "other"):
        await pasts.read(store, tenant, "c1")
    pasts.drop("acme")
    store.error = Unavailable("away")
    with pytest.raises(Unavailable):
        await pasts.read(store, "acme", "c1")
    assert (await pasts.read(store, "other", "c1")).stale


async def test_what_is_being_read_while_something_is_forgotten_is_not_kept() -> None:
    pasts = RecentHistory()

    class Slow(FakeConversations):
        async def recent(self, tenant: str, conversation_id: str) -> Past:
            past = await super().recent(tenant, conversation_id)
            pasts.drop(tenant)
            return past

    store = Slow(history=SAID)
    assert (await pasts.read(store, "acme", "c1")).window != ()
    store.error = Unavailable("away")
    with pytest.raises(Unavailable):
        await pasts.read(store, "acme", "c1")
