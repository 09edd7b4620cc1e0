"""The analyst without a model on the loaded portfolio: right, or declined, never wrong."""

from __future__ import annotations

import re

import pytest

from tests.questions import truth as t
from tests.questions.asking import Asker
from tests.questions.checks import CONFIDENT, Check, figure, groups, names, number, says
from tests.questions.questions import DECLINED, NOTHING_THERE, QUESTIONS, Question

BANNED = re.compile(r"\b(?:(?i:nodes?|cypher|quer(?:y|ies)|embeddings?|L[123])|IDs?)\b")


@pytest.mark.req("N-024", "N-025", "N-027", "N-028", "N-029", "N-059", "N-062")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
async def test_a_question_is_answered_right(asker: Asker, question: Question) -> None:
    answer = await asker.ask(question.text, *question.before)
    assert question.right(answer) == "", answer.answer
    assert answer.mode in question.mode
    assert answer.cypher_executed


@pytest.mark.parametrize("text", DECLINED)
async def test_what_cannot_be_answered_surely_is_declined(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert answer.confidence <= CONFIDENT
    assert answer.data.query_results == ()
    assert "**" not in answer.answer


@pytest.mark.parametrize("text", ["the cheapest?", "rating?", "End date?"])
async def test_what_leaves_its_subject_open_is_not_answered_of_everything(asker: Asker, text: str) -> None:
    answer = await asker.ask(text, "Which are popular?")
    assert (answer.confidence, answer.data.query_results) == (0.0, ()), answer.answer


@pytest.mark.parametrize("text", ["and why?", "and where?", "and who?"])
async def test_a_follow_up_that_asks_something_else_does_not_get_the_answer_before_again(asker: Asker, text: str) -> None:
    answer = await asker.ask(text, "How many projects does MOD have in 2022?")
    assert (answer.confidence, answer.data.query_results) == (0.0, ()), answer.answer


POLICE = ("Did the cost of the Police Uplift Programme change between 2021 and 2022?", "by how much")
MOST_RED = ("Which department had the most red projects in 2022?", "how many?")
LARGEST = ("5 largest home office projects, 2023", "sum of the five?")
HOME_OFFICE = t.of(2023, "HO")
OF_POLICE = {year: t.cost(row) or 0.0 for year, row in t.story("Police Uplift Programme").items()}
RED_OF_MOD = t.of(2022, "MOD", "Red")
RED_OF_DFT = t.of(2022, "DFT", "Red")
SHARE_OF_DFE = f"**{100 * len(t.of(2021, 'DFE', 'Amber')) / len(t.of(2021, 'DFE')):.1f} %**"
SHARE_OF_MOD = f"**{100 * len(t.of(2022, 'MOD', 'Amber')) / len(t.of(2022, 'MOD')):.1f} %**"
STILL_RED = t.names(RED_OF_DFT) & t.names(t.of(2021, rating="Red"))
GREEN_GIANTS = [row["project_name"] for row in t.costliest(t.of(2023), 5) if row["rating"] == "Green"]
NEW_OF_DFT = t.names(t.pairs(2021, 2022, department="DFT")[2])


@pytest.mark.parametrize(
    ("turns", "right"),
    [
        ((*POLICE, "and 2022 to 2023"), says(f"+£{OF_POLICE[2023] - OF_POLICE[2022]:g} million**")),
        ((*POLICE, "which department?"), says("delivered by **HO**")),
        (MOST_RED, number(len(RED_OF_MOD))),
        ((*MOST_RED, "which of these is the most expensive"), says(*t.names(t.costliest(RED_OF_MOD, 1)))),
        (("What does the Lower Thames Crossing cost in 2022?", "is that more than in 2020?"), says("Yes.", "£6,052.2 million")),
        (LARGEST, figure(t.total(t.costliest(HOME_OFFICE, 5)))),
        (
            (*LARGEST, "what share of all home office costs is it"),
            says(f"**{100 * t.total(t.costliest(HOME_OFFICE, 5)) / t.total(HOME_OFFICE):.1f} %**"),
        ),
        (("whole-life cost of Project Gigabit in 2023", "who's in charge"), says("delivered by **DSIT**")),
        (("Which DFT projects were new in 2022?", "what do they cost"), names(NEW_OF_DFT)),
        (("what's the total cost of DWP's projects in 2022", "how many projects is that?"), number(len(t.of(2022, "DWP")))),
        (
            ("what's the total cost of DWP's projects in 2022", "how many projects is that?", "average per project then"),
            figure(t.mean(t.of(2022, "DWP"))),
        ),
        (("Wie viele Projekte hatte das DfT 2022?", "Wie viele davon waren rot?", "Welche?"), says(*t.names(RED_OF_DFT))),
        (("DfE 2021, how many projects?", "how many of them were amber", "what's that in percent?"), says(SHARE_OF_DFE)),
        (("how many projects had the MOD in 2021?", "and 2022?", "So how many more is that?"), says("**+16**")),
        (
            ("cost of Project Gigabit 2022?", "and the Shared Rural Network?", "which of the two is dearer"),
            says("Project Gigabit"),
        ),
        (("cost of the Leeds Phase 2 Flood Scheme in 2023", "more than the Oxford one?"), says("No.")),
        (
            ("red projects of the MOD in 2023", "and how many HMRC reds were there in 2022?"),
            number(len(t.of(2022, "HMRC", "Red"))),
        ),
        (("Which DFT projects are red in 2022?", "Which of them were red in 2021 already?"), names(STILL_RED)),
        (("What percentage of projects was amber in 2022?", "of MOD ones?"), says(SHARE_OF_MOD)),
        (("most expensive DEFRA project in 2021?", "and the second?"), says(*t.names(t.costliest(t.of(2021, "DEFRA"), 2)[1:]))),
        (("Is Universal Credit green in 2022?", "why?"), says("comment on the rating")),
        (("the 5 most expensive projects of 2023", "which of those are green?"), names(GREEN_GIANTS)),
        (("Compare DFT and MOJ in 2023 by total cost", "and by number of projects?"), says("DFT): **23**", "MOJ): **27**")),
        (
            ("Compare DfE and DWP by number of projects in 2023", "how many red ones does each have"),
            says("DFE; rating Red): **1**"),
        ),
        (("Emergency Services Mobile Communications cost in 2023", "is that cheaper than in 2022?"), says("Yes.")),
        (("How's Brimstone 3 doing", "and Spearcap 3?", "when do they finish"), says("**Brimstone 3**", "**Spearcap 3**")),
        (("most expensive project in 2021", "and the second most expensive?"), says(*t.names(t.costliest(t.of(2021), 2)[1:]))),
        (("cost of Project Gigabit in 2022", "how much has it risen since"), says("£5,112 million in 2023")),
        (
            ("Glen Parva New Build Prison rating 2020", "when does it finish according to the 2021 data?"),
            says("5 November 2023"),
        ),
        (("rating of HS2 Phase 1 in 2023?", "what was it a year earlier?"), says("2022: rating **Amber**")),
        (("Energy Bills Support Scheme 2023: forecast?", "what's the scheme for"), says("aims")),
        (("Was kostet Crossrail 2023?", "War es 2020 billiger?"), says("Ja.")),
        (("who runs Project Gigabit in 2023", "how many projects does that department have"), number(len(t.of(2023, "DSIT")))),
        (("most expensive project in 2021", "and in 2020?", "2022 then"), says("In 2022")),
        (("cost of Universal Credit in 2023", "compared to 2022?"), says("2022: whole-life cost **£12,717 million**")),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
async def test_a_follow_up_goes_on_from_what_was_answered(asker: Asker, turns: tuple[str, ...], right: Check) -> None:
    answer = await asker.ask(turns[-1], *turns[:-1])
    assert right(answer) == "", answer.answer


def most_of(rows: list[t.Row]) -> str:
    """The department with the most of some projects."""
    counts = t.by_department(rows)
    return max(counts, key=lambda name: counts[name])


OVER_A_BILLION = [row for row in HOME_OFFICE if (t.cost(row) or 0.0) > 1000]
OVER_FIFTEEN = [row for row in t.of(2023) if (t.cost(row) or 0.0) > 15_000]
RED_WORKS = [row for row in t.of(2023, rating="Red") if row["category"] == "Infrastructure and Construction"]
SPENDERS = t.sums("department", t.of(2022))
AMBER_OR_WORSE = [row for row in t.of(2021, "MOD") if row["rating"] in ("Amber", "Amber/Red", "Red")]
ICT_OF_DHSC = [row for row in t.of(2022, "DHSC") if row["category"] == "ICT"]
BILLIONS_OF_DEFRA = [row for row in t.of(2023, "DEFRA") if 1_000 <= (t.cost(row) or 0.0) <= 2_000]
WITHOUT_AMBER = set(t.by_department(t.of(2023))) - set(t.by_department(t.of(2023, rating="Amber")))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (
            "which ends first, Crossrail or Type 31, in 2022?",
            says("- Crossrail Programme: **14 May 2023**\n- Type 31e: **31 March 2029**"),
        ),
        ("is the Type 26 programme finishing later than Type 31 as of 2023", says("Yes.", "1 May 2035", "31 March 2029")),
        (
            "which department spends the most in 2022",
            says(f"**{max(SPENDERS, key=lambda name: SPENDERS[name])}** has the highest"),
        ),
        ("what does MOJ spend in total in 2023", figure(t.total(t.of(2023, "MOJ")))),
        ("Which projects of the Home Office cost over a billion in 2023?", names(t.names(OVER_A_BILLION))),
        ("Which departments have no amber projects in 2023?", names(WITHOUT_AMBER)),
        ("Is there a project called Crossrail Programme in 2022?", says("Yes.")),
        ("What projects were there in 2021 but not in 2022?", names(t.names(t.pairs(2021, 2022)[1]))),
        ("Welches Ministerium führt das Making-Tax-Digital-Projekt?", says("**HMRC**")),
        ("What do all the 2022 projects cost together over their whole life?", figure(t.total(t.of(2022)))),
        ("Who's got the most projects in 2023, which department?", says(f"**{most_of(t.of(2023))}** has the most")),
        ("department with the most reds in 2022", says(f"**{most_of(t.of(2022, rating='Red'))}** has the most")),
        ("who had more projects in 2022, HMRC or HO?", says("more for projects (delivered by HMRC): **19**")),
        ("Does MOJ have more green projects than DFT in 2023?", says("Yes.")),
        ("Hat das DfE 2023 mehr Projekte als 2021?", says("Ja.")),
        ("Are all FCDO projects amber in 2023?", says("No.")),
        ("did crossrail get more expensive between 2020 and 2021", says("Yes.")),
        ("Which of the Home Office projects has the latest end date in 2023?", says("I-LEAP")),
        ("anything above 15bn in 2023? names please", names(t.names(OVER_FIFTEEN))),
        ("what's new at DfE in 2023?", names(t.names(t.pairs(2022, 2023, department="DFE")[2]))),
        ("how many infrastucture projects were rated red in 2023", number(len(RED_WORKS))),
        ("Did the number of red projects rise from 2021 to 2022?", says("Yes.", "**+20**")),
        ("How are the MoD's ratings spread in 2021?", groups(t.by("rating", t.of(2021, "MOD")))),
        ("how many MOD projects were amber or worse in 2021", number(len(AMBER_OR_WORSE))),
        ("Welches Ministerium ist für das Police Uplift Programme zuständig?", says("HO")),
        ("Welche Projekte haben sich von 2022 auf 2023 verschlechtert?", says("Housing Infrastructure Fund: Amber → Red")),
        ("Which projects cost between one and two billion at DEFRA in 2023?", names(t.names(BILLIONS_OF_DEFRA))),
        ("Why did Universal Credit get more expensive in 2023?", says("Policy decisions")),
        ("why was the holocaust memorial project red in 2022", says("comment on the rating")),
        ("what category does Cerberus fall under", says("Government Transformation")),
        ("Did DfE have more projects in 2023 than in 2021?", says("Yes.")),
        ("transport projects in 2022", names(t.names(t.of(2022, "DFT")))),
        ("What does the FCDO have in 2022?", names(t.names(t.of(2022, "FCDO")))),
        ("Count of DHSC ICT projects, 2022", number(len(ICT_OF_DHSC))),
        ("What pushed up the cost of Universal Credit in 2023", says("Policy decisions")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_people_put_it_in_other_words(asker: Asker, text: str, right: Check) -> None:
    answer = await asker.ask(text)
    assert right(answer) == "", answer.answer
    assert answer.confidence > CONFIDENT, answer.answer


@pytest.mark.parametrize("text", ["What other projects does that department have?", "How much does this project cost?"])
async def test_a_type_that_points_to_nothing_is_asked_back(asker: Asker, text: str) -> None:
    answer = await asker.ask(text, "Which projects were red in 2023?")
    assert (answer.confidence, answer.answer.startswith("What do you mean")) == (0.0, True), answer.answer


@pytest.mark.parametrize("text", ["why are so many MOD projects red", "which schemes deal with housing?"])
async def test_a_set_is_not_told_without_what_is_asked_of_it(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert answer.confidence <= CONFIDENT, answer.answer


async def test_two_things_that_no_year_holds_both_of_are_not_put_in_order(asker: Asker) -> None:
    answer = await asker.ask("which ends first, Crossrail or HS2")
    assert answer.confidence <= CONFIDENT
    assert "cannot say which comes first" in answer.answer


async def test_a_few_things_do_not_join_or_leave_the_data(asker: Asker) -> None:
    before = ("Which DFT projects were new in 2022?", "what do they cost")
    answer = await asker.ask("and which ones left that year?", *before)
    assert answer.confidence == 0.0, answer.answer


async def test_a_pronoun_after_a_link_may_mean_the_thing_that_was_asked_about(asker: Asker) -> None:
    answer = await asker.ask("and its rating?", "who delivers crossrail")
    assert "**Green**" in answer.answer


async def test_a_word_of_another_meaning_is_not_taken_for_a_spelling_mistake(asker: Asker) -> None:
    answer = await asker.ask("Which minister is responsible for the most projects in 2022?")
    assert answer.confidence <= CONFIDENT


@pytest.mark.parametrize("text", NOTHING_THERE)
async def test_years_without_data_are_said_with_those_that_there_are(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert answer.data.query_results == ()
    assert "from 2020 to 2023" in answer.answer


def test_there_are_questions_enough() -> None:
    assert len(QUESTIONS) >= 60
    assert len(DECLINED) >= 20


@pytest.mark.req("N-055", "N-071")
@pytest.mark.parametrize("question", QUESTIONS[::3], ids=lambda question: question.text)
async def test_an_answer_is_in_business_language(asker: Asker, question: Question) -> None:
    answer = await asker.ask(question.text, *question.before)
    labels = [str(value) for chart in answer.visualizations for value in chart.config.values()]
    said = [answer.answer, *answer.analysis, *(chart.title for chart in answer.visualizations), *labels]
    assert [text for text in said if BANNED.search(text)] == []
