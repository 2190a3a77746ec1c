"""A headless browser, where there is one; every page that a test opens must load nothing and complain of nothing."""

import os
import shutil
from pathlib import Path

import pytest

from dagpost.report.page import html_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make setup-bench")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here: install Debian's chromium to test the report in a browser")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """Where pictures go: $DAGPOST_SCREENSHOTS, or a folder that pytest keeps for a while."""
    named = os.environ.get("DAGPOST_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def opened(browser, tmp_path):
    """`opened(post)`: its report in a browser. Afterwards: one request, that of the file itself; a silent console."""
    contexts, requests, complaints, files = [], [], [], []

    def open_(post, summary=None, **options):
        file = tmp_path / f"report-{len(files)}.html"
        file.write_text(html_report(post, summary), encoding="utf-8")
        files.append(file.as_uri())
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(file.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
    loaded = [url for url in requests if not url.startswith(("data:", "blob:file:"))]
    assert loaded == files
