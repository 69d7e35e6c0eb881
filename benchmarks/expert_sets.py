"""Sets of experts to combine: real systems, weak taggers that are trained here, generated answers.

A set holds what p experts answer to S questions, the right answers, and how answers are judged:

=================  =====  =================================================  ===================
name               p      questions                                          metric
=================  =====  =================================================  ===================
conll2003          14     sentences, named entities                          F1 of spans
morphseg-ces       13     Czech words, a label a character                   words all right
morphseg-eng       13     English words, answers of different lengths        words all right
jnlpba             7      sentences, biomedical entities, weak taggers       F1 of spans
letters            7      handwritten letters, weak classifiers              letters right
fields             5      generated, each expert knows two of ten fields     fields right
conll2000          7      sentences, chunks, weak taggers                    F1 of spans
code-words         7      sentences of Python's manual, weak taggers         F1 of spans
movements          7      windows of sensors, weak classifiers               windows right
transcripts        5      sentences with words wrong, left out and too many  word error rate
skewed             7      generated, two good experts among bad ones         positions right
=================  =====  =================================================  ===================

Methods may be developed on ``conll2000``, ``code-words``, ``movements``, ``transcripts`` and
``skewed`` (:data:`DEVELOPMENT`); the others are there to test them.

Weak taggers learn from a few hundred sentences each, no two from the same ones, with other features
and other learners, so that they err in other places. They see words only. Those of ``jnlpba`` learn
from the training file and answer sentences of the test file, which come from other abstracts; those
of ``conll2000`` learn from some sentences of the training file and answer others of it, so that the
test file of that task is left alone. Their designs were settled on ``conll2000``. Weak classifiers
of letters likewise learn from 100 to 300 letters each, and see some of the pixels; those of
movements (HAPT, the training part) from 30 to 80 windows, and see a tenth of the features.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.transcripts import Answers, transcripts
from studies.datasets import ExpertData, data_folder, load, load_experts
from studies.datasets.ocr import word_images
from trellis import ChainCRF, ChainPerceptron, MaxMargin, __version__
from trellis.datasets import artificial_experts
from trellis.demo.manual import code_words
from trellis.demo.taggers import weak_taggers as taggers_of_code
from trellis.experts import ExpertOutputs, as_outputs, from_models
from trellis.experts.quality import Quality
from trellis.files import atomic_write

Labels = list[list[str]]
Outputs = ExpertOutputs | Answers


@dataclass(frozen=True)
class ExpertSet:
    """What experts answer, the right answers, and how answers are judged."""

    name: str
    outputs: Outputs
    """``outputs[j][i]``, lists of labels, where answers differ in length; else arrays."""
    gold: Labels
    scheme: str | None
    """Tag scheme of the labels."""
    metric: str
    """One of :data:`trellis.experts.quality.METRICS`."""
    words: list[list[str]] | None = None
    """What was asked."""

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def quality(self) -> Quality:
        """How answers are scored."""
        return Quality(self.metric, self.scheme)

    def score(self, answers: Labels) -> float:
        """Score of answers to all samples, in per cent."""
        return float(self.quality.score(self.quality.counts(self.gold, answers).sum(axis=0)))

    @property
    def aligned(self) -> bool:
        """Whether all answers to a question have one length."""
        return isinstance(self.outputs, ExpertOutputs)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the experts."""
        if isinstance(self.outputs, ExpertOutputs):
            return self.outputs.names
        return tuple(f"expert {j + 1}" for j in range(len(self.outputs)))

    def answers(self, expert: int) -> Labels:
        """What an expert answers by itself; where it says nothing, the most frequent gold label."""
        (usual, _), *_ = Counter(chain(*self.gold)).most_common(1)
        if isinstance(self.outputs, ExpertOutputs):
            said = self.outputs.codes[:, expert]
            code = self.outputs.labels.index(usual)
            return self.outputs.lists(np.where(said < 0, code, said))
        return [answer or [] for answer in self.outputs[expert]]


def take(outputs: Outputs, samples: Sequence[int] | np.ndarray) -> Outputs:
    """Answers to some questions."""
    if isinstance(outputs, ExpertOutputs):
        return outputs.take(np.asarray(samples, np.int64))
    return [[column[i] for i in samples] for column in outputs]


# ---------------------------------------------------------------------------- real systems


def conll2003_experts(n: int | None = None, seed: int = 0) -> ExpertSet:
    """14 recognisers of named entities on 3,453 sentences."""
    return _of_systems(_sampled(load_experts("conll2003"), n, seed), "span-f1")


def czech_morphemes(n: int | None = None, seed: int = 0) -> ExpertSet:
    """13 segmentations of Czech words: B and I of characters; None where it spells another word."""
    return _of_systems(_sampled(load_experts("morphseg-ces"), n, seed), "exact")


