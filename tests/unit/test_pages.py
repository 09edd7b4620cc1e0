"""Following a page of the documentation, before a page is followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import Command, File, Shell, agrees, follow, steps

PAGE = """# A page

Put this into `say.py`:

```python
print("one")
```

And run `it`:

```console
$ export NAME=say.py
$ python3 $NAME
one
$ seq 3
1
...
```
"""


def test_a_page_is_files_and_commands_in_their_order() -> None:
    assert steps(PAGE) == [
        File("say.py", 'print("one")\n'),
        Command("export NAME=say.py", ""),
        Command("python3 $NAME", "one\n"),
        Command("seq 3", "1\n...\n"),
    ]


@pytest.mark.parametrize(
    "block", ["```python\nprint(1)\n```", "```console\nprinted\n$ date\n```", "In `a.txt`:\n\n```text\nx\n```"]
)
def test_a_block_that_cannot_be_followed_is_refused(block: str) -> None:
    with pytest.raises(ValueError):
        steps(f"Words.\n\n{block}\n")


@pytest.mark.parametrize(
    ("printed", "shown", "agree"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("one\ntwo\n", "one\n", False),
        ("one\n", "", False),
        ("", "", True),
        ("a\nb\nready in 3.1 s: up\n", "...\nready in ... s: up\n", True),
        ("a\nb\n", "...\nready in ... s: up\n", False),
        ("x[1]\n", "x[1]\n", True),
        ("one", "one\n", True),
    ],
)
def test_three_dots_stand_for_anything_and_nothing_else_does(printed: str, shown: str, agree: bool) -> None:
    assert agrees(printed, shown) is agree


async def test_a_page_is_followed_in_one_shell(tmp_path: Path) -> None:
    async with Shell(tmp_path, {"PATH": "/usr/bin:/bin"}) as shell:
        await follow(PAGE, shell, tmp_path)


@pytest.mark.parametrize(("line", "why"), [("false", r"\$ false"), ("echo two", "the page shows")])
async def test_a_command_that_fails_or_prints_something_else_ends_it(tmp_path: Path, line: str, why: str) -> None:
    async with Shell(tmp_path, {"PATH": "/usr/bin:/bin"}) as shell:
        with pytest.raises(AssertionError, match=why):
            await follow(f"```console\n$ {line}\none\n```\n", shell, tmp_path)
