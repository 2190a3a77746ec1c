"""Size of the interactive report, and how quickly it opens and answers in a headless browser.

python benchmarks/report.py                                         a row for 5, 20 and 100 nodes
python benchmarks/report.py --screenshot docs/images/report.png     the picture in the README: the Sachs data

Opening is from asking for the file to the second frame drawn; the slider is moved through its whole range, and every
step is timed to the second frame after it. Medians of five openings and of fifty steps, and the longest of them. Needs
playwright (the bench extra) and Debian's chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import dagpost as dp

FRAMES = "requestAnimationFrame(() => requestAnimationFrame(done))"
STEP = """v => new Promise(done => {
  const slider = document.getElementById("threshold"), began = performance.now();
  slider.value = v;
  slider.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""


def posterior(nodes: int) -> dp.Posterior:
    """Of simulated data: exact for few nodes, else a thousand graphs of one short chain."""
    data = dp.simulate(model="linear", nodes=nodes, observations=200, seed=1).train
    if nodes <= 5:
        return dp.exact(data, model="bge")
    return dp.fit(data, model="bge", method="mc3", particles=1000, burn_in=1_000_000, thin=1000, progress=False)


def row(browser: Any, nodes: int, folder: Path) -> str:
    post = posterior(nodes)
    began = time.perf_counter()
    file = dp.write_report(post, folder / f"{nodes}.html")
    written = time.perf_counter() - began
    openings = []
    for _ in range(5):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        page.goto(file.as_uri())
        page.evaluate(f"() => new Promise(done => {FRAMES})")
        openings.append(time.perf_counter() - began)
        if len(openings) < 5:
            page.close()
    steps = [page.evaluate(STEP, v / 100) for v in range(99, 0, -2)]
    lowest = page.evaluate("document.getElementById('graph')._cyreg.cy.edges(':visible').length")
    return (
        f"| {nodes} | {file.stat().st_size / 1e3:.0f} kB | {written:.1f} s | {statistics.median(openings):.2f} s | "
        f"{max(openings):.2f} s | {statistics.median(steps):.0f} ms | {max(steps):.0f} ms | {lowest} |"
    )


def screenshot(browser: Any, path: Path, folder: Path) -> None:
    """The graph of the Sachs data, with one protein chosen."""
    from PIL import Image

    post = dp.exact(dp.sachs(interventions=True).standardised(), model="bge")
    file = dp.write_report(post, folder / "sachs.html", title="Protein signalling (Sachs et al., 2005)")
    page = browser.new_page(viewport={"width": 1280, "height": 1800})
    page.goto(file.as_uri())
    page.locator("#node").select_option(label="PKA")
    page.evaluate(f"() => new Promise(done => {FRAMES})")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.locator("#graph-section").screenshot(path=path)
    with Image.open(path) as picture:  # a few colours do, and make a small file
        picture.convert("RGB").quantize(160).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[5, 20, 100])
    parser.add_argument("--screenshot", type=Path)
    asked = parser.parse_args()
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("no Chromium here: install Debian's chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver, tempfile.TemporaryDirectory() as name:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        if asked.screenshot:
            screenshot(browser, asked.screenshot, Path(name))
        else:
            print("| nodes | size | written in | opens in | at most | slider step | at most | edges at 0.01 |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- |")
            for nodes in asked.nodes:
                print(row(browser, nodes, Path(name)), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
