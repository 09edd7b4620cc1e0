"""`phronesis instructions`: list, show, diff, publish, rollback, releases, experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from . import experiments, output
from .options import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.messages import Message, Rpc
    from phronesis_contracts.releases import TextChange

    Out = TypeVar("Out", bound=Message)

app = typer.Typer(help="What agents are told: list, show, diff, publish, rollback, experiment.", no_args_is_help=True)
app.add_typer(experiments.app, name="experiment")

Folder = Annotated[
    Path,
    typer.Argument(
        help="A folder of Markdown files; the path of each, without .md, is its tag.",
        metavar="FOLDER",
        exists=True,
        file_okay=False,
    ),
]
Note = Annotated[str, typer.Option("--note", help="Why; kept with the release.")]


@app.command("list")
def list_texts(
    tier: Annotated[int | None, typer.Option(help="Only elements of this tier.", min=1, max=3)] = None,
    status: Annotated[str | None, typer.Option(help="Only active, deprecated or draft.")] = None,
    own: Annotated[bool, typer.Option("--own", help="Only those of your own tenant.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Every text that agents are told, with version, status and tokens."""
    from phronesis_contracts.releases import LIST_INSTRUCTIONS_TOOL as TOOL

    found = ask(TOOL.name, TOOL.rpc, {"tier": tier, "status": status, "own": own}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            text.tag,
            str(text.tier or text.category or ""),
            text.version,
            text.status,
            str(text.tokens),
            "own" if text.own else "",
        )
        for text in found.texts
    ]
    output.table(("TAG", "TIER", "VERSION", "STATUS", "TOKENS", ""), rows)
    output.note(f"{len(rows)} texts of release {found.release}")


@app.command()
def show(
    tag: Annotated[str, typer.Argument(help="Tag of a text.")],
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """One text as it is told now."""
    from phronesis_contracts.releases import SHOW_INSTRUCTION_TOOL as TOOL

    found = ask(TOOL.name, TOOL.rpc, {"tag": tag}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    info = found.info
    output.note(f"{info.tag} {info.version}, {info.status}, {info.tokens} tokens, of release {found.release}")
    output.out(found.content)


@app.command()
def releases(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """The releases of your tenant, the newest first."""
    from phronesis_contracts.releases import LIST_RELEASES_TOOL as TOOL

    found = ask(TOOL.name, TOOL.rpc, {}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    rows = [
        (str(one.number), "active" if one.active else "", str(one.texts), one.by, f"{one.created_at:%Y-%m-%d %H:%M}", one.note)
        for one in found.releases
    ]
    output.table(("RELEASE", "", "TEXTS", "BY", "AT (UTC)", "NOTE"), rows)
    output.note(f"told now: {found.release}")


@app.command()
def diff(
    before: Annotated[
        str, typer.Argument(help="A release by number (0: as shipped), or a folder.", metavar="RELEASE|FOLDER")
    ] = "0",
    after: Annotated[int | None, typer.Argument(help="Another release; the active one by default.", min=0)] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """What differs between two releases, or what publishing a folder would change."""
    from phronesis_contracts.releases import DIFF_INSTRUCTIONS_TOOL as DIFF
    from phronesis_contracts.releases import PUBLISH_INSTRUCTIONS_TOOL as PUBLISH

    if before.isdigit():
        found: Any = ask(DIFF.name, DIFF.rpc, {"before": int(before), "after": after}, url, key, data)
    else:
        found = ask(PUBLISH.name, PUBLISH.rpc, {"texts": _texts(Path(before)), "dry_run": True}, url, key, data)
    _changed(found, as_json, whole=True)


@app.command()
def publish(
    folder: Folder,
    note: Note = "",
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Publish a folder of texts for your tenant as one release, all or none."""
    from phronesis_contracts.releases import PUBLISH_INSTRUCTIONS_TOOL as TOOL

    texts = _texts(folder)
    output.sure(f"Publish {len(texts)} texts for everybody in your tenant?", yes)
    _changed(ask(TOOL.name, TOOL.rpc, {"texts": texts, "note": note}, url, key, data, writes=True), as_json)


@app.command()
def rollback(
    to: Annotated[
        int | None, typer.Argument(help="A release by number; the one before by default; 0 is as shipped.", min=0)
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Make an earlier release of your tenant active again."""
    from phronesis_contracts.releases import ROLLBACK_INSTRUCTIONS_TOOL as TOOL

    output.sure("Take the active release back for everybody in your tenant?", yes)
    _changed(ask(TOOL.name, TOOL.rpc, {"to": to}, url, key, data, writes=True), as_json)


def ask(tool: str, rpc: Rpc[Any, Out], body: dict[str, Any], url: Url, key: Key, data: Data, *, writes: bool = False) -> Out:
    """Call a tool, and parse what it answers. What is `None` is left out."""
    from uuid import uuid4

    from phronesis.sync import Client

    stated = {name: value for name, value in body.items() if value is not None}
    with Client(url, key, data) as client:
        return rpc.output.model_validate(client.tools.call(tool, stated, uuid4().hex if writes else None))


def _changed(found: Any, as_json: bool, *, whole: bool = False) -> None:
    if as_json:
        output.as_json(found)
        return
    for change in found.changes:
        output.out(_line(change))
        if whole and change.diff:
            output.out(change.diff)
    number = getattr(found, "number", None)
    told = f"; release {number} is active, told as {found.release}" if number is not None else ""
    output.note(f"{len(found.changes)} texts differ{told}")


def _line(change: TextChange) -> str:
    return f"{change.change}  {change.tag}  {change.before or '-'} -> {change.after or '-'}"


def _texts(folder: Path) -> list[dict[str, Any]]:
    from phronesis_contracts import BadRequest

    if not folder.is_dir():
        raise BadRequest(f"{folder} is neither the number of a release nor a folder")
    found = [_text(file, folder) for file in sorted(folder.rglob("*.md"))]
    if not found:
        raise BadRequest(f"{folder} holds no files that end with .md")
    return found


def _text(file: Path, folder: Path) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    tag = file.relative_to(folder).with_suffix("").as_posix()
    text = file.read_text(encoding="utf-8")
    stated: dict[str, Any] = {"tag": tag}
    if text.startswith("---\n"):
        head, fence, text = text[4:].partition("---\n")
        if not fence:
            raise BadRequest(f"the head of {file} has no end")
        stated |= _head(head, file)
    return {**stated, "content": text.strip()} if text.strip() else stated


def _head(head: str, file: Path) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    found: dict[str, Any] = {}
    for line in filter(str.strip, head.splitlines()):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or name not in ("status", "version", "dependencies", "use_cases"):
            raise BadRequest(f"{file} begins with {line!r}; known are status, version, dependencies and use_cases")
        listed = [one.strip() for one in value.strip("[]").split(",") if one.strip()]
        found[name] = listed if name in ("dependencies", "use_cases") else value
    return found
