"""The page of a tracked movie as a biologist meets it: made by the command line, in a browser."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trellis.datasets import LABS, simulate_cells
from trellis.pictures.movie_page import movie_page
from trellis.tracking import FramePair, Link, Objects, assemble_tracks

pytestmark = pytest.mark.extras

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
LAB = replace(LABS["b"], name="cells", over_segmentation=0.0, under_segmentation=0.0)
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; where it must be there (CI) its absence is an error."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        reason = "needs playwright and Chromium (make test-extras installs them where it may)"
        assert os.environ.get("CI") != "true", reason
        pytest.skip(reason)
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of a simulated movie, as ``trellis track`` makes it."""
    folder = tmp_path_factory.mktemp("movie")
    pairs = simulate_cells(30, 10, lab=LAB, seed=1)
    frames = [(p.frame, p.source) for p in pairs] + [(pairs[-1].frame + 1, pairs[-1].target)]
    with (folder / "objects.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["frame", "id", "x", "y", *pairs[0].source.columns])
        for frame, c in frames:
            rows.writerows(
                zip([frame] * len(c), c.ids, *c.position.T, *c.columns.values(), strict=True)
            )
    with (folder / "links.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["frame", "source_id", "target_id", "kind"])
        rows.writerows([p.frame, *link] for p in pairs for link in p.annotation.links)
    command = [
        sys.executable, "-m", "trellis", "track", str(folder / "objects.csv"),
        "--report", str(folder / "out"), "--truth", str(folder / "links.csv"),
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder / "out" / "index.html"


@pytest.fixture
def opened(browser, made):
    """Open a page: width, colour scheme; what the console said is in ``page.said``."""
    contexts = []

    def open_page(width=1280, scheme="light", path=made):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(Path(path).as_uri())
        page.wait_for_timeout(200)
        return page

    yield open_page
    for context in contexts:
        context.close()


def state(page):
    return page.evaluate("trellisMovie()")


def drawn(page, name):
    """Number of colours on a canvas: an empty one has one."""
    return page.evaluate(
        """(id) => {
          const c = document.getElementById(id), copy = document.createElement("canvas");
          [copy.width, copy.height] = [c.width, c.height];
          const pen = copy.getContext("2d", { willReadFrequently: true });
          pen.drawImage(c, 0, 0);
          const d = pen.getImageData(0, 0, c.width, c.height).data;
          return new Set(new Uint32Array(d.buffer)).size;
        }""",
        name,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_everything_is_there_and_fits(opened, width, scheme):
    page = opened(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert drawn(page, "film") > 20 and drawn(page, "tree") > 10
    assert page.locator("#charts svg").count() == 6
    assert page.locator("#doubts tbody tr").count() > 5
    assert "are wrong" in page.locator("#meaning").inner_text()
    assert "F1" in page.locator("body").inner_text()
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_keys_play_and_step(opened):
    page = opened()
    first = state(page)["frame"]
    page.keyboard.press("ArrowLeft")
    assert state(page)["frame"] == first - 1
    page.keyboard.press("ArrowRight")
    assert state(page)["frame"] == first
    page.keyboard.press("Home")
    assert state(page)["frame"] == 0
    page.select_option("#speed", "25")
    page.locator("#film").focus()
    page.keyboard.press(" ")
    assert state(page)["playing"]
    page.wait_for_timeout(400)
    assert state(page)["frame"] > 1
    page.keyboard.press(" ")
    stopped = state(page)
    page.wait_for_timeout(300)
    assert not state(page)["playing"] and state(page)["frame"] == stopped["frame"]
    page.locator("#play").focus()
    page.keyboard.press(" ")  # a press of the button, once
    page.wait_for_timeout(50)
    assert state(page)["playing"]
    page.locator("#play").click()
    assert not state(page)["playing"]
    page.keyboard.press("+")
    assert state(page)["scale"] > stopped["scale"]
    page.keyboard.press("0")
    assert state(page)["scale"] == pytest.approx(stopped["scale"])


def test_a_doubtful_link_is_looked_at(opened):
    page = opened()
    before = state(page)
    row = page.locator("#doubts tbody tr").nth(2)
    row.locator("button").click()
    now = state(page)
    assert now["doubt"] >= 0 and now["scale"] > before["scale"]
    to = row.locator("td").nth(2).inner_text()
    assert f"frame {now['frame']}" in to
    assert to in page.locator("#cell-text").inner_text()
    assert "%" in page.locator("#cell-text").inner_text()
    assert row.get_attribute("class") == "here"
    page.keyboard.press("n")
    assert page.locator("#doubts tr.here td").nth(2).inner_text() == (
        page.locator("#doubts tbody tr").nth(3).locator("td").nth(2).inner_text()
    )
    page.keyboard.press("Escape")
    assert state(page)["chosen"] == state(page)["doubt"] == -1
    texts = page.locator("#doubts tbody button").all_inner_texts()
    shown = [float(text.split()[-2]) for text in texts]
    assert shown == sorted(shown)
    assert page.said == []


def test_a_click_on_a_cell_and_on_the_lineage(opened):
    page = opened()
    where = page.evaluate(
        """() => {
          const box = document.getElementById("film").getBoundingClientRect();
          return [box.left + box.width / 2, box.top + box.height / 2, box.width];
        }"""
    )
    found = -1
    for dx in range(-200, 201, 20):  # some cell is hit
        page.mouse.click(where[0] + dx, where[1])
        found = max(found, state(page)["chosen"])
    assert found >= 0
    frame = state(page)["frame"]
    box = page.locator("#tree").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 15, box["y"] + 40)
    assert state(page)["frame"] > frame
    assert "track" in page.locator("#cell-text").inner_text()
    page.locator("#cell-text button", has_text="begin").click()
    assert state(page)["frame"] < 9
    for choice in ("track", "chance", "family"):
        page.select_option("#colour", choice)
        assert drawn(page, "film") > 20
    for choice in ("fit", "4", "20"):
        page.select_option("#row-height", choice)
        assert drawn(page, "tree") > 5
    page.check("#only-families")
    page.select_option("#tail", "100000")
    assert page.said == []


def test_sequences_gaps_depth_and_hostile_names(opened, tmp_path):
    rng = np.random.default_rng(0)
    frames = [Objects(np.arange(5), rng.random((5, 2)) * 50) for _ in range(4)]
    pairs = [
        FramePair(name, t, frames[t], frames[t + 1]) for name in (HOSTILE, "b") for t in range(3)
    ]
    links = [Link(HOSTILE, 0, 0, 1, "move", 2), Link("b", 1, 2, 3, "move")]
    (path,) = movie_page(assemble_tracks(pairs, links), tmp_path / "x.html", title=HOSTILE)
    page = opened(path=path)
    assert page.locator("#sequence option").all_inner_texts() == [HOSTILE, "b"]
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert "a cell was missed" in page.locator("#key").inner_text()
    page.select_option("#sequence", "1")
    assert state(page)["sequence"] == 1
    assert "missed" not in page.locator("#key").inner_text()
    assert page.said == []


def test_text_can_be_read(opened):
    """Text differs enough from what it stands on (WCAG AA), in both schemes."""
    for scheme in ("light", "dark"):
        page = opened(400, scheme)
        poor = page.evaluate(
            """() => {
              const rgb = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
              const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
                .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
              const behind = (node) => {
                for (let at = node; at; at = at.parentElement) {
                  const c = rgb(getComputedStyle(at).backgroundColor);
                  if (c.length === 3 || c[3] === 1) return c;
                }
                return [255, 255, 255];
              };
              const found = [];
              for (const node of document.querySelectorAll(
                  "p, td, th, h1, h2, button, label, dt, dd, figcaption, select, output")) {
                if (!node.innerText || !node.innerText.trim()) continue;
                const a = light(rgb(getComputedStyle(node).color)), b = light(behind(node));
                const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                if (contrast < 4.5 || parseFloat(getComputedStyle(node).fontSize) < 11) {
                  found.push([node.tagName, node.innerText.slice(0, 40), contrast]);
                }
              }
              return found;
            }"""
        )
        assert poor == []


def test_every_control_has_a_name(opened):
    page = opened()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, canvas, [tabindex]")]
          .filter((n) => !(n.getAttribute("aria-label") || n.innerText?.trim() || n.labels?.length))
          .map((n) => n.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert json.loads(page.locator("script#movie").inner_text())["likely"] is True
