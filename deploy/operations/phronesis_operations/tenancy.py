"""What of the stores is one tenant's: which rows, which keys; and the same under another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from phronesis_contracts.principal import SYSTEM_TENANT, Token
from phronesis_graph.bolt.schema import LINKS

from .reporting import Damaged, Refused
from .tables import Table, quoted

_STAY = {"gateway"}
"""Schemas that belong to an installation: its keys open nothing elsewhere."""
_DERIVED = {"memory.texts", "memory.words", "memory.scopes"}
"""Made anew from the items: their words are kept as hashes that the tenant's name is part of."""


def bounds(tenant: str) -> dict[str, Any]:
    """Between which keys of the graph a tenant's own are. A tenant's name holds no slash."""
    return {"after": f"{tenant}/", "before": f"{tenant}0"}  # `0` is the character after `/`


def movable_tables(all_tables: list[Table]) -> list[Table]:
    """The tables with rows of tenants, and those that hang on one of them."""
    found: list[Table] = []
    for table in all_tables:  # parents come first
        owned = "tenant" in table.columns or any(_find_table(found, parent.table) for parent in table.parents)
        if owned and table.schema not in _STAY and table.full not in _DERIVED:
            found.append(table)
    return found


def tenant_query(table: Table, all_tables: list[Table], tenant: str) -> str:
    """The query for a tenant's rows of a table, without columns that the database counts itself."""
    names = ", ".join(f"t.{quoted(name)}" for name in movable_columns(table))
    return f"SELECT {names} FROM {table.quoted} t WHERE {_ownership_clause('t', table, all_tables, tenant)}"  # noqa: S608


def movable_columns(table: Table) -> list[str]:
    """The columns that move."""
    return [name for name in table.columns if name not in table.identity]


def _ownership_clause(alias: str, table: Table, all_tables: list[Table], tenant: str) -> str:
    if "tenant" in table.columns:
        return f"{alias}.tenant = {literal(tenant)}"
    parent = next(parent for parent in table.parents if _find_table(movable_tables(all_tables), parent.table))
    above = _find_table(all_tables, parent.table)
    assert above is not None
    condition = _ownership_clause(f"{alias}p", above, all_tables, tenant)
    joined = f"{alias}p.{quoted(parent.key)} = {alias}.{quoted(parent.column)}"
    return f"EXISTS (SELECT FROM {above.quoted} {alias}p WHERE {joined} AND {condition})"


def literal(text: str) -> str:
    """A text as a statement takes it: COPY takes no parameters."""
    return "'" + text.replace("'", "''") + "'"


def _find_table(tables: list[Table], full: str) -> Table | None:
    return next((table for table in tables if table.full == full), None)


@dataclass(frozen=True)
class Tenancy:
    """Takes care that what is loaded is one tenant's, and gives it its new name."""

    old: str
    new: str

    def of(self, tenant: object) -> str:
        """The new name. Raises `Damaged`: it is another tenant's."""
        if tenant != self.old:
            raise Damaged("the archive holds something of another tenant")
        return self.new

    def key(self, key: str) -> str:
        """A key of the graph. Raises `Damaged`: it is another tenant's."""
        if not key.startswith(f"{self.old}/"):
            raise Damaged("the archive holds something of another tenant")
        return f"{self.new}{key.removeprefix(self.old)}"

    def news(self, id: str) -> str:
        """The id of a piece of news, which begins with the tenant's name."""
        return f"{self.new}.{id.removeprefix(f'{self.old}.')}" if id.startswith(f"{self.old}.") else id

    def node(self, label: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """A node of the graph. The key of a link that waits is made of the keys of its ends.

        Raises:
            Damaged: it is another tenant's.
        """
        changed = dict(properties)
        if "tenant" in changed:
            changed["tenant"] = self.of(changed["tenant"])
        if label != LINKS:
            return changed | {"key": self.key(str(changed.get("key", "")))}
        changed |= {end: self.key(str(changed.get(end, ""))) for end in ("source", "target")}
        return changed | {"key": f"{changed['source']}\n{changed.get('type')}\n{changed['target']}"}

    def relationship(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Properties of a relationship; one of the constitutional graph says whose it is.

        Raises:
            Damaged: it is another tenant's.
        """
        changed = dict(properties)
        if "tenant" in changed:
            changed |= {"tenant": self.of(changed["tenant"]), "key": self.key(str(changed.get("key", "")))}
        return changed


def make_tenancy(old: str | None, new: str | None = None) -> Tenancy:
    """The tenancy of an archive that says it is `old`'s, under the name `new` or its own.

    Raises:
        Refused: one of them is no name of a tenant.
    """
    chosen = Tenancy(old or "", new or old or "")
    for name in (chosen.old, chosen.new):
        try:
            TypeAdapter(Token).validate_python(name)
        except ValidationError as error:
            raise Refused(f"{name!r} is no name of a tenant") from error
        if name == SYSTEM_TENANT:
            raise Refused(f"{name} is the platform's own name")
    return chosen
