"""What a tenant's rules say to something that is not written yet."""

from __future__ import annotations

from phronesis_bus import Call
from phronesis_contracts.constitution.insight import CheckPolicy, PolicyChecked

from .checking import found_type
from .guardrails import hits, subject
from .ruling import Ruling
from .typed import typed


class Policing:
    """Answers before a decision is made.

    Args:
        ruling: the rules of each tenant.
    """

    def __init__(self, ruling: Ruling) -> None:
        self._ruling = ruling

    async def check_policy(self, call: Call, request: CheckPolicy) -> PolicyChecked:
        """The rules that a text, or a node of some type with these fields, would go against.

        Raises:
            RegistryRefused: there is no such type, or a field is none of its kind.
        """
        kind = found_type(request.type) if request.type else None
        fields = dict(request.fields)
        for one in kind.properties if kind else ():
            if fields.get(one.name) is not None:
                fields[one.name] = typed(one, fields[one.name])
        of = subject(kind.name if kind else None, fields, request.text)
        found = hits(await self._ruling.of(call.who.tenant), of)
        return PolicyChecked(hits=found, allowed=all(hit.severity != "block" for hit in found))
