"""Records of benchmarks: written by runs that end well, and by no others; they name no machine."""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import defaults, records
from benchmarks.records import Record, Shown, command_of, part_of, raw
from benchmarks.side_by_side import Seconds, Table, short

ROOT = Path(__file__).parents[2]

TOY = '''\
"""A toy."""

import os
import signal
import sys
from pathlib import Path

from benchmarks import options, records
from benchmarks.side_by_side import Seconds, Table

records.FOLDER = Path(__file__).parent / "records"
options.warmup = lambda: None
args = options.begin(
    __doc__, rounds=(3, 1), only=(["a", "b"], ["a"]), log=("", ""), end=("well", "well")
)
table = Table("Toy", "what", "seconds", "rounds", "share")
table.add("one", 0.123456, Seconds([1.0, 3.0]), float("nan"))
table.show()
other = Table("Elsewhere", "what", "seconds")
other.add("two", 1.0)
other.show(measured=False)
if args.end == "error":
    raise RuntimeError("no more")
if args.end == "killed":
    os.kill(os.getpid(), signal.SIGTERM)
if args.end == "interrupted":
    raise KeyboardInterrupt
if os.fork() == 0:  # a child that ends writes nothing
    records.FOLDER = records.FOLDER / "child"
    sys.exit()
os.wait()
'''


@pytest.fixture
def toy(tmp_path):
    """Run a benchmark with some words; returns how it ended and the names of all records."""
    (tmp_path / "toy.py").write_text(TOY)

    def call(*words: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        command = [sys.executable, str(tmp_path / "toy.py"), *words]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        found = (path.relative_to(folder) for path in folder.rglob("*"))
        return ended, sorted(map(str, found))

    folder = tmp_path / "records"
    return call


def test_a_run_that_ends_well_is_recorded(toy, tmp_path):
    ended, found = toy("--record", "--rounds", "2", f"--log={tmp_path}/rows.jsonl")
    assert ended.returncode == 0, ended.stderr
    assert "recorded: toy.json; now python -m benchmarks.page" in ended.stderr
    assert found == ["toy.json"]
    record = Record.read(tmp_path / "records" / "toy.json")
    assert (record.name, record.part) == ("toy", "")
    assert record.command == "python -m benchmarks.toy --rounds 2 --log=rows.jsonl"
    assert record.tables == [
        Shown(
            "Toy",
            ["what", "seconds", "rounds", "share"],
            [["one", "0.123", "2.00 (1.00–3.00)", "nan"]],
            [[None, 0.123456, [1.0, 3.0], None]],
        )
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date)
    assert 0 <= record.seconds < 100
    assert record.machine.keys() == {"processor", "cores", "memory_gb", "system"}
    assert record.machine["cores"] >= 1
    assert {"Python", "NumPy", "Numba", "SciPy", "scikit-learn"} <= record.versions.keys()
    text = (tmp_path / "records" / "toy.json").read_text()
    for name in (socket.gethostname(), getpass.getuser()):
        assert not re.search(rf"\b{re.escape(name)}\b", text)
    for folder in (tmp_path, ROOT, Path.home()):
        assert str(folder) not in text
    assert "/" not in record.command


def test_parts_have_records_of_their_own(toy):
    assert toy("--record", "--only", "a")[1] == ["toy.only-a.json"]
    assert toy("--record", "--only", "a", "b")[1] == ["toy.json", "toy.only-a.json"]


def test_nothing_is_recorded_unless_asked(toy):
    ended, found = toy()
    assert (ended.returncode, found) == (0, [])


@pytest.mark.parametrize("end", ["error", "killed", "interrupted"])
def test_a_run_cut_off_leaves_the_old_record(toy, tmp_path, end):
    (tmp_path / "records").mkdir()
    old = tmp_path / "records" / f"toy.end-{end}.json"
    old.write_text("as it was")
    ended, found = toy("--record", "--end", end)
    assert ended.returncode in (1, -signal.SIGTERM, -signal.SIGINT, 130)
    assert found == [old.name]
    assert old.read_text() == "as it was"


def test_small_figures_are_not_recorded(toy):
    ended, found = toy("--record", "--small")
    assert (ended.returncode, found) == (2, [])
    assert "--record keeps no figures of --small, which mean nothing" in ended.stderr


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({}, ""),
        ({"rounds": 3, "seeds": 2, "log": "x", "peer_python": "y"}, ""),
        ({"only": ["nodes"]}, "only-nodes"),
        ({"only": ["nodes", "grids"], "no_peers": True}, "only-nodes-grids.no-peers"),
        ({"sizes": [1e5, 0.5], "only": "k best"}, "sizes-100000-0.5.only-k-best"),
        ({"part": "../away"}, "part-..-away"),
    ],
)
def test_parts(given, part):
    assert part_of(given) == part


