"""The picture of docs/tracking.md: the page of a tracked movie, at a link to look at.

    python -m benchmarks.tracking_report_picture                # docs/tracking-report.png
    python -m benchmarks.tracking_report_picture elsewhere.png  # and elsewhere.html

Simulated cells, so that anybody can repeat it: a model learns from the links of one movie and
tracks another. The page is opened in a browser (playwright and Chromium), at one of the links that
are least sure and in fact wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from trellis.datasets import LABS, simulate_cells
from trellis.pictures import movie_page
from trellis.tracking import TrackingModel, annotated_events

PICTURE = Path(__file__).parents[1] / "docs" / "tracking-report.png"
_COLONY = replace(LABS["b"], name="colony", over_segmentation=0.0, under_segmentation=0.0)


def made(path: Path, cells: int = 60, frames: int = 30) -> list[Path]:
    """Learn, track and write the page."""
    known = simulate_cells(40, 12, lab=_COLONY, seed=0)
    new = simulate_cells(cells, frames, lab=_COLONY, seed=1)
    result = TrackingModel(random_state=0).fit(known).predict(new, probabilities=True)
    return movie_page(
        result,
        path,
        pairs=new,
        truth=annotated_events(new)[0],
        title="A simulated colony",
        calibrated="They were calibrated with the annotated links of another movie.",
    )


def pictured(page_file: Path, picture: Path, width: int = 1280, height: int = 1180) -> None:
    """Open a page, look at a wrong link, and take the picture."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as driver:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=found, args=flags)
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto(page_file.resolve().as_uri())
        page.locator("#doubts tr", has=page.locator("td.wrong")).first.locator("button").click()
        page.keyboard.press("-")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(800)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Make the picture."""
    picture = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    with tempfile.TemporaryDirectory() as folder:
        kept = picture.with_suffix(".html") if len(sys.argv) > 1 else Path(folder, "page.html")
        pictured(made(kept)[0], picture)


if __name__ == "__main__":
    main()
