"""Every form in which a message was ever sent still parses, with nothing of it lost."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from phronesis_contracts import Message
from scripts.messages import carried, contracts, name
from scripts.samples import committed, example
from tests.support.cases import for_each

SAMPLES = [(name(contract), side, model) for contract in contracts() for side, model in carried(contract).items()]


@cache
def kept() -> dict[str, dict[str, list[Any]]]:
    """The samples, read once."""
    return committed()


@for_each(("contract", "side", "model"), SAMPLES)
def test_every_sample_of_a_message_still_parses(contract: str, side: str, model: type[Message]) -> None:
    samples = kept()[contract][side]
    assert samples, "a message has at least one sample"
    for sample in samples:
        assert lost(sample, json.loads(model.model_validate(sample).model_dump_json())) == []


def test_a_sample_belongs_to_a_contract_or_to_an_older_version_of_one() -> None:
    known = {name(contract) for contract in contracts()}
    assert set(committed()) - known == set()


def test_an_example_fills_every_field() -> None:
    for contract in contracts():
        for model in carried(contract).values():
            schema = model.model_json_schema()
            assert set(example(schema, schema.get("$defs", {}))) == set(schema.get("properties", {}))


def lost(sample: Any, found: Any, where: str = "") -> list[str]:
    """What stands in the sample and not in what was parsed from it."""
    match sample:
        case dict():
            kept = found if isinstance(found, dict) else {}
            gone = [f"{where}.{key} is lost" for key in sample if key not in kept]
            return gone + [line for key in sample if key in kept for line in lost(sample[key], kept[key], f"{where}.{key}")]
        case list():
            return [line for i, inner in enumerate(sample) for line in lost(inner, found[i], f"{where}.{i}")]
    return [] if sample == found else [f"{where}: {sample!r} became {found!r}"]
