"""Studies made of experiments: what their report says of a log, and of one that was changed."""

from __future__ import annotations

import pytest

from studies.experiments import Computation, Experiment, study_of
from studies.folder import LOG, Pool
from studies.log import Log
from trellis import DataError
from trellis.progress import Reporter

SQUARES = Computation("squares", lambda x, protocol: {"square": x * x})
STUDY = study_of(
    "Squares",
    [
        Experiment(
            "squares",
            "Small squares",
            lambda protocol: [SQUARES.call("3", protocol, 3)],
            lambda protocol, records: f"3² = {SQUARES.of(records, protocol, 3)['square']:.0f}",
        )
    ],
)
RUN = {
    "key": "run", "protocol": "quick", "tasks": ["squares"], "versions": {"Trellis": "1"},
    "machine": "abacus", "n_cores": 1, "seconds": 2.0,
}  # fmt: skip
SQUARE = {"key": "squares/quick/3", "square": 9}


def written(folder, *records):
    log = Log(folder / LOG)
    for record in records:
        log.add(record)
    return folder


def test_a_report_from_the_log(tmp_path):
    STUDY.render(written(tmp_path, RUN, SQUARE))
    assert (tmp_path / "report.md").read_text("utf-8") == (
        "# Squares\n\nProtocol: quick; Trellis 1; abacus; 2 s on 1 cores.\n\n"
        "## Small squares\n\n3² = 9\n"
    )


@pytest.mark.parametrize(
    ("run", "square", "message"),
    [
        ({}, {"square": None}, r"holds records that do not fit together \(TypeError: "),
        ({}, {"square": "nine"}, r"holds records that do not fit together \(ValueError: "),
        ({}, {"square": [9]}, r"holds records that do not fit together \(TypeError: "),
        ({}, {"square": ...}, r"holds records that do not fit together \(KeyError: 'square'\)"),
        ({"versions": ...}, {}, r"do not fit together \(KeyError: 'versions'\)"),
        ({"versions": 3}, {}, r"do not fit together \(AttributeError: "),
        ({"tasks": ...}, {}, r"do not fit together \(KeyError: 'tasks'\)"),
        ({"tasks": 3}, {}, r"do not fit together \(TypeError: "),
        ({"seconds": "x"}, {}, r"do not fit together \(ValueError: "),
        ({"machine": ...}, {}, r"do not fit together \(KeyError: 'machine'\)"),
        ({"protocol": ...}, {}, r"log\.jsonl holds no run; start one"),
        ({"protocol": "slow"}, {}, "the run was not finished; go on from it with resume"),
        ({"protocol": [1]}, {}, r"do not fit together \(TypeError: "),
    ],
)
def test_records_that_were_changed(tmp_path, run, square, message):
    changed = [
        {name: value for name, value in (record | change).items() if value is not ...}
        for record, change in ((RUN, run), (SQUARE, square))
    ]
    with pytest.raises(DataError, match=message):
        STUDY.render(written(tmp_path, *changed))
    assert not (tmp_path / "report.md").exists()


SUMS = Computation("sums", lambda protocol, records: {"sum": sum(r["square"] for r in records)})
NEEDED = [SQUARES.call("", "quick", x) for x in (2, 3)]


def test_calls_get_the_records_they_need(tmp_path):
    log = Log(tmp_path / LOG)
    total = SUMS.call("", "quick", needs=NEEDED)
    Pool(log, 1, Reporter(False)).complete([total, *NEEDED])  # in whatever order
    assert log.records[total.key]["sum"] == 13
    # What the log has is neither computed again nor missing for what comes later.
    del log.records[total.key]
    log.records[NEEDED[0].key]["square"] = 100
    Pool(log, 1, Reporter(False)).complete([*NEEDED, total])
    assert log.records[total.key]["sum"] == 109
