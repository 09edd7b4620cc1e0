"""Guardrails in words: whether they stop what breaks them and let through what does not.

Each write of `sets/guardrails/{tune,held}.yaml` is held against every guardrail of its half: by the graph service's own code
in this process, or by `policy.check.v1` of a running stack. A violation is stopped where a guardrail goes off that it breaks; a
write that breaks none is stopped falsely where any goes off.

python -m evals.guardrails                        in this process, both halves
python -m evals.guardrails --own --half held      a stack of its own
python -m evals.guardrails --half tune --fit      the weights of the tuning half, and how guardrails fare by those of the others
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_graph.constitution.guardrails import Rule, RuleCache, open_judge, rule_of_node, subject_of

from . import items, stack
from .client import Client, StackError
from .report import wilson

SETS = items.SETS / "guardrails"
Half = Mapping[str, Any]
_NEAR_MISS = 2.0
"""What a near miss counts for when weights are fitted."""


class _NoRules:
    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        return ()


def rule(guardrail: Mapping[str, Any]) -> Rule:
    """A guardrail of a set, as the graph service reads it. Raises `ValueError`: it has no trigger."""
    told = {"type": "guardrail", "layer": "foundation", "status": "active", **guardrail}
    found = rule_of_node(ConstitutionNode.model_validate(told))
    if found is None:
        raise ValueError(f"{guardrail['id']} has no trigger")
    return found


async def judge_here(half: Half) -> dict[str, set[str]]:
    """The guardrails that each write goes against, by the code of this checkout."""
    rules, cache = [rule(one) for one in half["guardrails"]], RuleCache(_NoRules())
    found = {}
    for write in half["writes"]:
        hits = await cache.find_hits("here", rules, subject_of(write["type"], write["fields"]))
        found[write["id"]] = {hit.rule.id for hit in hits}
    return found


def judge_there(half: Half, client: Client) -> dict[str, set[str]]:
    """The guardrails that each write goes against, by a stack that is asked before anything is written."""
    made: dict[str, str] = {}
    for one in half["guardrails"]:
        id = f"{one['id']}-{uuid4().hex[:8]}"
        fields = {name: value for name, value in one.items() if name != "id"}
        client.call("POST", "/api/v1/tools/guardrail.create.v1", json={"id": id, **fields})
        made[id] = one["id"]
    found = {}
    try:
        for write in half["writes"]:
            asked = {"text": "", "type": write["type"], "fields": write["fields"]}
            answer = client.call("POST", "/api/v1/tools/policy.check.v1", json=asked)
            found[write["id"]] = {made[hit["rule"]["id"]] for hit in answer["hits"] if hit["rule"]["id"] in made}
    finally:
        for id in made:
            client.call("POST", "/api/v1/tools/node.delete.v1", json={"id": id})
    return found


def summary(half: Half, found: Mapping[str, set[str]]) -> list[str]:
    """Lines of figures: violations stopped and false stops, in all and by how the writes were made."""
    bad = [one for one in half["writes"] if one["violates"]]
    good = [one for one in half["writes"] if not one["violates"]]
    lines = [f"{len(half['guardrails'])} guardrails, {len(half['writes'])} writes"]
    for name, writes, hit in (
        ("violations stopped", bad, {one["id"] for one in bad if found[one["id"]] & set(one["violates"])}),
        ("false stops", good, {one["id"] for one in good if found[one["id"]]}),
    ):
        low, high = wilson(len(hit), len(writes))
        lines.append(f"{name}: {len(hit) / max(1, len(writes)):.3f} ({low:.3f} to {high:.3f}), {len(hit)} of {len(writes)}")
        count = Counter(one["how"] for one in writes)
        stopped = Counter(one["how"] for one in writes if one["id"] in hit)
        lines += [f"  {how}: {stopped[how]} of {n}" for how, n in count.items()]
    return lines


def fit(half: Half) -> list[str]:
    """Lines with the weights that a half gives, and figures in which each guardrail is judged by what the others give."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from phronesis_embedding.wordnet import WordNet
    from phronesis_graph.constitution.guardrails import Words
    from phronesis_graph.constitution.meaning import THRESHOLD
    from phronesis_graph.constitution.wording import plain_forms, read_segments

    judge, words = open_judge(), WordNet(forms=plain_forms)
    rules = [rule(one) for one in half["guardrails"]]
    wordings = [one.trigger.wording for one in rules if isinstance(one.trigger, Words)]
    rows = [
        (write, number, evidence)
        for write in half["writes"]
        for number, evidence in enumerate(judge.weigh(wordings, read_segments(write["fields"], words)))
    ]
    features = np.array([row[2].features for row in rows])
    broken = np.array([half["guardrails"][row[1]]["id"] in row[0]["violates"] for row in rows])
    open_ = np.array([not row[2].veto for row in rows])
    weight = np.array([_NEAR_MISS if row[0]["how"] == "near_miss" else 1.0 for row in rows])
    which = np.array([row[1] for row in rows])

    def learn(rows_: Any) -> Any:
        return LogisticRegression(C=10, max_iter=1_000).fit(features[rows_], broken[rows_], sample_weight=weight[rows_])

    whole = learn(open_)
    lines = [f"weights {whole.coef_[0].round(2).tolist()}, bias {whole.intercept_[0]:.2f}"]
    found: dict[str, set[str]] = {one["id"]: set() for one in half["writes"]}
    for number, one in enumerate(half["guardrails"]):
        model = learn(open_ & (which != number))
        for row, own in zip(rows, features, strict=True):
            if row[1] == number and not row[2].veto:
                if row[2].sure or model.predict_proba([own])[0, 1] >= THRESHOLD:
                    found[row[0]["id"]].add(one["id"])
    return [*lines, "each guardrail by weights of the others:", *summary(half, found)]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status is 0 where everything ran, whatever came of it."""
    parser = argparse.ArgumentParser(prog="python -m evals.guardrails", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--url", help="address of a gateway: ask its stack")
    parser.add_argument("--key", help="a key of an admin there")
    parser.add_argument("--data", type=Path, help="data directory of a local stack: ask it")
    parser.add_argument("--own", action="store_true", help="start a stack in a temporary directory, and stop it afterwards")
    parser.add_argument("--half", choices=items.HALVES, help="one half; both by default")
    parser.add_argument("--fit", action="store_true", help="print the weights that the tuning half gives")
    parser.add_argument("--failures", action="store_true", help="print what went wrong in the tuning half")
    given = parser.parse_args(arguments)
    try:
        if given.own:
            with tempfile.TemporaryDirectory(prefix="phronesis-guardrails-") as folder, stack.running(Path(folder)) as started:
                return _evaluate(given, started)
        there = stack.find(given.url, given.key, given.data) if given.url or given.data else None
        return _evaluate(given, there)
    except (StackError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 1


def _evaluate(given: argparse.Namespace, where: stack.Stack | None) -> int:
    for name in [given.half] if given.half else list(items.HALVES):
        half = yaml.safe_load((SETS / f"{name}.yaml").read_text("utf-8"))
        if where is None:
            found = asyncio.run(judge_here(half))
        else:
            with Client(where.url, where.key) as client:
                found = judge_there(half, client)
        print("\n".join([f"## {name}", *summary(half, found), ""]))
        if name == "tune":
            if given.fit:
                print("\n".join(fit(half)))
            for write in half["writes"] if given.failures else ():
                if found[write["id"]] != set(write["violates"]):
                    print(write["id"], write["how"], write["violates"], sorted(found[write["id"]]), write["fields"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
