"""Mutated files of every kind: models of all estimators, prepared corpora, checkpoints.

Half of the mutants are damaged bytes. Each of these must be refused: one that is loaded is a model
that changed without a word. The other half is changed under a checksum that is right again, as only
somebody who means harm does it. Such a file is refused too, or what it holds can be used for all
that a good one can, and saved and loaded once more with the same answers.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

from fuzz import BrokenPromiseError
from fuzz.damage import Contents, damaged
from fuzz.every_model import EDGES, EVERY, FILM, TAGS, WORDS, Made, S, X, Y, new_samples
from fuzz.limits import limited_memory
from trellis import ChainCRF, ChainPerceptron, Corpus, GraphCRF, MaxMargin, TreeCRF, load_model
from trellis.cli.inspect_model import describe, describe_learned
from trellis.errors import CorruptModelError, DataError, TrellisError
from trellis.features import Prepared, prepare
from trellis.files.checkpoint import CheckpointFile
from trellis.files.container import read_container, write_container
from trellis.models.checkpoint import Checkpoint
from trellis.regression import GLACER

__all__ = ["Target", "attacked", "cases", "checkpoint_target", "model_target", "prepared_target"]


@dataclass(frozen=True)
class Target:
    """A good file and what is done with it.

    Parameters
    ----------
    data : bytes
        The file.
    load : callable
        Reads the file at a path; what it raises for a bad one is `error`.
    use : callable
        Does with what was loaded all that can be done; gets the path, too, which it may write.
    error : type
        What a damaged file is refused with.
    """

    data: bytes
    load: Callable[[Path], Any]
    use: Callable[[Any, Path], None]
    error: type[TrellisError]


def attacked(target: Target, mutant: bytes, path: Path, *, raw: bool) -> str:
    """Load a mutant and use it: «refused», «used», or «no use» if using it is refused."""
    path.write_bytes(mutant)
    try:
        loaded = target.load(path)
    except target.error as error:
        if not str(error).startswith(str(path)) or "\n" in str(error):
            raise BrokenPromiseError(f"the message does not name the file: {error}") from error
        if isinstance(error.__cause__, MemoryError):
            raise BrokenPromiseError(f"asked for too much memory: {error}") from error
        return "refused, damaged" if raw else "refused, sealed"
    if raw:
        raise BrokenPromiseError("a damaged file was loaded")
    try:
        target.use(loaded, path)
    except TrellisError:  # in good order, but for other input, or with settings that say no
        return "no use"
    return "used"


# ------------------------------------------------------------------------- models


def model_target(made: Made, path: Path) -> Target:
    """A fitted estimator's file."""
    model, predict = made
    model.save(path)
    return Target(
        path.read_bytes(),
        load_model,
        lambda loaded, file: _use_model(loaded, predict, file),
        CorruptModelError,
    )


def _use_model(model: Any, predict: Callable[[Any], Any], path: Path) -> None:
    answer = predict(model)
    if hasattr(model, "encoder_"):
        _ask_everything(model)
        describe(model, 3, None)
    else:
        describe_learned(model)
        if hasattr(model, "predict_kbest"):
            model.predict_kbest(FILM[3:], 2)
    model.save(path)
    again = load_model(path)
    other = predict(again)
    if same(answer, other):
        return
    # Drawn at random, without a seed, answers differ anyway.
    if same(answer, predict(model)) and same(other, predict(again)):
        raise BrokenPromiseError("saved and loaded again, it answers otherwise")


def _ask_everything(model: Any) -> None:
    X, more = new_samples(model)
    model.predict_kbest(X, 3, **more)
    str(model.explain(X[:1], **{name: values[:1] for name, values in more.items()}))
    if hasattr(model, "predict_marginals"):
        model.predict_marginals(X, **more)
        model.entropy(X, **more)
        model.log_prob(X, model.predict(X, **more), **more)
        model.sample(X, 2, **more)


def same(a: Any, b: Any) -> bool:
    """Whether two answers are the same, to the bit."""
    if isinstance(a, np.ndarray):
        alike = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return bool(alike)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


# ------------------------------------------------------------------------- prepared corpora

_TYPES = [["left" if i % 2 else "right" for i in range(len(edges))] for edges in EDGES]


def prepared_target(model: Any, corpus: Any, path: Path, features: str, **more: Any) -> Target:
    """A prepared corpus, which the model is fitted to."""
    prepare(corpus, path, features, **more)

    def use(prepared: Prepared, _: Path) -> None:
        repr(prepared)
        model.fit(prepared)

    return Target(path.read_bytes(), Prepared.open, use, DataError)


