"""What a question about the user asks for, which of the known facts answer it, and what a correction corrects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
import yaml

from phronesis_contracts.facts import Origin
from phronesis_memory.facts.corrections import find_correction, resolve
from phronesis_memory.facts.decision import Assertion, Evidence, StoredFact, decide
from phronesis_memory.facts.extraction import extract_statements, note_the_rest
from phronesis_memory.facts.language import Language, language_of
from phronesis_memory.facts.predicates import normalize, predicate_of, slot_of
from phronesis_memory.facts.questions import answers_yes, choose, names_of, nearest, read_question
from phronesis_memory.facts.wording import USER, words_to_user

numbers = count()


def known(*said: str) -> list[StoredFact]:
    """The facts that are held after these messages, the newest last."""
    slots: dict[str, tuple[StoredFact, ...]] = {}
    for text in said:
        turn = f"t{next(numbers)}"
        for number, statement in enumerate(extract_statements(text)):
            when = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(numbers))
            evidence = Evidence(f"turn:{turn}/{number}", when, statement.origin, statement.confidence, turn, "c1")
            slot, _ = slot_of(statement)
            slots[slot] = decide(slots.get(slot, ()), Assertion(statement, evidence), lambda: f"f{next(numbers)}").facts
    held = [fact for facts in slots.values() for fact in facts if fact.held]
    return sorted(held, key=lambda fact: fact.valid_from)


HELD = known(
    "I'm Tom, live in Leeds with my wife Anna and two kids, and I'm allergic to peanuts",
    "I work at Brill & Sons as an accountant",
    "My dog is called Rex",
    "My birthday is on 3 May",
    "My sister Mia lives in Oslo",
    "I don't eat meat",
    "I hate olives and I love hiking",
    "I have two sons, Leo and Max",
    "My wife works at the library and her sister is in Rome",
    "My wife's birthday is 9 June",
    "Remember that the gate code is 4411",
    "Remember that Lena comes over on Sundays",
    "I have a dentist appointment on Friday at 3 pm",
)


def answers(question: str, held: list[StoredFact] | None = None) -> list[str]:
    """The answers to a question, as the store would choose them."""
    facts = HELD if held is None else held
    wanted = read_question(question)
    if wanted is None:
        return []
    subjects = {normalize(one) for one in ([USER] if wanted.subject == USER else names_of(wanted.subject, facts))}
    names = {name for one in wanted.predicates for name in (normalize(one), predicate_of(one).name)}
    near = [
        fact
        for fact in facts
        if wanted.by_words or (normalize(fact.subject) in subjects and normalize(fact.predicate) in names)
    ]
    return [words_to_user(fact, language_of(question)) for fact, _ in choose(wanted, near)]


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        ("I moved to Cardiff last week", "which city is home for me", ["You live in Cardiff."]),
        ("My favourite band is Blur", "what band do I like best?", ["Your favourite band is Blur."]),
        ("My rent is 950 euros a month", "how much rent do I pay?", ["Your rent is 950 euros a month."]),
        ("I drive a red Volvo", "what colour is my car?", ["You drive a red Volvo."]),
        ("I'm learning Portuguese", "which language am I learning?", ["You study Portuguese."]),
        ("Call me Max", "what name do I go by", ["You are called Max."]),
        ("Shellfish makes me ill", "do I have any allergies?", ["You are allergic to Shellfish."]),
        ("My doctor is Dr Osei at the Park Clinic", "who is my doctor?", ["Your doctor is Dr Osei."]),
    ],
)
def test_a_question_in_other_words_than_the_statement_is_answered(said: str, question: str, answer: list[str]) -> None:
    assert answers(question, known(said)) == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do I work?", "You work at Brill & Sons."),
        ("who's my employer?", "You work at Brill & Sons."),
        ("Can you tell me what I do for a living?", "You work as an accountant."),
        ("What am I allergic to?", "You are allergic to peanuts."),
        ("Am I allergic to peanuts?", "You are allergic to peanuts."),
        ("Can I eat meat?", "You do not eat meat."),
        ("Who is my wife?", "Your wife is Anna."),
        ("What's my wife's name?", "Your wife is Anna."),
        ("when is my birthday", "Your birthday is 3 May."),
        ("When is Anna's birthday?", "Your wife's birthday is 9 June."),
        ("Where does Anna work?", "Your wife works at the library."),
        ("what's my dog called?", "Your dog is Rex."),
        ("Do I have a dog?", "Your dog is Rex."),
        ("Where does my sister live?", "Your sister lives in Oslo."),
        ("What's the gate code?", "Your gate code is 4411."),
        ("When does Lena come over?", "You said: Lena comes over on Sundays."),
        ("When is my dentist appointment?", "You plan: a dentist appointment on Friday at 3 pm."),
        ("what don't I like?", "You do not like olives."),
        ("forget that I live in Leeds", "You live in Leeds."),
        ("Wo arbeite ich?", "Du arbeitest bei Brill & Sons."),
        ("Wie heißt mein Hund?", "Dein Hund heißt Rex."),
        ("Wann habe ich Geburtstag?", "Dein Geburtstag ist am 3 May."),
    ],
)
def test_a_question_in_other_words_finds_the_fact_that_answers_it(question: str, answer: str) -> None:
    assert answers(question) == [answer]


@pytest.mark.parametrize(
    "question",
    [
        "Am I allergic to cats?",
        "What's my cat called?",
        "What is my phone number?",
        "Where was I born?",
        "Who is my boss?",
        "What is my favourite colour?",
        "Do I speak Spanish?",
        "What is my brother's name?",
        "Where does Bob work?",
        "How do I get to work?",
        "How much does my project cost?",
        "What is the capital of Mongolia?",
        "What should I wear today?",
        "forget that I like jazz",
        "Wie heißt der Hund meiner Schwester?",
    ],
)
def test_what_was_never_told_has_no_answer(question: str) -> None:
    assert answers(question) == []


def test_children_are_sons_and_daughters_and_their_number() -> None:
    assert answers("How many kids do I have?") == [
        "Your son is Leo.",
        "Your son is Max.",
        "You have two kids.",
        "You have two sons.",
    ]


def corrected(said: list[str], correction: str) -> list[tuple[str, str, bool]]:
    """What a correction states, after these messages."""
    found = find_correction(correction)
    if found is None:
        return []
    newest_first = known(*said)[::-1]
    return [(one.predicate, one.object, one.negated) for one in resolve(found, newest_first, "c1", language_of(correction))]


NOT_PEANUTS = ("allergic to", "peanuts", True)
MOVING, MOVED = "a meeting at 4 Mill Lane on 14 May 2027", "a meeting at 4 Mill Lane on 16 May 2027"
ON_FRIDAY, ON_THURSDAY = "a meeting with Ada on Friday", "a meeting with Ada on Thursday"


@pytest.mark.parametrize(
    ("said", "correction", "right"),
    [
        ("I'm allergic to peanuts", "no, walnuts, not peanuts", [("allergic to", "walnuts", False), NOT_PEANUTS]),
        ("I'm allergic to peanuts", "I meant walnuts", [("allergic to", "walnuts", False), NOT_PEANUTS]),
        ("I live in Leeds", "Not Leeds but York", [("lives in", "York", False)]),
        ("I live in Leeds", "Sorry, I meant York", [("lives in", "York", False)]),
        ("I'm Tom, I work at Brill and live in Leeds", "Actually it's York, not Leeds.", [("lives in", "York", False)]),
        ("I have " + ON_FRIDAY, "I meant Thursday", [("plans", ON_THURSDAY, False), ("plans", ON_FRIDAY, True)]),
        ("My sister is Mia", "No, Maya", [("sister is", "Maya", False), ("sister is", "Mia", True)]),
        ("Ich wohne in Köln", "Nein, ich meinte Bonn", [("lives in", "Bonn", False)]),
        ("I have " + MOVING, "I meant 16 May 2027", [("plans", MOVED, False), ("plans", MOVING, True)]),
        ("I have " + MOVING, "hang on, it's on 16 May 2027, not the 14th", [("plans", MOVED, False), ("plans", MOVING, True)]),
        ("My rent is 1,150 pounds", "Sorry, wrong — it's 1,180.", [("rent is", "1,180 pounds", False)]),
        ("My rent is 1,150 pounds", "wait, it was 1,180 with the garage", [("rent is", "1,180 pounds", False)]),
    ],
)
def test_a_correction_is_of_what_was_said_before(said: str, correction: str, right: list[tuple[str, str, bool]]) -> None:
    assert corrected([said], correction) == right


@pytest.mark.parametrize(
    ("said", "correction"),
    [
        (["I live in Leeds"], "no, thanks"),
        (["I live in Leeds"], "The budget, not the forecast"),
        (["I live in Leeds and I'm from York"], "I meant Hull"),
        ([], "I meant York"),
        (["I live in Leeds"], "Did you mean York, not Leeds?"),
    ],
)
def test_what_may_correct_nothing_or_several_things_corrects_nothing(said: list[str], correction: str) -> None:
    assert corrected(said, correction) == []


FRENCH = """
language: fr
marks: [je, suis, et]
first: [je]
my: [mon, ma, mes]
pronouns: {il: m}
no_names: [je]
name_links: [de]
numbers: [deux]
articles: [un, une]
negations: [ne]
relations: {sister: {forms: [sœur], many: true}}
nouns: {}
classes: {adjective: [petite]}
lists: [et]
conjunctions: [et]
statements:
  - {say: "{I} (habite/habite) à {what}", is: lives in}
