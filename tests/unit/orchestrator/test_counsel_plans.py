"""Questions of a stranger on graphs that the rules have no word of: what is understood, and what is declined."""

from __future__ import annotations

import pytest

from evals.client import Reply as Judged
from evals.judge import verdict
from phronesis_contracts.constitution.registry import Layer
from phronesis_orchestrator.agents.counsel.reading import Reader, Record, Thing, spaced, vocabularies, vocabulary_of
from phronesis_orchestrator.agents.counsel.tools import render_answer
from tests.support.counsel import STARTED, node
from tests.support.counsel_graphs import DOMAINS, answer


async def judged(domain: str, text: str, expect: str) -> str:
    """How the answer to a question is judged, with the answer where it is not right."""
    told = DOMAINS[domain]
    wanted = eval(expect, told.vocabulary())  # the test's own text
    reply = await answer(domain, text)
    found = verdict(wanted, Judged(text=reply.user_response), text, told.names)
    return found if found == "right" else f"{found}: {reply.user_response}"


@pytest.mark.parametrize(
    ("domain", "text", "expect"),
    [
        ("clinic", "Which tasks are overdue?", "exactly([n for n in open_tasks() if due(n) and due(n) < today])"),
        ("clinic", "Whch taks have no due date?", "exactly([n for n in of('task') if not due(n)])"),
        ("clinic", "Who is responsible for the dental suite?", "facts('Tomas Lindqvist')"),
        ("clinic", "How many open tasks does each person have?", "groups(count_by(open_tasks(), 'owner'))"),
        ("clinic", "What is the total budget of our projects?", "number(sum(n['budget'] for n in of('project')))"),
        ("clinic", "Which decisions lost money?", "exactly([node('d-sunday')])"),
        ("clinic", "What is blocking the plumbing plan?", "facts('Renew the radiation licence')"),
        ("clinic", "Is the radiation licence task overdue?", "yes(True)"),
        ("clinic", "What does the guardrail about sedation say?", "says('g-sedation')"),
        ("theatre", "Give me the principles word for word.", "says('principle-access', 'principle-reuse')"),
        ("theatre", "Who looks after the roof repair?", "facts('Dev Okafor')"),
        ("theatre", "What are the three longest tasks?", "facts('grant application', 'second draft', 'auditions')"),
        ("theatre", "Which goals have no strategy?", "exactly([node('goal-full'), node('goal-archive')])"),
        ("theatre", "How much money is left for the Lighthouse Keeper?", "number(4500)"),
        ("theatre", "Welche Aufgaben sind überfällig?", "exactly([n for n in open_tasks() if due(n) and due(n) < today])"),
        ("theatre", "Which risks are more likely than 50 %?", "exactly([node('risk-rain')])"),
        ("theatre", "Does the Village tour serve the goal Sell four of five seats?", "yes(True)"),
        ("theatre", "What is Dev's salary?", "declined()"),
        ("theatre", "Mark the poster task as done.", "declined()"),
    ],
)
async def test_a_strangers_question_is_answered_from_the_graph(domain: str, text: str, expect: str) -> None:
    assert await judged(domain, text, expect) == "right"


@pytest.mark.parametrize("domain", DOMAINS)
async def test_nothing_is_answered_wrongly_where_the_graph_alone_can_be_read(domain: str) -> None:
    told = DOMAINS[domain]
    wrong = list[str]()
    right = 0
    items = [item for item in told.items if len(item.turns) == 1]
    for item in items:
        turn = item.turns[0]
        try:
            reply = await answer(domain, turn.text, item.agents[0])
        except AssertionError:
            continue  # of a tool that is away
        became = verdict(turn.expect, Judged(text=reply.user_response), turn.text, told.names)
        right += became == "right"
        wrong += [turn.text] if became == "wrong" else []
    assert wrong == []
    assert right >= 0.85 * (len(items) - 5)


