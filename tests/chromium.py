"""Start Chromium without a network, for tests of pages, and record what a page does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")


@contextmanager
def launch() -> Iterator[Any]:
    """Yield the browser; skip the test without playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


def watch(page: Any) -> tuple[list[str], list[str]]:
    """Return the messages and errors of a page, and the addresses that it asks for, as they come."""
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"error: {error}"))
    page.on("request", lambda request: requests.append(request.url))
    return messages, requests
