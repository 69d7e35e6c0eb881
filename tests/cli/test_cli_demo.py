"""``trellis demo`` on a few thousand identifiers: table, figure, and life without matplotlib."""

from __future__ import annotations

import re
import struct
import sys

import pytest

from trellis.cli import demo
from trellis.cli.demo import Run, baseline, format_table
from trellis.datasets.roles import Roles
from trellis.solvers import PassRecord

ROW = re.compile(r" +(1|[\d.]+|whole) +([\d.]+) % +([\d.]+) +([\d.]+) s(  no .*)?")


def check_table(text):
    rows = [ROW.fullmatch(line) for line in text.splitlines()]
    sizes = [row[1] for row in rows if row]
    assert sizes == ["1", "1.5", "2.5", "5.5", "10.5", "20.5", "whole"]
    assert all(0 < float(row[2]) < 100 for row in rows if row)
    assert re.search(r"most frequent role of each identifier: [\d.]+ %\n\Z", text)


def test_table_and_curves(run, tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new" / "folder"
    result = run("demo", "--tokens", "2000", "--passes", "2", "--out", folder)
    assert result.code == 0
    check_table(result.out)
    assert sorted(p.name for p in folder.iterdir()) == ["curves.png", "table.txt"]
    assert (folder / "table.txt").read_text(encoding="utf-8") == result.out
    png = (folder / "curves.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert png[12:16] == b"IHDR"
    width, height = struct.unpack(">II", png[16:24])
    assert width > 800
    assert height > 300
    assert png[-8:-4] == b"IEND"
    assert re.match(r"\d+ identifiers of \d+ modules: \d+ to train", result.err[1])
    assert result.err[-1] == f"table.txt and curves.png are in {folder}"


def test_without_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--tokens", "2000", "--passes", "1", "--out", tmp_path)
    assert result.code == 0
    check_table(result.out)
    assert [p.name for p in tmp_path.iterdir()] == ["table.txt"]
    assert result.err[-1] == f"table.txt is in {tmp_path} (install matplotlib for the curves)"


def test_same_seed_same_scores(run, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_SIZES", (2.5,))
    monkeypatch.setattr(demo, "draw", lambda *_: False)

    def score(seed):
        options = ["--tokens", "2000", "--passes", "2", "--seed", seed, "--out", tmp_path]
        return re.search(r"2.5 +([\d.]+) %", run("demo", *options).out)[1]

    assert score(1) == score(1)


def test_baseline_is_the_most_frequent_role():
    train = Roles([["f", "x", "x", "f", "x"]], [["A", "B", "C", "A", "B"]], ["m"])
    test = Roles([["f", "x", "x", "new"]], [["A", "B", "C", "A"]], ["n"])
    # f → A right, x → B once right, new → the most frequent of all, A or B (both twice: A first).
    assert baseline(train, test) == 3 / 4


def test_table_of_numbers():
    def record(number, seconds):
        return PassRecord(number, 10.0, None, 0.5, seconds)

    runs = [Run(1.0, [record(1, 0.1), record(2, 0.3)], 0.25), Run(None, [record(1, 2.0)], 0.5)]
    _, _, _, first, second, _, last = format_table(runs, 0.125).splitlines()
    assert " ".join(first.split()) == "1 25.00 % 0.200 0.40 s no edges in training"
    assert " ".join(second.split()) == "whole 50.00 % 2.000 2.00 s no decomposition"
    assert last == "  most frequent role of each identifier: 12.50 %"


def test_errors_before_the_work(fails, tmp_path):
    folder = tmp_path / "out"
    for option, least in (("tokens", 1), ("passes", 1), ("seed", 0)):
        message = fails("demo", f"--{option}", least - 1, "--out", folder)
        assert message == f"--{option} must be at least {least}, got {least - 1}"
    (tmp_path / "file").write_text("")
    message = fails("demo", "--out", tmp_path / "file")
    assert message == f"{tmp_path / 'file'} is a file; name a folder to write to"
    assert not folder.exists()


def test_too_few_tokens(run, tmp_path):
    result = run("demo", "--tokens", "10", "--out", tmp_path / "out")
    assert result.code == 1
    assert result.err[-1].startswith("trellis: error: --tokens 10 is too little: all come from ")
    assert not (tmp_path / "out").exists()
