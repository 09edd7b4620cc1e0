"""What every page of the console keeps, at each width and in each theme."""

from __future__ import annotations

from tests.console.pages import THEMES, WIDTHS, axe, overflows, sized, themed, visit
from tests.support.browser import Page


async def faults(page: Page, url: str, *paths: str) -> list[str]:
    """What is wrong with pages: what sticks out of them, what not everybody can use, and what the browser complains of."""
    found: list[str] = []
    for path in paths:
        for width in WIDTHS:
            await sized(page, width)
            await visit(page, url, path)
            for theme in THEMES:
                await themed(page, theme)
                wrong = await overflows(page) + await axe(page) + await page.complaints()
                found += [f"{path} at {width} in {theme}: {each}" for each in wrong]
    await sized(page, WIDTHS[0])
    return found
