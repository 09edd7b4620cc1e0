"""Episodes, what came of tools, and strategies on real stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Label, NotFound, OriginKind
from phronesis_contracts.episodes import (
    AskToolStatistics,
    ListStrategies,
    RecallEpisodes,
    RecallStrategies,
    Recording,
    StrategyOutcome,
    StrategyRecorded,
    StrategyRef,
    StrategyStanding,
    StrategyState,
    ToolUse,
    UpdateStrategy,
    VerifyStrategies,
)
from phronesis_contracts.memory import Forget, ItemKind, Profile, Recall, Remember, RememberItem
from phronesis_contracts.orchestrator import ToolOutcome, TurnStatus
from phronesis_contracts.tasks import VerifiedBy
from tests.support.experience import FAILED, NOON, WORKED, Lived, open_experience, over, strategy
from tests.support.memory import calling, someone
from tests.support.servers import PostgresServer, VectorServer


@pytest.fixture(scope="module")
async def lived(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Lived]:
    async with open_experience(postgres, weaviate) as opened:
        yield opened


async def statistics(lived: Lived, who: Any, *tools: str) -> tuple[ToolUse, ...]:
    asked = AskToolStatistics(tools=tools)
    return (await lived.experience.remembering.tool_statistics(calling(who), asked)).tools


async def goals(lived: Lived, who: Any, goal: str, n: int = 2) -> list[str]:
    request = RecallStrategies(goal=goal, n=n)
    found = await lived.experience.strategies.recall_strategies(calling(who), request)
    assert found.degraded == ()
    return [one.goal for one in found.strategies]


async def recorded(lived: Lived, who: Any, request: Any) -> StrategyRecorded:
    return await lived.experience.strategies.record_strategy(calling(who, uuid4().hex), request)


async def verified(lived: Lived, who: Any, task_id: str, *used: str | None, accepted: bool) -> tuple[StrategyStanding, ...]:
    """What a person says of a task that used these strategies."""
    said = VerifyStrategies(task_id=task_id, ids=tuple(id or "" for id in used), accepted=accepted, by=VerifiedBy.PERSON)
    done = await lived.experience.strategies.verify_strategies(calling(who, uuid4().hex), said)
    return done.strategies


@pytest.mark.req("V-135", "V-137")
async def test_a_turn_leaves_an_episode_with_its_outcome_and_what_came_of_its_tools(lived: Lived) -> None:
    who = someone()
    event = await lived.ended(who, "e-mail John about the launch", WORKED, FAILED, tier="sonnet", task="task-1")
    found = await lived.experience.remembering.recall_episodes(calling(who), RecallEpisodes(query="e-mail to John"))
    assert found.degraded == ()
    [episode] = found.episodes
    assert episode.model_dump(exclude={"id", "score"}) == {
        "turn_id": event.turn_id,
        "conversation_id": event.conversation_id,
        "agent": "nova",
        "outcome": TurnStatus.COMPLETED,
        "code": None,
        "tier": "sonnet",
        "task": "task-1",
        "text": "User: e-mail John about the launch\nAssistant: Done.",
        "labels": (Label(kind=OriginKind.UNKNOWN).model_dump(),),
        "tools": (WORKED.model_dump(), FAILED.model_dump()),
        "at": NOON,
    }


@pytest.mark.req("V-135")
async def test_a_turn_that_failed_leaves_an_episode_that_says_why(lived: Lived) -> None:
    who = someone()
    await lived.ended(who, "book a flight", status=TurnStatus.FAILED, code="timed_out", reply_text="")
    [episode] = (await lived.experience.remembering.past(who, "flight", 5)).episodes
    assert (episode.outcome, episode.code) == (TurnStatus.FAILED, "timed_out")


@pytest.mark.req("V-136")
async def test_seventeen_good_calls_of_twenty_are_85_percent(lived: Lived) -> None:
    who = someone()
    calls = [WORKED] * 17 + [FAILED] * 3
    await lived.ended(who, "one", *calls[:10])
    await lived.ended(who, "two", *calls[10:], ToolOutcome(name="linkedin", ok=True))
    assert await statistics(lived, who) == (
        ToolUse(name="web_search", uses=20, successes=17, rate=0.85, last_at=NOON),
        ToolUse(name="linkedin", uses=1, successes=1, rate=1.0, last_at=NOON),
    )
    assert await statistics(lived, who, "linkedin", "unused") == (
        ToolUse(name="linkedin", uses=1, successes=1, rate=1.0, last_at=NOON),
    )


@pytest.mark.req("V-141", "V-T09")
async def test_the_news_of_an_end_that_comes_again_leaves_one_episode_and_counts_its_tools_once(lived: Lived) -> None:
    who = someone()
    event = await lived.ended(who, "search for tea", WORKED)
    await asyncio.gather(*(lived.heard(who, event) for _ in range(4)))
    assert await lived.rows(who, "items") == 1
    assert [use.uses for use in await statistics(lived, who)] == [1]


@pytest.mark.req("V-064", "V-131")
async def test_another_user_finds_nothing_of_it(lived: Lived) -> None:
    ann = someone()
    bob = someone(tenant=ann.tenant)
    await lived.ended(ann, "e-mail John", FAILED)
    await lived.memory.handlers.remember(
        calling(ann), Remember(items=(RememberItem(text="John likes tea"), RememberItem(text="Hi John", kind=ItemKind.STYLE)))
    )
    await recorded(lived, ann, strategy("e-mail John"))
    for operation in ("episodes", "context", "style", "failures"):
        found = await lived.asked(bob, operation, f"John web_search {ann.user}")
        assert (found.results, found.count, found.error) == ((), 0, None)
    assert await statistics(lived, bob) == ()
    assert await goals(lived, bob, "e-mail John") == []


@pytest.mark.req("V-050")
async def test_episodes_are_found_with_their_outcome(lived: Lived) -> None:
    who = someone()
    await lived.ended(who, "e-mail John the offer", ToolOutcome(name="mail", ok=False, code="bounced", detail="no such box"))
    await lived.ended(who, "water the plants")
    found = await lived.asked(who, "episodes", "what came of the e-mail to John")
    [hit] = found.results
    assert (hit.source, hit.when) == ("episode", NOON)
    assert hit.text.startswith("Outcome: completed. Tools: mail failed (bounced). User: e-mail John the offer")


@pytest.mark.req("V-051", "V-T06")
async def test_the_context_of_somebody_is_a_preference_a_contact_and_what_happened(lived: Lived) -> None:
    who = someone()
    await lived.memory.profiles.put(
        calling(who, uuid4().hex), Profile(profile={"contacts": {"john": {"mail": "john@example.org"}}})
    )
    preference = RememberItem(text="John prefers short mails", title="John")
    await lived.memory.handlers.remember(calling(who), Remember(items=(preference, RememberItem(text="Tea at five"))))
    await lived.ended(who, "invite John to lunch")
    found = await lived.asked(who, "context", "John")
    assert [(hit.source, hit.text) for hit in found.results] == [
        ("profile", "contacts.john.mail: john@example.org"),
        ("fact", "John: John prefers short mails"),
        ("episode", "Outcome: completed. User: invite John to lunch\nAssistant: Done."),
    ]


@pytest.mark.req("V-052")
async def test_samples_of_a_channel_are_found_first_by_its_name(lived: Lived) -> None:
    who = someone()
    samples = (
        RememberItem(kind=ItemKind.STYLE, title="E-mail", text="Dear colleagues, please find the figures attached."),
        RememberItem(kind=ItemKind.STYLE, title="LinkedIn post", text="We shipped! Three lessons from a hard year."),
    )
    await lived.memory.handlers.remember(calling(who), Remember(items=samples))
    found = await lived.asked(who, "style", "how do I write a LinkedIn post")
    assert found.results[0].text == "LinkedIn post: We shipped! Three lessons from a hard year."
    recalled = await lived.memory.handlers.recall(calling(who), Recall(query="LinkedIn post"))
    assert recalled.items == (), "a sample is nothing that is known"


@pytest.mark.req("V-053", "V-138")
async def test_failures_of_a_tool_are_its_errors_with_their_times(lived: Lived) -> None:
    who = someone()
    other = ToolOutcome(name="linkedin", ok=False, code="forbidden", detail="the token has expired")
    await lived.ended(who, "look up the weather", FAILED, WORKED)
    await lived.ended(who, "post it", other, at=NOON + timedelta(hours=1))
    named = await lived.asked(who, "failures", "what went wrong with web_search?")
    assert [(hit.text, hit.when, hit.source) for hit in named.results] == [
        ("timed_out: the search engine did not answer", NOON, "web_search")
    ]
    worded = await lived.asked(who, "failures", "why had my tokens expired")
    assert [(hit.text, hit.source) for hit in worded.results] == [("forbidden: the token has expired", "linkedin")]
    assert (await lived.asked(who, "failures", "earthquakes")).results == ()


@pytest.mark.req("V-062")
@pytest.mark.parametrize("operation", ["episodes", "context", "style", "failures"])
async def test_nothing_found_is_an_empty_result_and_no_error(lived: Lived, operation: str) -> None:
    found = await lived.asked(someone(), operation, "anything")
    assert (found.results, found.count, found.error) == ((), 0, None)


@pytest.mark.req("V-063")
async def test_one_call_gives_no_more_than_it_was_asked_for_and_cuts_long_texts(lived: Lived) -> None:
    who = someone()
    await lived.ended(who, "fetch", *[FAILED] * 100)
    assert (await lived.asked(who, "failures", "web_search", limit=20)).count == 20
    await lived.ended(who, "okapi " * 2_000)
    [hit] = (await lived.asked(who, "episodes", "okapi")).results
    assert len(hit.text) == 600


@pytest.mark.req("V-119", "V-126")
async def test_a_strategy_is_kept_with_its_goal_approach_tools_in_order_and_what_to_avoid(lived: Lived) -> None:
    who, request = someone(), strategy()
    done = await recorded(lived, who, request)
    assert done.status is Recording.RECORDED
    asked = RecallStrategies(goal="publish an article")
    [found] = (await lived.experience.strategies.recall_strategies(calling(who), asked)).strategies
    fields = {"goal", "approach", "tools_used", "score", "avoid"}
    assert found.model_dump(include=fields) == request.model_dump(include=fields)
    assert (found.id, found.uses, found.wins) == (done.id, 0, 0)


@pytest.mark.req("V-121", "V-122", "V-123")
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"score": 0.749}, "the score is under 0.75"),
        ({"score": 0.5}, "the score is under 0.75"),
        ({"score": None}, "the task has no score"),
        ({"score": float("nan")}, "the task has no score"),
        ({"score": float("inf")}, "the task has no score"),
        ({"succeeded": False}, "the task failed"),
    ],
)
async def test_what_did_not_go_well_enough_is_not_kept(lived: Lived, more: dict[str, Any], reason: str) -> None:
    who = someone()
    done = await recorded(lived, who, strategy(**more))
    assert done == StrategyRecorded(status=Recording.REFUSED, reason=reason)
    assert await lived.rows(who, "strategies") == 0


@pytest.mark.req("V-121")
async def test_a_score_of_exactly_the_threshold_is_kept(lived: Lived) -> None:
    assert (await recorded(lived, someone(), strategy(score=0.75))).status is Recording.RECORDED


@pytest.mark.req("V-132", "V-T08")
async def test_a_task_that_is_recorded_again_leaves_one_strategy(lived: Lived) -> None:
    who, request = someone(), strategy()
    done = await asyncio.gather(*(recorded(lived, who, request) for _ in range(3)))
    assert sorted(one.status for one in done) == [Recording.KNOWN, Recording.KNOWN, Recording.RECORDED]
    assert len({one.id for one in done}) == 1
    assert await lived.rows(who, "strategies") == 1


@pytest.mark.req("V-120", "V-182")
async def test_of_three_strategies_that_fit_a_goal_two_are_recalled_and_of_worse_ones_none(lived: Lived) -> None:
    good, worse = someone(), someone()
    for n in range(3):
        await recorded(lived, good, strategy(f"publish article {n} on LinkedIn", score=0.8))
        await recorded(lived, worse, strategy(f"publish article {n} on LinkedIn", score=0.7))
    assert len(await goals(lived, good, "publish an article on LinkedIn")) == 2
    assert await goals(lived, worse, "publish an article on LinkedIn") == []


@pytest.mark.req("V-133")
async def test_an_unrelated_goal_recalls_nothing(lived: Lived) -> None:
    who = someone()
    await recorded(lived, who, strategy())
    assert await goals(lived, who, "repair the bicycle") == []


async def test_what_works_is_recalled_before_what_does_not_and_what_stops_working_no_more(lived: Lived) -> None:
    who = someone()
    bad = await recorded(lived, who, strategy("publish an article", approach="Be quick."))
    good = await recorded(lived, who, strategy("publish an article", approach="Be slow."))

    async def told(id: str | None, worked: bool) -> StrategyStanding:
        [standing] = await verified(lived, who, uuid4().hex, id, "no-id", accepted=worked)
        return standing

    await told(good.id, worked=True)
    assert await told(bad.id, worked=False) == StrategyStanding(id=bad.id or "", uses=1, wins=0, retired=False)
    asked = RecallStrategies(goal="publish an article")
    found = await lived.experience.strategies.recall_strategies(calling(who), asked)
    assert [one.approach for one in found.strategies] == ["Be slow.", "Be quick."]
    await told(bad.id, worked=False)
    assert (await told(bad.id, worked=False)).retired
    found = await lived.experience.strategies.recall_strategies(calling(who), asked)
    assert [one.approach for one in found.strategies] == ["Be slow."]


async def test_the_outcome_of_a_task_counts_once_and_for_its_owner_alone(lived: Lived) -> None:
    who = someone()
    done = await recorded(lived, who, strategy())
    said = [await verified(lived, who, "task-2", done.id, accepted=True) for _ in range(2)]
    assert [one.uses for standings in said for one in standings] == [1, 1]
    assert await verified(lived, someone(tenant=who.tenant), "task-2", done.id, accepted=True) == ()


async def test_a_later_word_about_a_task_takes_the_place_of_the_earlier(lived: Lived) -> None:
    who = someone()
    done = await recorded(lived, who, strategy())
    await verified(lived, who, "task-2", done.id, accepted=True)
    [standing] = await verified(lived, who, "task-2", done.id, accepted=False)
    assert (standing.uses, standing.wins) == (1, 0)


async def test_what_nobody_verified_makes_no_strategy_and_changes_none(lived: Lived) -> None:
    who = someone()
    done = await recorded(lived, who, strategy(verified_by=None))
    assert done == StrategyRecorded(status=Recording.REFUSED, reason="nobody verified the result")
    kept = await recorded(lived, who, strategy())
    outcome = StrategyOutcome(ids=(kept.id or "",), worked=False)
    for _ in range(3):
        assert (await lived.experience.strategies.strategy_outcome(calling(who, uuid4().hex), outcome)).strategies == ()
    assert await goals(lived, who, "publish an article") == ["publish an article on LinkedIn"]


async def test_a_strategy_from_before_is_recalled_once_its_task_is_accepted(lived: Lived) -> None:
    who, request = someone(), strategy(task_id="task-old")
    done = await recorded(lived, who, request)
    async with lived.memory.database.transaction(who.tenant) as connection:
        await connection.execute("DELETE FROM strategy_evidence")
        await connection.execute("UPDATE strategies SET uses = 9, wins = 1, retired = true WHERE tenant = $1", who.tenant)
    assert await goals(lived, who, request.goal) == []
    await verified(lived, who, "task-old", accepted=True)
    assert await goals(lived, who, request.goal) == [request.goal]
    kept = await lived.experience.strategies.get_strategy(calling(who), StrategyRef(strategy_id=done.id or ""))
    assert (kept.state, kept.accepted, kept.rejected) == (StrategyState.ACTIVE, 1, 0)


async def test_a_strategy_whose_own_task_is_rejected_after_all_is_not_recalled(lived: Lived) -> None:
    who, request = someone(), strategy(task_id="task-1")
    await recorded(lived, who, request)
    await verified(lived, who, "task-1", accepted=False)
    assert await goals(lived, who, request.goal) == []
    assert (await recorded(lived, who, request)).status is Recording.KNOWN
    assert await goals(lived, who, request.goal) == [request.goal]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, True),
        ({"tools": ("linkedin", "compose", "memory.query", "recall")}, True),
        ({"tools": ("memory_query", "compose")}, False),
        ({"agent": "nova"}, True),
        ({"agent": "noor"}, False),
        ({"kind": "post"}, True),
        ({"kind": "report"}, False),
    ],
)
async def test_a_strategy_is_recalled_where_its_preconditions_hold(lived: Lived, more: dict[str, Any], found: bool) -> None:
    who, request = someone(), strategy(agent="nova", kind="post")
    await recorded(lived, who, request)
    recalled = await lived.experience.strategies.recall_strategies(calling(who), RecallStrategies(goal=request.goal, **more))
    assert bool(recalled.strategies) is found


async def test_a_strategy_is_listed_with_how_it_stands_and_shown_with_its_evidence(lived: Lived) -> None:
    who, handlers = someone(), lived.experience.strategies
    first = await recorded(lived, who, strategy(task_id="task-1", agent="nova", ontology="7"))
    second = await recorded(lived, who, strategy("water the plants", task_id="task-2", verified_by="checker"))
    await verified(lived, who, "task-3", first.id, accepted=False)
    listed = (await handlers.list_strategies(calling(who), ListStrategies())).strategies
    assert [(one.id, one.state, one.accepted, one.rejected, one.evidence) for one in listed] == [
        (second.id, StrategyState.ACTIVE, 1, 0, ()),
        (first.id, StrategyState.ACTIVE, 1, 1, ()),
    ]
    shown = await handlers.get_strategy(calling(who), StrategyRef(strategy_id=first.id or ""))
    assert (shown.agent, shown.ontology, shown.task_id) == ("nova", "7", "task-1")
    assert [(one.task_id, one.accepted, one.by, one.edited_since) for one in shown.evidence] == [
        ("task-3", False, VerifiedBy.PERSON, False),
        ("task-1", True, VerifiedBy.PERSON, False),
    ]
    only = await handlers.list_strategies(calling(who), ListStrategies(state=StrategyState.RETIRED))
    assert only.strategies == ()


async def test_an_edited_strategy_is_found_by_its_new_goal_is_the_users_own_and_keeps_its_evidence(lived: Lived) -> None:
    who, handlers = someone(), lived.experience.strategies
    read = (Label(kind=OriginKind.DOCUMENT, id="m", name="a.pdf"),)
    done = await recorded(lived, who, strategy(labels=read))
    ref = StrategyRef(strategy_id=done.id or "")
    assert read[0] in (await handlers.get_strategy(calling(who), ref)).labels
    part = UpdateStrategy(strategy_id=ref.strategy_id, goal="repair the bicycle")
    assert read[0] in (await handlers.update_strategy(Call(who, "gateway", uuid4().hex), part)).labels
    whole = UpdateStrategy(strategy_id=ref.strategy_id, approach="Mend it.\n# PROVEN STRATEGIES", avoid="")
    edited = await handlers.update_strategy(Call(who, "gateway", uuid4().hex), whole)
    assert (edited.goal, edited.approach, edited.avoid) == ("repair the bicycle", "Mend it.", "")
    assert edited.labels == (Label(kind=OriginKind.MEMORY),)
    assert [(one.accepted, one.edited_since) for one in edited.evidence] == [(True, True)]
    assert await goals(lived, who, "bicycle repair") == ["repair the bicycle"]
    assert await goals(lived, who, "publish an article") == []


async def test_a_retired_strategy_is_recalled_no_more_until_that_is_taken_back(lived: Lived) -> None:
    who, handlers = someone(), lived.experience.strategies
    done = await recorded(lived, who, strategy())
    ref = StrategyRef(strategy_id=done.id or "")
    for _ in range(2):
        assert (await handlers.retire_strategy(calling(who), ref)).state is StrategyState.RETIRED
    await verified(lived, who, "task-2", done.id, accepted=True)
    assert await goals(lived, who, "publish an article") == []
    back = await handlers.update_strategy(calling(who), UpdateStrategy(strategy_id=ref.strategy_id, retired=False))
    assert back.state is StrategyState.ACTIVE
    assert await goals(lived, who, "publish an article") == ["publish an article on LinkedIn"]


@pytest.mark.parametrize("id", ["0b9a4887-a665-4443-8221-1000deadbeef", "no-id", None])
async def test_nobody_else_sees_or_changes_a_strategy(lived: Lived, id: str | None) -> None:
    who, handlers = someone(), lived.experience.strategies
    done = await recorded(lived, who, strategy())
    stranger, ref = calling(someone(tenant=who.tenant), uuid4().hex), id or done.id or ""
    for act in (
        handlers.get_strategy(stranger, StrategyRef(strategy_id=ref)),
        handlers.retire_strategy(stranger, StrategyRef(strategy_id=ref)),
        handlers.update_strategy(stranger, UpdateStrategy(strategy_id=ref, approach="Mine.")),
    ):
        with pytest.raises(NotFound):
            await act
    assert (await handlers.list_strategies(stranger, ListStrategies())).strategies == ()


async def test_nobody_stores_a_strategy_by_hand(lived: Lived) -> None:
    item = RememberItem(text="win", kind=ItemKind.STRATEGY)
    with pytest.raises(BadRequest):
        await lived.memory.handlers.remember(calling(someone()), Remember(items=(item,)))


async def test_a_deleted_conversation_takes_its_episodes_outcomes_and_strategies(lived: Lived) -> None:
    who = someone()
    event = await lived.ended(who, "publish an article", FAILED)
    kept = await lived.ended(who, "water the plants", WORKED)
    await recorded(lived, who, strategy(conversation_id=event.conversation_id))
    await recorded(lived, who, strategy("water the plants", conversation_id=kept.conversation_id))
    await lived.deleted(who, event.conversation_id)
    assert (await lived.asked(who, "failures", "web_search")).results == ()
    assert [use.uses for use in await statistics(lived, who)] == [1]
    assert await goals(lived, who, "publish an article") == []
    assert await goals(lived, who, "water the plants") == ["water the plants"]
    assert len(await lived.memory.entries(who.tenant)) == 2
    late = await recorded(lived, who, strategy(conversation_id=event.conversation_id))
    assert late == StrategyRecorded(status=Recording.REFUSED, reason="its conversation was deleted")


async def test_an_episode_that_its_user_forgets_takes_what_came_of_its_tools(lived: Lived) -> None:
    who = someone()
    event = await lived.ended(who, "search for tea", FAILED)
    await lived.memory.handlers.forget(calling(who, uuid4().hex), Forget(ids=(f"turn:{event.turn_id}",)))
    assert await lived.rows(who, "tool_outcomes") == 0


@pytest.mark.req("V-059", "V-177")
async def test_a_question_writes_nothing(lived: Lived) -> None:
    who = someone()
    await lived.ended(who, "e-mail John", FAILED)

    tables = ("items", "tool_outcomes", "strategies", "texts", "outbox", "writes", "profiles", "tombstones")
    before = [await lived.rows(who, table) for table in tables]
    for operation in ("episodes", "context", "style", "failures"):
        await lived.asked(who, operation, "John web_search")
    assert [await lived.rows(who, table) for table in tables] == before


@pytest.mark.req("V-065")
async def test_without_the_model_failures_still_answer_and_the_others_say_what_they_lack(lived: Lived) -> None:
    who = someone()
    await lived.ended(who, "e-mail John", FAILED)
    lived.memory.embedder.down = True
    try:
        assert (await lived.asked(who, "failures", "web_search")).error is None
        found = await lived.asked(who, "episodes", "John e-mail")
    finally:
        lived.memory.embedder.down = False
    assert (found.count, found.error) == (1, "part of the memory did not answer: vector")


@pytest.mark.req("V-125", "V-T08")
async def test_strategies_outlive_the_service(postgres: PostgresServer, weaviate: VectorServer | None) -> None:
    async with open_experience(postgres, weaviate) as first:
        who = someone()
        await recorded(first, who, strategy())
        again = over(first.memory)
        assert await goals(again, who, "publish an article on LinkedIn") == ["publish an article on LinkedIn"]
