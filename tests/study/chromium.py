"""One headless Chromium for many pages, none of which waits for a browser to start. It opens them
one after the other, as the DevTools protocol tells it over two pipes."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 300.0  # seconds for one answer: the machine may be busy
VIRTUAL_MS = 20_000  # what timers of a page may wait: they are moved on, and nobody waits
HEIGHT = 900

Message = dict[str, object]


def installed() -> str | None:
    """Returns the first Chromium that is installed."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Chromium:
    """The process and its two pipes. It ends when they close."""

    def __init__(self, path: str) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="chromium.", ignore_cleanup_errors=True)
        to_browser, self.orders = os.pipe()
        self.answers, from_browser = os.pipe()
        # Chromium reads orders from descriptor 3 and writes answers to 4.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser, from_browser)]
        command = [path, *OPTIONS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "${@:3}" 3<&"$1" 4>&"$2"', "chromium", *map(str, theirs), *command],
            pass_fds=theirs, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (to_browser, from_browser, *theirs):
            os.close(end)
        self.number = 0
        self.received = b""
        self.results: dict[int, dict] = {}
        self.events: list[Message] = []

    def end(self) -> None:
        for pipe in (self.orders, self.answers):
            os.close(pipe)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def order(self, method: str, session: str = "", **parameters: object) -> dict:
        """Sends an order, and returns its result."""
        return self.result(self.send(method, session, **parameters))

    def send(self, method: str, session: str = "", **parameters: object) -> int:
        """Sends an order, and returns its number."""
        self.number += 1
        message: Message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.orders, data) :]
        return self.number

    def result(self, number: int) -> dict:
        """Waits for the result of an order."""
        while number not in self.results:
            self._receive()
        message = self.results.pop(number)
        assert "error" not in message, message["error"]
        return message["result"]

    def event(self, name: str, session: str) -> None:
        """Waits for an event of a page, if it has not come yet."""
        while not any(
            event["method"] == name and event.get("sessionId") == session for event in self.events
        ):
            self._receive()

    def _receive(self) -> None:
        """Waits for a message, and keeps it."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"Chromium has said nothing for {PATIENCE:.0f} s"
            data = os.read(self.answers, 1 << 16)
            assert data, f"Chromium ended with status {self.process.wait()}"
            self.received += data
        line, _, self.received = self.received.partition(b"\0")
        message = json.loads(line)
        if "id" in message:
            self.results[message["id"]] = message
        else:
            self.events.append(message)


class OpenPage:
    """A page of a file, in a window of that width. Its timers wait on virtual time."""

    def __init__(self, browser: Chromium, address: str, width: int, **media: str) -> None:
        self.browser = browser
        browser.events.clear()
        self.target = browser.order("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.order("Target.attachToTarget", targetId=self.target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.order(f"{domain}.enable")
        self.order("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT,
                   deviceScaleFactor=1, mobile=False)  # fmt: skip
        features = [
            {"name": name.replace("_", "-"), "value": value} for name, value in media.items()
        ]
        self.order("Emulation.setEmulatedMedia", features=features)
        self.order("Page.navigate", url=address)
        browser.event("Page.loadEventFired", self.session)

    def order(self, method: str, **parameters: object) -> dict:
        return self.browser.order(method, self.session, **parameters)

    def evaluate(self, expression: str) -> object:
        """Returns the value of an expression; of a promise, what it promises."""
        number = self.browser.send(
            "Runtime.evaluate", self.session, expression=expression, awaitPromise=True,
            returnByValue=True,
        )  # fmt: skip
        # The timers that it sets are there by now.
        self._move_timers_on()
        answer = self.browser.result(number)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def settle(self) -> None:
        """Waits until its timers have run."""
        self._move_timers_on()
        self.browser.event("Emulation.virtualTimeBudgetExpired", self.session)

    def _move_timers_on(self) -> None:
        self.order("Emulation.setVirtualTimePolicy", policy="advance", budget=VIRTUAL_MS)

    def console(self) -> list[str]:
        """Returns what it has printed, and what went wrong in it."""
        words = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [
            json.dumps(event["params"])
            for event in self.browser.events
            if event["method"] in words and event.get("sessionId") == self.session
        ]

    def close(self) -> None:
        self.browser.order("Target.closeTarget", targetId=self.target)
