"""The command line of the studies: its help, and ``python -m studies``."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from studies import STUDIES
from studies.command import parser

ROOT = Path(__file__).parents[2]


def test_every_option_is_explained():
    for action in parser()._actions:
        assert action.help, action.option_strings or action.dest


def test_examples_of_the_help_parse():
    text = parser().format_help()
    assert text.isascii()  # prints on any terminal
    starts = ("  python -m studies ", "  trellis reproduce ")
    examples = [line for line in text.splitlines() if line.startswith(starts)]
    assert len(examples) == 4
    for line in examples:
        assert parser().parse_args(shlex.split(line)[2 + line.startswith(starts[0]) :]).out


def test_help_names_all_studies():
    lines = parser().format_help().splitlines()
    for name in STUDIES:
        assert any(line.startswith(f"  {name} ") for line in lines)


def test_as_a_module(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "studies", "glacer", "--markdown-only", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"trellis: error: {tmp_path} holds no log.jsonl: nothing was run there\n"
    )
