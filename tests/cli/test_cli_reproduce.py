"""``trellis reproduce`` on a tiny protocol."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from studies.structure_regularisation import fits
from studies.structure_regularisation import run as running
from studies.structure_regularisation.protocol import PROTOCOLS

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
    assert "1/12  roles, rate" in "\n".join(result.err) or "roles, stability" in "\n".join(
        result.err
    )

    assert "holds a run already; go on from it with resume (--resume)" in fails(*WHAT, "--out", out)
    assert "the run was not finished" in fails(
        "reproduce", "structure-regularisation", "--markdown-only", "--out", out
    )

    result = run(*WHAT, "--out", out, "--resume", "--no-figures")
    assert result.code == 0
    assert result.out == f"report.md, results.json are in {out}\n"
    assert len(made) == 3 + 14
    assert any("of 12 results are in the log" in line for line in result.err)
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
    assert run("reproduce").code == 2
    assert run("reproduce", "alchemy").code == 2
    assert run("reproduce", "structure-regularisation", "--quick", "--full").code == 2


def test_options_may_come_first(fails, tmp_path):
    options = ("--tasks", "parsing", "--out", tmp_path / "out")
    assert "unknown task 'parsing'" in fails("reproduce", *options, "structure-regularisation")


# ------------------------------------------------------------------ where the studies are


def elsewhere(*lines):
    """Run ``trellis reproduce structures`` where there is no checkout, after some lines of code."""
    code = "\n".join(
        [
            "import sys",
            "from pathlib import Path",
            "from trellis.cli import main, reproduce",
            "sys.path = [p for p in sys.path if not (Path(p) / 'studies').is_dir()]",
            *lines,
            "sys.exit(main(['reproduce', *sys.argv[1:]]))",
        ]
    )
    return subprocess.run(
        [sys.executable, "-c", code, "--quick", "structures"], capture_output=True, text=True
    )


def test_beside_the_source_tree():
    """The folder of the checkout need not be on Python's path."""
    result = elsewhere("sys.argv = ['', '--help']")
    assert (result.returncode, result.stderr) == (0, "")
    assert "usage: python -m studies" in result.stdout


def test_importable(tmp_path):
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "__init__.py").touch()
    (tmp_path / "studies" / "command.py").write_text("def main(arguments):\n    print(arguments)\n")
    lines = ("reproduce.ROOT = Path('nowhere')", f"sys.path.append({str(tmp_path)!r})")
    assert elsewhere(*lines).stdout == "['--quick', 'structures']\n"


@pytest.mark.parametrize("unrelated", [False, True])
def test_not_there(tmp_path, unrelated):
    """A folder of that name that holds something else is not taken for the studies."""
    lines = ["reproduce.ROOT = Path('nowhere')"]
    if unrelated:
        (tmp_path / "studies").mkdir()
        lines.append(f"sys.path.append({str(tmp_path)!r})")
    result = elsewhere(*lines)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "trellis: error: studies live in the repository of Trellis, not in the installed library: "
        "in a checkout of it run 'python -m studies NAME'\n"
    )


def test_a_fault_within_the_studies_is_not_hidden(tmp_path):
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "command.py").write_text("import no_such_module\n")
    lines = ("reproduce.ROOT = Path('nowhere')", f"sys.path.append({str(tmp_path)!r})")
    assert "No module named 'no_such_module'" in elsewhere(*lines).stderr
