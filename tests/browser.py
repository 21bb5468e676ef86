"""A browser for the tests of pages, spoken to without any package."""

import json
import os
import select
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-pipe",
)


class Browser:
    """Chromium, spoken to through the pipes of its DevTools: JSON, with a zero byte after each message."""

    def __init__(self, home):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def as_3_and_4():
            # By way of numbers that are neither.
            copies = [os.dup2(theirs_in, 98), os.dup2(theirs_out, 99)]
            for number, copy in zip((3, 4), copies, strict=True):
                os.dup2(copy, number, inheritable=True)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={home}"],
            preexec_fn=as_3_and_4,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out):
            os.close(end)
        self._in, self._out = os.fdopen(ours_in, "rb", 0), os.fdopen(ours_out, "wb", 0)
        self._number, self._rest, self._session, self._events = 0, b"", None, []

    def call(self, method, **params):
        """Send a command and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        self._out.write(json.dumps(message | (self._session or {})).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, event):
        """Wait for the next event of that name; return its parameters."""
        while not (found := [each for each in self._events if each["method"] == event]):
            self._events.append(self._next())
        self._events.remove(found[0])
        return found[0]["params"]

    def errors(self):
        """What went wrong in the page without anyone noticing."""
        return [each for each in self._events if each["method"] == "Runtime.exceptionThrown"]

    def _next(self):
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], 60)[0], "the browser is silent"
            block = self._in.read(1 << 16)
            assert block, "the browser has ended"
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, page):
        """Show `page` in the one tab there is."""
        if self._session is None:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self._session = {"sessionId": session}
            for domain in ("Page", "Runtime"):
                self.call(f"{domain}.enable")
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")

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

    def saved(self, folder):
        """Click "Save list" and return the bytes of the file."""
        self.call(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True
        )
        self.run("document.getElementById('save').click()")
        name = self.wait_for("Browser.downloadWillBegin")["suggestedFilename"]
        while self.wait_for("Browser.downloadProgress")["state"] != "completed":
            pass
        return (Path(folder) / name).read_bytes()

    def close(self):
        """End the browser, which lives no longer than its pipes."""
        self._in.close()
        self._out.close()
        self._process.wait(30)


NO_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
