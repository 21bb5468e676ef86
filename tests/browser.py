"""A browser for the tests of pages: Chromium, driven by Selenium and Debian's chromium-driver."""

import os
import shutil
from importlib.util import find_spec

import pytest

from tests.helpers import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Browser:
    """Chromium with one tab. Tests speak to it by the commands of its DevTools."""

    def __init__(self, home):
        from selenium import webdriver

        # Selenium's own manager would download a driver and report how it is used.
        os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={home}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
        self.call("Runtime.enable")

    def call(self, method, **params):
        """Send a command of the DevTools and wait for its result."""
        return self._driver.execute_cdp_cmd(method, params)

    def errors(self):
        """What went wrong in the page without anyone noticing."""
        return [each for each in self._driver.get_log("browser") if each["source"] == "javascript"]

    def open(self, page):
        """Show `page`."""
        self._driver.get(page.as_uri())

    def run(self, expression):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, *keys):
        """Press keys one after another, letters or names."""
        for key in keys:
            letter = {"text": key} if len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **letter)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def saved(self, folder, button="save", name="*.txt"):
        """Click a button that saves a file, and return the bytes of the file, whose `name` is as told."""
        downloads = folder / "downloads"
        downloads.mkdir()
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        self.run(f"document.getElementById('{button}').click()")
        # While it is written, the file has another name, or this one and no bytes.
        data = wait_until(lambda: [each for each in downloads.glob(name) if each.stat().st_size])[
            0
        ].read_bytes()
        shutil.rmtree(downloads)
        return data

    def close(self):
        """End the browser and its driver."""
        self._driver.quit()


NO_BROWSER = pytest.mark.skipif(
    not (CHROMIUM and DRIVER and find_spec("selenium")),
    reason="no Chromium with its driver and Selenium: apt-get install chromium-driver, pip install selenium",
)