# ------------------------------------------------------------------------- checkpoints


class _FirstPass(Checkpoint):
    """The checkpoint after the first pass, without its times: the same in every run."""

    def save(self, progress: Any, learner: Any, best: Any) -> None:
        if progress.records and not self.path.exists():
            records = [replace(record, seconds=0.0) for record in progress.records]
            super().save(replace(progress, records=records, seconds=0.0), learner, best)


def checkpoint_target(model: Any, path: Path, **more: Any) -> Target:
    """The checkpoint of a run, which is taken up."""
    path.unlink(missing_ok=True)
    model.fit(WORDS, TAGS, checkpoint=_FirstPass(path), **more)
    data = path.read_bytes()
    path.unlink()

    def load(file: Path) -> Any:
        return Checkpoint(file).load()

    def use(_: Any, file: Path) -> None:
        model.fit(WORDS, TAGS, checkpoint=file, resume=True, **more)

    return Target(data, load, use, CorruptModelError)


def swaps_target(path: Path) -> Target:
    """The checkpoint of a GLACER after one exchange of examples."""
    model = GLACER(3, base=LinearRegression(), random_state=0, max_swaps=1)
    path.unlink(missing_ok=True)
    model.fit(X, Y, graph=S, checkpoint=path)
    header, arrays = read_container(path)
    for record in header["history"]:
        record["seconds"] = 0.0
    write_container(path, header, arrays)
    data = path.read_bytes()

    def use(_: Any, file: Path) -> None:
        model.set_params(max_swaps=2).fit(X, Y, graph=S, checkpoint=file, resume=True)

    return Target(data, lambda file: CheckpointFile(file).read(), use, CorruptModelError)


# ------------------------------------------------------------------------- the attack


def targets(path: Path) -> dict[str, Target]:
    """One file of every kind, by name; `path` is written to."""
    one: dict[str, Any] = {"max_passes": 2, "tol": 0.0, "random_state": 0}
    words = Corpus.from_columns({"word": WORDS}, TAGS)
    attributes = [[{w: 1.0, "length": float(len(w))} for w in sample] for sample in WORDS]
    every = {name: model_target(make(), path) for name, make in EVERY.items()}
    every |= {
        "prepared chains": prepared_target(ChainCRF(**one), words, path, "word[-1..1]"),
        "prepared attributes": prepared_target(
            ChainPerceptron(**one), attributes, path, "auto", y=TAGS
        ),
        "prepared trees": prepared_target(
            TreeCRF(**one), words, path, "word", edges=EDGES, edge_types=_TYPES
        ),
        "checkpoint, sgd": checkpoint_target(ChainCRF("word", **one), path),
        "checkpoint, adf": checkpoint_target(ChainCRF("word", solver="adf", **one), path),
        "checkpoint, dev": checkpoint_target(
            ChainPerceptron("word", **one), path, dev=(WORDS[:2], TAGS[:2])
        ),
        "checkpoint, l-bfgs": checkpoint_target(ChainCRF("word", solver="lbfgs", **one), path),
        "checkpoint, margin": checkpoint_target(
            MaxMargin("word", **{**one, "max_passes": 12}), path
        ),
        "checkpoint, margin steps": checkpoint_target(MaxMargin("word", solver="sgd", **one), path),
        "checkpoint, glacer": swaps_target(path),
        "checkpoint, graph": checkpoint_target(GraphCRF("word", **one), path, edges=EDGES),
    }
    return every


def cases() -> Callable[[np.random.Generator], str]:
    """A function that changes one of the files, and loads and uses it."""
    memory = Path("/dev/shm")  # no disk is worn out by this, and no time lost
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    path = folder / "file"
    every = list(targets(path).values())
    originals = [target.data for target in every]
    contents = [Contents(data) for data in originals]

    def case(generator: np.random.Generator) -> str:
        rng = random.Random(generator.bytes(16))
        k = rng.randrange(len(every))
        raw = rng.random() < 0.5
        if raw:
            mutant = damaged(originals[k], originals, rng)
        else:
            mutant = contents[k].changed(originals, rng)
        with limited_memory():
            return attacked(every[k], mutant, path, raw=raw)

    weakref.finalize(case, shutil.rmtree, folder, ignore_errors=True)
    return case
