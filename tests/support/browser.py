"""A real browser without a window: Debian's chromium, driven by its own driver; installed once where that can be done."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

PATIENCE = 30.0
"""Seconds after which something that should be on a page is missed."""
_LOOKS = 0.1
"""Seconds between two looks for it."""
_LONGEST = 900.0
"""Seconds after which an installation is given up."""
PICTURES = "PHRONESIS_PICTURES"
"""Name of the variable with the folder for pictures; `python -m tests.console` sets it."""
_WAYS = ("chromium", "chromium-browser", "google-chrome")
_PACKAGES = ("chromium", "chromium-driver")


class NoBrowser(Exception):
    """No browser can be had here; the text says what lacks."""


def browser() -> tuple[str, str]:
    """The paths of chromium and of its driver, installed by apt-get if they are not there.

    Raises:
        NoBrowser: they are not there, and cannot be installed.
    """
    if found := _found():
        return found
    hand = f"install them by hand: apt-get install {' '.join(_PACKAGES)}"
    if shutil.which("apt-get") is None:
        raise NoBrowser(f"the console's tests need chromium and chromedriver, and there is no apt-get; {hand}")
    if os.geteuid() != 0:
        raise NoBrowser(f"the console's tests need chromium and chromedriver, and only root may install them; {hand}")
    print("installing chromium and its driver by apt-get (120 MB; minutes)", file=sys.stderr, flush=True)
    _apt("update", "-qq")
    _apt("install", "-qq", "--yes", "--no-install-recommends", *_PACKAGES)
    if found := _found():
        return found
    raise NoBrowser(f"apt-get ended well, and chromium or chromedriver is not on the path; {hand}")


_LISTENER = """(() => {
  const asked = window.fetch;
  let open = 0, last = performance.now();
  const counted = (by) => { open += by; last = performance.now(); };
  window.fetch = (...given) => { counted(1); return asked(...given).finally(() => counted(-1)); };
  window.isQuiet = () => open === 0 && performance.now() - last > 50;
})()"""
"""What runs before a page's own scripts, and counts what it asks for."""


