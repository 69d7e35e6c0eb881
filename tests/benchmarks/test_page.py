"""The page of benchmarks and the README's numbers are what the records say, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import page as pages
from benchmarks.page import (
    BEGIN,
    END,
    LINES,
    PAGE,
    README,
    YARDSTICKS,
    numbers,
    page,
    with_numbers,
    yardsticks,
)  # fmt: skip
from benchmarks.records import Record, Shown, records

TABLE = Shown(
    "file to trained model, one core",
    ["system", "F1", "seconds (median)", "ratio (range over rounds)"],
    [
        ["python-crfsuite L-BFGS", "90.00", "80.0", ""],
        ["Trellis CRF, n' = 5.5", "91.50", "2.50", ""],
        ["Trellis CRF", "91.00", "2.00", "L-BFGS takes 40.00× (39.00–41.00)"],
    ],
    [[None] * 4] * 3,
)
CHUNKING = Record(
    "chunking",
    "",
    "python -m benchmarks.chunking --rounds 3",
    "abc1234",
    False,
    "2026-01-02",
    {"processor": "Some CPU", "cores": 2, "memory_gb": 8, "system": "Linux"},
    {"Python": "3.11.7", "NumPy": "2.0", "python-crfsuite": "0.9.12", "pytoulbar2": "1.4"},
    600.0,
    [TABLE],
)


def test_the_page_is_made_of_the_records():
    assert PAGE.read_text("utf-8") == page(records()), "run python -m benchmarks.page"


def test_the_numbers_of_the_readme_are_made_of_the_records():
    readme = README.read_text("utf-8")
    assert readme == with_numbers(readme, records()), "run python -m benchmarks.page"


def test_the_yardsticks_of_the_demo_are_made_of_the_records():
    assert YARDSTICKS.read_text("utf-8") == yardsticks(records()), "run python -m benchmarks.page"


def test_every_benchmark_has_a_place():
    page([])  # says which has none, and what to do


def test_a_benchmark_without_a_place(monkeypatch):
    monkeypatch.setattr(pages, "benchmarks", lambda: ["chunking", "new"])
    with pytest.raises(ValueError, match=r"benchmarks\.new has no place .* SECTIONS of benchmarks"):
        page([])


def test_a_record_without_a_benchmark():
    with pytest.raises(ValueError, match=r"records/gone\.only-a\.json is of a benchmark that is n"):
        page([replace(CHUNKING, name="gone", part="only-a")])


def test_a_section():
    text = page([CHUNKING])
    empty = replace(TABLE, title="empty", rows=[])
    assert text == page([replace(CHUNKING, tables=[TABLE, empty])])
    section = text[text.index("## Tagging") : text.index("## Not recorded")]
    assert "### Chunking, from file to model and from text to labels\n\nCoNLL-2000 chunk" in section
    assert "python -m benchmarks.chunking --quick" not in text  # commands of the docstring
    assert "**File to trained model, one core**\n\n| system | F1 |" in section
    assert "| Trellis CRF | 91.00 | 2.00 | L-BFGS takes 40.00× (39.00–41.00) |" in section
    assert section.endswith(
        "<sub>`python -m benchmarks.chunking --rounds 3` · commit abc1234 · "
        "Some CPU, 2 cores, 8 GB, Linux · Python 3.11.7, NumPy 2.0, python-crfsuite 0.9.12 · "
        "2026-01-02 · 10 min</sub>\n\n"
    )
    missing = text[text.index("## Not recorded") :]
    assert "benchmarks.chunking" not in missing
    assert "| `python -m benchmarks.ocr` | Handwritten words (OCR letters)" in missing
    assert "## Experts" not in text  # nothing of it is recorded


def test_what_the_source_says():
    one = {**CHUNKING.machine, "cores": 1}
    told = list(pages.source(replace(CHUNKING, commit="", changed=True, machine=one, seconds=9.6)))
    assert told[1:3] == ["commit unknown, changed", "Some CPU, 1 core, 8 GB, Linux"]
    assert told[-1] == "10 s"


def test_several_records_of_one_benchmark():
    quick = replace(CHUNKING, part="quick", command="python -m benchmarks.chunking --quick")
    text = page([CHUNKING, quick])
    assert text.count("### Chunking") == 1
    assert text.index("chunking --rounds 3`") < text.index("chunking --quick`")


def test_long_tables_are_folded_and_cells_are_text():
    rows = [[f"{i}", "a|b", "+1 [0, 2]*", "<1"] for i in range(30)]
    text = page([replace(CHUNKING, tables=[replace(TABLE, title="a long one", rows=rows)])])
    assert "<details><summary><b>A long one</b> (30 rows)</summary>\n\n| system" in text
    assert "| 29 | a\\|b | +1 [0, 2]\\* | \\<1 |\n\n</details>" in text


# ------------------------------------------------------------------------- numbers


def test_no_records_no_numbers():
    assert numbers([]) == ""


def test_numbers():
    row, *_ = [line for line in numbers([CHUNKING]).splitlines() if "chunker" in line]
    assert row == (
        "| CoNLL-2000 chunker, from file to model | ChainCRF: 2.00 s, F1 91.00 | "
        "python-crfsuite 0.9.12, L-BFGS: 80.0 s, F1 90.00 | "
        "`python -m benchmarks.chunking --rounds 3`, 2026-01-02 |"
    )
    assert numbers([CHUNKING]).count("measured by") == 1
    assert "tutorial" not in numbers([CHUNKING])


def test_absent_contestants_are_left_out():
    alone = replace(CHUNKING, tables=[replace(TABLE, rows=TABLE.rows[1:])])
    assert "| ChainCRF: 2.00 s, F1 91.00 |  |" in numbers([alone])
    assert numbers([replace(CHUNKING, tables=[replace(TABLE, rows=TABLE.rows[:2])])]) == ""


def test_versions_that_rows_name():
    names = ("Trellis, trained", "laptrack 0.17.1, defaults", "laptrack 0.17.1")
    rows = [["cell migration, step 1", name, f"0.{9 - i}", "0.8"] for i, name in enumerate(names)]
    table = Shown(
        "Tracking of dividing cells", ["movie", "tracker", "link F1", "division F1"], rows, rows
    )
    told = numbers([replace(CHUNKING, name="tracking", tables=[table])])
    assert "| TrackingModel: 0.9 / 0.8 | LapTrack 0.17.1: 0.7 / 0.8 |" in told


def test_a_part_may_hold_the_line():
    other = replace(CHUNKING, part="a", tables=[])
    assert "91.00" in numbers([other, CHUNKING])


def test_lines_name_benchmarks():
    assert {line.benchmark for line in LINES} <= set(pages.benchmarks())


def test_numbers_are_put_between_the_marks():
    before = f"# Title\n\n{BEGIN}\nold\n{END}\n\nrest\n"
    after = with_numbers(before, [CHUNKING])
    assert after.startswith(f"# Title\n\n{BEGIN}\n|") and after.endswith(f"\n{END}\n\nrest\n")
    assert "old" not in after
    assert with_numbers(after, [CHUNKING]) == after


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}\n{BEGIN}\n"])
def test_marks_are_missing(text):
    with pytest.raises(ValueError, match=r"README\.md needs a line «<!-- numbers: .* below it one"):
        with_numbers(text, [])


def test_writing(tmp_path, monkeypatch):
    for name in ("PAGE", "README", "YARDSTICKS"):
        monkeypatch.setattr(pages, name, tmp_path / name)
    monkeypatch.setattr(pages, "records", lambda: [CHUNKING])
    (tmp_path / "README").write_text(f"{BEGIN}\n{END}\n")
    pages.main()
    assert (tmp_path / "PAGE").read_text("utf-8") == page([CHUNKING])
    assert "91.00" in (tmp_path / "README").read_text("utf-8")
    assert "91.00" in (tmp_path / "YARDSTICKS").read_text("utf-8")


def test_yardsticks():
    (found,) = json.loads(yardsticks([replace(CHUNKING, name="door"), CHUNKING]))
    assert found["rows"] == TABLE.rows
    assert found["headings"] == TABLE.headings
    assert found["sentence"].endswith(
        "ChainCRF: 2.00 s, F1 91.00; python-crfsuite 0.9.12, L-BFGS: 80.0 s, F1 90.00."
    )
    assert found["source"].startswith("python -m benchmarks.chunking --rounds 3, commit abc1234, ")
    without_peer = replace(CHUNKING, tables=[replace(TABLE, rows=TABLE.rows[1:])])
    assert json.loads(yardsticks([without_peer])) == []
