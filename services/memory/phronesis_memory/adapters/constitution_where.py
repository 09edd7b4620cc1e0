"""What a search of constitutional nodes is narrowed to, as conditions of a statement."""

from __future__ import annotations

from ..constitution.ports import Chosen


class Where:
    """The conditions of a search, with their values; each condition stands only where it chooses something."""

    def __init__(self, tenant: str, model: str, dimension: int, chosen: Chosen) -> None:
        self.values: list[object] = []
        # The dimension as a number, for the planner to see which index it is of.
        parts = [f"tenant = {self.value(tenant)}", f"model = {self.value(model)}", f"dimension = {int(dimension)}"]
        if chosen.lifecycle is not None:
            parts.append(f"lifecycle = {self.value(chosen.lifecycle)}")
        for column, names in (("layer", chosen.layers), ("type", chosen.types), ("node_id", chosen.ids)):
            if names or (column == "node_id" and names is not None):
                parts.append(f"{column} = ANY({self.value(sorted(names or ()))}::text[])")
        if chosen.topic is not None:
            parts.append(f"topic = {self.value(chosen.topic)}")
        self.text = " AND ".join(parts)

    def value(self, given: object) -> str:
        """Hand over a value; how the statement names it."""
        self.values.append(given)
        return f"${len(self.values)}"

    def copy(self) -> Where:
        """The same, for a statement of its own."""
        made = object.__new__(Where)
        made.text, made.values = self.text, list(self.values)
        return made
