"""Guidance by coverage: what is watched, and a few runs where atheris is installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from fuzz import guided
from fuzz.readers import FAMILIES, Family


def test_readers_are_watched_and_kernels_are_not() -> None:
    unwatched = guided.unwatched_modules()
    assert {"trellis", "trellis.kernels", "trellis.kernels.text", "trellis.models.crf"} <= set(
        unwatched
    )
    assert not {"trellis.corpus", "trellis.corpus.conll", "trellis.files.text"} & set(unwatched)


def test_without_atheris_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["guided", "--runs", "1"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert guided.main() == 0
    assert "atheris is not installed here" in capsys.readouterr().out


def test_unknown_families_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    for words, message in ((["no"], "no family no"), (["--no"], "unknown: --no")):
        monkeypatch.setattr(sys, "argv", ["guided", *words])
        with pytest.raises(SystemExit):
            guided.main()
        assert message in capsys.readouterr().err


def test_some_runs(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    text, held = guided.run_family("scheme", tmp_path, runs=300)
    assert held and "300 runs" in text and "places covered" in text
    assert any((tmp_path / "corpus").iterdir())


def test_a_family_has_seeds_of_its_own() -> None:
    assert all(isinstance(family, Family) and family.starts() for family in FAMILIES.values())
