"""Question sets: items in files, each with its half, its turns and what is expected of each.

A set is a folder of `sets` with two files, `tune.yaml` and `held.yaml`. Who tunes answers reads the first file only. A held
half that was looked at, or that was measured and then tuned for, joins the tuning half and is replaced by new items.

python -m evals.items SET FILE      replace the held half of a set by the items of a file, and keep what it was for tuning
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

SETS = Path(__file__).parent / "sets"
HALVES = ("tune", "held")
AGENTS = {name: ("noor", "dialogue") for name in ("portfolio", "twins", "unanswerable")}
"""Who is asked, by set; otherwise `dialogue`."""
NAMES = ("portfolio", "personal", "documents", "unanswerable", "twins")


@dataclass(frozen=True)
class Turn:
    """One message of a conversation.

    Args:
        text: as a person writes it.
        expect: what a right reply holds (`judge.KINDS`).
        attach: names of the item's files that are sent along.
        new: whether a new conversation begins with it.
    """

    text: str
    expect: Mapping[str, Any]
    attach: tuple[str, ...] = ()
    new: bool = False


@dataclass(frozen=True)
class Item:
    """One question, or one dialogue.

    Args:
        id: unique in its set.
        set: its set.
        half: `tune` or `held`.
        language: `en` or `de`.
        tags: the kind of question first, then `typo`, `dialogue`, and what else is reported.
        agents: who is asked.
        turns: messages in order.
        files: content of files by name (`documents.make`).
        pattern: what its sentence was made from, where it was made from one.
    """

    id: str
    set: str
    half: str
    language: str
    tags: tuple[str, ...]
    agents: tuple[str, ...]
    turns: tuple[Turn, ...]
    files: Mapping[str, Any] = field(default_factory=dict)
    pattern: str = ""


def load(name: str, half: str | None = None) -> list[Item]:
    """The items of a set, or of one of its halves, with their truths computed."""
    words = vocabulary(name)
    found = []
    for one in HALVES if half is None else (half,):
        file = SETS / name / f"{one}.yaml"
        found += (
            [parse(raw, name, words, one) for raw in yaml.safe_load(file.read_text("utf-8")) or ()] if file.exists() else []
        )
    return found


def vocabulary(name: str) -> dict[str, Any]:
    """What the expressions of a set may use: the public names of its module in `truth`, where it has one."""
    truth = _truth(name)
    return dict(truth.vocabulary()) if truth else {}


def names(name: str) -> list[str]:
    """Names in the data of a set, where it has data."""
    truth = _truth(name)
    return list(truth.names()) if truth and hasattr(truth, "names") else []


def _truth(name: str) -> ModuleType | None:
    """The module that computes the truths of a set; `None` for a set that states them."""
    if not (Path(__file__).parent / "truth" / f"{name}.py").exists():
        return None
    return importlib.import_module(f"evals.truth.{name}")


def for_agents(item: Item, agents: Iterable[str]) -> Item:
    """The same item, asked of some of its agents only."""
    return replace(item, agents=tuple(agent for agent in item.agents if agent in set(agents)))


def parse(raw: Mapping[str, Any], name: str, words: Mapping[str, Any], half: str) -> Item:
    """One item as a file has it. A single question states `text` and `expect` without `turns`.

    Raises:
        ValueError: something is missing, or an expression cannot be computed.
    """
    try:
        turns = tuple(_turn(turn, words) for turn in raw.get("turns") or [raw])
        return Item(
            id=str(raw["id"]),
            set=name,
            half=half,
            language=str(raw.get("lang", "en")),
            tags=tuple(raw.get("tags", ())) + (("dialogue",) if len(turns) > 1 else ()),
            agents=tuple(raw["agents"]) if "agents" in raw else AGENTS.get(name, ("dialogue",)),
            turns=turns,
            files=raw.get("files", {}),
            pattern=str(raw.get("pattern", "")),
        )
    except Exception as exc:
        raise ValueError(f"{name}/{raw.get('id')}: {exc}") from exc


def _turn(raw: Mapping[str, Any], words: Mapping[str, Any]) -> Turn:
    expect = raw["expect"]
    if isinstance(expect, str):
        expect = eval(expect, {"__builtins__": BUILTINS, **words})  # the repository's own files
    return Turn(str(raw["text"]), expect, tuple(raw.get("attach", ())), bool(raw.get("new")))


BUILTINS = {one.__name__: one for one in (len, sum, min, max, sorted, abs, list, set, round, any, all, dict, str)}


def replace_held(raw_items: Sequence[Mapping[str, Any]], name: str) -> None:
    """Make items the held half of a set; what it was is tuned on from now on.

    Raises:
        ValueError: an id is taken, or an item is not whole.
    """
    taken, words = {item.id for item in load(name)}, vocabulary(name)
    for raw in raw_items:
        item = parse(raw, name, words, "held")
        if item.id in taken:
            raise ValueError(f"{item.id} is taken")
        taken.add(item.id)
    tune, held = (SETS / name / f"{half}.yaml" for half in HALVES)
    tune.parent.mkdir(parents=True, exist_ok=True)
    if held.exists():
        with tune.open("a", encoding="utf-8") as out:
            out.write(held.read_text("utf-8"))
    with held.open("w", encoding="utf-8") as out:
        for raw in raw_items:
            out.write(yaml.safe_dump([raw], sort_keys=False, allow_unicode=True, width=128))


if __name__ == "__main__":
    replace_held(yaml.safe_load(Path(sys.argv[2]).read_text("utf-8")), sys.argv[1])
