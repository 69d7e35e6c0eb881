"""Warming up compiles every kernel, for the types that real work uses."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from trellis import warmup as module
from trellis.cli import main
from trellis.warmup import warmup

SIGNATURES = """
import importlib, pkgutil, sys
import trellis.kernels
from trellis.kernels._jit import _KernelCache

def signatures():
    found = {}
    for info in pkgutil.iter_modules(trellis.kernels.__path__):
        kernels = importlib.import_module(f"trellis.kernels.{info.name}")
        for name, value in vars(kernels).items():
            if isinstance(getattr(value, "_cache", None), _KernelCache):
                if value.py_func.__module__ == kernels.__name__:
                    found[f"{info.name}.{name}"] = set(value.signatures)
    return found
"""


def python(code, folder):
    result = subprocess.run(
        [sys.executable, "-c", SIGNATURES + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_every_kernel_is_compiled_and_work_needs_no_other(tmp_path):
    """After all parts in one process: all kernels have code, and using the tools adds none."""
    # Pairs of 1,100 words are too many for a direct table: hashed, as in any real corpus.
    rows = [f"w{i} P{i % 7} {'BIO'[i % 3]}" for i in range(1100)]
    (tmp_path / "txt").write_text(
        "\n\n".join("\n".join(rows[i : i + 3]) for i in range(0, 1100, 3))
    )
    (tmp_path / "crfsuite").write_text("A\tx\ty:2\nB\tz\n\n")
    (tmp_path / "segmented").write_text("ab c\nab\n" * 3)
    lines = python(
        """
from trellis.warmup import PARTS
for part in PARTS:
    part()
before = signatures()
print("empty", *(name for name, found in before.items() if not found))

from trellis.cli import main
model = "model"
main(["train", "txt", "--quiet", "-o", model, "--dev", "txt", "--scheme", "BIO"])
main(["train", "txt", "--quiet", "-o", model, "--piece-size", "1.5", "--features", "chunking"])
main(["eval", "--model", model, "txt"])
main(["tag", model, "txt", "--marginals"])
main(["tag", model, "txt", "--kbest", "2"])
main(["train", "txt", "--quiet", "-o", model, "--warm-start", model])
main(["train", "txt", "--quiet", "-o", model, "--model", "perceptron"])
main(["tag", model, "txt"])
for kind in ("crfsuite", "segmented"):
    features = ["--features", "wordseg"] if kind == "segmented" else []
    main(["train", kind, "--quiet", "-o", model, "--format", kind, *features])
    main(["tag", model, kind])
from trellis import ChainCRF, ChainPerceptron
from trellis.models import RegularisedDecoder
X, y = [["a", "b", "c"], ["b"]], [["B-X", "I-X", "O"], ["O"]]
for options in (
    {"batch_size": 2, "n_jobs": 2}, {"solver": "adf"}, {"solver": "lbfgs"}, {"lock_free": True},
    {"rich_edges": True}, {"rich_edges": "both", "edge_pairs": "observed", "n_jobs": 2},
    {"rich_edges": "both", "solver": "adf"}, {"l1": 0.1, "group_lasso": 0.1},
    {"features": "word @ edge; bias", "edge_pairs": "observed", "solver": "lbfgs"},
    {"piece_size": 1.5, "overlap": 1},
):
    crf = ChainCRF(max_passes=2, **options).fit(X, y, dev=(X, y))
    crf.predict_marginals(X), crf.predict_kbest(X, 2), crf.sample(X), crf.entropy(X)
    crf.predict_spans(X), crf.explain(X[:1]), crf.partial_fit(X, y)
    RegularisedDecoder(crf, ChainCRF(max_passes=1).fit(X, y)).predict(X)
from trellis import GraphCRF, GraphPerceptron, TreeCRF, TreePerceptron
X3, y3, loop = [["a", "b", "c"]], [["A", "B", "C"]], [[(0, 1), (1, 2), (2, 0)]]
for options in (
    {}, {"piece_size": 1.5, "batch_size": 2, "n_jobs": 2}, {"solver": "adf"}, {"solver": "lbfgs"},
    {"rich_edges": "both"}, {"rich_edges": True, "edge_pairs": "observed", "solver": "lbfgs"},
):
    crf = TreeCRF(max_passes=2, **options).fit(X3, y3, edges=[[(0, 1), (1, 2)]])
    crf.predict_marginals(X3, edges=[[(0, 1)]]), crf.predict_kbest(X3, 2, edges=[[(0, 1)]])
    crf.sample(X3, edges=[[(0, 1)]]), crf.entropy(X3, edges=[[(0, 1)]])
    for pieces in ("tree", "graph"):
        crf = GraphCRF(max_passes=2, pieces=pieces, **options).fit(X3, y3, edges=loop)
        for inference in ("auto", "dual", "lp", "ilp"):
            crf.set_params(inference=inference).predict(X3, edges=loop)
        crf.predict_marginals(X3, edges=loop)
from trellis import MaxMargin
for options in ({}, {"solver": "bundle"}):
    MaxMargin(max_passes=2, **options).fit(X, y).predict(X)
    for structure, own in (("tree", [[(0, 1)]]), ("graph", loop)):
        MaxMargin(structure=structure, max_passes=2, **options).fit(X3, y3, edges=own)
