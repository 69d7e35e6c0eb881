"""Checkpoints: a run that is killed, again and again, ends with the bits of one that was not."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from rich_models import same_model, switches
from sklearn.exceptions import NotFittedError

import trellis.files.checkpoint as checkpoint_module
import trellis.solvers.lbfgs as lbfgs_module
import trellis.solvers.passes as passes_module
from trellis import ChainCRF, ChainPerceptron, CorruptModelError, DataError, load_model
from trellis.files.container import read_container, write_container
from trellis.models.checkpoint import Checkpoint
from trellis.solvers.passes import PassRecord, Progress

X, Y = switches(40)
DEV = switches(15, seed=1)

RECORD = dataclasses.asdict(PassRecord(1, 5.0, None, None, 0.1))
RUNS = {
    "sgd": (ChainCRF, {"learning_rate": 0.2, "decay": 0.75}, None),
    "sgd, averaged": (ChainCRF, {"learning_rate": 0.2}, None),
    "sgd, auto rate": (ChainCRF, {"piece_size": 2.5}, None),
    "sgd, l1 and groups": (ChainCRF, {"l1": 0.05, "group_lasso": 0.02, "l2_once": True}, None),
    "sgd, rich edges": (
        ChainCRF,
        {"rich_edges": "both", "edge_pairs": "observed", "solver": "sgd"},
        DEV,
    ),
    "sgd, patience": (
        ChainCRF,
        {"patience": 3, "max_passes": 40, "rich_edges": True, "solver": "sgd"},
        DEV,
    ),
    "adf": (ChainCRF, {"solver": "adf", "batch_size": 3, "overlap": 1, "piece_size": 2.5}, DEV),
    "lbfgs": (ChainCRF, {"solver": "lbfgs", "max_passes": 14}, None),
    "lbfgs, dev": (ChainCRF, {"solver": "lbfgs", "rich_edges": True, "max_passes": 14}, DEV),
    "lbfgs, l1": (ChainCRF, {"solver": "lbfgs", "l1": 0.3, "l2": 0.1, "max_passes": 25}, None),
    "lbfgs, groups": (ChainCRF, {"solver": "lbfgs", "group_lasso": 0.3, "max_passes": 14}, None),
    "lbfgs, observed": (ChainCRF, {"solver": "lbfgs", "states": "observed", "max_passes": 9}, None),
    "lbfgs, pieces": (ChainCRF, {"solver": "lbfgs", "piece_size": 2.5, "max_passes": 14}, None),
    "perceptron": (ChainPerceptron, {"piece_size": 2.5}, None),
    "perceptron, dev": (ChainPerceptron, {"rich_edges": True, "batch_size": 4}, DEV),
}


def model_of(name: str, **more):
    kind, options, dev = RUNS[name]
    options = {"max_passes": 6, "tol": -1, "random_state": 0, **options, **more}
    return kind("word; word[-1]", **options), dev


@pytest.fixture
def eager(monkeypatch):
    """Checkpoints after every few positions, however long they take to write."""
    monkeypatch.setattr(passes_module, "BLOCK", 30)
    monkeypatch.setattr(lbfgs_module, "LEG", 3)

    class Free(Checkpoint):
        def save(self, *arguments):
            self._cost = 0.0
            super().save(*arguments)

    monkeypatch.setattr("trellis.models.linear_model.Checkpoint", Free)


class Killed(BaseException):
    """As if the process ended here: nothing after it counts."""


def stop_after(monkeypatch, n: int):
    """Let the n-th checkpoint be the last thing that happens."""
    real = checkpoint_module.write_container
    count = 0

    def write(*arguments):
        nonlocal count
        real(*arguments)
        count += 1
        if count == n:
            raise Killed

    monkeypatch.setattr(checkpoint_module, "write_container", write)


# ------------------------------------------------------------------------- stopped anywhere


@pytest.mark.parametrize("name", RUNS)
def test_taken_up_after_any_checkpoint_a_run_ends_with_the_same_bits(
    name, tmp_path, eager, monkeypatch
):
    whole, dev = model_of(name)
    whole.fit(X, Y, dev=dev)
    file = tmp_path / "c"
    taken_up = 0
    for n in (1, 2, 5):
        file.unlink(missing_ok=True)
        for _ in range(100):
            model, _ = model_of(name)
            with monkeypatch.context() as patch:
                stop_after(patch, n)
                try:
                    model.fit(X, Y, dev=dev, checkpoint=file, checkpoint_minutes=0, resume=True)
                except Killed:
                    assert file.exists()
                    taken_up += 1
                    continue
            break
        assert same_model(model.weights_, whole.weights_)
        assert [r.objective for r in model.history_] == [r.objective for r in whole.history_]
        assert [r.dev_score for r in model.history_] == [r.dev_score for r in whole.history_]
        assert model.stop_reason_ == whole.stop_reason_
        assert not file.exists()
    assert taken_up >= 4


@pytest.mark.parametrize("name", ["sgd, rich edges", "lbfgs, pieces", "perceptron"])
def test_the_seed_is_in_the_checkpoint(name, tmp_path, eager, monkeypatch):
    """Without a seed two runs differ, but a run and its continuation do not."""
    file, copy = tmp_path / "c", tmp_path / "copy"
    model, dev = model_of(name, random_state=None)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Killed):
            model.fit(X, Y, dev=dev, checkpoint=file, checkpoint_minutes=0)
    copy.write_bytes(file.read_bytes())
    seed = int(read_container(file)[0]["seed"])
    found = []
    for path in (file, copy):
        model, _ = model_of(name, random_state=None)
        model.fit(X, Y, dev=dev, checkpoint=path, checkpoint_minutes=0, resume=True)
        found.append(model.weights_)
    assert same_model(*found)
    whole, _ = model_of(name, random_state=seed)
    assert same_model(whole.fit(X, Y, dev=dev).weights_, found[0])


def test_n_jobs_may_change_on_the_way(tmp_path, eager, monkeypatch):
    file = tmp_path / "c"
    whole, dev = model_of("adf")
    whole.fit(X, Y, dev=dev)
    model, _ = model_of("adf")
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(Killed):
            model.fit(X, Y, dev=dev, checkpoint=file, checkpoint_minutes=0)
    other, _ = model_of("adf", n_jobs=2, verbose=True)
    other.fit(X, Y, dev=dev, checkpoint=file, resume=True)
    assert same_model(other.weights_, whole.weights_)


def test_a_run_that_is_over_but_for_its_end(tmp_path, eager, monkeypatch):
    """Killed after the last checkpoint, before the file was removed."""
    for name in ("sgd, patience", "lbfgs, dev", "perceptron"):
        whole, dev = model_of(name)
        file = tmp_path / "c"
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "remove", lambda self: None)
            whole.fit(X, Y, dev=dev, checkpoint=file, checkpoint_minutes=0)
        assert file.exists()
        model, _ = model_of(name)
        model.fit(X, Y, dev=dev, checkpoint=file, resume=True)
        assert same_model(model.weights_, whole.weights_)
        assert model.stop_reason_ == whole.stop_reason_
        assert not file.exists()


def test_warm_start_is_taken_up_too(tmp_path, eager, monkeypatch):
    more = [[w.replace("by1", "move") for w in s] for s in X]
    options = {"rich_edges": True, "edge_pairs": "observed", "warm_start": True, "random_state": 0}

    def begun():
        return ChainCRF("word", max_passes=3, solver="sgd", **options).fit(X, Y)

    whole = begun().fit(more, Y)
    model, file = begun(), tmp_path / "c"
    with monkeypatch.context() as patch:
        stop_after(patch, 4)
        with pytest.raises(Killed):
            model.fit(more, Y, checkpoint=file, checkpoint_minutes=0)
    again = begun().fit(more, Y, checkpoint=file, resume=True)
    assert same_model(again.weights_, whole.weights_)


# ------------------------------------------------------------------------- killed for real


CHILD = """
import json, sys
import trellis.solvers.lbfgs as lbfgs, trellis.solvers.passes as passes
from trellis.models.checkpoint import Checkpoint
from trellis import ChainCRF, ChainPerceptron
lbfgs.LEG, passes.BLOCK = 5, 300
save = Checkpoint.save
def eager(self, *arguments):
    self._cost = 0.0
    save(self, *arguments)
