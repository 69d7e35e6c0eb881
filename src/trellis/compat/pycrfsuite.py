"""python-crfsuite on Trellis: ``from trellis.compat import pycrfsuite``.

    trainer = pycrfsuite.Trainer("lbfgs", {"c1": 0.1, "c2": 0.1})
    trainer.append(xseq, yseq)
    trainer.train("ner.trellis")
    tagger = pycrfsuite.Tagger()
    tagger.open("ner.trellis")
    tagger.tag(xseq)

Model files are Trellis's (:func:`trellis.load_model` reads them as a :class:`trellis.ChainCRF`),
not CRFsuite's. Which learner stands for which algorithm: :mod:`trellis.compat.training`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from trellis.compat.dump import ParsedDump, dump_lines, parsed
from trellis.compat.items import ItemError, ItemSequence, as_items, as_labels, corpus_of, labelled
from trellis.compat.training import ALGORITHMS, as_chain_crf
from trellis.compat.training_log import TrainingLog, held_out, iteration, iteration_lines
from trellis.corpus import Corpus
from trellis.errors import CorruptModelError, DataError
from trellis.files import load_model
from trellis.models import ChainCRF

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "ItemError",
    "ItemSequence",
    "Tagger",
    "Trainer",
]

CRFSUITE_VERSION = "0.12.2"
"""The version of CRFsuite whose manners these are."""

_ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}
_MAGIC = b"lCRF"  # what CRFsuite's own model files begin with


class CRFSuiteError(Exception):
    """Kept for ``except`` clauses; training raises what says more, mostly ValueError."""


def _different(n_items: int, n_labels: int) -> DataError:
    return DataError(f"The numbers of items and labels differ: |x| = {n_items}, |y| = {n_labels}")


class BaseTrainer:
    """Sequences to learn from, and the training algorithm.

    Parameters
    ----------
    algorithm : "lbfgs", "l2sgd", "ap", "pa" or "arow"
        See :mod:`trellis.compat.training`; None: "lbfgs".
    params : dict, optional
        Parameters of the algorithm, by the names of :meth:`params`.
    verbose : bool
        Whether to print the log of training, when it has ended.

    Attributes
    ----------
    model : trellis.ChainCRF or None
        What was trained last.
    """

    verbose: bool = True
    model: ChainCRF | None = None
    _algorithm = ALGORITHMS["lbfgs"]
    _event: tuple[str, str, Any] | None = None

    # Subclasses need not call our constructor, so that these are made when they are needed.

    @cached_property
    def _sequences(self) -> list[tuple[list[Any], list[Any], int]]:
        return []

    @cached_property
    def _options(self) -> dict[str, Any]:
        return {name: option.default for name, option in self._algorithm.parameters.items()}

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    # ---------------------------------------------------------------- data

    def append(self, xseq: Any, yseq: Any, group: int = 0) -> None:
        """Add a sequence and its labels; they are looked at when training begins.

        Parameters
        ----------
        xseq : list of items or ItemSequence
            See :class:`ItemSequence` for what an item may be.
        yseq : list of str
            Its labels; also None (not annotated) and sets of labels, as everywhere in Trellis.
        group : int
            Number of a group, which :meth:`train` may hold out.
        """
        items, labels = as_items(xseq), as_labels(yseq)
        if len(items) != len(labels):
            raise _different(len(items), len(labels))
        self._sequences.append((items, labels, int(group)))

    def clear(self) -> None:
        """Forget all sequences."""
        self._sequences = []

    # ---------------------------------------------------------------- parameters

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the algorithm; its parameters get their defaults."""
        name = _ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS or type != "crf1d":
            raise ValueError(
                f"Bad arguments: algorithm={algorithm!r}, type={type!r}; expected lbfgs, l2sgd, "
                "ap, pa or arow, and crf1d"
            )
        self._algorithm = ALGORITHMS[name]
        vars(self).pop("_options", None)

    def params(self) -> list[str]:
        """Names of the parameters of the algorithm."""
        return list(self._options)

    def get(self, name: str) -> Any:
        """Value of a parameter."""
        self._check_known(name)
        return self._options[name]

    def set(self, name: str, value: Any) -> None:
        """Set a parameter."""
        self._check_known(name)
        try:
            self._options[name] = self._algorithm.parameters[name].kind(value)
        except (TypeError, ValueError):
            raise ValueError(f"the parameter {name} cannot be {value!r:.60}") from None

    def get_params(self) -> dict[str, Any]:
        """All parameters."""
        return dict(self._options)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set some parameters."""
        for name, value in params.items():
            self.set(name, value)

    def help(self, name: str) -> str:
        """What a parameter means."""
        self._check_known(name)
        return self._algorithm.parameters[name].help

    def _check_known(self, name: str) -> None:
        if name not in self._options:
            raise ValueError(f"Parameter not found: {name}; there are {', '.join(self._options)}")

    # ---------------------------------------------------------------- training

    def train(self, model: str | os.PathLike[Any] | None, holdout: int = -1) -> None:
        """Learn from all sequences, and write the model.

        Parameters
        ----------
        model : path
            The file; none is written if this is None or empty.
        holdout : int
            Group that is not learned from, and scored at the end; -1: none.
        """
        self._before_train()
        parts = [s for s in self._sequences if s[2] != holdout or holdout < 0]
        unseen = [s for s in self._sequences if s[2] == holdout and holdout >= 0]
        told = [f"{key}: {value}\n" for key, value in self._options.items()]
        group = [f"Holdout group: {holdout}\n\n"] if holdout >= 0 else []
        self._say("start", [*group, "Feature generation\n", "type: CRF1d\n"])
        clock = time.perf_counter()
        corpus = _corpus(parts)
        dev = _corpus(unseen) if unseen else None
        n_attributes = 0 if corpus.features is None else len(corpus.features.names)
        seconds = time.perf_counter() - clock
        made = [f"Number of features: {n_attributes}\n", f"Seconds required: {seconds:.3f}\n\n"]
        self._say("featgen_end", made, {"featgen_num_features": n_attributes,
                                        "featgen_seconds": seconds})  # fmt: skip
        self._say("prepared", [f"Learner: {self._algorithm.learner}\n", *told, "\n"])
        clock = time.perf_counter()
        self.model = as_chain_crf(self._algorithm.train(corpus, self._options))
        seconds = time.perf_counter() - clock
        records = [iteration(record) for record in self.model.history_]
        if dev is not None and records:
            gold, labels = dev.label_lists(), list(self.model.classes_)
            records[-1] |= held_out(gold, self.model.predict(dev), labels)
        for info in records:
            self._say("iteration", iteration_lines(info), info)
        ended = [f"Training ended: {self.model.stop_reason_}\n",
                 f"Total seconds required for training: {seconds:.3f}\n\n"]  # fmt: skip
        self._say("optimization_end", ended, {"training_seconds": seconds})
        clock = time.perf_counter()
        if model:
            self.model.save(model)
        seconds = time.perf_counter() - clock
        stored = ["Storing the model\n", f"Seconds required: {seconds:.3f}\n", "\n"]
        self._say("end", stored, {"storing_seconds": seconds})

    def message(self, message: str) -> None:
        """Take a message of training: print it, if ``verbose``. For subclasses to override."""
        if self.verbose:
            sys.stdout.write(message)

    def _before_train(self) -> None:
        """Prepare for a run; for subclasses."""

    def _say(self, event: str, lines: list[str], info: Any = None) -> None:
        """Send messages; with the last one, what they were about is known."""
        for line in lines[:-1]:
            self.message(line)
        self._event = (event, "".join(lines), info)
        self.message(lines[-1])
        self._event = None


class Trainer(BaseTrainer):
    """Sequences to learn from, and the training algorithm.

    Beside what :class:`BaseTrainer` has, it keeps a log, and calls ``on_start``,
    ``on_featgen_end``, ``on_prepared``, ``on_iteration``, ``on_optimization_end`` and ``on_end``,
    if ``verbose``, which print what they get; subclasses may override them.

    Parameters
    ----------
    algorithm : "lbfgs", "l2sgd", "ap", "pa" or "arow"
        See :mod:`trellis.compat.training`; None: "lbfgs".
    params : dict, optional
        Parameters of the algorithm, by the names of :meth:`params`.
    verbose : bool
        Whether to print the log of training, when it has ended.

    Attributes
    ----------
    logparser : TrainingLog or None
        The log of the last run.
    model : trellis.ChainCRF or None
        What was trained last.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from trellis.compat import pycrfsuite
    >>> trainer = pycrfsuite.Trainer(verbose=False)
    >>> for _ in range(3):
    ...     trainer.append([["w=the"], ["w=cat"]], ["D", "N"])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model"
    >>> trainer.train(file)
    >>> with pycrfsuite.Tagger().open(file) as tagger:
    ...     tagger.tag([["w=the"], ["w=cat"]])
    ['D', 'N']
    """

    logparser: TrainingLog | None = None

    def _before_train(self) -> None:
        self.logparser = TrainingLog()

    def message(self, message: str) -> None:
        """Take a message of training: keep it, and tell the method that is for it."""
        assert self.logparser is not None
        self.logparser.log.append(message)
        if self._event is None:
            return
        event, text, info = self._event
        if event == "iteration":
            self.logparser.iterations.append(info)
        elif info is not None:
            vars(self.logparser).update(info)
        if self.verbose:
            more = (info,) if event == "iteration" else ()
            getattr(self, f"on_{event}")(text, *more)

    def on_start(self, log: str) -> None:
        """Training begins."""
        sys.stdout.write(log)

    def on_featgen_end(self, log: str) -> None:
        """The attributes are known."""
        sys.stdout.write(log)

    def on_prepared(self, log: str) -> None:
        """Iterations are about to begin."""
        sys.stdout.write(log)

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """A pass or iteration was made."""
        sys.stdout.write(log)

    def on_optimization_end(self, log: str) -> None:
        """The iterations have ended."""
        sys.stdout.write(log)

    def on_end(self, log: str) -> None:
        """The model is written."""
        sys.stdout.write(log)


def _corpus(sequences: list[tuple[list[Any], list[Any], int]]) -> Corpus:
    if not any(items for items, _, _ in sequences):
        raise DataError("there is nothing to learn from: append sequences first")
    return labelled(corpus_of(x for x, _, _ in sequences), (y for _, y, _ in sequences))


class Tagger:
    """A model that labels sequences.

    :meth:`open` it, then :meth:`tag`. :meth:`probability` and :meth:`marginal` are about the
    sequence that was given last, to :meth:`set` or :meth:`tag`.
    """

    def __init__(self) -> None:
        self._model: ChainCRF | None = None
        self._labels: list[str] = []
        self._size: int | None = None
        self._forget()

    @classmethod
    def of(cls, model: ChainCRF, labels: list[str] | None = None) -> Self:
        """A tagger with a model that is in memory; ``labels`` are its labels in another order."""
        tagger = cls()
        tagger._model = as_chain_crf(model)
        tagger._labels = list(model.classes_) if labels is None else list(labels)
        return tagger

    # ---------------------------------------------------------------- models

    def open(self, name: str | os.PathLike[Any]) -> contextlib.closing[Self]:
        """Read a model file; the answer can be used in a ``with`` statement."""
        path = Path(os.fsdecode(name))
        with path.open("rb") as file:
            _refuse_theirs(file.read(len(_MAGIC)), str(path))
        try:
            model = as_chain_crf(load_model(path))
        except CorruptModelError as error:
            raise CorruptModelError(f"Invalid model file: {error}") from None
        self._take(model, path.stat().st_size)
        return contextlib.closing(self)

    def open_inmemory(self, value: bytes) -> contextlib.closing[Self]:
        """Take a model from the bytes of a model file."""
        _refuse_theirs(value[: len(_MAGIC)], "the model")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(value)
            return self.open(path)

    def _take(self, model: ChainCRF, size: int) -> None:
        self._model, self._labels, self._size = model, list(model.classes_), size
        self._forget()

    def close(self) -> None:
        """Forget the model."""
        self._model, self._size = None, None
        self._forget()

    @property
    def model(self) -> ChainCRF:
        """The model itself."""
        if self._model is None:
            raise DataError("The tagger is not opened")
        return self._model

    # ---------------------------------------------------------------- sequences

    def _forget(self) -> None:
        self._corpus = corpus_of([[]])
        self._chances: Any = None

    def labels(self) -> list[str]:
        """The labels."""
        self.model  # noqa: B018 (refuses a closed tagger)
        return list(self._labels)

    def set(self, xseq: Any) -> None:
        """Take a sequence of items (see :class:`ItemSequence`), for later questions."""
        self.model  # noqa: B018 (refuses a closed tagger)
        self._corpus, self._chances = corpus_of([xseq]), None

    def tag(self, xseq: Any = None) -> list[str]:
        """The best labels of a sequence, by default of the one that was given last."""
        model = self.model
        if xseq is not None:
            self.set(xseq)
        (labels,) = model.predict(self._corpus)
        return list(labels)

    def probability(self, yseq: Any) -> float:
        """p(yseq | xseq) of the sequence that was given last (1 if it is empty)."""
        model, labels = self.model, as_labels(yseq)
        if len(labels) != self._corpus.n_positions:
            raise _different(self._corpus.n_positions, len(labels))
        for label in labels:
            if isinstance(label, str):
                self._check_label(label)
        return float(np.exp(model.log_prob(labelled(self._corpus, [labels]))[0]))

    def marginal(self, y: str, pos: int) -> float:
        """Probability of a label at a position of the sequence that was given last."""
        model = self.model
        label = self._check_label(y)
        if not 0 <= pos < self._corpus.n_positions:
            raise DataError(
                f"The position {pos} is out of range of {self._corpus.n_positions} items"
            )
        if self._chances is None:
            (self._chances,) = model.predict_marginals(self._corpus)
        return float(self._chances[pos, label])

    def _check_label(self, label: str) -> int:
        try:
            return self.model.classes_.index(label)
        except ValueError:
            raise RuntimeError(
                f"Failed to convert into label identifier: {label}; "
                f"the model has {', '.join(self.labels())}"
            ) from None

    # ---------------------------------------------------------------- what is in it

    def info(self) -> ParsedDump:
        """Labels, attributes and weights, by name."""
        model = self._model
        if model is None:
            _closed()
        return parsed(model, self._labels, self.size())

    def size(self) -> int:
        """Bytes of the model as a file."""
        if self._size is None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model"
                self.model.save(path)
                self._size = path.stat().st_size
        return self._size

    def dump(self, filename: str | os.PathLike[Any] | None = None) -> None:
        """Write labels, attributes and weights as text, to a file or to standard output."""
        text = "".join(dump_lines(self.info()))
        if filename is None:
            sys.stdout.write(text)
        else:
            Path(os.fsdecode(filename)).write_text(text, encoding="utf-8")


def _closed() -> NoReturn:
    raise RuntimeError("Tagger is closed")


def _refuse_theirs(begin: bytes, what: str) -> None:
    if begin == _MAGIC:
        raise CorruptModelError(
            f"{what} is in CRFsuite's own format, which Trellis does not read; train the model "
            "anew with trellis.compat"
        )