class Page:
    """A browser's window, for one person. Each step waits until what it needs is there.

    Args:
        driver: the driver of the browser.
    """

    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    async def open(self, address: str) -> None:
        """Go to an address."""
        await asyncio.to_thread(self._driver.get, address)

    async def fill(self, label: str, text: str) -> None:
        """Write into the field with this label, in place of what it holds."""

        def write() -> None:
            field = self._labelled(label)
            field.clear()
            field.send_keys(text)

        await asyncio.to_thread(write)

    async def enter(self, label: str) -> None:
        """Press the key Enter in the field with this label."""
        await asyncio.to_thread(lambda: self._labelled(label).send_keys(Keys.ENTER))

    async def press(self, text: str) -> None:
        """Press the last button, or open the last panel, with this text."""
        path = f"(//*[self::button or self::summary][starts-with(normalize-space(), '{text}')])[last()]"
        await asyncio.to_thread(lambda: self._shown(By.XPATH, path).click())

    async def click(self, css: str, text: str = "") -> None:
        """Press the first element that a selector finds, that has a text and that is shown, as soon as it can be pressed.

        Raises:
            ElementClickInterceptedException: something else lies over it.
        """

        def pressed(driver: Chrome) -> bool:
            for each in driver.find_elements(By.CSS_SELECTOR, css):
                if each.is_displayed() and each.is_enabled() and text in each.text:
                    each.click()
                    return True
            return False

        wait = WebDriverWait(self._driver, PATIENCE, _LOOKS, (StaleElementReferenceException,))
        await asyncio.to_thread(lambda: wait.until(pressed, f"nothing can be pressed for {css} {text}"))

    async def point(self, css: str) -> None:
        """Move the pointer over the first element that a selector finds: some buttons are shown only then."""
        await asyncio.to_thread(lambda: ActionChains(self._driver).move_to_element(self._shown(By.CSS_SELECTOR, css)).perform())

    async def choose(self, label: str, text: str) -> None:
        """Choose the option with this text in the field with this label."""
        await asyncio.to_thread(lambda: Select(self._labelled(label)).select_by_visible_text(text))

    async def told(self, css: str, text: str) -> None:
        """Return when a text is shown in an element that a selector finds."""

        def shown(driver: Chrome) -> bool:
            return any(text in each.text for each in driver.find_elements(By.CSS_SELECTOR, css))

        wait = WebDriverWait(self._driver, PATIENCE, _LOOKS, (StaleElementReferenceException,))
        await asyncio.to_thread(lambda: wait.until(shown, f"no {css} says: {text}"))

    async def texts(self, css: str, fewest: int = 1) -> list[str]:
        """The texts of all elements that a selector finds, shown or not, once there are so many."""
        script = f"const found = [...document.querySelectorAll({css!r})].map(each => each.textContent.trim());"
        script += f"return found.length >= {fewest} && found"
        found: list[str] = await self.until(lambda driver: driver.execute_script(script))
        return found

    async def text(self, css: str) -> str:
        """The text of the first element that a selector finds."""
        return str(await asyncio.to_thread(lambda: self._shown(By.CSS_SELECTOR, css).text))

    async def count(self, css: str) -> int:
        """How many elements a selector finds now."""
        return len(await asyncio.to_thread(self._driver.find_elements, By.CSS_SELECTOR, css))

    async def until(self, holds: Callable[[Chrome], Any]) -> Any:
        """What `holds` gives once it gives something."""
        wait = WebDriverWait(self._driver, PATIENCE, _LOOKS, (StaleElementReferenceException,))
        return await asyncio.to_thread(lambda: wait.until(holds))

    async def quiet(self) -> None:
        """Return once the page has asked for nothing for 50 ms and waits for no answer, but for what streams."""
        await self.until(lambda driver: driver.execute_script("return window.isQuiet()"))

    async def run(self, script: str) -> Any:
        """What a script returns."""
        return await asyncio.to_thread(self._driver.execute_script, script)

    async def wait_for(self, script: str) -> Any:
        """What a script hands to its function `done`."""
        wrapped = f"const done = arguments[arguments.length - 1]; {script}"
        return await asyncio.to_thread(self._driver.execute_async_script, wrapped)

    async def devtools(self, command: str, **given: Any) -> Any:
        """What a command of the browser's protocol for developers answers."""
        return await asyncio.to_thread(self._driver.execute_cdp_cmd, command, given)

    async def cookies(self) -> list[dict[str, Any]]:
        """The cookies of the page."""
        return await asyncio.to_thread(self._driver.get_cookies)

    async def complaints(self) -> list[str]:
        """What the browser's console says is wrong: scripts that failed, and what the page's policy refused."""
        said = await asyncio.to_thread(self._driver.get_log, "browser")
        return [line["message"] for line in said if line["level"] == "SEVERE"]

    async def picture(self, name: str) -> None:
        """Save what the window shows, where the run was told to make pictures."""
        if folder := os.environ.get(PICTURES):
            await asyncio.to_thread(self._driver.save_screenshot, str(Path(folder) / name))

    def _labelled(self, label: str) -> WebElement:
        named = self._shown(By.XPATH, f"//label[normalize-space()='{label}']").get_attribute("for")
        return self._shown(By.CSS_SELECTOR, f"#{named}")

    def _shown(self, by: str, what: str) -> WebElement:
        def visible(driver: Chrome) -> WebElement | None:
            return next((each for each in driver.find_elements(by, what) if each.is_displayed()), None)

        # A page may draw anew between the look for something and the look at it.
        wait = WebDriverWait(self._driver, PATIENCE, _LOOKS, (StaleElementReferenceException,))
        found = wait.until(visible, f"nothing is shown for {what}")
        assert found is not None
        return found


@asynccontextmanager
async def window(profile: Path, width: int = 1280, height: int = 1100) -> AsyncIterator[Page]:
    """A window of a fresh browser that reaches this machine and nothing else, for the length of a block.

    Args:
        profile: an empty folder for what the browser keeps.
        width: pixels.
        height: pixels.

    Raises:
        NoBrowser: none can be had.
    """
    program, driver = await asyncio.to_thread(browser)
    options = ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--force-device-scale-factor=1",
        f"--window-size={width},{height}",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = await asyncio.to_thread(lambda: Chrome(options=options, service=ChromeService(executable_path=driver)))
    try:
        await asyncio.to_thread(running.execute_cdp_cmd, "Page.addScriptToEvaluateOnNewDocument", {"source": _LISTENER})
        yield Page(running)
    finally:
        await asyncio.to_thread(running.quit)


def _found() -> tuple[str, str] | None:
    program = next((path for name in _WAYS if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return (program, driver) if program and driver else None


def _apt(*arguments: str) -> None:
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments]
    try:
        done = subprocess.run(
            command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, text=True, timeout=_LONGEST
        )
    except subprocess.TimeoutExpired as error:
        raise NoBrowser(f"`apt-get {arguments[0]}` took longer than {_LONGEST:.0f} s") from error
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise NoBrowser(f"`apt-get {arguments[0]}` ended with code {done.returncode}, so there is no browser:\n{last}")