Checkpoint.save = eager
task = json.load(open("task.json"))
model = {"ChainCRF": ChainCRF, "ChainPerceptron": ChainPerceptron}[task["kind"]](**task["options"])
dev = None if task["dev"] is None else tuple(task["dev"])
print("ready", flush=True)
model.fit(
    task["X"], task["Y"], dev=dev, checkpoint="checkpoint", checkpoint_minutes=0, resume=True
)
model.save("model")
"""


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ChainCRF", {"max_passes": 25, "patience": 20, "rich_edges": True}),
        ("ChainCRF", {"solver": "adf", "max_passes": 25, "piece_size": 2.5}),
        ("ChainCRF", {"solver": "lbfgs", "max_passes": 100, "l2": 1e-4}),
        ("ChainPerceptron", {"max_passes": 40, "rich_edges": "both", "edge_pairs": "observed"}),
    ],
)
def test_killed_by_the_system(tmp_path, kind, options):
    """SIGKILL at random moments, twice; then to the end, in this process."""
    options = {"features": "word; word[-1]", "tol": -1, "random_state": 0, **options}
    data = switches(150)
    dev = DEV if "patience" in options else None
    task = {"kind": kind, "options": options, "X": data[0], "Y": data[1], "dev": dev}
    (tmp_path / "task.json").write_text(json.dumps(task))
    (tmp_path / "child.py").write_text(textwrap.dedent(CHILD))
    file = tmp_path / "checkpoint"
    rng = random.Random(0)
    kills = 0
    while kills < 2:
        child = subprocess.Popen(
            [sys.executable, "child.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            before = file.stat().st_mtime_ns if file.exists() else None
            for _ in range(60_000):  # wait for progress, then strike at a random moment
                if child.poll() is not None:
                    break
                if file.exists() and file.stat().st_mtime_ns != before:
                    time.sleep(rng.random() * 0.01)
                    break
                time.sleep(0.001)
        finally:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()
        if child.returncode == 0:  # it was faster than the signal
            break
        assert child.returncode < 0
        kills += 1
    assert kills >= 1
    model = {"ChainCRF": ChainCRF, "ChainPerceptron": ChainPerceptron}[kind]
    whole = model(**options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lbfgs_module, "LEG", 5)
        patch.setattr(passes_module, "BLOCK", 300)
        if not (tmp_path / "model").exists():
            last = model(**options).fit(*data, dev=dev, checkpoint=file, resume=True)
            last.save(tmp_path / "model")
        whole.fit(*data, dev=dev)
    whole.save(tmp_path / "expected")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "expected").read_bytes()
    assert not file.exists()


# ------------------------------------------------------------------------- when they are written


def test_without_a_checkpoint_nothing_changes(tmp_path):
    model, dev = model_of("sgd, rich edges")
    plain = model.fit(X, Y, dev=dev).weights_
    model, _ = model_of("sgd, rich edges")
    model.fit(X, Y, dev=dev, checkpoint=tmp_path / "c", resume=True)  # there is none to resume
    assert same_model(model.weights_, plain)
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_the_file_for_later(tmp_path, eager, monkeypatch):
    file = tmp_path / "c"
    model, _ = model_of("sgd")
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Killed):
            model.fit(X, Y, checkpoint=file, checkpoint_minutes=0)
    assert file.exists()
    assert model.stop_reason_ == "interrupted"


def test_a_file_that_is_not_resumed_is_begun_anew(tmp_path, eager, monkeypatch):
    file = tmp_path / "c"
    model, _ = model_of("sgd")
    with monkeypatch.context() as patch:
        stop_after(patch, 9)
        with pytest.raises(Killed):
            model.fit(X, Y, checkpoint=file, checkpoint_minutes=0)
    other, _ = model_of("perceptron")
    other.fit(X, Y, checkpoint=file)
    assert same_model(other.weights_, model_of("perceptron")[0].fit(X, Y).weights_)
    assert not file.exists()


def written(monkeypatch, clock, minutes=5.0):
    """A checkpoint whose clock is set by the test, and the number of files it wrote."""
    files = []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def write(path, header, arrays):
        files.append(header)
        clock[0] += 2.0  # what it costs to write

    monkeypatch.setattr(checkpoint_module, "write_container", write)
    return Checkpoint("nowhere", minutes), files


class Nothing:
    def state(self):
        return {}


def test_within_a_pass_it_is_written_after_some_minutes(monkeypatch):
    clock = [0.0]
    saved, files = written(monkeypatch, clock)
    middle = Progress(visited=7)
    for clock[0], n in ((299.0, 0), (300.0, 1), (590.0, 1), (602.0, 2)):
        saved.save(middle, Nothing(), None)
        assert len(files) == n
    assert files[0]["visited"] == 7


def test_after_a_pass_it_is_written_unless_that_takes_long(monkeypatch):
    clock = [0.0]
    saved, files = written(monkeypatch, clock)
    end = Progress([PassRecord(1, 2.0, None, None, 0.5)])
    for clock[0], n in ((0.0, 1), (21.9, 1), (22.0, 2), (25.0, 2)):
        saved.save(end, Nothing(), None)
        assert len(files) == n
    assert files[0]["records"] == [
        {"number": 1, "objective": 2.0, "change": None, "dev_score": None, "seconds": 0.5,
         "lower_bound": None}
    ]  # fmt: skip


def test_a_run_that_diverges_says_so(tmp_path, eager):
    model = ChainCRF(learning_rate=1e39, random_state=0)
    with pytest.raises(
        DataError, match="training diverged: the objective rose above that of zero weights"
    ):
        model.fit(X, Y, checkpoint=tmp_path / "c", checkpoint_minutes=0)
    with pytest.raises(NotFittedError):
        model.predict(X)


# ------------------------------------------------------------------------- refusals


@pytest.fixture
def begun(tmp_path, eager, monkeypatch):
    """A checkpoint of a run of SGD with rich edges."""
    model, dev = model_of("sgd, rich edges")
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(Killed):
            model.fit(X, Y, dev=dev, checkpoint=tmp_path / "c", checkpoint_minutes=0)
    return tmp_path / "c"


OTHER = "is the checkpoint of a run with other data or parameters; remove it, or train as it was"


@pytest.mark.parametrize(
    "options",
    [
        {"l2": 2.0}, {"max_passes": 7}, {"random_state": 1}, {"random_state": None},
        {"solver": "adf"}, {"rich_edges": True}, {"features": "word"}, {"scheme": "BIO"},
    ],
)  # fmt: skip
def test_other_parameters(begun, options):
    if options == {"scheme": "BIO"}:
        options = {"visit": "permutation"}
    model, dev = model_of("sgd, rich edges")
    before = begun.read_bytes()
    with pytest.raises(DataError, match=OTHER) as caught:
        model.set_params(**options).fit(X, Y, dev=dev, checkpoint=begun, resume=True)
    assert str(caught.value).startswith(str(begun))
    assert begun.read_bytes() == before
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_another_estimator(begun):
    with pytest.raises(DataError, match=OTHER):
        ChainPerceptron("word; word[-1]").fit(X, Y, dev=DEV, checkpoint=begun, resume=True)


@pytest.mark.parametrize(
    "change", ["data", "labels", "fewer", "weights", "dev", "no dev", "dev labels", "classes"]
)
def test_other_data(begun, change):
    x, y, dev, weight = [list(s) for s in X], [list(s) for s in Y], DEV, None
    if change == "data":
        x[3][0] = "other"
    elif change == "labels":
        y[3][0] = "L01" if y[3][0] == "L00" else "L00"
    elif change == "fewer":
        x, y = x[:-1], y[:-1]
    elif change == "weights":
        weight = [1.0] * 39 + [2.0]
    elif change == "dev":
        dev = (DEV[0][:-1], DEV[1][:-1])
    elif change == "no dev":
        dev = None
    elif change == "dev labels":
        dev = (DEV[0], [["L00"] * len(s) for s in DEV[1]])
    else:
        y = [[label.replace("L", "M") for label in s] for s in y]
    model, _ = model_of("sgd, rich edges")
    with pytest.raises(DataError, match=OTHER):
        model.fit(x, y, dev=dev, sample_weight=weight, checkpoint=begun, resume=True)


def test_a_model_is_no_checkpoint(tmp_path):
    file = tmp_path / "m"
    model, _ = model_of("sgd")
    model.fit(X, Y).save(file)
    before = model.weights_.copy()
    with pytest.raises(CorruptModelError, match=f"{file}: this is a model, not a checkpoint"):
        model.fit(X, Y, checkpoint=file, resume=True)
    assert same_model(model.weights_, before)  # refused at the door


def test_a_checkpoint_is_no_model(begun):
    with pytest.raises(CorruptModelError, match="the checkpoint of a training run, not a model"):
        load_model(begun)


def test_a_damaged_file(begun):
    data = begun.read_bytes()
    model, dev = model_of("sgd, rich edges")
    for bad, message in (
        (data[:-1], "the checksum does not match: the file is damaged or truncated"),
        (data[:100] + b"x" + data[101:], "the checksum does not match"),
        (b"", "the file is empty"),
        (b"hello", "not a Trellis model file"),
    ):
        begun.write_bytes(bad)
        with pytest.raises(CorruptModelError, match=message):
            model.fit(X, Y, dev=dev, checkpoint=begun, resume=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.pop("records"), "header entry 'records' is missing"),
        (lambda h, a: h.update(records=[{"number": 1}]), "a record of a pass lacks an entry"),
        (lambda h, a: h.pop("best"), "header entry 'best' is missing"),
        (lambda h, a: h.update(seed="x"), "invalid literal"),
        (lambda h, a: h.update(visited=1.5), "header entry 'visited' is a float, int expected"),
        (lambda h, a: a.pop("node"), "its arrays are not those of this run"),
        (lambda h, a: a.update(node=a["node"][1:]), "array 'node' has shape "),
        (lambda h, a: a.update(node=a["node"].astype(float)), "array 'node' has dtype float64, fl"),
        (lambda h, a: a.update(more=a["node"]), "its arrays are not those of this run"),
        (lambda h, a: a.update(node=a["node"] * np.nan), "'node' holds a number that is not fin"),
        (lambda h, a: h.update(records=[{**RECORD, "number": 2}]), "'number' is 2, one of 1 ex"),
        (lambda h, a: h.update(records=[{**RECORD, "change": "x"}]), "'change' is a str, float"),
        (lambda h, a: h.update(generator={"bit_generator": "x"}), "PCG64"),
    ],
)
def test_contents_that_do_not_fit(begun, change, message):
    header, arrays = read_container(begun)
    change(header, arrays)
    write_container(begun, header, arrays)
    model, dev = model_of("sgd, rich edges")
    with pytest.raises(CorruptModelError, match=f"^{begun}: .*{message}"):
        model.fit(X, Y, dev=dev, checkpoint=begun, resume=True)


def test_resume_needs_the_file():
    model, _ = model_of("sgd")
    with pytest.raises(DataError, match="resume=True needs the file: give checkpoint="):
        model.fit(X, Y, resume=True)


@pytest.mark.parametrize("minutes", [-1, float("nan"), "5", None])
def test_minutes(minutes, tmp_path):
    model, _ = model_of("sgd")
    with pytest.raises(DataError, match="checkpoint_minutes must be a number of at least 0, got"):
        model.fit(X, Y, checkpoint=tmp_path / "c", checkpoint_minutes=minutes)


def test_the_state_of_the_random_numbers_survives(tmp_path):
    """Its integers have 128 bits, more than JSON readers can be trusted with."""
    rng = np.random.default_rng(5)
    rng.random(3)
    state = dict(rng.bit_generator.state)
    expected = rng.random(4).tolist()
    saved = Checkpoint(tmp_path / "c", 0)
    saved.save(Progress(generator=state), Nothing(), None)
    found = Checkpoint(tmp_path / "c").load()
    assert found is not None and found.progress.generator == state
    other = np.random.default_rng(0)
    other.bit_generator.state = found.progress.generator
    assert other.random(4).tolist() == expected
