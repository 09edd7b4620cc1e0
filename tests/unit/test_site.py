"""The documentation's site: it is built from the index, loads nothing from outside, and shows what its Markdown says."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import phronesis
from scripts import commands, rest, sdk, site
from scripts.tree import DOCS, ROOT

STRUCTURE = {"blockquote", "h1", "h2", "h3", "li", "ol", "pre", "td", "tr", "ul"}
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
_OUTSIDE = re.compile(r"(?:https?:)?//")
_LOADED_BY_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    site.build(folder)
    return folder


class Tags(HTMLParser):
    """The tags of a page with their attributes, and those of its text alone."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.article: Counter[str] = Counter()
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))
        self._inside |= tag == "article"
        if self._inside and tag in STRUCTURE:
            self.article[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._inside &= tag != "article"


def html(built: Path, page: Path) -> Path:
    place = page.relative_to(ROOT).with_suffix("")
    return built / (place.parent if place.name == "README" else place) / "index.html"


def pages() -> list[Path]:
    return [site.HOME, site.INDEX, *(page.path for found in site.navigation().values() for page in found)]


def test_no_page_loads_a_script_a_style_a_font_or_a_picture_from_outside(built: Path) -> None:
    loaded = [
        (str(page.relative_to(built)), attributes[LOADED[tag]])
        for page in built.rglob("*.html")
        for tag, attributes in Tags(page.read_text(encoding="utf-8")).all
        if tag in LOADED and attributes.get(LOADED[tag])
    ]
    styles = [*built.rglob("*.html"), *built.rglob("*.css")]
    assert loaded
    assert [one for one in loaded if _OUTSIDE.match(one[1] or "")] == []
    assert [style for style in styles if _LOADED_BY_STYLE.search(style.read_text(encoding="utf-8"))] == []


def test_a_page_has_the_lists_the_tables_and_the_code_of_its_markdown(built: Path) -> None:
    markdown = MarkdownIt("commonmark").enable("table")
    differing = {}
    for page in pages():
        meant = Tags(f"<article>{markdown.render(page.read_text(encoding='utf-8'))}</article>").article
        shown = Tags(html(built, page).read_text(encoding="utf-8")).article
        if shown != meant:
            differing[page.relative_to(ROOT)] = (shown - meant, meant - shown)
    assert differing == {}


def test_the_site_has_each_page_as_markdown_too(built: Path) -> None:
    assert {page for page in pages() if (built / page.relative_to(ROOT)).read_bytes() != page.read_bytes()} == set()


def test_the_navigation_has_every_page_of_the_index_in_its_order() -> None:
    tables = site.INDEX.read_text(encoding="utf-8").partition("\n## ")[2]
    named = [(DOCS / name).resolve() for name in re.findall(r"\]\(([^)#]+\.md)\)", tables)]
    records = set((DOCS / "decisions").glob("0*.md"))
    listed = [page.path for found in site.navigation().values() for page in found if page.path not in records]
    assert listed == named


def test_the_navigation_has_every_decision() -> None:
    assert {page.path for page in site.navigation()["Decisions"]} == set((DOCS / "decisions").glob("*.md"))


def test_a_page_that_the_index_does_not_list_is_refused() -> None:
    index = site.INDEX.read_text(encoding="utf-8").replace("(how-to/memory.md)", "(how-to/console.md)")
    with pytest.raises(site.Incomplete) as refused:
        site.navigation(index)
    assert str(refused.value).splitlines() == [
        "docs/how-to/memory.md is not in docs/README.md",
        "docs/how-to/console.md is in docs/README.md twice",
    ]


def test_a_link_to_what_the_site_does_not_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](other.md) [b](https://phronesis.example) `[c](code.md)`", encoding="utf-8")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    with pytest.raises(site.Incomplete, match=r"^page\.md links to other\.md, which the site does not have$"):
        site.files([page])


def test_llms_txt_names_the_project_says_what_it_is_and_links_every_page(built: Path) -> None:
    lines = (built / "llms.txt").read_text(encoding="utf-8").splitlines()
    links = [re.fullmatch(r"- \[([^\]]+)\]\(([^)]+)\): (.+)", line) for line in lines if line.startswith("- ")]
    sections = [line for line in lines if line.startswith("## ")]
    assert lines[0] == "# Phronesis"
    assert lines[2].startswith("> A self-hosted backend")
    assert sections == ["## Tutorials", "## How-to guides", "## Reference", "## Explanation", "## Optional"]
    assert [link[2] for link in links if link] == [page.place for found in site.navigation().values() for page in found]
    assert None not in links
    assert [link[2] for link in links if link and not (built / link[2]).is_file()] == []


def test_llms_full_txt_holds_every_page_that_is_not_optional(built: Path) -> None:
    text = (built / "llms-full.txt").read_text(encoding="utf-8")
    wanted = [page for title, found in site.navigation().items() if title not in site.OPTIONAL for page in found]
    starts = [text.find(page.path.read_text(encoding="utf-8").strip()) for page in wanted]
    assert starts[0] > 0
    assert starts == sorted(set(starts))


def test_every_call_of_the_sdk_says_what_it_does() -> None:
    groups = {f"client.{name}": group for name, group in sdk.resources().items()} | {"client": phronesis.Client}
    calls = {f"{group}.{name}": call for group, kind in groups.items() for name, call in vars(kind).items() if name[0] != "_"}
    page = sdk.PATH.read_text(encoding="utf-8")
    assert [name for name, call in calls.items() if not inspect.getdoc(call)] == []
    assert [name for name in calls if f"\n### {name}\n" not in page] == []


def test_every_command_and_option_says_what_it_does() -> None:
    page = commands.PATH.read_text(encoding="utf-8")
    found = dict(commands.leaves(commands.program()))
    silent = [
        (*path, one.opts[0]) for path, command in found.items() for one in command.params if not getattr(one, "help", None)
    ]
    assert [path for path, command in found.items() if not command.help] == []
    assert silent == []
    assert [path for path in found if f"\n### phronesis {' '.join(path)}\n" not in page] == []


def test_a_route_is_described_with_its_parameters_bodies_and_replies() -> None:
    body = {"schema": {"$ref": "#/components/schemas/Thing"}, "example": {"kind": "c"}}
    gone = {"$ref": "#/components/responses/Gone"}
    problem = {"application/problem+json": {"example": {"status": 404}}}
    described = {
        "paths": {
            "/things/{id}": {
                "put": {
                    "tags": ["things"],
                    "summary": "Change a thing",
                    "description": "What is left out stays.",
                    "security": [{}],
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 2000}},
                    ],
                    "requestBody": {"content": {"application/json": body}},
                    "responses": {"204": {}, "404": gone, "default": {}},
                }
            }
        },
        "components": {
            "responses": {"Gone": {"description": "There is no such thing.", "content": problem}},
            "schemas": {
                "Thing": {
                    "description": "A <thing>.",
                    "required": ["kind"],
                    "properties": {
                        "kind": {"enum": ["a|b", "c"]},
                        "sizes": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
                    },
                }
            },
        },
    }
    assert rest.page(described).partition("\n## ")[2].splitlines() == [
        "Things",
        "",
        "### PUT /things/{id}",
        "",
        "Change a thing. What is left out stays.",
        "",
        "| parameter | in | type | |",
        "| --- | --- | --- | --- |",
        "| `id` | path | string | (required, at most 2,000 characters) |",
        "",
        "Body (`application/json`): [Thing](#thing)",
        "",
        "```json",
        "{",
        '  "kind": "c"',
        "}",
        "```",
        "",
        "Reply 204: no body",
        "",
        "Errors: 404",
        "",
        "## Errors",
        "",
        "| status | |",
        "| --- | --- |",
        "| 404 | There is no such thing. |",
        "",
        "## Models",
        "",
        "### Thing",
        "",
        "A &lt;thing>.",
        "",
        "| field | type | |",
        "| --- | --- | --- |",
        "| `kind` | `a\\|b`, `c` | (required) |",
        "| `sizes` | array of integer or null |  |",
    ]
