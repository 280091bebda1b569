"""A real browser without a window, spoken to in the DevTools protocol over two pipes. Nothing but Python is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars"),
    *("--disable-extensions", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)
_PATIENCE = 180  # seconds, on a machine that others use too
_KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Tab": 9}


class Browser:
    """Chromium with one page; a context manager.

    Attributes:
        said: what pages wrote to the console, and errors of theirs that nobody caught.
        asked: addresses that pages wanted from outside.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self._number = 0
        self._buffer = b""
        self._profile = tempfile.mkdtemp()
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def pipes() -> None:  # the protocol reads from 3 and writes to 4
            high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self._process = subprocess.Popen(
            [PROGRAM, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        self._session: str | None = None
        target = next(each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, page: Path, width: int = 1280, height: int = 900) -> None:
        """Show a page in a window of that size and wait until it is loaded."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call("Page.navigate", url=page.resolve().as_uri())
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def tell(self, expression: str) -> Any:
        """The value of an expression, waited for."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 60.0) -> None:
        """Wait for an expression to be true."""
        end = time.monotonic() + seconds
        while not self.tell(expression):
            assert time.monotonic() < end, f"not true after {seconds:g} s: {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release a key."""
        about: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": _KEYS.get(key, ord(key[0].upper()))}
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        self._call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, path: Path) -> None:
        """A PNG of the whole page."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self._call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def _call(self, method: str, **arguments: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._hear(answer)

    def _hear(self, event: dict[str, Any]) -> None:
        about = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.said.append(" ".join(str(each.get("value", each.get("description"))) for each in about["args"]))
        elif event.get("method") == "Runtime.exceptionThrown":
            self.said.append(str(about["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.said.append(about["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            address = about["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:")):
                self.asked.append(address)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._in], [], [], _PATIENCE)[0], f"the browser has said nothing for {_PATIENCE} s"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found
