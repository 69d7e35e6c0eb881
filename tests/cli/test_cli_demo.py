"""``trellis demo``: the page, what the terminal says, and wrong command lines."""

from __future__ import annotations

import webbrowser
from types import SimpleNamespace

import pytest

from trellis.demo import page
from trellis.demo.elements import summary
from trellis.errors import DataError


@pytest.fixture
def quick(monkeypatch):
    """Panels that take no time."""

    def load(name):
        def panel(seed):
            if name == "map":
                raise DataError("there is no land")
            return summary(f"{name} with seed {seed}: " + "found a lot " * 12)

        return SimpleNamespace(TITLE=f"On {name}", panel=panel, WARM=())

    monkeypatch.setattr(page, "load", load)
    monkeypatch.setattr(page, "compile_kernels", lambda names: 1.5)
    monkeypatch.setattr(page, "_start", lambda *_: None)


def test_page_and_terminal(run, quick, tmp_path):
    folder = tmp_path / "new" / "folder"
    result = run("demo", "--panels", "cells,words,cells", "--seed", "7", "--out", folder)
    assert result.code == 0
    assert [p.name for p in folder.iterdir()] == ["index.html"]
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert text.index("cells with seed 7") < text.index("words with seed 7")
    assert text.count("<section") == 2
    lines = result.out.splitlines()
    assert lines[0] == "On cells"
    assert all(len(line) <= 92 for line in lines)
    assert "words with seed 7" in result.out
    assert result.err[1] == "... ready after 1.5 s"
    assert result.err[-1].endswith(str(folder / "index.html"))


def test_a_panel_that_fails(run, quick, tmp_path):
    result = run("demo", "--panels", "map,words", "--out", tmp_path)
    assert result.code == 1
    assert "failed: there is no land" in result.out
    assert "words with seed 0" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_open(run, quick, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    run("demo", "--panels", "words", "--out", tmp_path)
    assert opened == []
    run("demo", "--panels", "words", "--out", tmp_path, "--open")
    assert opened == [(tmp_path / "index.html").resolve().as_uri()]


def test_errors_before_the_work(run, fails, quick, tmp_path):
    folder = tmp_path / "out"
    message = fails("demo", "--seed", -1, "--out", folder)
    assert message == "--seed must be at least 0, got -1"
    (tmp_path / "file").write_text("")
    message = fails("demo", "--out", tmp_path / "file")
    assert message == f"{tmp_path / 'file'} is a file; name a folder to write to"
    assert "Not a directory" in fails("demo", "--out", tmp_path / "file" / "deeper")
    result = run("demo", "--panels", "moon", "--out", folder)
    assert result.code == 2
    assert "there is no panel 'moon'; there are words, cells" in result.err[-1]
    assert not folder.exists()
