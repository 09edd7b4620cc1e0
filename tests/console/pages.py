"""A person on the pages of the console: signed in, at a width and in a theme, with what every page has to keep."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import Page, window

_CLIENT = Path(__file__).parents[2] / "clients" / "console"
_AXE = _CLIENT / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (1440, 768, 360)
THEMES = ("light", "dark")


@asynccontextmanager
async def signed_in(profile: Path, url: str, key: str, *, width: int = 1440, theme: str = "light") -> AsyncIterator[Page]:
    """A window on the console of a gateway, in which somebody has signed in with their key, for the length of a block.

    Args:
        profile: an empty folder for what the browser keeps.
        url: of the gateway.
        width: pixels.
        theme: `light` or `dark`.
    """
    async with window(profile, width, 900) as page:
        await page.open(f"{url}/console")
        await page.run(f"localStorage.setItem('phronesis.theme', '{theme}'); localStorage.setItem('phronesis.language', 'en')")
        await sign_in(page, url, key)
        yield page


async def sign_in(page: Page, url: str, key: str) -> None:
    """Sign in with a key, in a window in which nobody has."""
    await page.open(f"{url}/console")
    await page.fill("Your key", key)
    await page.enter("Your key")
    await page.text("#content h1")
    await settled(page)
    await page.complaints()  # that nobody was signed in yet


async def go(page: Page, area: str) -> None:
    """Go to an area by the navigation, which a narrow window opens by a button."""
    if await page.run("return getComputedStyle(document.querySelector('.topbar .menu')).display !== 'none'"):
        await page.click(".topbar .menu")
    await page.click(".sidebar a", area)


async def visit(page: Page, url: str, path: str) -> None:
    """Open a page of the console below `/console`, and return when nothing on it is loading any more."""
    await page.open(f"{url}/console{path}")
    await page.until(lambda driver: driver.find_elements("css selector", "main h1"))
    await settled(page)


async def settled(page: Page) -> None:
    """Wait until nothing on a page is loading any more."""
    await page.quiet()
    await page.until(lambda driver: not driver.find_elements("css selector", ".skeleton"))


async def overflows(page: Page) -> list[str]:
    """What sticks out of the window at its right, as selectors; the page then scrolls sideways."""
    found: list[str] = await page.run(
        """const wide = document.documentElement.clientWidth;
        const boxes = [document.documentElement, document.querySelector('#content')];
        if (boxes.every(box => !box || box.scrollWidth <= wide)) return [];
        return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > wide + 1)
          .map(e => e.tagName.toLowerCase() + '.' + e.className).slice(0, 10)"""
    )
    return found


async def axe(page: Page) -> list[str]:
    """The serious and critical issues of accessibility on the page, as the rule and where it is broken."""
    await page.run(await asyncio.to_thread(_axe))
    found: list[dict[str, Any]] = await page.wait_for(
        "axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations))"
    )
    return [
        f"{each['id']}: {node['target'][0]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


async def sized(page: Page, width: int, height: int = 900) -> None:
    """Give the window's inside a width; headless windows have no borders, and phones are narrower than a window may be."""
    await page.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


async def themed(page: Page, theme: str) -> None:
    """Show the page in a theme."""
    await page.run(f"document.documentElement.dataset.theme = '{theme}'")


def _axe() -> str:
    if not _AXE.exists():
        subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=_CLIENT, check=True, capture_output=True
        )
    return _AXE.read_text()


async def panned(page: Page) -> float:
    """Frames a second, by its own counter, of the page's drawing while it is panned for three seconds."""
    frames: float = await page.wait_for(
        """const canvas = document.querySelector('canvas'), begun = performance.now(), first = Number(canvas.dataset.frames);
        const given = x => ({pointerId: 1, clientX: x, clientY: 400, bubbles: true});
        const at = (type, x) => canvas.dispatchEvent(new PointerEvent(type, given(x)));
        canvas.setPointerCapture = () => undefined;
        at('pointerdown', 400);
        let turn = 0;
        const pan = () => {
          at('pointermove', 400 + 100 * Math.sin(++turn / 20));
          const seconds = (performance.now() - begun) / 1000;
          if (seconds < 3) return requestAnimationFrame(pan);
          at('pointerup', 400);
          done((Number(canvas.dataset.frames) - first) / seconds);
        };
        requestAnimationFrame(pan)"""
    )
    return frames
