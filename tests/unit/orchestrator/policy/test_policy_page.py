"""The page that tells people what agents may do says what the policy says."""

from __future__ import annotations

from pathlib import Path

from phronesis_contracts.approvals import ActionPolicy
from phronesis_contracts.origins import OriginKind
from phronesis_contracts.tools import Effect

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "what-agents-may-do.md"
MEANT = {
    OriginKind.USER: "your own message",
    OriginKind.INSTRUCTIONS: "your tenant's instructions",
    OriginKind.MEMORY: "what memory formed from your own words",
    OriginKind.PERSON: "somebody else's text",
    OriginKind.DOCUMENT: "a document",
    OriginKind.PICTURE: "a picture",
    OriginKind.RECORDING: "a recording",
    OriginKind.TOOL: "the result of a tool",
    OriginKind.OUTSIDE: "an outside MCP server",
    OriginKind.WEB: "a web page",
    OriginKind.CLIENT: "what a program adds to your message",
    OriginKind.UNKNOWN: "from before origins were kept",
}


def table() -> str:
    """The rows as the policy that the system comes with gives them."""
    policy, effects = ActionPolicy(), [effect for effect in Effect if effect is not Effect.READ]
    rows = (
        f"| `{kind}`: {MEANT[kind]} | {' | '.join(policy.ruling(kind, effect) for effect in effects)} |" for kind in OriginKind
    )
    return "\n".join(rows)


def test_the_page_shows_the_policy_that_every_tenant_begins_with() -> None:
    shown = (
        PAGE.read_text(encoding="utf-8").partition("<!-- policy: ActionPolicy() -->")[2].partition("<!-- end of policy -->")[0]
    )
    heads = ["| because of | write | outbound | message | spend |", "| --- | --- | --- | --- | --- |"]
    assert shown.strip().splitlines() == [*heads, *table().splitlines()]