from trellis.experts import Aligned, Consensus, ESPBoost, FollowPerturbedLeader, WeightedMajority
from trellis.experts import GuardedVote, LogLinearVote, MajorityVote, Rerank, Stacking, as_outputs
said, truth = [[["A", "B"], ["A"]], [["B"], ["A"]]], [["A", "B"], ["A"]]
for combiner in (WeightedMajority(), FollowPerturbedLeader(), ESPBoost(), GuardedVote()):
    Aligned(combiner).fit(said, truth).predict(said)
laid, right = as_outputs([[["A", "B"]] * 3, [["B", "B"]] * 3]), [["A", "B"]] * 3
for combiner in (
    MajorityVote(), MajorityVote(order="accuracy"), Rerank(), Rerank(unit="sample"),
    Rerank(weights="uniform"), LogLinearVote(), Stacking(),
):
    combiner.fit(laid, right).predict(laid), combiner.predict_proba(laid)
Consensus().fit(said).predict(said)
from trellis.datasets import simulate_cells
from trellis.tracking import TrackingModel
cells = simulate_cells(5, 3, seed=0)
TrackingModel().fit(cells).predict_kbest(cells, 2)
for model in (TreePerceptron, GraphPerceptron):
    for rich in (False, "both"):
        model(max_passes=2, rich_edges=rich).fit(X3, y3, edges=[[(0, 1)]])
for options in ({}, {"rich_edges": True}, {"rich_edges": "both", "edge_pairs": "observed"}):
    ChainPerceptron(max_passes=2, batch_size=2, **options).fit(X, y).predict(X)
after = signatures()
print("added", *(name for name, found in after.items() if found != before[name]))
""",
        tmp_path,
    )
    assert [line for line in lines if line.startswith(("empty", "added"))] == ["empty", "added"]


def test_parts_run_side_by_side(monkeypatch, capfd):
    """The real thing, once: no error, nothing printed, the other parts in their own processes."""
    started = []

    def spy():
        started.append(start())
        return started[-1]

    start = module._start
    monkeypatch.setattr(module, "_start", spy)
    monkeypatch.setattr(module, "_cores", lambda: 3)
    waiting, here = threading.Event(), []

    def part():  # this process keeps busy until the others have done the rest
        here.append("part")
        waiting.wait(60)

    def hand_out(left, process, failed):
        spied(left, process, failed)
        if not left:
            waiting.set()

    spied = module._hand_out
    monkeypatch.setattr(module, "_hand_out", hand_out)
    warmup([part, module.warm_experts, module.warm_assignments])  # all would take long
    assert here == ["part"]
    assert [process.returncode for process in started] == [0, 0]
    assert capfd.readouterr() == ("", "")


def recorder(calls, name, error=None):
    def part():
        calls.append(name)
        if error is not None:
            raise error

    part.__name__ = "no_such_part"
    return part


@pytest.mark.parametrize("executable", ["", "/no/such/python", sys.executable])
def test_without_a_second_process_all_is_done_in_this_one(monkeypatch, executable):
    # With a working Python the process ends with an error: there is no part of that name.
    monkeypatch.setattr(sys, "executable", executable)
    calls = []
    monkeypatch.setattr(module, "_cores", lambda: 2)
    warmup([recorder(calls, "first"), recorder(calls, "second")])
    assert sorted(calls) == ["first", "second"]


def test_there_are_no_more_processes_than_cores(monkeypatch):
    calls, started = [], []
    parts = [recorder(calls, k) for k in range(5)]
    monkeypatch.setattr(module, "_start", lambda: started.append("process"))
    for cores, wanted in ((1, 0), (2, 1), (3, 2), (99, 4)):
        calls.clear(), started.clear()
        monkeypatch.setattr(module, "_cores", lambda cores=cores: cores)
        warmup(parts)
        assert len(started) == wanted and calls == list(range(5))
    warmup([])


def test_what_takes_long_comes_first(monkeypatch):
    calls = []
    parts = [recorder(calls, k) for k in range(3)]
    monkeypatch.setattr(module, "PARTS", tuple(parts))
    monkeypatch.setattr(module, "_cores", lambda: 1)
    own = recorder(calls, "own")  # of the caller: it may take any time
    warmup([parts[2], own, parts[1]])
    assert calls == ["own", 1, 2]


def test_interrupt_ends_the_other_process(monkeypatch):
    started = []

    def start():
        code = "import time; time.sleep(600)"
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", code]
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    def interrupted():
        raise KeyboardInterrupt

    calls = []
    monkeypatch.setattr(module, "_start", start)
    monkeypatch.setattr(module, "_cores", lambda: 2)
    with pytest.raises(KeyboardInterrupt):
        warmup([interrupted, interrupted, recorder(calls, "third")])
    assert calls == []
    assert started[0].poll() is not None


def test_command(monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(module, "warmup", recorder(calls, "warmup"))
    assert main(["warmup"]) == 0
    assert calls == ["warmup"]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "trellis: preparing kernels (some minutes, unless it is done)"
    assert err.splitlines()[1].startswith("trellis: kernels ready (")
    assert len(err.splitlines()) == 2
