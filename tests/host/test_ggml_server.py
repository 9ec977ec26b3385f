"""llama-server with our backend: several requests at once, each answered as without us."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from stock_ggml import ours, small_design, stock_ggml

from support.ggml_packages import Packages
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf

PROMPTS = ("Several requests at once", "share the array", "and each has its own rows")
SECONDS = 60


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@contextmanager
def serving(packages: Packages, model: Path, environ: dict[str, str], log: Path) -> Iterator[str]:
    """A server's address, once it answers."""
    port = free_port()
    words = ["-m", model, "--host", "127.0.0.1", "--port", str(port), "-t", "1", "-np", str(len(PROMPTS)), "-c", "768"]
    with log.open("w") as out, subprocess.Popen(
        packages.command("llama-server", *words), env=os.environ | environ, stdout=out, stderr=subprocess.STDOUT
    ) as process:  # fmt: skip
        try:
            _wait(f"http://127.0.0.1:{port}", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/health") as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


def completed(address: str, prompt: str) -> list[int]:
    """The tokens behind a prompt."""
    asked = {"prompt": prompt, "n_predict": 5, "temperature": 0, "return_tokens": True, "cache_prompt": False}
    request = urllib.request.Request(f"{address}/completion", json.dumps(asked).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)["tokens"]


@pytest.mark.slow
def test_requests_at_once_are_answered_as_without_us(tmp_path: Path):
    packages = stock_ggml()
    content = random_content(config(256, 512, 1, 4, 2, 64, 300, 256), 7)
    model = write_gguf(tmp_path / "tiny.gguf", content, "TQ2_0", "bitnet")
    found = []
    for name, environ in (("ours", ours(small_design(tmp_path / "summing").folder, rows="4")), ("cpu", {})):
        log = tmp_path / f"{name}.log"
        with serving(packages, model, environ, log) as address, ThreadPoolExecutor(len(PROMPTS)) as threads:
            found.append(list(threads.map(lambda prompt, to=address: completed(to, prompt), PROMPTS)))
        assert bool(re.search(r"[1-9]\d* matrices packed", log.read_text())) == (name == "ours")
    assert found[0] == found[1]
    assert all(len(tokens) == 5 for tokens in found[0])
