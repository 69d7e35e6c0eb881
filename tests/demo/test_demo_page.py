"""The page: panels in their order, side by side, with what went wrong; nothing from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from trellis.demo import page as module
from trellis.demo.elements import summary
from trellis.demo.page import PANELS, Made, load, make_page, make_panels, run_panel
from trellis.errors import DataError, ParameterError


@pytest.fixture
def panels(monkeypatch):
    """Panels that take no time, and are made in this process."""

    def made(name):
        def panel(seed):
            if name == "map":
                raise DataError("no map <here>")
            return summary(f"{name} {seed}")

        return SimpleNamespace(TITLE=f"Title of {name}", panel=panel, WARM=())

    monkeypatch.setattr(module, "load", made)
    monkeypatch.setattr(sys, "executable", "")


def test_every_panel_keeps_the_protocol():
    for name in PANELS:
        found = load(name)
        assert found.TITLE
        assert callable(found.panel)
        assert {part.__name__ for part in found.WARM} <= set(module._COMPILED)
    assert sorted(module._SLOWEST) == sorted(PANELS)


def test_unknown_panels_are_refused():
    with pytest.raises(DataError, match="there is no panel 'moon'; there are words, cells"):
        load("moon")
    with pytest.raises(DataError, match="there is no panel 'moon'"):
        make_panels(["moon"], 0)
    with pytest.raises(ParameterError, match="seed must be"):
        run_panel("timing", -1)


def test_panels_come_in_the_order_asked_for(panels):
    told = []
    found = make_panels(["timing", "words"], 3, told.append)
    assert [p.summary for p in found] == ["timing 3", "words 3"]
    assert sorted(told, key=lambda p: p.name) == found


def test_one_that_fails_does_not_take_the_others_with_it(panels):
    found = make_panels(["words", "map"], 0)
    assert [p.error for p in found] == ["", "no map <here>"]
    assert found[1].summary == "failed: no map <here>"
    text = make_page(found, 2.0, 1.0)
    assert "words 0" in text
    assert "could not be made: no map &lt;here&gt;" in text


def test_processes_of_their_own(monkeypatch):
    """A panel comes back from another Python as it was made there."""
    code = (
        "import json, sys; sys.path[:] = {path!r}; "
        "from trellis.demo.page import Made; from dataclasses import asdict; "
        "open({file!r}, 'w').write(json.dumps(asdict(Made('words', 'Ü', '<p>é</p>', 0.5))))"
    )

    def start(name, seed, path):
        source = code.format(path=sys.path, file=str(path))
        return subprocess.Popen([sys.executable, "-c", source])

    monkeypatch.setattr(module, "_start", start)
    assert make_panels(["words"], 0) == [Made("words", "Ü", "<p>é</p>", 0.5)]


def test_a_process_that_dies_is_replaced(panels, monkeypatch):
    def start(name, seed, path):
        return subprocess.Popen([found, "-c", "raise SystemExit(3)"])

    found = sys._base_executable
    monkeypatch.setattr(module, "_start", start)
    assert make_panels(["words"], 1)[0].summary == "words 1"


def test_no_process_outlives_an_interrupt(panels, monkeypatch):
    started = []

    def start(name, seed, path):
        started.append(subprocess.Popen([sys._base_executable, "-c", "input()"],
                                        stdin=subprocess.PIPE))  # fmt: skip
        if len(started) == 2:
            raise KeyboardInterrupt
        return started[-1]

    monkeypatch.setattr(module, "_start", start)
    monkeypatch.setattr(module, "_cores", lambda: 2)
    with pytest.raises(KeyboardInterrupt):
        make_panels(["words", "cells"], 0)
    assert started[0].poll() is not None
    started[1].kill()
    for process in started:
        process.communicate()


def test_the_page_needs_nothing_from_outside():
    found = [Made("words", "Words & more", "<p>x</p>", 1.25), Made("map", "Map", "<p>y</p>", 2.0)]
    text = make_page(found, 30.4, 12.6)
    assert re.findall(r'<section class="panel" id="(\w+)">', text) == ["words", "map"]
    assert re.findall(r'<a href="#(\w+)">', text) == ["words", "map"]
    assert "<h2>Words &amp; more</h2>" in text
    assert "in 30 s, of which\n13 s went" in text
    assert not re.search(r'(src|href)="(?!#)|@import|url\(|https?:', text)
