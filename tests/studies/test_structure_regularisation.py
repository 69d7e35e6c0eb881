"""A tiny reproduction from end to end: what it writes, how it resumes, what it refuses."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace

import pytest
from tiny import N_FITS, TINY

from studies.structure_regularisation import figures, fits, run
from studies.structure_regularisation.figures import FIGURES
from studies.structure_regularisation.methods import QUESTIONS
from studies.structure_regularisation.protocol import FIXED, PROTOCOLS
from studies.structure_regularisation.run import render, reproduce
from studies.structure_regularisation.tasks import TASKS
from trellis import ChainCRF, ChainPerceptron, DataError

pytestmark = pytest.mark.extras  # whole studies, if tiny

LOG = "log.jsonl"


def lines(folder):
    return (folder / LOG).read_text("utf-8").splitlines()


def fit_records(folder):
    records = [json.loads(line) for line in lines(folder)[1:]]
    return {r["key"]: r for r in records if r["kind"] == "fit"}


def results_but_times(folder):
    left_out = ("seconds", "cpu_seconds", "wall_seconds")
    return {
        key: {name: value for name, value in record.items() if name not in left_out}
        for key, record in fit_records(folder).items()
    }


def test_outputs_are_there(finished):
    for name in FIGURES:
        assert (finished / name).read_bytes().startswith(b"\x89PNG")
    report = (finished / "report.md").read_text("utf-8")
    assert all(f"]({name})" in report for name in FIGURES)
    assert len(fit_records(finished)) == N_FITS
    assert (finished / "results.json").is_file()


def test_tables_hold_the_numbers_of_the_log(finished):
    report = (finished / "report.md").read_text("utf-8")
    cells = {cell.strip() for line in report.splitlines() for cell in line.split("|")}
    records = fit_records(finished).values()
    curve = [r for r in records if r["part"] == "curves" and r["model"] == "crf"]
    assert len(curve) == 2 * 2 + 1 + 1 + 2 * 2 + 2
    for record in curve:
        if record["params"]["l2"] and record["params"]["piece_size"]:
            assert f"{100 * record['test']:.2f}" in cells
            if record["params"]["rich_edges"] and not record["params"]["overlap"]:
                assert f"{record['test_loss']:.4f}" in cells
    averaged = [
        r["test"]
        for r in records
        if r["part"] == "comparison"
        and r["model"] == "perceptron"
        and r["params"]["averaged"]
        and r["params"]["rich_edges"]
        and not r["params"]["piece_size"]
    ]
    assert len(averaged) == 2
    assert f"{50 * sum(averaged):.2f}" in cells


def test_results_are_those_of_the_log(finished):
    found = json.loads((finished / "results.json").read_text("utf-8"))
    task = found["tasks"]["roles"]
    by_setting = {
        json.dumps(r["params"]): r
        for r in fit_records(finished).values()
        if r["part"] == "curves" and r["model"] == "crf"
    }
    for edges in ("rich", "plain"):
        curve = task["curves"][f"CRF, {edges} edges"]
        for point in curve:
            record = by_setting[json.dumps(point["params"])]
            assert point["test"] == record["test"]
            assert point.get("train_loss") == record.get("train_loss")
        assert [p["params"]["piece_size"] for p in curve] == [1.5, 5.5, None]
        assert {p["params"]["rich_edges"] for p in curve} == {edges == "rich"}
    pairs = [(c["question"], c["method"], c["baseline"]) for c in found["comparison"]]
    assert pairs == [(q.name, *pair) for q in QUESTIONS for pair in q.pairs]
    assert found["run"]["seconds"] > 0
    assert len(found["companions"]["stability"]["found"]) == 2


def test_chosen_settings_are_best_on_development_data(finished):
    found = json.loads((finished / "results.json").read_text("utf-8"))["tasks"]["roles"]
    for method, chosen in found["chosen"].items():
        tried = {json.dumps(t["params"]): t["dev"] for t in found["tried"][method]}
        assert len(tried) == {"Two models": 4, "StructReg, overlap": 2}.get(method, len(tried))
        assert tried[json.dumps(chosen)] == max(tried.values())


def test_an_interrupted_run_goes_on(copied, finished, monkeypatch):
    kept = lines(copied)
    cut = [line for line in kept if '"kind": "fit"' in line][-3:]
    torn = cut.pop()[:40]
    text = "\n".join(line for line in kept if line not in cut and not line.startswith(torn))
    (copied / LOG).write_text(f"{text}\n{torn}", "utf-8")
    made = []
    monkeypatch.setattr(
        run, "perform", lambda fit, data: made.append(fit) or fits.perform(fit, data)
    )
    reproduce(copied, protocol=TINY, tasks=["roles"], n_jobs=1, resume=True, figures=False)
    assert len(made) == 3
    assert results_but_times(copied) == results_but_times(finished)


def test_results_do_not_depend_on_jobs(finished, tmp_path):
    fewer = replace(TINY, runs=1, crf_runs=1, retrain=False)
    reproduce(tmp_path, protocol=fewer, tasks=["roles"], n_jobs=2, figures=False)
    found, expected = results_but_times(tmp_path), results_but_times(finished)
    # Two models are trained once more for the strength that was chosen.
    assert len(found) == 4 + 1 + 1 + 6 + 1 + 1 + 4 + 4 + 1
    assert len(set(found) - set(expected)) == 1
    assert all(record == expected[key] for key, record in found.items() if key in expected)


def test_rendering_needs_only_the_log(copied, finished):
    for name in ("report.md", "results.json"):
        (copied / name).unlink()
    render(copied, figures=False)
    for name in ("report.md", "results.json"):
        assert (copied / name).read_text("utf-8") == (finished / name).read_text("utf-8")


def test_without_figures_the_report_links_to_none(copied):
    for name in FIGURES:
        (copied / name).unlink()
    render(copied, figures=False)
    assert "![" not in (copied / "report.md").read_text("utf-8")


def test_several_tasks_share_a_report(copied, monkeypatch):
    # The same data under another name: all fits are in the log already.
    monkeypatch.setitem(TASKS, "again", replace(TASKS["roles"], name="again", title="Again"))
    monkeypatch.setattr(run, "perform", lambda fit, data: pytest.fail("made twice"))
    both = ["roles", "again"]
    outcome = reproduce(copied, protocol=TINY, tasks=both, n_jobs=1, resume=True, figures=False)
    assert [study.task for study in outcome.studies] == both
    report = (copied / "report.md").read_text("utf-8")
    assert "### Losses on Roles of identifiers" in report
    assert "### Losses on Again" in report


# ------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ["parsing"]}, "unknown task 'parsing'; known: pos, bio-ner"),
        ({"tasks": ["roles", "roles"]}, "task 'roles' is named twice"),
        ({"tasks": []}, "no task is named"),
        ({"protocol": "huge"}, "protocol must be one of quick, default, full, got 'huge'"),
        ({"n_jobs": 0}, "n_jobs must be None or a positive integer, got 0"),
    ],
)
def test_wrong_options(tmp_path, options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        reproduce(tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_missing_data(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no data set 'ud_ewt' in .*; set TRELLIS_DATA"):
        reproduce(tmp_path / "new", figures=False)


def test_missing_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DataError, match=r"figures need matplotlib: install it, or .*--no-figures"):
        reproduce(tmp_path / "new", protocol=TINY, tasks=["roles"])
    assert not (tmp_path / "new").exists()


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot make the folder .*file/new: Not a directory"):
        reproduce(tmp_path / "file" / "new", protocol=TINY, tasks=["roles"], figures=False)


def test_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"cannot write to the folder .*; name another"):
        reproduce(tmp_path, protocol=TINY, tasks=["roles"], figures=False)


def test_folder_with_a_run(finished):
    with pytest.raises(DataError, match=r"holds a run already; go on from it with resume"):
        reproduce(finished, protocol=TINY, tasks=["roles"], figures=False)


def test_a_run_that_was_not_finished_is_not_rendered(copied):
    kept = lines(copied)
    (copied / LOG).write_text("\n".join(kept[:10]) + "\n")
    with pytest.raises(DataError, match=r"the run was not finished; go on from it with resume"):
        render(copied)
    (copied / LOG).write_text(kept[0] + "\n")
    with pytest.raises(DataError, match=r"the log holds no run; start one"):
        render(copied)


def crafted(folder, kind, change):
    """The log with the last record of a kind changed: None for an entry that is missing."""
    records = [json.loads(line) for line in lines(folder)]
    last = max(i for i, record in enumerate(records) if record.get("kind") == kind)
    records[last] = {k: v for k, v in (records[last] | change).items() if v is not None}
    (folder / LOG).write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("run", {"protocol": None}),
        ("run", {"protocol": []}),
        ("run", {"protocol": {"name": "tiny"}}),
        ("run", {"tasks": None}),
        ("run", {"tasks": 3}),
        ("run", {"tasks": []}),
        ("run", {"versions": None}),
        ("run", {"seconds": "long"}),
        ("data", {"task": 3, "labels": None}),
        ("fit", {"dev": None, "test": None}),
        ("fit", {"test": "x"}),
        ("fit", {"test": [1, 2]}),
        ("fit", {"seconds": {}}),
        ("companion", {"task": 3} | dict.fromkeys(["value", "values", "rows", "curves", "gaps"])),
    ],
)
def test_records_that_were_changed(copied, kind, change):
    """A report, or an error that says what is wrong."""
    crafted(copied, kind, change)
    (copied / "report.md").unlink()
    try:
        render(copied, figures=False)
    except DataError as error:
        message = r"holds records that do not fit together \(|the run was not finished; go on"
        assert re.search(message, str(error))
    else:
        assert (copied / "report.md").exists()


def test_a_changed_score_stops_the_run_that_builds_on_it(copied):
    crafted(copied, "run", {})
    records = [json.loads(line) for line in lines(copied)]
    for record in records:
        if record.get("kind") == "fit":
            record["dev"] = "high"
    (copied / LOG).write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(DataError, match=r"log.jsonl holds records that do not fit together \("):
        reproduce(copied, protocol=TINY, tasks=["roles"], n_jobs=1, figures=False, resume=True)


def test_an_interrupt_says_where_the_results_are(tmp_path, monkeypatch):
    def interrupted(fit, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "perform", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"what was finished is in .*log.jsonl"):
        reproduce(tmp_path, protocol=TINY, tasks=["roles"], n_jobs=1, figures=False)
    assert fit_records(tmp_path) == {}


def test_the_paper_s_protocol_is_the_full_one():
    full = PROTOCOLS["full"]
    assert full.piece_sizes == (1.5, 2.5, 3.5, 5.5, 10.5, 15.5, 20.5)
    assert full.l2 == (0.01, 0.03, 0.1, 0.5, 1.0, 2.0, 5.0)  # and two smaller ones
    assert full.runs == full.crf_runs == 10
    crf, perceptron = (FIXED[name] | getattr(full, name) for name in ("crf", "perceptron"))
    assert (crf["tol"], crf["max_passes"]) == (1e-4, 100)
    assert perceptron["max_passes"] == 10
    assert full.train_limit is full.test_limit is None


def test_the_paper_s_method_does_not_lean_on_defaults():
    """Everything but what concerns other structures, labels, threads and the run itself is said."""
    free = {
        "features", "rich_edges", "random_state", "n_jobs", "verbose", "warm_start", "patience",
        "max_labels", "states", "lock_free", "columns", "group", "partial", "entity_ratio",
    }  # fmt: skip
    for name, kind in (("crf", ChainCRF), ("perceptron", ChainPerceptron)):
        assert set(FIXED[name]) == set(kind().get_params()) - free
        assert kind(**FIXED[name])


def test_curves_of_both_kinds_of_edges_are_drawn(finished, monkeypatch):
    seen = {}

    def keep(figure, path):
        labels = figure.axes[0].get_legend_handles_labels()[1]
        seen[path.name] = (sorted(labels), len(figure.axes[0].get_lines()))

    monkeypatch.setattr(figures, "save_figure", keep)
    render(finished)
    for model in ("crf", "perceptron"):
        labels, _ = seen[f"scores-{model}.png"]
        for edges in ("rich", "plain"):
            assert any(label.startswith(f"{edges} edges, test") for label in labels)
            assert f"{edges} edges, development" in labels
        assert seen[f"times-{model}.png"] == (
            ["plain edges", "rich edges", "whole sequences"],
            4,
        )
