"""That attacks see what goes wrong: crashes, hangs, errors; and that a case can be seen again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fuzz import ATTACKS, watch
from fuzz.watch import run_attack

SEED, N = 28, 10
WORDS = {0: "crashed", 1: "failed", 2: "refused", 3: "hung"}


@pytest.fixture(scope="module", autouse=True)
def on_the_path():
    """The processes of an attack must find the module beside this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
        yield


def outcomes() -> list[str]:
    drawn = [int(np.random.default_rng([SEED, i]).integers(10)) for i in range(N)]
    return [WORDS.get(number, "used") for number in drawn]


def test_every_case_is_told_by_what_came_of_it(monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 10.0)
    wanted = outcomes()
    assert {"crashed", "failed", "refused", "hung", "used"} == set(wanted)
    report = run_attack("attacks_that_fail", seed=SEED, n_cases=N)
    assert report.n_cases == N
    for word in ("crashed", "hung"):
        assert report.counts[word] == wanted.count(word)
    # What a process did before it died is not known word by word, but errors are.
    failed = {f["case"]: f for f in report.failures}
    assert sorted(failed) == [i for i in range(N) if wanted[i] in ("crashed", "failed", "hung")]
    for case, failure in failed.items():
        if wanted[case] == "failed":
            assert (failure["error"], failure["text"]) == ("KeyError", "'no such thing'")
        else:
            assert failure["error"] == wanted[case]
    summary = report.summary()
    assert f"{N} cases (seed {SEED})" in summary and "SIGSEGV" in summary


def test_an_attack_that_does_not_run_is_no_success():
    with pytest.raises(RuntimeError, match="the attack no_such_attack does not run"):
        run_attack("no_such_attack", n_cases=1)


def fuzz(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fuzz", *words], capture_output=True, text=True, check=False
    )


def test_the_command_line():
    result = fuzz("no_such_attack")
    assert result.returncode == 2
    assert f"no attack no_such_attack; there are {', '.join(ATTACKS)}" in result.stderr
    assert "--case" in fuzz("--help").stdout
