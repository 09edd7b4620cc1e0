"""What a reader of provisional text is passed on, and whether the committed reply goes on from it."""

from __future__ import annotations

from phronesis_contracts.orchestrator import TurnProgress
from phronesis_gateway.turns.events import LiveReader


def live(text: str, offset: int, attempt: int = 1) -> TurnProgress:
    return TurnProgress(turn_id="t", kind="live", text=text, offset=offset, attempt=attempt)


def restart(attempt: int = 1) -> TurnProgress:
    return TurnProgress(turn_id="t", kind="restart", attempt=attempt)


def passed(reader: LiveReader, *said: TurnProgress) -> list[str]:
    """What is passed on: the text of pieces, and `restart`."""
    return [line.text or line.kind for one in said for line in reader.take(one)]


def test_pieces_are_passed_on_and_the_reply_goes_on_from_them() -> None:
    reader = LiveReader()
    assert passed(reader, live("Hel", 0), live("lo", 3)) == ["Hel", "lo"]
    assert (reader.goes_on("Hello!"), reader.rest("Hello!")) == (True, "!")
    assert (reader.goes_on("Hallo!"), reader.rest("Hallo!")) == (False, "Hallo!")


def test_a_restart_is_passed_on_where_there_is_something_to_drop() -> None:
    reader = LiveReader()
    assert passed(reader, restart(), live("A", 0), restart(), restart(), live("B", 0)) == ["A", "restart", "B"]
    assert reader.rest("B.") == "."


def test_a_new_attempt_begins_anew_and_an_old_one_is_heard_no_more() -> None:
    reader = LiveReader()
    said = (live("Old", 0), live("New", 0, attempt=2), live("er", 3), live("er", 3, attempt=2), restart(attempt=1))
    assert passed(reader, *said) == ["Old", "restart", "New", "er"]


def test_behind_a_missing_piece_nothing_is_passed_on_until_the_text_begins_anew() -> None:
    reader = LiveReader()
    assert passed(reader, live("A", 0), live("C", 2), live("D", 3)) == ["A"]
    assert reader.rest("ABCD") == "BCD"
    assert passed(reader, restart(), live("X", 0)) == ["restart", "X"]


def test_who_comes_in_the_middle_sees_the_rest_or_nothing() -> None:
    reader = LiveReader()
    assert passed(reader, live("lo", 3)) == ["lo"]
    assert (reader.goes_on("Hello"), reader.goes_on("Hella"), reader.rest("Hello")) == (True, False, "Hello")
    whole = LiveReader(whole=True)
    assert passed(whole, live("lo", 3)) == []
    assert (whole.shown, whole.rest("Hello")) == (False, "Hello")
