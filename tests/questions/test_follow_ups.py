"""What people type next: the year of the question before, the set it named, two things held against each other."""

from __future__ import annotations

import pytest

from tests.questions.asking import Asker

RED_2022 = "Which projects were rated Red in 2022?"
AMBER = "what's the total cost of the amber HMRC projects in 2023"
OF_MOD = ("What's the total whole life cost of the MOD portfolio in 2023", "and 2022?")
PAIR = "Compare MOD and DFT in 2023"
MEAN = "avg whole life cost of infrastructure projects 2023"
DELAYED = "Which projects were delayed between 2022 and 2023?"
OF_SEVERAL = "What is the rating of Digital?"
TOP = "top 3 defra projects by cost 2022"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            (RED_2022, "which of them is the dearest", "and what did it cost in 2023?", "is it still red"),
            ("No.", "2023", "Amber"),
        ),
        ((*OF_MOD, "what about transport"), ("DFT", "2022", "£110,015 million")),
        ((*OF_MOD, "what about transport", "how many projects is that"), ("DFT", "**22**")),
        ((PAIR,), ("£133,098 million", "£93,259 million")),
        ((PAIR, "who has more red ones"), ("MOD", "**5**", "against 2")),
        ((MEAN, "versus ICT"), ("£2,626.12 million", "£606 million")),
        ((MEAN, "versus ICT", "and military"), ("£2,626.12 million", "£2,888.45 million")),
        (
            ("average whole life cost of ICT projects 2023", "which category is the most expensive on average"),
            ("Military Capability",),
        ),
        (("How many green projects in 2023", "which department has the most"), ("MOJ", "**6**")),
        (("how many amber projects per department in 2023", "who has the most"), ("MOD", "**41**")),
        ((AMBER, "how does that compare with 2022"), ("£4,135 million", "£10,309 million")),
        ((AMBER, "how does that compare with 2022", "in percent?"), ("-59.9 %",)),
        ((TOP, "add them up"), ("of the 3 named", "£28,594 million")),
        ((DELAYED, "how many"), ("**51**",)),
        ((DELAYED, "which slipped the most"), ("Lightning",)),
        (
            ("Which projects left the portfolio after 2022?", "how many were red", "which was the most expensive"),
            ("£4,679 million",),
        ),
        (("Is Sizewell C on time?", "when did it start", "who's the department"), ("Sizewell C", "DESNZ")),
        (("show me the biggest project at the ministry of defence", "rating?", "since when"), ("2020", "2021", "2022", "2023")),
        (("Was HS2 Phase 1 red in 2023?", "rating 22"), ("2022", "Amber")),
        (("Did the Reds go up or down from 2022 to 2023?",), ("**-4**", "27", "23")),
        (("Which department owns Crossrail?", "And their Greens in 2023, how many?"), ("**4**", "DFT")),
        (("How many MOD projects were there in 2022?", "Red ones among them?", "and the red ones in 2023?"), ("**5**", "MOD")),
        (("what does universal credit cost in the 2022 report", "When will it be finished now?"), ("2023", "31 March 2025")),
        (("Which ones went from Red to Green between 2022 and 2023?", "and from green to red"), ("HS2 Phase 2a",)),
        (("New projects in 2023 against 2022, what's the count?", "from the MoJ alone?"), ("**8**", "MOJ")),
        (("Worum geht es bei Project Gigabit?", "Was kostet das 2023?"), ("5.112 Mio. £",)),
        (("Which department has the most projects in 2023?", "Who's second?"), ("MOJ", "**27**")),
        (("total cost of HMRC projects in 2022", "And 2023", "So how much has it grown since 2021?"), ("+£2,593.53 million",)),
        (("Wer ist für HMCTS Reform zuständig und wie ist es bewertet?",), ("MOJ", "Amber")),
        (("who runs Crossrail and what does it cost?", "and when does it end"), ("14 May 2023",)),
        (("How many schemes did the Cabinet Office have in 2022, and how many of them were red?",), ("**12**", "**1**")),
        (("Wie viele Projekte enden 2026?", "und 2027?"), ("2023", "2027")),
        (
            ("Which had more projects in 2023, DEFRA or DfE?", "And the cost of each of the two?"),
            ("£32,761 million", "£4,954 million"),
        ),
        (
            ("Who had more projects in 2022, Justice or Education?", "How many green ones did each of them have?"),
            ("**5**", "**1**"),
        ),
        (("MoJ 2023: number of green projects", "and HMRC", "list the MoJ ones"), ("**6**", "Green")),
        (
            ("Compare the costs of the Levelling Up Fund and the Affordable Homes Programme in 2023", "what's the difference?"),
            ("£6,783 million",),
        ),
        (("How many MoJ projects were red in 2022?", "whats it called"), ("Rapid Deployment Cells Project",)),
        (("Wie viele Projekte gab es 2021 insgesamt?", "Davon vom Verteidigungsministerium?", "In Prozent?"), ("19,6 %",)),
        (("When did Universal Credit start?", "planned end in the 2020 report?"), ("31 December 2024",)),
        (("Which 2020 projects have no rating?", "which department?"), ("MOD",)),
        (("Which red finish in 2025?",), ("rating Red", "2025")),
        (("red projects in each of the four years",), ("11", "7", "27", "23")),
        (("Whole-life cost of Crossrail plus that of the Thameslink Programme in 2021?",), ("£25,978.8 million",)),
        (
            ("Which department was in charge of St Helena Airport in 2020?", "And in 2021?", "what did it cost that year"),
            ("£445.1 million",),
        ),
        (("Which project finishes latest?",), ("Future Combat Air System", "31 December 2070")),
        (("how long does Crossrail run",), ("22 July 2008", "14 May 2023")),
        (("which projects turned green in 2022",), ("became Green", "**16**")),
        (("which projects turned green in 2022", "and amber?"), ("became Amber", "**55**")),
        (("which projects got cheaper in 2023",), ("whole-life cost fell", "HS2 Phase 1")),
        (("what's the most expensive category",), ("Infrastructure and Construction",)),
        (("what's the most expensive category", "and the cheapest?"), ("ICT",)),
        (("share of green in 2020 vs 2023",), ("**2.4 %**", "**10.7 %**")),
        (("biggest 3 projects 2022", "who runs the first one", "and the third"), ("delivered by **DEFRA**",)),
        (("biggest 3 projects 2022", "who runs the first one", "what do they cost together"), ("£97,773 million",)),
        (("Is HS2 Phase 1 red?", "who is responsible", "what else do they run"), ("delivered by DFT", "**23**")),
        (("compare MOD and MOJ", "just by cost", "and in 2021"), ("£167,070.22 million", "£83,138.69 million")),
        (("how many red in 2021", "and in 2022", "what's the increase"), ("**+20**",)),
        (("which departments are there", "which one has most projects"), ("**MOD**", "**52**")),
        (("list red projects 2023 with cost", "sort by cost", "top 2"), ("Future Combat Air System", "£11,263 million")),
        (("what categories are there", "how many projects are in each", "which has the most"), ("**91**",)),
        (("mean cost MOD 2023", "is that higher than MOJ"), ("Yes.", "+£1,877.39 million")),
        (("mean cost MOD 2023", "is that higher than MOJ", "and dft?"), ("No.", "£4,054.74 million")),
        (("rating of astute boats", "all years"), ("2020: rating **Amber/Red**", "2023: rating **Amber**")),
        (("what's Project Gigabit's forecast in 2022", "is it up on last year"), ("2021", "2022")),
        (("how much does DFT spend on red projects", "and amber", "difference?"), ("+£70,494 million",)),
        (("Crossrail rating 2023", "was it always green?"), ("No.", "2021: rating **Amber/Red**")),
        (("Crossrail rating 2023", "was it like that in 2021"), ("2021: rating **Amber/Red**",)),
        (("What share of projects was amber in 2023?", "how many is that in absolute terms"), ("**183**",)),
        (("combined cost of the three most expensive projects in 2023",), ("£79,164 million", "DREADNOUGHT")),
        (("Breakdown of 2023 by category please", "now 2023 by whole life cost instead of number"), ("£18,786 million",)),
        (("Is HS2 Phase 1 red?", "department?", "how many projects did they have in 2022"), ("**22**", "DFT")),
        (("Wie viele Projekte hat HMRC 2023?", "Welche sind neu dazugekommen?"), ("**3**", "Single Customs Platform")),
        (("Worum geht es bei Project Gigabit?",), ("Ziele",)),
        (("I want the complete DWP portfolio for 2022",), ("Restart Programme", "Universal Credit")),
        (("What information is missing for the Matrix Cluster Transformation Programme in 2023?",), ("rating", "start date")),
        (("cost of Leeds Phase 2 Flood Scheme", "is the Oxford Flood Scheme cheaper"), ("Flood",)),
        (("how much does Dreadnought cost in 2023?", "is it the most expensive one in 2023?"), ("Yes.",)),
        (("compare the number of MOD projects in 1999 and 2005",), ("no projects", "There are some from 2020 to 2023.")),
        (("has any project gone from green straight to red",), ("became Red", "HS2 Phase 2a: Green to Red")),
        (("which projects will close in 2025",), ("end date",)),
        (("what does amber mean",), ("Amber/Green, Amber, Amber/Red and Red",)),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else None,
)
async def test_a_follow_up_is_answered_of_what_was_spoken_of(
    asker: Asker, said: tuple[str, ...], told: tuple[str, ...]
) -> None:
    reply = await asker.of("dialogue").say(said[-1], *said[:-1])
    assert [part for part in told if part not in reply] == [], reply


