"""Models with nothing set, against the best of many settings and against python-crfsuite.

    python -m benchmarks.defaults                         # an hour or two on one core
    python -m benchmarks.defaults --sizes 200 --no-peers  # minutes

Every task, with templates and with the feature dicts of sklearn-crfsuite's tutorial (letters and
sensors: with numbers), learned from 200, 2,000 and all training sentences (letters: 100 words and
all of a fold; sensors: 10 recordings and all), with all labels given or a quarter of them, drawn
anew with each seed. All settings are trained on the same data; the best of them, and the best of
three settings of python-crfsuite, are those with the best score on development data (the last tenth
of the training part where there is none). Then all are scored: on development data (the figures
that defaults may be chosen by), or with ``--parts dev test`` on test data too, where the regret of
the default against the best setting is one that nobody has optimised.

Regrets are in points of F1 (accuracy for tags, letters and sensors), with the 95 % interval of a
paired bootstrap over the samples scored, the seeds of a sample together. Seconds are CPU seconds of
training from samples in memory, the mean over seeds; those of python-crfsuite are without making
its items. With ``--log FILE`` rows are kept, and a run that was cut off goes on from there; such a
run cannot be recorded, since it has not measured all that it shows.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import crfsuite
from benchmarks.options import begin
from benchmarks.same_features import items
from benchmarks.side_by_side import Table, short
from benchmarks.tutorial import with_dicts
from studies.datasets import load
from studies.datasets.ocr import load_ocr
from trellis import ChainCRF, ChainPerceptron, Corpus, MaxMargin
from trellis.corpus import as_corpus
from trellis.evaluation import paired_bootstrap, span_scores, token_accuracy
from trellis.features.encoder import encoder_for
from trellis.models.linear_model import LinearModel

Labels = list[list[str]]
Setting = tuple[type, dict[str, Any]]

_FALLING = {"averaged": False, "encoding": "given", "solver": "sgd"}
SETTINGS: dict[str, Setting] = {
    "default": (ChainCRF, {}),
    "of 0.1": (ChainCRF, {"l2": 1.0, "decay": 0.75, "max_passes": 12, **_FALLING}),
    "slow": (ChainCRF, {"l2": 0.1, "decay": 0.95, "max_passes": 60, **_FALLING}),
    "l2 0.03": (ChainCRF, {"l2": 0.03}),
    "l2 0.3": (ChainCRF, {"l2": 0.3}),
    "l2 1": (ChainCRF, {"l2": 1.0}),
    "given": (ChainCRF, {"encoding": "given"}),
    "iobes": (ChainCRF, {"encoding": "iobes"}),
    "adf": (ChainCRF, {"solver": "adf", "l2": 0.1}),
    "lbfgs 0.1": (ChainCRF, {"solver": "lbfgs", "l2": 0.1}),
    "lbfgs 1": (ChainCRF, {"solver": "lbfgs", "l2": 1.0}),
    "perceptron": (ChainPerceptron, {}),
    "max-margin": (MaxMargin, {}),
}
"""Settings that are tried; «of 0.1» is the default of version 0.1."""

SLOW = {"lbfgs 0.1": 500, "lbfgs 1": 500, "slow": 2000}
"""Settings for up to so many samples of text, beyond which they take long and win nothing."""

PEERS: dict[str, dict[str, Any]] = {
    "default": {"algorithm": "lbfgs"},
    "tutorial": {"algorithm": "lbfgs", "c1": 0.1, "c2": 0.1, "max_iterations": 100},
    "perceptron": {"algorithm": "ap", "max_iterations": 10},
}
"""python-crfsuite's default, the settings of sklearn-crfsuite's tutorial, and its perceptron."""


@dataclass(frozen=True)
class Case:
    """A task, what its samples are made of, how many there are, and how many labels."""

    task: str
    form: str
    size: int  # 0: all
    labels: str

    def __str__(self) -> str:
        return f"{self.task}, {self.form}, {self.size or 'all'}, {self.labels}"


@dataclass(frozen=True)
class Parts:
    """Training, development and test part of a task; the tag scheme, if F1 is the measure."""

    train: Corpus
    dev: Corpus
    test: Corpus
    features: str
    scheme: str | None

    def score(self, gold: Labels, predicted: Labels) -> float:
        """F1 or accuracy, in per cent."""
        if self.scheme is None:
            return 100 * token_accuracy(gold, predicted)
        return 100 * span_scores(gold, predicted, self.scheme).f1


def parts(task: str, form: str) -> Parts:
    data = load(task)
    train, dev, test = data.train, data.dev, data.test
    if task == "ocr":  # whole folds are to test on
        corpus, folds = load_ocr()
        own = corpus.take(np.flatnonzero(folds == 0))
        order = np.random.default_rng(5).permutation(len(own))
        cut = 2 * len(own) // 3
        train, dev = own.take(np.sort(order[:cut])), own.take(np.sort(order[cut:]))
    elif dev is None:
        cut = len(train) - round((0.33 if task == "har" else 0.1) * len(train))
        train, dev = train[:cut], train[cut:]
    if form == "dicts":
        return Parts(*map(with_dicts, (train, dev, test)), "auto", data.scheme)
    return Parts(train, dev, test, data.features or "auto", data.scheme)


def drawn(train: Corpus, case: Case, seed: int) -> Corpus:
    """The samples and labels that a seed stands for."""
    rng = np.random.default_rng(seed)
    if case.size and case.size < len(train):
        train = train.take(np.sort(rng.choice(len(train), case.size, replace=False)))
    train = train.only_used_labels()
    if case.labels == "all":
        return train
    kept = [[y if rng.random() < 0.25 else None for y in s] for s in train.label_lists()]
    return as_corpus(train, kept)


class Contest:
    """What the systems predicted on development and test data, seed by seed."""

    def __init__(self, these: Parts, scored: list[str]) -> None:
        self.parts, self.scored = these, {"dev", *scored}
        self.predicted: dict[str, list[dict[str, Labels]]] = {}
        self.seconds: dict[str, list[float]] = {}

    def add(self, name: str, seconds: float, predict: Callable[[Corpus], Labels]) -> None:
        """Let a system predict that took so long to train."""
        run = {part: predict(getattr(self.parts, part)) for part in self.scored}
        self.predicted.setdefault(name, []).append(run)
        self.seconds.setdefault(name, []).append(seconds)

    def gold(self, part: str) -> Labels:
        """The labels to find."""
        labels: Labels = getattr(self.parts, part).label_lists()
        return labels

    def score(self, name: str, part: str) -> float:
        """Mean score of a system over seeds."""
        gold = self.gold(part)
        return float(np.mean([self.parts.score(gold, run[part]) for run in self.predicted[name]]))

    def best(self, names: list[str]) -> str:
        """The system with the best score on development data."""
        return max(names, key=lambda name: self.score(name, "dev"))

    def compare(self, name: str, other: str, part: str) -> str:
        """Difference of two systems and its interval; a star where it is not 0."""
        scheme, n = self.parts.scheme, len(self.predicted[name])
        between = [] if scheme is None else ["O"]

        def joined(runs: list[Labels]) -> Labels:
            return [
                [y for labels in of_sample for y in (*labels, *between)]
                for of_sample in zip(*runs, strict=True)
            ]

        outcome = paired_bootstrap(
            joined([self.gold(part)] * n),
            *(joined([run[part] for run in self.predicted[s]]) for s in (name, other)),
            "accuracy" if scheme is None else "f1",
            scheme=scheme or "BIO",
            n_resamples=2000,
        )
        low, high = (100 * end for end in outcome.interval)
        star = "*" if low > 0 or high < 0 else ""
        difference = self.score(name, part) - self.score(other, part)
        return f"{difference:+.2f} [{low:+.2f}, {high:+.2f}]{star}".replace("-", "−")


def train(setting: Setting, these: Parts, corpus: Corpus, seed: int) -> tuple[LinearModel, float]:
    kind, options = setting
    started = time.process_time()
    model = kind(these.features, random_state=seed, **options).fit(corpus)
    return model, time.process_time() - started


def held(case: Case, scored: list[str], seeds: int, peers: bool) -> Contest:
    """The contest of a case."""
    these = parts(case.task, case.form)
    contest = Contest(these, scored)
    dense = case.form == "numbers"
    chosen = {
        name: setting
        for name, setting in SETTINGS.items()
        if dense or (case.size or 10**9) <= SLOW.get(name, 10**9)
        if name not in ("iobes", "given") or these.scheme == "BIO"
    }
    for seed in range(seeds):
        corpus = drawn(these.train, case, seed)
        for name, setting in chosen.items():
            model, seconds = train(setting, these, corpus, seed)
            contest.add(name, seconds, model.predict)
        if peers and case.labels == "all":
            for name, told in PEERS.items():
                with peer(these.features, corpus, told) as (predict, seconds):
                    contest.add(f"crfsuite {name}", seconds, predict)
    return contest


def row_of(case: Case, contest: Contest, part: str) -> list[str]:
    """What a contest says of the default, by the scores of a part."""
    systems = list(contest.predicted)
    best = contest.best([n for n in systems if n in SETTINGS and SETTINGS[n][0] is ChainCRF])
    row = [case.task, case.form, str(case.size or "all"), case.labels]
    row += [f"{contest.score('default', part):.2f}", f"{best} {contest.score(best, part):.2f}"]
    row += ["" if best == "default" else contest.compare("default", best, part)]
    row += [contest.compare("default", "of 0.1", part)]
    others = ("perceptron", "max-margin")
    row += [f"{contest.score(name, part):.2f}" if name in systems else "" for name in others]
    theirs = [name for name in systems if name.startswith("crfsuite")]
    if theirs:
        best = contest.best(theirs)
        row += [contest.compare("default", "crfsuite default", part)]
        row += [f"{best.removeprefix('crfsuite ')} {contest.compare('default', best, part)}"]
    else:
        row += ["", ""]
    timed = ("default", "of 0.1", "crfsuite default")
    return row + [
        short(float(np.mean(contest.seconds[name]))) if name in systems else "" for name in timed
    ]


class peer:  # noqa: N801 (it reads as a statement)
    """A model of python-crfsuite, trained on the features that ours have, while it is needed."""

    def __init__(self, features: str, corpus: Corpus, told: dict[str, Any]) -> None:
        self.features, self.corpus, self.told = features, corpus, told

    def __enter__(self) -> tuple[Callable[[Corpus], Labels], float]:
        encoder = encoder_for(self.features, self.corpus)
        self.file = tempfile.NamedTemporaryFile(suffix=".crfsuite")
        encoded = encoder.learn(self.corpus)
        _, seconds = crfsuite.train(
            self.file.name, items(encoded), self.corpus.label_lists(), **self.told
        )
        tag = crfsuite.tagger(self.file.name)
        return lambda corpus: tag(items(encoder.encode(corpus))), seconds

    def __exit__(self, *_: Any) -> None:
        self.file.close()


def cases(args: Any) -> Iterator[Case]:
    sizes = [0 if size == "all" else int(size) for size in args.sizes]
    for size in sizes:
        for labels in args.labels:
            for task in args.tasks:
                for form in ("numbers",) if task in ("har", "ocr") else args.forms:
                    few = {"har": 10, "ocr": 100}.get(task)
                    if few is not None and size == 2000:
                        continue  # all that there is are fewer
                    yield Case(task, form, few if few and size else size, labels)


HEADER = (
    "task", "form", "size", "labels", "default", "best setting", "default − best",
    "default − that of 0.1", "perceptron", "max-margin", "default − crfsuite default",
    "default − crfsuite, best of three", "s", "s, 0.1", "s, crfsuite",
)  # fmt: skip


def main() -> None:
    tasks = ["conll2000", "ud_ewt", "jnlpba", "sxu", "har", "ocr"]
    args = begin(
        __doc__,
        tasks=(tasks, ["conll2000", "sxu", "ocr"]),
        sizes=(["200", "2000", "all"], ["200"]),
        forms=(["dicts", "templates"], ["dicts", "templates"]),
        labels=(["all", "quarter"], ["all", "quarter"]),
        seeds=(5, 1, "of 200 samples; of 2,000 and of all there are fewer"),
        parts=(["dev"], ["dev"], "the parts to score: dev, test or both"),
        no_peers=(False, False, "without python-crfsuite"),
        peer_size=(2000, 2000, "python-crfsuite learns from up to so many samples; 0: from all"),
        log=("", "", "file of rows"),
    )
    peers = not args.no_peers and crfsuite.is_there()
    kept = _rows(args.log)
    if args.record and kept:
        raise ValueError("--record: the file of --log holds rows of an earlier run; take a new one")
    tables = {part: Table(f"Defaults, scored on {part} data", *HEADER) for part in args.parts}
    for case in cases(args):
        keys = {part: f"{case}, {part}, {peers}" for part in args.parts}
        if not kept.keys() >= set(keys.values()):
            n = args.seeds if case.size and case.size <= 200 else max(1, 2 * args.seeds // 5)
            small = case.size or (10**9 if case.form != "numbers" else 0)
            with_peers = peers and (not args.peer_size or small <= args.peer_size)
            contest = held(case, args.parts, n, with_peers)
            for part, key in keys.items():
                kept[key] = row_of(case, contest, part)
                if args.log:
                    with Path(args.log).open("a", encoding="utf-8") as file:
                        file.write(json.dumps([key, kept[key]]) + "\n")
        for part, key in keys.items():
            tables[part].add(*kept[key])
    for table in tables.values():
        table.show()


def _rows(log: str) -> dict[str, list[str]]:
    path = Path(log) if log else None
    if path is None or not path.exists():
        return {}
    return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
