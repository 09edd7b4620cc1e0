"""The figures as tables, and the document that explains them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .labels import LOW, Question, Split
from .metrics import Figures, figures, percentiles
from .signals import JOINS, Asked

DOCUMENT = Path(__file__).parents[2] / "docs" / "generated" / "recall-quality.md"
_TEXT = Path(__file__).parent / "document.md"
SIGNALS = {"vector": "vector alone", "text": "words alone (BM25)", "fused": "`recall`: all"}
CLOSEST = "vector and passages, without words"


@dataclass(frozen=True)
class Result:
    """One question with all that came of it."""

    question: Question
    overlap: float
    """Share of the question's stems that stand in its answer."""
    asked: Asked


Group = Callable[[Result], bool]
GROUPS: dict[str, Group] = {
    "all": lambda result: True,
    "portfolio": lambda result: result.question.kind == "portfolio",
    "conversations": lambda result: result.question.kind == "conversation",
    "documents": lambda result: result.question.kind == "document",
    f"few words shared (at most {LOW:.0%})": lambda result: result.overlap <= LOW,
    f"some ({LOW:.0%} to 60%)": lambda result: LOW < result.overlap <= 0.6,
    "most (over 60%)": lambda result: result.overlap > 0.6,
}


def of(name: str, results: Sequence[Result]) -> Figures:
    """The figures of one signal or one way to join them."""
    return figures([result.asked.ranks[name] for result in results])


def gain(results: Sequence[Result]) -> float:
    """Points of recall@10 that `recall` has over the best single signal."""
    return 100 * (of("fused", results).at_10 - max(of(name, results).at_10 for name in ("vector", "text")))


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Everything that the tables say, by group, signal and figure."""
    groups = {
        group: {name: asdict(of(name, some)) for name in (*SIGNALS, "closest", *JOINS)}
        for group, belongs in GROUPS.items()
        if (some := [result for result in results if belongs(result)])
    }
    times = {name: percentiles([result.asked.milliseconds[name] for result in results]) for name in SIGNALS}
    return {"groups": groups, "p50_p95_ms": times, "gain_at_10_points": gain(results)}


def lines(split: Split, results: Sequence[Result]) -> list[str]:
    """The tables of one split."""
    out = [
        f"### {split}: {len(results)} questions",
        "",
        "| all questions | recall@5 | recall@10 | recall@25 | MRR | p50 ms | p95 ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, shown in SIGNALS.items():
        p50, p95 = percentiles([result.asked.milliseconds[name] for result in results])
        out.append(f"| {shown} | {_row(of(name, results))} | {p50:.1f} | {p95:.1f} |")
    out.append(f"| {CLOSEST} | {_row(of('closest', results))} | | |")
    out += ["", f"`recall` is {gain(results):+.1f} points of recall@10 from the best single signal.", ""]
    out += ["| group | questions | signal | recall@5 | recall@10 | recall@25 | MRR |", "|---|---|---|---|---|---|---|"]
    for group, belongs in list(GROUPS.items())[1:]:
        some = [result for result in results if belongs(result)]
        out += [f"| {group} | {len(some)} | {shown} | {_row(of(name, some))} |" for name, shown in SIGNALS.items()]
    out += ["", "| candidates joined by | recall@5 | recall@10 | recall@25 | MRR |", "|---|---|---|---|---|"]
    out += [f"| {name} | {_row(of(name, results))} |" for name in JOINS]
    return [*out, ""]


def document(results: Mapping[Split, Sequence[Result]]) -> str:
    """`docs/generated/recall-quality.md`."""
    tables = "\n".join(line for split in ("test", "dev") for line in lines(split, results[split]))
    low = sum(result.overlap <= LOW for result in results["test"])
    filled = _TEXT.read_text(encoding="utf-8")
    for name, value in {
        "tables": tables.rstrip(),
        "test": str(len(results["test"])),
        "dev": str(len(results["dev"])),
        "low": str(low),
        "gain": f"{gain(results['test']):+.1f}",
        "beside": f"{100 * (of('fused', results['test']).at_10 - of('closest', results['test']).at_10):+.1f}",
        "cores": str(os.cpu_count()),
    }.items():
        filled = filled.replace("{" + name + "}", value)
    return filled


def _row(found: Figures) -> str:
    return f"{found.at_5:.3f} | {found.at_10:.3f} | {found.at_25:.3f} | {found.mrr:.3f}"
