"""`phronesis agent`: list, show, publish, versions, diff, rollback and delete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.agents import (
        AgentDefinition,
        AgentDeleted,
        AgentDiff,
        AgentPublished,
        AgentShown,
        AgentVersions,
        TenantAgents,
    )

app = Commands(help="Agents to talk to: list, show; and make your tenant's own.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of an agent.", metavar="NAME")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check it and show what would change; change nothing.")]


@app.stack_command("list")
def list_agents(
    stack: Stack, own: Annotated[bool, typer.Option("--own", help="Only those that your tenant made.")] = False
) -> None:
    """The agents that you may talk to: packaged ones, and those that your tenant made."""
    with stack.client() as client:
        stack.show(client.agents.list(own), _print_list)


@app.stack_command()
def show(
    stack: Stack,
    name: Name,
    version: Annotated[
        int | None, typer.Argument(help="A version of your own agent; the active one by default.", min=1)
    ] = None,
) -> None:
    """What an agent is made of; your own as a file that `publish` takes."""
    with stack.client() as client:
        stack.show(client.agents.get(name, version), _print_agent)


@app.stack_command()
def publish(
    stack: Stack,
    file: Annotated[
        Path, typer.Argument(help="A YAML file that describes the agent.", metavar="FILE.yaml", exists=True, dir_okay=False)
    ],
    note: Annotated[str, typer.Option("--note", help="Why; kept with the version.")] = "",
    dry_run: DryRun = False,
) -> None:
    """Publish an agent from a file as its next version, for everybody in your tenant."""
    fields = _read(file)
    with stack.client() as client:
        stack.show(client.agents.publish(fields, note, dry_run), _print_published)


@app.stack_command()
def versions(stack: Stack, name: Name) -> None:
    """The versions of an agent of your own, the newest first."""
    with stack.client() as client:
        stack.show(client.agents.versions(name), _print_versions)


@app.stack_command()
def diff(
    stack: Stack,
    name: Name,
    before: Annotated[int, typer.Argument(help="A version.", min=1)],
    after: Annotated[int | None, typer.Argument(help="Another one; the active one by default.", min=1)] = None,
) -> None:
    """What differs between two versions of an agent of your own."""
    with stack.client() as client:
        stack.show(client.agents.diff(name, before, after), _print_diff)


@app.stack_command()
def rollback(
    stack: Stack,
    name: Name,
    version: Annotated[
        int | None, typer.Argument(help="The version to go back to; by default the one before, of a deleted agent its newest.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make an earlier version of an agent active again; this also brings a deleted agent back."""
    if not dry_run:
        output.sure(f"Roll {name} back for everybody in your tenant?", yes)
    with stack.client() as client:
        stack.show(client.agents.roll_back(name, version, dry_run), _print_published)


@app.stack_command()
def delete(stack: Stack, name: Name, yes: Yes = False) -> None:
    """Delete an agent of your own; `rollback` brings it back."""
    output.sure(f"Delete {name} for everybody in your tenant?", yes)
    with stack.client() as client:
        stack.show(client.agents.delete(name), _print_deleted)


def _read(file: Path) -> dict[str, Any]:
    import yaml

    from phronesis_contracts import BadRequest

    try:
        found = yaml.safe_load(file.read_text("utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file.name} is no YAML in UTF-8: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise BadRequest(f"{file.name} holds no fields of an agent, such as `name: librarian`")
    return found


def _print_list(found: TenantAgents) -> None:
    rows = [
        (
            one.name,
            f"version {one.version}, based on {one.based_on}" if one.own else "packaged",
            " ".join(one.description.split()),
        )
        for one in found.agents
    ]
    output.table(("AGENT", "", "WHAT IT IS FOR"), [(name, kind, _short(text)) for name, kind, text in rows])


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."


def _print_agent(found: AgentShown) -> None:
    agent = found.agent
    if found.definition is None:
        output.note(f"{agent.name}: a packaged agent; loop {found.loop}, stages {', '.join(found.stages)}")
        output.note(f"tools: {', '.join(found.tools) or 'those of its loop'}")
        output.out(" ".join(agent.description.split()))
        return
    state = "active" if found.active else "not active"
    output.note(f"{agent.name}: version {agent.version}, {state}, by {agent.by}, based on {agent.based_on}")
    output.out(_as_yaml(found.definition))


def _as_yaml(definition: AgentDefinition) -> str:
    import yaml

    class Lines(yaml.SafeDumper):
        """Writes a text of several lines as such."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Lines.add_representer(str, represent)
    fields = definition.model_dump(mode="json", exclude_defaults=True)
    return str(yaml.dump(fields, Dumper=Lines, sort_keys=False, allow_unicode=True, width=100)).rstrip()


def _print_published(found: AgentPublished) -> None:
    if found.diff:
        output.out(found.diff)
    if not found.changed:
        output.note(f"nothing changes: version {found.version} of {found.name} says the same")
    elif found.dry_run:
        output.note(f"version {found.version} of {found.name} would change {', '.join(found.changed)}; nothing was published")
    else:
        output.note(f"version {found.version} of {found.name} is active; try: phronesis ask --agent {found.name} ...")


def _print_versions(found: AgentVersions) -> None:
    rows = [
        (str(one.version), "active" if one.active else "", one.by, f"{one.at:%Y-%m-%d %H:%M}", one.note)
        for one in found.versions
    ]
    output.table(("VERSION", "", "BY", "AT (UTC)", "NOTE"), rows)


def _print_diff(found: AgentDiff) -> None:
    output.out(found.diff)
    output.note(f"{len(found.changed)} fields differ between version {found.before} and version {found.after}")


def _print_deleted(found: AgentDeleted) -> None:
    output.note(f"{found.name} is deleted" if found.deleted else f"{found.name} was deleted before")
