"""The tasks of the paper, the data that stand for them, and their parts.

A task has a training part to choose on, a development part, a test part, and the training data of
the comparison. Where the data have no development part, the end of the training part is held out
(a tenth; of the 42 recordings of Act-Recog a quarter). With a limit, sequences are taken evenly
spread over a part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.datasets import DataSet, load
from studies.datasets.folder import is_there
from studies.packing import pack
from studies.structure_regularisation.protocol import Protocol
from trellis.corpus import Corpus, as_corpus
from trellis.datasets import stdlib_roles
from trellis.datasets.roles import TEMPLATES
from trellis.errors import DataError
from trellis.files import fingerprint as fingerprint_of_corpora

__all__ = ["TASKS", "Task", "TaskData", "available_tasks", "checked_tasks", "task_data"]


@dataclass(frozen=True)
class Task:
    """A task, and what the paper published about it."""

    name: str
    title: str
    data: str  # name of the data set (see :func:`studies.datasets.load`); "" for the embedded one
    difference: str = ""  # how the data differ from the paper's; "" if they do not
    published: float | None = None  # the paper's score (Table 1), in per cent
    benchmark: float | None = None  # score of the best system before (Table 1), in per cent
    n_raw: int | None = None  # the paper's number of raw features


_WORD_SEG: dict[str, Any] = {"published": 97.50, "benchmark": 97.19, "n_raw": 1_985_720}
TASKS = {
    task.name: task
    for task in (
        Task(
            "pos", "POS-Tagging", "ud_ewt",
            "web text (UD English EWT) instead of the Wall Street Journal, a third of its size",
            97.36, 97.33, 393_741,
        ),
        Task(
            "bio-ner", "Bio-NER", "jnlpba",
            "the same data, but no part-of-speech features; 18,546 training sentences, of which "
            "the paper used 17,484",
            72.43, 72.28, 403_192,
        ),
        Task(
            "word-seg", "Word-Seg (SXU)", "sxu",
            "the SXU corpus instead of MSR, a fifth of its size", **_WORD_SEG,
        ),
        Task(
            "word-seg-msr", "Word-Seg (MSR/10)", "msr",
            "a tenth of the MSR training data, with digits and Latin letters replaced by symbols",
            **_WORD_SEG,
        ),
        Task(
            "act-recog", "Act-Recog", "har",
            "smartphone recordings (HAPT, 12 labels, 42 training sequences) instead of Bao04",
            n_raw=1228,
        ),
        Task("chunking", "Chunking", "conll2000", "a task that is not in the paper"),
        Task(
            "roles", "Roles of identifiers", "",
            "a task that is not in the paper: the embedded data, Python's own source",
        ),
    )
}  # fmt: skip
"""The tasks by name."""

_SHARE_HELD_OUT = {"har": 0.25}

# The features of Sun, Wang & Li (2012) for word segmentation, as the paper has them.
_SEGMENTATION = """
char[-2..2]; char[-2..1] & char[-1..2]; char[-1] & char[1]
char[-2..1] == char[-1..2]; char[-3..1] == char[-1..3]
wordlist(char, 2..6); bos; eos
"""


@dataclass(frozen=True)
class TaskData:
    """The parts of a task; ``whole`` is what is trained on for the comparison."""

    task: str
    train: Corpus
    dev: Corpus
    test: Corpus
    whole: Corpus
    features: str
    scheme: str | None
    held_out: bool

    def facts(self) -> dict[str, Any]:
        """What the log says of the data: enough to choose, compare and report without them."""
        assert self.train.labels is not None
        gold = self.test.label_lists()
        return {
            "task": self.task,
            "curves": fingerprint_of_corpora(self.train, self.dev, self.test),
            "comparison": fingerprint_of_corpora(self.whole, self.dev, self.test),
            "n_train": len(self.train),
            "n_train_positions": self.train.n_positions,
            "n_dev": len(self.dev),
            "n_test": len(self.test),
            "n_test_positions": self.test.n_positions,
            "n_whole": len(self.whole),
            "n_labels": len(self.train.labels.classes),
            "mean_length": self.train.n_positions / len(self.train),
            "largest_value": _largest_value(self.train),
            "features": self.features,
            "scheme": self.scheme,
            "held_out": self.held_out,
            "lengths": self.test.lengths.tolist(),
            "gold": pack(gold),
        }


def checked_tasks(names: list[str]) -> list[str]:
    """The names of tasks, if all are known and none is named twice.

    Examples
    --------
    >>> checked_tasks(["pos", "parsing"])
    Traceback (most recent call last):
    trellis.errors.DataError: unknown task 'parsing'; known: pos, bio-ner, word-seg, ...
    """
    for i, name in enumerate(names):
        if name not in TASKS:
            raise DataError(f"unknown task {name!r}; known: {', '.join(TASKS)}")
        if name in names[:i]:
            raise DataError(f"task {name!r} is named twice")
    if not names:
        raise DataError(f"no task is named; known: {', '.join(TASKS)}")
    return names


def available_tasks(protocol: Protocol) -> list[str]:
    """The tasks that are run if none is named.

    All but the embedded one; the quick protocol makes do with the data that are there, or with the
    embedded ones if there are none.
    """
    paper = [task.name for task in TASKS.values() if task.data]
    if protocol.name != "quick":
        return paper
    return [name for name in paper if is_there(TASKS[name].data)] or ["roles"]


def task_data(name: str, protocol: Protocol) -> TaskData:
    """Load the data of a task and divide them."""
    found = load(TASKS[name].data) if TASKS[name].data else _roles(protocol)
    train, dev = found.train, found.dev
    held_out = dev is None
    if dev is None:
        share = _SHARE_HELD_OUT.get(TASKS[name].data, 0.1)
        n_rest = len(train) - max(1, round(share * len(train)))
        train, dev = train[:n_rest], train[n_rest:]
    train = _spread(train, protocol.train_limit).only_used_labels()
    return TaskData(
        task=name,
        train=train,
        dev=_spread(dev, protocol.test_limit),
        test=_spread(found.test, protocol.test_limit),
        whole=found.train.only_used_labels() if protocol.retrain else train,
        features=_SEGMENTATION if found.features == "wordseg" else found.features or "auto",
        scheme=found.scheme,
        held_out=held_out,
    )


def _roles(protocol: Protocol) -> DataSet:
    """The embedded data; parts share no module."""
    roles = stdlib_roles(max_tokens=protocol.tokens)
    rest, test = roles.split(0.25)
    train, dev = rest.split(0.2)
    parts = [as_corpus(part.tokens, part.labels) for part in (train, dev, test)]
    return DataSet("roles", parts[0], parts[1], parts[2], TEMPLATES, None)


def _spread(corpus: Corpus, limit: int | None) -> Corpus:
    """At most ``limit`` sequences, evenly spread."""
    if limit is None or len(corpus) <= limit:
        return corpus
    return corpus.take(np.linspace(0, len(corpus) - 1, limit).astype(np.int64))


def _largest_value(corpus: Corpus) -> float:
    values = None if corpus.features is None else corpus.features.values
    return 1.0 if values is None else float(np.abs(values).max(initial=1.0))