def english_morphemes(n: int | None = 4000, seed: int = 0) -> ExpertSet:
    """13 canonical segmentations of English words, which differ in length: a sample of them."""
    return _of_systems(_sampled(load_experts("morphseg-eng"), n, seed), "exact")


def _sampled(data: ExpertData, n: int | None, seed: int) -> ExpertData:
    """Some samples, drawn by seed, in the order of the file."""
    if n is None or n >= len(data):
        return data
    return data.take(np.sort(np.random.default_rng(seed).permutation(len(data))[:n]))


def _of_systems(data: ExpertData, metric: str) -> ExpertSet:
    outputs: Outputs = data.outputs
    if data.aligned:
        outputs = as_outputs(data.outputs, names=data.names)
    return ExpertSet(data.name, outputs, data.gold, data.scheme, metric, data.inputs)


# ---------------------------------------------------------------------------- weak taggers


class Dictionary:
    """The most frequent label of a word in training, else that of its last three letters, else O.

    A label that goes on with a span begins one where there is none to go on with.
    """

    def fit(self, samples: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> Dictionary:
        """Count labels of words and of endings."""
        counts: dict[str, Counter[str]] = {}
        for words, said in zip(samples, labels, strict=True):
            for word, label in zip(words, said, strict=True):
                for key in (word, "-" + word[-3:]):
                    counts.setdefault(key, Counter())[label] += 1
        self._label = {key: count.most_common(1)[0][0] for key, count in counts.items()}
        return self

    def predict(self, samples: Sequence[Sequence[str]]) -> Labels:
        """Labels of sentences."""
        return [self._labels(words) for words in samples]

    def _labels(self, words: Sequence[str]) -> list[str]:
        labels = ["O"]
        for word in words:
            label = self._label.get(word) or self._label.get("-" + word[-3:]) or "O"
            if label[:1] == "I" and labels[-1][1:] != label[1:]:
                label = "B" + label[1:]
            labels.append(label)
        return labels[1:]


@dataclass(frozen=True)
class Design:
    """A weak tagger: learner, features, and the number of sentences that it learns from."""

    learner: Callable[..., Any]
    features: str
    n: int

    def fit(self, words: Labels, labels: Labels, seed: int) -> Any:
        """The trained tagger."""
        if not self.features:
            return self.learner().fit(words, labels)
        return self.learner(self.features, random_state=seed).fit(words, labels)


DESIGNS: Mapping[str, Design] = {
    "CRF, spelling": Design(ChainCRF, "suffix(word, 1..2); short_shape(word)", 200),
    "CRF, words": Design(ChainCRF, "word[-1..0]", 400),
    "CRF, neighbours": Design(ChainCRF, "word[-1]; word[1]; short_shape(word)[-1..1]", 400),
    "perceptron, letters": Design(ChainPerceptron, "ngrams(word, 2..3)", 200),
    "perceptron, pairs": Design(
        ChainPerceptron, "word[-1..0] & word[0..1]; suffix(word, 1..2)", 300
    ),
    "max-margin, beginnings": Design(MaxMargin, "prefix(word, 1..4); short_shape(word)[0..1]", 300),
    "dictionary": Design(Dictionary, "", 500),
}
"""Seven weak taggers."""


def jnlpba_taggers(
    cache: str | Path | None = None, n: int = 3000, seed: int = 0, share: float = 1.0
) -> ExpertSet:
    """Weak taggers of biomedical entities; ``share``: of the sentences that taggers learn from."""
    return _cached("jnlpba", _jnlpba, cache, n, seed, share)


def conll2000_taggers(
    cache: str | Path | None = None, n: int = 3000, seed: int = 0, share: float = 1.0
) -> ExpertSet:
    """Weak taggers of chunks; ``share``: of the sentences that taggers learn from."""
    return _cached("conll2000", _conll2000, cache, n, seed, share)


def code_word_taggers(
    cache: str | Path | None = None, n: int | None = None, seed: int = 0, share: float = 1.0
) -> ExpertSet:
    """The demo's six taggers of code in Python's manual, taught by 100 sentences each; a rule."""
    return _cached("code-words", _code_words, cache, n, seed, share)


def weak_taggers(words: Labels, labels: Labels, seed: int, share: float = 1.0) -> dict[str, Any]:
    """Train the seven designs, each on sentences of its own, the first ones that are left."""
    sizes = [round(share * design.n) for design in DESIGNS.values()]
    if sum(sizes) > len(words):
        raise ValueError(f"{len(words)} sentences for taggers that learn from {sum(sizes)}")
    parts = pairwise(accumulate(sizes, initial=0))
    return {
        name: design.fit(words[a:b], labels[a:b], seed)
        for (name, design), (a, b) in zip(DESIGNS.items(), parts, strict=True)
    }


def n_taught(share: float = 1.0) -> int:
    """How many sentences the seven designs learn from together."""
    return sum(round(share * design.n) for design in DESIGNS.values())


Made = tuple[ExpertOutputs, Labels, list[list[str]]]


def _jnlpba(n: int, seed: int, share: float) -> Made:
    data, rng = load("jnlpba"), np.random.default_rng(seed)
    taught = _sentences(data.train, rng.permutation(len(data.train))[: n_taught(share)])
    asked = _sentences(data.test, rng.permutation(len(data.test))[:n])
    return _answered(weak_taggers(*taught, seed, share), *asked)


def _conll2000(n: int, seed: int, share: float) -> Made:
    data = load("conll2000")
    order = np.random.default_rng(seed).permutation(len(data.train))
    first = n_taught(share)
    taught = _sentences(data.train, order[:first])
    asked = _sentences(data.train, order[first : first + n])
    return _answered(weak_taggers(*taught, seed, share), *asked)


def _code_words(n: int | None, seed: int, share: float) -> Made:
    words, labels = code_words(seed)
    first = round(600 * share)
    last = None if n is None else first + n
    taggers = taggers_of_code(words[:first], labels[:first], seed)
    return _answered(taggers, words[first:last], labels[first:last])


def _sentences(corpus: Any, picked: np.ndarray) -> tuple[Labels, Labels]:
    part = corpus.take(picked)
    return [sample.columns["word"] for sample in part], part.label_lists()


def _answered(taggers: Mapping[str, Any], words: list[list[str]], gold: Labels) -> Made:
    said = from_models([*taggers.values()], words, names=[*taggers])
    return said, gold, words


# ---------------------------------------------------------------------------- weak classifiers


def letter_classifiers(n: int = 3000, seed: int = 0, share: float = 1.0) -> ExpertSet:
    """Seven classifiers of handwritten letters, each taught by some letters and some pixels."""
    from sklearn.naive_bayes import BernoulliNB

    sizes = (150, 200, 150, 100, 300, 200, 100)
    classifiers = _Classifiers(BernoulliNB(), tuple(round(share * k) for k in sizes), 0.6)
    return classifiers.answers("letters", *_letters(), n, seed)


def movement_classifiers(n: int = 3000, seed: int = 0, share: float = 1.0) -> ExpertSet:
    """Seven classifiers of people's movements, each taught by some windows and some features."""
    from sklearn.naive_bayes import GaussianNB

    with np.load(data_folder("har") / "windows.npz", allow_pickle=False) as windows:
        taught = ~windows["is_test"]
        features, labels = windows["X"][taught].astype(np.float64), windows["y"][taught]
        names = windows["label_names"]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    sizes = (40, 60, 40, 30, 80, 60, 30)
    classifiers = _Classifiers(GaussianNB(), tuple(round(share * k) for k in sizes), 0.1)
    return classifiers.answers("movements", features, names[labels], n, seed)


@dataclass(frozen=True)
class _Classifiers:
    """Seven weak classifiers."""

    naive_bayes: Any
    sizes: tuple[int, ...]
    """How many examples each learns from."""
    seen: float
    """Share of the features that each sees."""

    def answers(
        self, name: str, features: np.ndarray, labels: np.ndarray, n: int, seed: int
    ) -> ExpertSet:
        """What they answer to n examples, having learned from others."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
        from sklearn.tree import DecisionTreeClassifier

        models = {
            "logistic regression": LogisticRegression(max_iter=200),
            "naive Bayes": self.naive_bayes,
            "nearest": KNeighborsClassifier(1),
            "nearest mean": NearestCentroid(),
            "tree": DecisionTreeClassifier(random_state=seed),
            "small forest": RandomForestClassifier(10, random_state=seed),
            "five nearest": KNeighborsClassifier(5),
        }
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(labels))
        asked, order = order[:n], order[n:]
        said: Answers = []
        for model, k in zip(models.values(), self.sizes, strict=True):
            taught, order = np.split(order, [k])
            seen = rng.random(features.shape[1]) < self.seen
            model.fit(features[taught][:, seen], labels[taught])
            said.append([[label] for label in model.predict(features[asked][:, seen]).tolist()])
        gold = [[label] for label in labels[asked].tolist()]
        return ExpertSet(name, as_outputs(said, names=tuple(models)), gold, None, "hamming")


def _letters() -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 128) and names of all letters."""
    words = word_images(data_folder("ocr"))
    names = [letter for _, letters, _ in words for letter in letters]
    return np.concatenate([images for images, _, _ in words]), np.array(names)


# ---------------------------------------------------------------------------- generated answers

ACCURACIES = (0.5, 0.45, 0.92, 0.4, 0.88, 0.45, 0.5)
"""The good ones do not come first, since equal votes go to the first."""


def skewed(
    n: int = 1000,
    seed: int = 0,
    length: int = 5,
    n_labels: int = 5,
    accuracies: Sequence[float] = ACCURACIES,
) -> ExpertSet:
    """Experts of known accuracy with independent errors: any other label, each as likely."""
    rng = np.random.default_rng(seed)
    size = n * length
    truth = rng.integers(0, n_labels, size)
    wrong = rng.random((size, len(accuracies))) >= np.asarray(accuracies)
    step = rng.integers(1, n_labels, (size, len(accuracies)))
    codes = (truth[:, None] + wrong * step) % n_labels
    labels = tuple(f"l{c}" for c in range(n_labels))
    names = tuple(f"expert {j + 1} ({a:g})" for j, a in enumerate(accuracies))
    said = ExpertOutputs(np.arange(0, size + 1, length), codes.astype(np.int32), labels, names)
    return ExpertSet("skewed", said, said.lists(truth), None, "hamming")


def fields(n: int = 2000, seed: int = 0) -> ExpertSet:
    """Five experts, each of which knows two of ten fields and guesses at the others (ADS1)."""
    said, gold = artificial_experts("ADS1", n_samples=n, random_state=seed)
    names = tuple(f"expert {j + 1}" for j in range(len(said)))
    return ExpertSet("fields", as_outputs(said, names=names), gold, None, "hamming")


def transcribed(n: int = 600, seed: int = 7) -> ExpertSet:
    """Five transcripts of sentences, from the worst to the best."""
    said, gold = transcripts(seed, n, (0.38, 0.31, 0.24, 0.17, 0.11))
    return ExpertSet("transcripts", said, gold, None, "edit")


# ---------------------------------------------------------------------------- kept answers


def _cached(
    name: str, make: Callable[..., Made], cache: str | Path | None, n: int | None, seed: int,
    share: float,
) -> ExpertSet:  # fmt: skip
    """What the taggers answered before, or train them.

    The name of the file tells their designs, seed and sizes, and the library's version; it does not
    tell of changes to the learners within a version, after which the folder is to be emptied.
    """
    folder = Path(cache or Path(tempfile.gettempdir()) / "trellis-expert-sets")
    told = repr((__version__, name, n, seed, share, _designs()))
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    path = folder / f"{name}-{digest}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, *make(n, seed, share))
    said, gold, words = _read(path)
    return ExpertSet(name, said, gold, "BIO", "span-f1", words)


def _designs() -> list[tuple[str, str, str, int]]:
    return [(name, d.learner.__name__, d.features, d.n) for name, d in DESIGNS.items()]


def _write(path: Path, said: ExpertOutputs, gold: Labels, words: list[list[str]]) -> None:
    """Arrays only, no pickles."""
    labels = sorted({*said.labels, *chain(*gold)})
    said = said.recoded(labels)
    code = {label: k for k, label in enumerate(labels)}
    with atomic_write(path) as file:
        np.savez_compressed(
            file,
            offsets=said.offsets,
            codes=said.codes,
            labels=np.array(labels),
            names=np.array(said.names),
            gold=np.array([code[label] for label in chain(*gold)], np.int32),
            words=np.array([*chain(*words)]),
        )


def _read(path: Path) -> Made:
    with np.load(path, allow_pickle=False) as kept:
        labels, names = (tuple(kept[key].tolist()) for key in ("labels", "names"))
        said = ExpertOutputs(kept["offsets"], kept["codes"], labels, names)
        words = kept["words"].tolist()
        bounds = pairwise(said.offsets.tolist())
        return said, said.lists(kept["gold"]), [words[a:b] for a, b in bounds]


SETS: Mapping[str, Callable[[str | None], ExpertSet]] = {
    "conll2000": conll2000_taggers,
    "code-words": code_word_taggers,
    "movements": lambda cache: movement_classifiers(),
    "transcripts": lambda cache: transcribed(),
    "skewed": lambda cache: skewed(),
    "conll2003": lambda cache: conll2003_experts(),
    "morphseg-ces": lambda cache: czech_morphemes(),
    "morphseg-eng": lambda cache: english_morphemes(),
    "jnlpba": jnlpba_taggers,
    "letters": lambda cache: letter_classifiers(),
    "fields": lambda cache: fields(),
}
"""How each set is made, given the folder for kept answers."""

DEVELOPMENT = ("conll2000", "code-words", "movements", "transcripts", "skewed")
"""Sets on which settings may be chosen."""