def test_command():
    words = ["--record", "--only", "k best", "--peer-python", "/home/me/bin/python", "--log=a/b"]
    assert command_of("growth", words) == (
        "python -m benchmarks.growth --only 'k best' --peer-python python --log=b"
    )


def test_raw():
    assert [raw(cell) for cell in (1, 0.5, "1", None, float("inf"))] == [1, 0.5, None, None, None]
    assert raw(Seconds([1.0, float("nan")])) == [1.0, None]


def test_commit():
    name, changed = records.commit()
    assert re.fullmatch("[0-9a-f]{7,}|", name)
    assert changed in (True, False)


def test_no_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert records.commit() == ("", False)


# ------------------------------------------------------------------------- reading


def written(folder: Path, file: str, **changes: object) -> None:
    known = Record("toy", "", "c", "abc", False, "2026-01-01", {}, {}, 1.0, [])
    (folder / file).write_text(json.dumps(json.loads(known.text()) | changes))


def test_records_are_read_in_order(tmp_path):
    written(tmp_path, "toy.quick.json", part="quick")
    written(tmp_path, "toy.json")
    written(tmp_path, "an.json", name="an")
    assert [r.file for r in records.records(tmp_path)] == ["an.json", "toy.json", "toy.quick.json"]
    assert records.records(tmp_path / "none") == []


def test_what_is_no_record(tmp_path):
    for text in ("{", "[]", "{}", '{"tables": [{}]}', '{"tables": [], "more": 1}'):
        (tmp_path / "toy.json").write_text(text)
        with pytest.raises(ValueError, match=r"records/toy\.json is no record .* with --record"):
            records.records(tmp_path)


def test_a_record_under_another_name(tmp_path):
    written(tmp_path, "other.json")
    with pytest.raises(ValueError, match=r"other\.json holds the record toy\.json; give it its"):
        records.records(tmp_path)


def test_cells_are_the_numbers_behind_them():
    for record in records.records():
        for table in record.tables:
            for row, numbers in zip(table.rows, table.numbers, strict=True):
                for cell, number in zip(row, numbers, strict=True):
                    if isinstance(number, int | float):
                        assert cell == short(number), (record.file, table.title, row)


def test_tables_keep_numbers():
    table = Table("Title", "what", "seconds")
    table.add("a", 0.25)
    assert table.numbers == [[None, 0.25]]


def test_rows_of_an_earlier_run_are_not_recorded(tmp_path, monkeypatch):
    log = tmp_path / "rows.jsonl"
    log.write_text('["a case", ["a", "row"]]\n')
    args = Namespace(record=True, log=str(log), no_peers=True)
    monkeypatch.setattr(defaults, "begin", lambda *_, **__: args)
    with pytest.raises(ValueError, match="--log holds rows of an earlier run; take a new one"):
        defaults.main()


def test_benchmarks_end_by_exceptions():
    """A record is not written where an error ends the run; ``sys.exit`` would go unnoticed."""
    for path in (ROOT / "benchmarks").glob("*.py"):
        assert not re.search(r"sys\.exit|SystemExit|os\._exit", path.read_text("utf-8")), path.name
