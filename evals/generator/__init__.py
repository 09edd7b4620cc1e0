"""Generated twins: an ontology, its data and questions with truths, all from a seed.

python -m evals.generator --seed 7 --out DIR      write ontology.yaml, a table for each type, and questions.yaml
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..items import Item, parse
from ..truth import tables
from . import dialogues, questions, world
from .questions import PHRASES
from .scene import Scene

DIALOGUES = 18
_TYPOS = 0.08
"""Share of questions with a typing error."""


@dataclass(frozen=True)
class Made:
    """A generated twin.

    Args:
        twin: its ontology and tables.
        raw: its questions as a file has them.
    """

    twin: world.World
    raw: list[dict[str, Any]]

    @property
    def items(self) -> list[Item]:
        """Its questions. All are held: who tunes on a seed measures on others."""
        return [parse(one, "twins", {}, "held") for one in self.raw]

    @property
    def names(self) -> list[str]:
        """Every name in it."""
        ontology = self.twin.ontology()
        return sorted({row["name"] for rows in tables.read(ontology, self.twin.files).values() for row in rows})

    def write(self, folder: Path) -> list[Path]:
        """Write the files that `phronesis load` takes, the ontology first; the questions stand beside them."""
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "ontology.yaml", *(folder / f"{key}.csv" for key in self.twin.files)]
        files[0].write_text(yaml.safe_dump(self.twin.ontology(), sort_keys=False, allow_unicode=True), "utf-8")
        for file, text in zip(files[1:], self.twin.files.values(), strict=True):
            file.write_text(text, "utf-8")
        (folder / "questions.yaml").write_text(
            yaml.safe_dump(self.raw, sort_keys=False, allow_unicode=True, width=128), "utf-8"
        )
        return files


def generate(seed: int) -> Made:
    """The twin of a seed with its questions: every pattern of `phrases.yaml` once, and some dialogues."""
    twin = world.make(seed)
    rng = random.Random(f"questions {seed}")
    scene = Scene(twin, tables.read(twin.ontology(), twin.files), rng)
    raw: list[dict[str, Any]] = []
    for kind, pools in PHRASES.items():
        for language, patterns in pools.items():
            for place, pattern in enumerate(patterns):
                asked = questions.ask(scene, kind, pattern, language)
                if asked:
                    raw.append(_raw(seed, f"{kind}-{language}{place}", language, kind, pattern, *asked, rng))
    for place in range(DIALOGUES):
        shape = list(dialogues.SHAPES)[place % len(dialogues.SHAPES)]
        for _ in range(40):
            scene.turn()
            said = dialogues.SHAPES[shape](scene)
            if said:
                turns = [{"text": text, "expect": expect} for text, expect in said]
                raw.append({"id": f"{seed}-dialogue-{place}", "lang": "en", "tags": [f"dialogue {shape}"], "turns": turns})
                break
    return Made(twin, raw)


def _raw(
    seed: int, place: str, language: str, kind: str, pattern: str, text: str, expect: dict[str, Any], rng: random.Random
) -> dict[str, Any]:
    tags = [kind.replace("_", " ")]
    if language == "en" and kind not in ("exists", "unknown_name") and rng.random() < _TYPOS:
        text, tags = _typo(text, rng), [*tags, "typo"]
    return {"id": f"{seed}-{place}", "lang": language, "tags": tags, "pattern": pattern, "text": text, "expect": expect}


def _typo(text: str, rng: random.Random) -> str:
    """Two neighbouring letters of a longer word in small letters are swapped, or one is left out."""
    words = text.split(" ")
    long = [place for place, word in enumerate(words) if len(word) > 5 and word.isalpha() and word.islower()]
    if not long:
        return text
    place = rng.choice(long)
    word, at = words[place], rng.randrange(1, len(words[place]) - 2)
    words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :] if rng.random() < 0.6 else word[:at] + word[at + 1 :]
    return " ".join(words)
