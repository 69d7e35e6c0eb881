"""The demo as users meet it: made by the command line, opened from the disk in a real browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trellis.demo import PANELS

pytestmark = pytest.mark.extras

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
TEXTS = ["restorethespacesinthistext", "a", "zzzzqqx", "itisnowhere", "returnthefirstlineofthefile"]


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
    """The whole demo, as ``trellis demo`` makes it; the folder, and what the terminal showed."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "trellis", "demo", "--out", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return folder, ended


@pytest.fixture
def opened(browser, made):
    """Open the page: width, colour scheme; what the console said is in ``page.said``."""
    contexts = []

    def open_page(width=1280, scheme="light", **more):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **more
        )
        contexts.append(context)
        page = context.new_page()
        page.said = []
        page.asked = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(Path(made[0], "index.html").as_uri())
        page.wait_for_timeout(300)
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_files_and_terminal(made):
    folder, ended = made
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    assert "failed" not in ended.stdout
    assert str(folder / "index.html") in ended.stderr.splitlines()[-1]
    assert (folder / "index.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_panel_is_there_and_fits(opened, width, scheme):
    page = opened(width, scheme)
    assert page.locator("section.panel").count() == len(PANELS)
    for name in PANELS:
        panel = page.locator(f"section#{name}")
        assert panel.locator("p.summary").inner_text()
        assert panel.locator("pre code").inner_text()
        assert "could not be made" not in panel.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(opened, scheme):
    """Text differs enough from what it stands on (WCAG AA), and none is tiny on a phone."""
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
              "p, td, th, h1, h2, h3, a, code, button, figcaption, label, summary")) {
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


def test_the_box_answers(opened):
    page = opened()
    words = page.locator("#words-answer .word")
    assert words.count() > 3
    page.fill("#words-box", "readthenextline")
    said = ["".join(word.locator("button").all_inner_texts()) for word in words.all()]
    assert said == ["read", "the", "next", "line"]
    assert "%" in words.first.inner_text()
    before = page.locator("#words-why").inner_text()
    words.nth(3).locator("button").nth(1).click()
    assert page.locator("#words-why").inner_text() != before
    page.fill("#words-box", "123 !?")
    assert words.count() == 0
    assert "Type some letters" in page.locator("#words-answer").inner_text()
    page.fill("#words-box", "x" * 500)
    page.locator("button.try").first.click()
    assert words.count() > 3
    assert page.said == []


def test_the_box_is_the_model_of_the_code(opened):
    """Words, probabilities and reasons are those of the model in Python, up to rounding."""
    from trellis.demo.panels.words import example

    crf = example(0)[2]
    page = opened()
    for text in TEXTS:
        shown = page.evaluate("(text) => window.trellisWords(text)", text)
        (spans,) = crf.predict_spans([list(text)])
        assert [(w["begin"], w["end"]) for w in shown["words"]] == [(a, b) for _, a, b, _ in spans]
        chances = [chance for *_, chance in spans]
        assert [w["chance"] for w in shown["words"]] == pytest.approx(chances, abs=2e-3)
        (marginals,) = crf.predict_marginals([list(text)])
        begins = marginals[:, [list(crf.classes_).index(y) for y in "BS"]].sum(axis=1)
        assert np.abs(begins - shown["begins"]).max() < 2e-3
        for ours, theirs in zip(crf.explain([list(text)]).positions, shown["why"], strict=True):
            assert (ours.label, ours.rival) == (theirs["label"], theirs["rival"])
            assert theirs["transitions"] == pytest.approx(ours.transitions, abs=2e-2)
            parts = dict(map(tuple, theirs["parts"]))
            for name, value in ours.features[:3]:
                assert parts[name] == pytest.approx(value, abs=2e-2)


def test_code_can_be_copied(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#words button.copy").click()
    page.wait_for_timeout(100)
    assert page.locator("#words button.copy").inner_text() in ("copied", "press Ctrl+C")
