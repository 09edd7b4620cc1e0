from __future__ import annotations

from tests.mutation.mutants import mutants
from tests.mutation.survivors import JUDGED
from tests.mutation.trial import FOLDER, MODULES

SOURCE = """
WORDS = frozenset("one two".split())
LIMIT = 5
def hold(value):
    if value > LIMIT and value not in WORDS:
        raise ValueError
"""


def test_conditions_comparisons_words_and_numbers_of_a_module_are_changed_one_at_a_time() -> None:
    assert [mutant.change for mutant in mutants("any", SOURCE)] == [
        "takes 5 for 5001",
        "takes a condition as False",
        "takes a condition as True",
        "drops the word one",
        "drops the word two",
        "joins by Or",
        "compares by GtE",
        "compares by In",
    ]


def test_every_mutant_is_a_program_of_its_own() -> None:
    found = list(mutants("any", SOURCE))
    assert len({mutant.source for mutant in found}) == len(found)
    for mutant in found:
        compile(mutant.source, "any", "exec")


def test_what_is_said_of_a_survivor_is_about_a_line_that_is_there() -> None:
    lines = {(module, line.strip()) for module in MODULES for line in (FOLDER / f"{module}.py").read_text().splitlines()}
    assert [(module, line) for module, _, line in JUDGED if (module, line) not in lines] == []