@pytest.mark.parametrize(
    ("domain", "text", "said"),
    [
        ("clinic", "Which tasks of Priya are again overdue?", "again"),
        ("clinic", "Who else owns the dental suite, and where?", "where"),
        ("theatre", "Which tasks are overdue only?", "only"),
    ],
)
async def test_words_that_an_answer_leaves_out_are_said_before_it(domain: str, text: str, said: str) -> None:
    reply = await answer(domain, text)
    assert reply.user_response.startswith("I cannot take ")
    assert f"“{said}”" in reply.user_response.partition("\n")[0]


@pytest.mark.parametrize(
    ("domain", "text", "expect"),
    [
        ("clinic", "Which goals are not Ruth's?", "exactly([n for n in of('goal') if n['owner'] != 'Ruth Adeyemi'])"),
        ("clinic", "Sum up the budgets of all projects except the dental suite.", "number(18500 + 3200)"),
        ("clinic", "Which projects cost more than twenty thousand?", "exactly([node('pr-dental')])"),
        ("clinic", "How many open tasks does each of us have?", "groups(count_by(open_tasks(), 'owner'))"),
        ("clinic", "Which tasks are neither done nor started?", "exactly(of('task', status='todo'))"),
        ("clinic", "What must be done before the plumbing can be planned?", "exactly([node('t-licence')], loose=True)"),
        ("clinic", "How many certificates are nurses still short of?", "any_of(declined(), number(3))"),
        ("theatre", "Which hazards are more likely than not?", "exactly([node('risk-rain')])"),
        ("theatre", "Which decisions cost more than they brought in?", "exactly([node('decision-discount')])"),
        ("theatre", "Ring the scaffolders and ask them for a date.", "declined()"),
    ],
)
async def test_what_changes_a_question_changes_its_answer(domain: str, text: str, expect: str) -> None:
    assert await judged(domain, text, expect) == "right"


async def test_a_reply_cites_the_nodes_that_it_names() -> None:
    reply = await answer("clinic", "Which tasks are overdue?")
    assert {source.id for source in reply.sources} == {"t-walls", "t-licence"}


async def test_what_no_word_explains_is_declined_with_what_can_be_asked() -> None:
    reply = await answer("clinic", "Which tasks need varnish?")
    assert reply.user_response.startswith("I cannot find anything on record about “varnish”. I can list, count and filter")


def test_a_task_is_overdue_once_its_time_has_passed_in_the_calendars_zone() -> None:
    record = Record()
    made = [Thing(name, "task", "execution", name, "todo", {"dueDate": when}) for name, when in _DUE.items()]
    assert [one.title for one in made if record.is_overdue(one)] == ["a minute of long ago", "yesterday's day"]


_DUE = {"a minute of long ago": "2026-01-05T09:00:00+00:00", "yesterday's day": "2026-01-04", "far": "2999-01-01"}


def test_every_language_has_the_same_senses() -> None:
    kinds = {
        code: {
            (sense.kind, sense.value) for senses in one.language.phrases.values() for sense in senses if sense.kind in _KINDS
        }
        for code, one in vocabularies().items()
    }
    assert kinds["de"] <= kinds["en"]


_KINDS = ("relation", "property", "layer", "status", "period", "edge", "ask", "talk_of_tools", "superlative")


def test_an_undeclared_property_is_known_by_its_own_name() -> None:
    record = Record(words=vocabulary_of("Which projects are there?"))
    record.things = {"a": Thing("a", "project", "tactics", "Shed", "active", {"paintColour": "green"})}
    reading = Reader(record).read("What paint colour has the shed?")
    assert (reading.of("property"), [one.title for one in reading.things]) == (("paintColour",), ["Shed"])


def test_names_of_code_are_said_as_words() -> None:
    assert [spaced(name) for name in ("effortHours", "OWNED_BY")] == ["effort hours", "owned by"]


def test_a_prompt_holds_what_values_and_guardrails_say_without_a_summary() -> None:
    rule = node("g-1", "guardrail", "Quiet nights", Layer.FOUNDATION, trigger="noise after ten", response="Stop the engine.")
    value = node("v-1", "value", "Rest", Layer.FOUNDATION, description="Who sleeps well works well.")
    told = render_answer(STARTED.model_copy(update={"foundation": (rule, value)}))
    assert "trigger: noise after ten | response: Stop the engine." in told
    assert "description: Who sleeps well works well." in told
