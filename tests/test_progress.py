"""Progress lines: on a terminal only, and always in the log."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from trellis import ChainCRF
from trellis.progress import Reporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "enabled", "always", "shown"),
    [
        (Terminal, True, False, True),
        (Terminal, False, False, False),
        (Terminal, False, True, False),
        (io.StringIO, True, False, False),
        (io.StringIO, True, True, True),
    ],
)
def test_lines_are_shown_where_they_are_wanted(stream, enabled, always, shown):
    out = stream()
    reporter = Reporter(enabled, always=always, stream=out)
    reporter.line("pass 1")
    reporter.line("100 % done")
    assert out.getvalue() == ("pass 1\n100 % done\n" if shown else "")


def test_lines_go_to_standard_error(monkeypatch, capsys):
    Reporter(always=True).line("hello")
    assert capsys.readouterr() == ("", "hello\n")
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    Reporter(always=True).line("nobody hears")
    Reporter().line("nobody hears")


def test_everything_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="trellis"):
        Reporter(enabled=False).line("100 % done")
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("trellis", "INFO", "100 % done")
    ]


def test_a_fit_says_one_line_a_pass(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    data = [["a", "b"]] * 4, [["A", "B"]] * 4
    ChainCRF(max_passes=3, tol=-1.0, verbose=True, random_state=0).fit(*data, dev=data)
    lines = terminal.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("pass   1  objective ") and "change" not in lines[0]
    assert "change" in lines[2] and "dev " in lines[2] and lines[2].endswith(" s")
    ChainCRF(max_passes=3, random_state=0).fit(*data)
    assert len(terminal.getvalue().splitlines()) == 3
    assert capsys.readouterr().out == ""
