"""A headless Chromium and one page in it, spoken to over the pipe that its devtools protocol has: no package needed."""

import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 90.0
# No request of the browser's own may be taken for one of the page.
_FLAGS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--disable-default-apps", "--hide-scrollbars", "--remote-debugging-pipe"),
)


def find_browser() -> str | None:
    """The path of a Chromium, where there is one."""
    return next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)


class Page:
    """One page. ``requests`` are the addresses it asked for, ``messages`` what its console and log were told."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, from_browser = os.pipe(), os.pipe()
        # The browser reads descriptor 3 and writes 4. High ones first, so that neither is overwritten.
        reads, writes = (os.dup(descriptor) for descriptor in (to_browser[0], from_browser[1]))

        def as_agreed() -> None:
            high = [os.dup2(descriptor, 50 + place) for place, descriptor in enumerate((reads, writes))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [program, *_FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=as_agreed,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for descriptor in (to_browser[0], from_browser[1], reads, writes):
            os.close(descriptor)
        self._in, self._out = os.fdopen(to_browser[1], "wb"), os.fdopen(from_browser[0], "rb")
        self._number, self._session = 0, None
        self.requests: list[str] = []
        self.messages: list[str] = []
        target = next(found for found in self.ask("Target.getTargets")["targetInfos"] if found["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """The answer to one command; what happened meanwhile is noted."""
        with self._patience():
            return self._ask(method, parameters)

    def _ask(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        self._in.flush()
        while (found := self._next()).get("id") != number:
            self._note(found)
        assert "error" not in found, f"{method}: {found}"
        return found["result"]

    def open(self, path: Path, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Load the file as a screen of ``width`` shows it."""
        scale = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **scale)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.requests.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        with self._patience():
            while (found := self._next()).get("method") != "Page.loadEventFired":
                self._note(found)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write a PNG of the page, from top to bottom or of the screen alone."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """A browser that hangs is ended, which ends every read with an error."""
        alarm = threading.Timer(_SECONDS, self._process.kill)
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()

    def _next(self) -> dict[str, Any]:
        read = bytearray()
        while (byte := self._out.read(1)) != b"\0":
            assert byte, "the browser ended"
            read += byte
        return json.loads(read)  # type: ignore[no-any-return]

    def _note(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(told))
