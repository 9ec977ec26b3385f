"""Chromium without a window, driven by chromedriver: W3C WebDriver's JSON over HTTP needs no package."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
_READY = "started successfully on port "
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
_SECONDS = 180


class Browser:
    """One page at a time; paths are those of WebDriver's session."""

    def __init__(self, driver: str, size: tuple[int, int], profile: str):
        options = {"args": [*_FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"]}
        logged, patience = {"browser": "ALL"}, {"script": 1000 * _SECONDS}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logged, "timeouts": patience}
        made = _call("POST", f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})
        self._url = f"{driver}/session/{made['sessionId']}"

    def open(self, page: Path | str) -> None:
        """A file, or what a URL names."""
        _call("POST", f"{self._url}/url", {"url": page if isinstance(page, str) else page.as_uri()})

    def resize(self, width: int, height: int) -> None:
        """Of the page; windows have a least width, phones' screens are narrower."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        _call("POST", f"{self._url}/goog/cdp/execute", command)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns; `arguments[0]` is the first argument."""
        return _call("POST", f"{self._url}/execute/sync", {"script": script, "args": arguments})

    def inside(self, frame: int | None) -> None:
        """What is run from now on runs in a frame of the page, or in the page itself."""
        _call("POST", f"{self._url}/frame", {"id": frame})

    def press(self, *keys: str) -> None:
        """Press and let go of keys, by WebDriver's characters."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        _call("POST", f"{self._url}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def complaints(self) -> list[str]:
        """Errors and warnings of the page since the last call."""
        return [entry["message"] for entry in _call("POST", f"{self._url}/se/log", {"type": "browser"})]

    def quit(self) -> None:
        _call("DELETE", self._url)


def _call(method: str, url: str, body: object = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = Request(url, content, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=_SECONDS) as answer:
        return json.load(answer)["value"]


@contextmanager
def browser(size: tuple[int, int] = (1280, 800)) -> Iterator[Browser]:
    """A browser with a profile of its own, which ends with its driver."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True) as driver,
    ):
        try:
            assert driver.stdout is not None
            ready = next(line for line in driver.stdout if _READY in line)
            found = Browser(f"http://127.0.0.1:{ready.partition(_READY)[2].strip().rstrip('.')}", size, profile)
            try:
                yield found
            finally:
                found.quit()
        finally:
            driver.terminate()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Where this machine serves a folder: of files browsers tell less, and start no workers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