@pytest.mark.parametrize(
    "said",
    [
        ("What is the rating of HS2 in 2023?",),
        (*OF_MOD, "what about the zeppelins", "how many projects is that"),
        ("who's the department",),
        ("which home office schemes were levitating in 2023?", "what do they cost all in?"),
        ("Which DWP projects were there in 2021?", "which had no rating", "the sum of the others"),
        ("which project is most over its baseline",),
        ("share of red by department",),
        ("How much money is there for the project?",),
        ("Will HS2 ever get to Scotland?",),
        ("The Garden Bridge: when does it open?",),
        ("call me a taxi to Heathrow",),
        ("Call me back at 5",),
        ("Is Crossrail over budget?",),
        ("which projects got cheaper in 2023", "by how much in total"),
        (OF_SEVERAL,),
        (OF_SEVERAL, "and in 2021?"),
        (OF_SEVERAL, "what does it cost?"),
        (OF_SEVERAL, "the third"),
        ("What is the rating of Estates?", "what about 2021?"),
    ],
    ids=lambda said: said[-1],
)
async def test_what_may_mean_several_things_is_not_answered_of_one(asker: Asker, said: tuple[str, ...]) -> None:
    reply = await asker.of("dialogue").say(said[-1], *said[:-1])
    assert [figure for figure in ("£", "**", " are ") if figure in reply] == [], reply


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ((OF_SEVERAL, "the second one"), "**Help to Grow - Digital**, 2022: rating **Amber**."),
        ((OF_SEVERAL, "2"), "**Help to Grow - Digital**, 2022: rating **Amber**."),
        ((OF_SEVERAL, "the tax project, please"), "**Making Tax Digital**, 2023: rating **Amber**."),
        ((OF_SEVERAL, "i mean help to grow"), "**Help to Grow - Digital**, 2022: rating **Amber**."),
        ((OF_SEVERAL, "and in 2021?", "the first"), "**Making Tax Digital**, 2023: rating **Amber**."),
        ((OF_SEVERAL, "the second one", "and the first?"), "**Making Tax Digital**, 2022: rating **Amber**."),
        ((OF_SEVERAL, "the tax one", "and in 2021?"), "**Making Tax Digital**, 2021: rating **Amber**."),
        (
            ("How much does the Universal Credit Programme cost in 2022?", "and Digital?", "the tax one"),
            "**Making Tax Digital**, 2022: whole-life cost **£885 million**.",
        ),
        ((OF_SEVERAL, "number 2"), "**Help to Grow - Digital**, 2022: rating **Amber**."),
        ((OF_SEVERAL, "Who runs Making Tax Digital?"), "**Making Tax Digital**, 2023: delivered by **HMRC**."),
        ((OF_SEVERAL, "what does the second one cost?"), "**Help to Grow - Digital**, 2022: whole-life cost **£314 million**."),
        ((OF_SEVERAL, "who runs the first?"), "**Making Tax Digital**, 2023: delivered by **HMRC**."),
        (
            (OF_SEVERAL, "How many red projects were there in 2022?", "and in 2023?"),
            "In 2023, there are **23** projects (rating Red).",
        ),
    ],
    ids=lambda value: " / ".join(value[1:]) if isinstance(value, tuple) else None,
)
async def test_what_is_chosen_of_several_things_answers_the_question_that_was_asked_of_them(
    asker: Asker, said: tuple[str, ...], told: str
) -> None:
    assert (await asker.ask(said[-1], *said[:-1])).answer == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Which relationship joins a project and a risk?", ("RATED", "projects", "risks")),
        ("what does DEPENDS_ON connect", ("DEPENDS_ON", "vendors (EntityVendor)")),
        ("In the ontology, what does CLOSE_GAPS connect?", ("EntityProject", "EntityOrgUnit")),
        ("Number of node types in the ontology?", ("**17**",)),
        ("what is a TemporalGap", ("another year",)),
        ("Was bedeutet ChainBreak?", ("ChainBreak",)),
        ("possible statuses of an EntityRisk?", ("Open, Mitigated and Closed",)),
        ("What are the three levels of EntityProject called?", ("portfolios", "programs", "projects")),
        ("Which four gap types does the ontology know?", ("TemporalGap", "LevelMismatch", "ChainBreak")),
        ("which relationship crosses levels", ("PARENT_OF",)),
    ],
)
async def test_the_ontology_itself_can_be_asked(asker: Asker, question: str, told: tuple[str, ...]) -> None:
    reply = await asker.of("dialogue").say(question)
    assert [part for part in told if part not in reply] == [], reply


async def test_a_word_beside_a_name_that_nothing_explains_is_passed_over_and_said(asker: Asker) -> None:
    reply = await asker.of("dialogue").say("Washington embassy refurb end date?")
    assert "Washington Embassy Refurbishment" in reply
    assert reply.endswith("(Answered without “refurb”, which I do not know.)")


async def test_a_name_beside_a_part_of_another_name_is_no_thing_of_the_data(asker: Asker) -> None:
    reply = await asker.of("dialogue").say("When does the Hull Space Elevator finish?")
    assert "PNT" not in reply


async def test_a_thousand_greetings_before_a_question_end_no_turn_badly(asker: Asker) -> None:
    reply = await asker.of("dialogue").say("hi, " * 900 + "how many projects are there?")
    assert reply


async def test_a_follow_up_to_a_german_question_that_nothing_answers_stays_german(asker: Asker) -> None:
    asked = await asker.of("dialogue").turn("Worum geht es bei Project Gigabit?")
    assert asked.end.focus is not None
    assert (asked.end.focus.language, [one.name for one in asked.end.focus.entities]) == ("de", ["Project Gigabit"])
