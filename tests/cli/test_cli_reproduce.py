"""``trellis reproduce`` on a tiny protocol."""

from __future__ import annotations

from dataclasses import replace

import pytest

from studies.structure_regularisation import PROTOCOLS, fits
from studies.structure_regularisation import run as running

WHAT = ("reproduce", "structure-regularisation", "--quick", "--tasks", "roles", "--jobs", 1)


@pytest.fixture
def tiny(monkeypatch):
    """Make --quick even quicker."""
    few = replace(
        PROTOCOLS["quick"], piece_sizes=(2.5,), l2=(1.0,), crf={"max_passes": 1},
        perceptron={"max_passes": 1}, train_limit=8, test_limit=8, tokens=1500, small=3,
        rates=(0.1,), resamples=100,
    )  # fmt: skip
    monkeypatch.setitem(PROTOCOLS, "quick", few)


def test_interrupted_resumed_and_rendered(run, fails, tiny, tmp_path, monkeypatch):
    out = tmp_path / "out"
    made = []

    def third_is_interrupted(fit, data):
        made.append(fit)
        if len(made) == 3:
            raise KeyboardInterrupt
        return fits.perform(fit, data)

    monkeypatch.setattr(running, "perform", third_is_interrupted)
    result = run(*WHAT, "--out", out)
    assert result.code == 130
    assert result.err[-1] == (
        f"trellis: interrupted; what was finished is in {out}: the same command with --resume goes "
        "on from it"
    )
    assert "1/8  roles, rate" in "\n".join(result.err) or "roles, stability" in "\n".join(
        result.err
    )

    assert "holds a run already; go on from it with resume (--resume)" in fails(*WHAT, "--out", out)
    assert "the run was not finished" in fails(
        "reproduce", "structure-regularisation", "--markdown-only", "--out", out
    )

    result = run(*WHAT, "--out", out, "--resume", "--no-figures")
    assert result.code == 0
    assert result.out == f"report.md, results.json are in {out}\n"
    assert len(made) == 3 + 5
    assert any("of 8 results are in the log" in line for line in result.err)
    assert not list(out.glob("*.png"))

    report = (out / "report.md").read_text("utf-8")
    (out / "report.md").unlink()
    result = run("reproduce", "structure-regularisation", "--markdown-only", "--out", out)
    assert (result.code, result.out) == (0, f"report.md and results.json are in {out}\n")
    assert (out / "report.md").read_text("utf-8") == report


def test_quiet(run, tiny, tmp_path):
    result = run(*WHAT, "--out", tmp_path, "--quiet", "--no-figures")
    assert (result.code, result.err) == (0, [])
    assert result.out == f"report.md, results.json are in {tmp_path}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tasks", "parsing"), "unknown task 'parsing'; known: pos, bio-ner"),
        (("--tasks", ","), "no task is named"),
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("--markdown-only",), "holds no log.jsonl: nothing was run there"),
    ],
)
def test_wrong_options(fails, tmp_path, options, message):
    out = tmp_path / "out"
    assert message in fails("reproduce", "structure-regularisation", "--out", out, *options)


def test_wrong_command_lines(run, tmp_path):
    assert run("reproduce", "alchemy").code == 2
    assert run("reproduce", "structure-regularisation", "--quick", "--full").code == 2
