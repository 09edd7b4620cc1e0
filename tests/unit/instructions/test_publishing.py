"""What may be published, and what the handlers make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts import instructions as contract
from phronesis_contracts.instructions import NewText, Publication, PublishInstructions, RollbackInstructions, Unpublishable
from phronesis_instructions.library.content import read_agents, read_matrix
from phronesis_instructions.library.handlers import LibraryCache
from phronesis_instructions.library.texts import Library, Overlay, Platform, Profile, Text
from phronesis_instructions.releases.handlers import ReleaseHandlers
from phronesis_instructions.releases.publication import apply_publication, arm_faults, compare_texts
from tests.support.cases import for_each
from tests.support.instructions import EDITOR, MemoryStore

TEXTS = {text.tag: text for text in read_matrix().texts()}
PROMPT = Text("noor/final", "bundle", "Say {{answer}}.", "1.0.0", "active", 5, category="agent_prompt")
NOOR = Profile("noor", "1.0.0", "tools", ("loop",), {"final": "noor/final"}, {}, {}, "tier1_bootstrap")
SHIPPED = Library(Platform("4.0.0", {**TEXTS, PROMPT.tag: PROMPT}, {"noor": NOOR}))


def new(tag: str, content: str | None = None, **more: object) -> NewText:
    return NewText.model_validate({"tag": tag, "content": content, **more})


@for_each(
    ("text", "fault"),
    [
        (new("EntityRisk", " "), "EntityRisk: it is blank"),
        (new("EntityRisk", "a\x07b"), "EntityRisk: it holds control characters"),
        (new("EntityRisk", "<element name='EntityRisk'>x</element>"), "may not hold one"),
        (new("noor/final", "Say it."), r"noor/final: its placeholders are \[\], and have to be \['answer'\]"),
        (new("tier2_mode_b", "All."), "publish tier2_mode_b/preface or an element of tier 2"),
        (new("data_mode_definitions", "All."), "divided into the elements of tier 2"),
        (new("Nothing"), "there is no such text, and none is given"),
        (new("noor/other", "More."), "only elements can be added"),
        (new("EntityRisk", "Anew.", version="4.0.0"), "its version has to be above 4.0.0"),
        (new("EntityRisk", "Anew.", dependencies=["Nothing"]), "it depends on Nothing, which there is not"),
        (new("tier1_bootstrap", status="draft"), "tier1_bootstrap: agents cannot do without it"),
        (new("step4_reconcile", status="deprecated"), "step4_reconcile: agents cannot do without it"),
        (new("noor/final", status="draft"), "noor/final: agents cannot do without it"),
        (new("tier1_bootstrap", "word " * 2_500), "tokens, where 2400 are the most"),
        (new("step4_reconcile", "word " * 2_000), "tier2_mode_a: .* tokens, where 5400 are the most"),
    ],
)
def test_a_text_that_would_not_work_is_refused_with_its_fault(text: NewText, fault: str) -> None:
    with pytest.raises(Unpublishable, match=fault):
        apply_publication(SHIPPED, [text])


@pytest.mark.req("N-157")
def test_the_former_monolith_cannot_come_back() -> None:
    with pytest.raises(Unpublishable):
        apply_publication(SHIPPED, [new("data_mode_definitions", "All of tier 2.")])


@pytest.mark.req("N-243", "NC-084")
def test_a_text_changes_its_content_its_status_and_its_version() -> None:
    own = apply_publication(
        SHIPPED, [new("EntityRisk", "Risks."), new("CLOSE_GAPS", status="deprecated"), new("Extra", "More.")]
    )
    assert {tag: (text.version, text.status, text.own) for tag, text in own.items()} == {
        "EntityRisk": ("4.0.1", "active", True),
        "CLOSE_GAPS": ("4.0.1", "deprecated", True),
        "Extra": ("1.0.0", "active", True),
    }
    assert own["CLOSE_GAPS"].content == TEXTS["CLOSE_GAPS"].content
    library = Library(SHIPPED.platform, Overlay(1, own))
    assert library.elements(["EntityRisk", "CLOSE_GAPS", "Extra"], {}).missing == ("CLOSE_GAPS",)
    again = apply_publication(library, [new("EntityRisk", "Risks again.", version="5.0.0")])
    assert (again["EntityRisk"].version, set(again)) == ("5.0.0", set(own))


@pytest.mark.req("NC-079")
def test_a_changed_part_is_seen_in_every_bundle_that_holds_it() -> None:
    after = Library(SHIPPED.platform, Overlay(1, apply_publication(SHIPPED, [new("step4_reconcile", "Anew.")])))
    changes = compare_texts(SHIPPED.all(), after.all())
    assert [change.tag for change in changes] == ["step4_reconcile", *(f"tier2_mode_{mode}" for mode in "abcd")]
    assert "+Anew." in changes[0].diff


def test_an_arms_texts_are_held_to_the_same_rules() -> None:
    faults = arm_faults(SHIPPED, "b", {"noor/final": "No place.", "Nothing": "x", "EntityRisk": "Fine."})
    assert [fault.partition(":")[0] for fault in faults] == ["b/noor/final", "b/Nothing"]


class MemoryReleases:
    """Releases of one tenant in a dictionary."""

    def __init__(self) -> None:
        self.own: dict[int, dict[str, Text]] = {0: {}}

    async def publish(self, call: Call, request: PublishInstructions) -> Publication:
        number = len(self.own)
        self.own[number] = apply_publication(SHIPPED, request.texts)
        return Publication(release=f"4.0.0+{number}", number=number, changes=())

    async def rollback(self, call: Call, request: RollbackInstructions) -> Publication:
        return Publication(release="4.0.0", number=0, changes=())

    async def releases(self, tenant: str) -> tuple[contract.ReleaseInfo, ...]:
        return ()

    async def texts(self, tenant: str, number: int) -> Mapping[str, Text]:
        return self.own[number]


@pytest.fixture
async def publishing() -> ReleaseHandlers:
    store = MemoryStore()
    await store.release(read_matrix())
    await store.release(next(agent for agent in read_agents() if agent.agent == "dialogue"))
    store.overlays["acme"] = Overlay(1, {"EntityRisk": replace(TEXTS["EntityRisk"], content="Ours.", own=True)})
    return ReleaseHandlers(LibraryCache(store, 60.0), MemoryReleases(), lambda: None)


@pytest.mark.req("N-243")
async def test_texts_are_listed_by_tier_status_and_owner(publishing: ReleaseHandlers) -> None:
    found = await publishing.list_instructions(EDITOR, contract.ListInstructions(tier=2))
    assert (found.release, [text.tag for text in found.texts]) == (
        "4.0.0+1",
        sorted(t for t, x in TEXTS.items() if x.tier == 2),
    )
    own = await publishing.list_instructions(EDITOR, contract.ListInstructions(own=True))
    assert [(text.tag, text.own) for text in own.texts] == [("EntityRisk", True)]
    assert (await publishing.list_instructions(EDITOR, contract.ListInstructions(status="draft"))).texts == ()


async def test_a_text_is_shown_as_the_tenant_has_it(publishing: ReleaseHandlers) -> None:
    assert (await publishing.show_instruction(EDITOR, contract.ShowInstruction(tag="EntityRisk"))).content == "Ours."
    with pytest.raises(NotFound):
        await publishing.show_instruction(EDITOR, contract.ShowInstruction(tag="Nothing"))


async def test_a_dry_run_says_what_would_change_and_publishes_nothing(publishing: ReleaseHandlers) -> None:
    request = PublishInstructions(texts=(new("CLOSE_GAPS", "Anew."),), dry_run=True)
    done = await publishing.publish_instructions(EDITOR, request)
    assert (done.number, [change.tag for change in done.changes]) == (1, ["CLOSE_GAPS"])


async def test_two_releases_are_compared_text_by_text(publishing: ReleaseHandlers) -> None:
    await publishing.publish_instructions(EDITOR, PublishInstructions(texts=(new("CLOSE_GAPS", "Anew."),)))
    found = await publishing.diff_instructions(EDITOR, contract.DiffInstructions(before=0, after=1))
    assert [(change.tag, change.change, change.before, change.after) for change in found.changes] == [
        ("CLOSE_GAPS", "changed", "4.0.0", "4.0.1")
    ]