words:
  user: "La personne"
  relation_of_user: "{rel} de la personne"
  your_relation: "Votre {rel}"
  relation: {say: "{who} est {what}", not: "{who} n'est pas {what}"}
  noun: {other: "{who}, {noun} : {what}"}
  open: {other: "{who} {noun} {what}"}
  predicates: {lives in: {you: "Vous habitez à {what}", other: "{who} habite à {what}"}}
"""


def test_another_language_needs_a_file_and_no_code() -> None:
    french = Language("fr", yaml.load(FRENCH, Loader=yaml.BaseLoader))
    (own, other) = extract_statements("Je habite à Lyon. Ma sœur habite à Nantes.", french)
    assert (own.predicate, own.object, own.text) == ("lives in", "Lyon", "La personne habite à Lyon.")
    assert (other.subject, other.object, words_to_user(other, french)) == (
        "user's sister",
        "Nantes",
        "Votre sœur habite à Nantes.",
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("The spare key is under the green flowerpot.", ["The spare key is under the green flowerpot"]),
        ("I'm taking the night train to Vienna on the 3rd.", ["I'm taking the night train to Vienna on the 3rd"]),
        ("Our dog is called Biscuit and his vet is Dr Amin", ["Our dog is called Biscuit and his vet is Dr Amin"]),
        ("My dog is called Rex", []),
        ("Please keep answers short, and always use metric units.", ["keep answers short, and always use metric units"]),
        ("always translate this: hallo", []),
        ("I need to know how many boats there are", []),
        ("Where do I keep my spare key", []),
        ("I think that it is late", []),
        ("If I lived in Rome, I would walk", []),
        ("Show me my boats please", []),
        ("Der Ersatzschlüssel liegt unter dem Blumentopf.", ["Der Ersatzschlüssel liegt unter dem Blumentopf"]),
        ("Road tax is due on 30 September 2027", ["Road tax is due on 30 September 2027"]),
        ("Sold the old piano to a neighbour", ["Sold the old piano to a neighbour"]),
        ("Two kids here: Ida, who is 9, and Jon", ["Two kids here: Ida, who is 9, and Jon"]),
        ("I want to learn Basque because of the poems", ["I want to learn Basque because of the poems"]),
        ("I want to learn more about boats", []),
        ("Author of Emma, quick, it is for a quiz", []),
        ("She told me to cut down on salt.", ["She told me to cut down on salt"]),
        ("My boss says that Paris is large", []),
        ("Was diagnosed with asthma last spring", ["Was diagnosed with asthma last spring"]),
        ("Was it expensive", []),
        ("Favourite album of all time is Blue Train", ["Favourite album of all time is Blue Train"]),
        ("I work in York, at the same firm since 2016", ["I work in York, at the same firm since 2016"]),
        ("hmm, I miscounted. It's 14 guests", ["hmm, I miscounted", "It's 14 guests"]),
        ("That is very helpful", []),
        ("Currently learning Basque with an app", ["learning Basque with an app"]),
        ("Kitchen's being redone in October", ["Kitchen's being redone in October"]),
        ("They're putting the rent up to 910", ["They're putting the rent up to 910"]),
        ("Cancelled the gym yesterday", ["Cancelled the gym yesterday"]),
        ("gone off oat milk, it's almond now", ["gone off oat milk, it's almond now"]),
        ("Thinking about it", []),
        ("the boat's rating in 2022", []),
        ("bring me the costs of boats", []),
        ("fyi: bins on Tuesday, glass on Friday", ["fyi: bins on Tuesday, glass on Friday"]),
        ("fyi: are the bins on Tuesday or Friday?", []),
        ("Draw me a chart of costs", []),
        ("Die Miete beträgt 890 Euro warm", ["Die Miete beträgt 890 Euro warm"]),
        ("nur die größten drei", []),
        ("I own two boats: a punt and a dinghy", ["I own two boats: a punt and a dinghy"]),
        ("I'm allergic to nuts, and I wear lenses", ["I'm allergic to nuts, and I wear lenses"]),
        ("Ada quit on Friday", []),
        ("My mum lives in Deal, my dad in Hove", ["My mum lives in Deal, my dad in Hove"]),
        ("Two boys here: Finn's 8 and Lorcan is 11", ["Two boys here: Finn's 8 and Lorcan is 11"]),
        ("bills this autumn: gas 8 October, water 20 October", ["bills this autumn: gas 8 October, water 20 October"]),
        ("costs by year: which was higher, 2021 or 2022?", []),
    ],
)
def test_a_sentence_of_the_users_own_world_is_noted_where_no_statement_says_it(said: str, kept: list[str]) -> None:
    assert [one.object for one in note_the_rest(said, extract_statements(said))] == kept


@pytest.mark.parametrize(
    ("said", "objects"),
    [
        ("I'm allergic to nuts, and I wear lenses", ["nuts"]),
        ("Ada quit on Friday", []),
        ("I have three children: Maya is 11, Theo is 8", ["8"]),
        ("I don't eat meat, but eggs and cheese are ok", ["meat"]),
        ("Remember these birthdays: Ada 4 February, Milo 22 July", ["these birthdays: Ada 4 February, Milo 22 July"]),
    ],
)
def test_a_clause_a_list_or_a_time_is_no_object(said: str, objects: list[str]) -> None:
    assert [one.object for one in extract_statements(said)] == objects


def noted(*said: str) -> list[StoredFact]:
    """Notes of these sentences, the newest last."""
    found = []
    for text in said:
        when = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(numbers))
        evidence = Evidence(f"turn:{text}/0", when, Origin.USER, 0.9, text, "c1")
        [statement] = note_the_rest(text, ())
        found += decide((), Assertion(statement, evidence), lambda: f"f{next(numbers)}").facts
    return found


def near(question: str, *found: tuple[StoredFact, float]) -> list[str]:
    """What comes nearest to a question, by cosines that are given."""
    return [fact.object for fact, _ in nearest(question, found, language_of(question))]


def test_the_sentence_that_is_nearest_is_told_where_nothing_answers() -> None:
    bell, train = noted("The bell of the barn is broken", "My train leaves at 7:40 on Tuesday")
    assert near("when do I set off?", (bell, 0.1), (train, 0.35)) == ["My train leaves at 7:40 on Tuesday"]


def test_of_sentences_that_are_as_near_the_newer_one_is_told_first() -> None:
    old, new = noted("I go climbing on Wednesdays", "I switched to Fridays for climbing")
    assert near("on which day do I climb", (old, 0.7), (new, 0.66)) == [
        "I switched to Fridays for climbing",
        "I go climbing on Wednesdays",
    ]


def test_the_four_sentences_that_come_nearest_are_told_unless_they_are_far_behind_the_first() -> None:
    said = ["My boat has 3 masts", "The berth is in Cork", "My piano is in the hall", "My aunt is in Kiel", "My bell is broken"]
    first, second, far, third, fourth = noted(*said)
    found = near("how is the sailing?", (first, 0.6), (second, 0.35), (far, 0.2), (third, 0.3), (fourth, 0.25))
    assert found == [said[0], said[1], said[3], said[4]]


def test_what_says_no_more_than_the_question_does_is_not_the_nearest() -> None:
    [name, sport] = known("My son is called Kofi", "My son plays chess")
    assert near("what game does Kofi play?", (name, 0.5), (sport, 0.4)) == ["chess", "Kofi"]


def test_what_was_said_since_of_a_change_is_told_before_what_was_so() -> None:
    old, new, other = noted("My boat has a berth in Cork", "We moved it to Kinsale last week", "My piano is in the hall")
    assert near("where is my berth?", (old, 0.6), (new, 0.5), (other, 0.2)) == [
        "We moved it to Kinsale last week",
        "My boat has a berth in Cork",
    ]


def test_a_sentence_without_the_sort_of_thing_that_is_asked_for_is_not_near() -> None:
    bell, boat = noted("The bell of the barn is broken", "My boat has 3 masts")
    assert near("when was the bell of the barn cast?", (bell, 0.8)) == []
    assert near("how many masts has it?", (bell, 0.5), (boat, 0.4)) == ["My boat has 3 masts"]


def test_what_is_far_from_a_question_is_not_told() -> None:
    [bell] = noted("The bell of the barn is broken")
    assert near("what is my blood type?", (bell, 0.1)) == []


@pytest.mark.parametrize(
    ("said", "question", "so"),
    [
        ("I'm allergic to peanuts", "Am I allergic to peanuts?", True),
        ("I live in York", "Do I live in Leeds?", False),
        ("I don't eat meat", "Do I eat meat?", False),
        ("I don't eat meat", "What do I eat?", None),
        ("I live in York", "Where do I live?", None),
    ],
)
def test_a_question_for_yes_or_no_is_told_which_a_fact_says(said: str, question: str, so: bool | None) -> None:
    wanted = read_question(question)
    assert wanted is not None
    [fact] = known(said)
    assert answers_yes(question, wanted, fact, language_of(question)) is so


def test_a_note_that_denies_something_says_neither_yes_nor_no() -> None:
    lens, none = noted("I wear contact lenses in the gym", "I wear no contact lenses in the gym")
    wanted = read_question("Do I wear contact lenses in the gym?")
    assert wanted is not None
    english = language_of("Do I wear contact lenses?")
    assert [answers_yes("Do I wear contact lenses?", wanted, fact, english) for fact in (lens, none)] == [True, None]
