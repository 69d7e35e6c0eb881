"""Tables 3 and 4 in our manner: pronunciations, whose answers differ in length.

- *trained experts*: letter-to-phone models with different features, of different parts of the
  training words (SIGMORPHON 2021, American English), answer words that none was trained on; the
  target is the true pronunciation.
- *n-best*: the paper's protocol. The 20 best answers of one model are taken; the first is the
  target and the other 19 are the experts. This asks what the model thinks, not what is true.

Answers are combined in two ways: *aligned* into confusion networks, with weights that positions
share; or *padded* to one length, with a weight for each position and expert, as in the paper.

Losses of an answer a to the right answer y: *Hamming*, the share of the max(|a|, |y|) places where
they differ, as they stand; *aligned Hamming*, the edit distance divided by max(|a|, |y|); *edit
distance*; and *words wrong*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.datasets import load_pronunciations
from studies.ensembles.letters import align_letters, joined, letter_features
from studies.ensembles.methods import BEST, PAPER, disjoint_runs, new_method
from studies.ensembles.tables import Published, command, published
from studies.experiments import Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.texts import mean_sd
from trellis.evaluation import edit_distance
from trellis.experts import ExpertOutputs, align, as_outputs, strip
from trellis.models import ChainPerceptron

__all__ = ["LOSSES", "PRONUNCIATION", "Answers", "nbest", "sequence_losses"]

Answers = list[list[str]]

LOSSES = ("Hamming", "aligned Hamming", "edit distance", "words wrong")
EPSILON, PAD = "<eps>", "<pad>"
OWN = ("vote", "plurality", "log-linear vote", "re-ranking")
N_BEST = 20

# The paper's sizes and β: words, training set, β.
NBEST_SETS = {"PDS1": (1313, 130, 0.85), "PDS2": (6354, 400, 0.97)}
PUBLISHED: dict[str, dict[str, tuple[Published, Published]]] = {
    "PDS1": {
        "MVote": ((0.2225, 0.00301), (0.8395, 0.01076)),
        "FPL": ((0.2657, 0.07947), (1.0158, 0.34379)),
        "CV": ((0.2316, 0.00189), (0.8668, 0.00553)),
        "FPL-CV": ((0.4451, 0.02743), (1.8044, 0.09315)),
        "ESPBoost": ((0.3625, 0.01054), (1.3977, 0.06017)),
        "SLE": ((0.3130, 0.05137), (1.1762, 0.12530)),
        "Rand": ((0.4713, 0.00360), (1.8962, 0.01064)),
        BEST: ((0.3449, 0.00368), (1.2163, 0.00619)),
    },
    "PDS2": {
        "MVote": ((0.2323, 0.00069), (0.9626, 0.00341)),
        "FPL": ((0.2337, 0.00229), (0.9744, 0.01277)),
        "CV": ((0.2364, 0.00080), (0.9840, 0.00364)),
        "FPL-CV": ((0.4090, 0.01388), (1.8625, 0.06016)),
        "ESPBoost": ((0.3499, 0.00509), (1.4092, 0.04352)),
        "SLE": ((0.3308, 0.03182), (1.2477, 0.12267)),
        "Rand": ((0.4607, 0.00131), (2.0838, 0.00518)),
        BEST: ((0.3413, 0.00067), (1.2883, 0.00219)),
    },
}

# Training words, words to combine on at most, runs.
_SIZES = {"quick": (200, 120, 2), "default": (4000, 6354, 10), "full": (33_344, 8336, 10)}
# Window, longest n-gram, and which fifth of the training words is left out.
_MODELS = ((1, 2, 0), (2, 2, 1), (2, 3, 2), (3, 3, 3), (3, 4, 4), (4, 3, 0))


# ---------------------------------------------------------------------------- models


class Pronouncer:
    """A perceptron from letters to chunks of phones."""

    def __init__(self, window: int, longest: int, seed: int = 0) -> None:
        self._shape = (window, longest)
        self._model = ChainPerceptron(max_passes=6, random_state=seed)

    def fit(self, words: Answers, chunks: Answers) -> Pronouncer:
        """Learn from aligned words."""
        self._model.fit(self._features(words), chunks)
        return self

    def answers(self, words: Answers) -> Answers:
        """Return the best pronunciation of each word."""
        return [joined(chunks) for chunks in self._model.predict(self._features(words))]

    def nbest(self, words: Answers, k: int) -> list[Answers]:
        """Return up to k different pronunciations of each word, the best first."""
        # Different chunks may be the same phones, hence more than k.
        found = self._model.predict_kbest(self._features(words), k + k // 2)
        return [
            [list(a) for a in dict.fromkeys(tuple(joined(chunks)) for chunks, _ in answers)][:k]
            for answers in found
        ]

    def _features(self, words: Answers) -> list[list[list[str]]]:
        return [letter_features(word, *self._shape) for word in words]


def _training_words(n: int) -> tuple[Answers, Answers]:
    words, phones = load_pronunciations("train")
    chosen = np.random.default_rng(0).permutation(len(words))[:n]
    words, phones = [words[i] for i in chosen], [phones[i] for i in chosen]
    chunks = align_letters(words, phones)
    pairs = [(w, c) for w, c in zip(words, chunks, strict=True) if c is not None]
    return [w for w, _ in pairs], [c for _, c in pairs]


def _held_out(n: int) -> tuple[Answers, Answers]:
    dev, test = load_pronunciations("dev"), load_pronunciations("test")
    words, phones = [*dev[0], *test[0]], [*dev[1], *test[1]]
    chosen = np.random.default_rng(1).permutation(len(words))[:n]
    return [words[i] for i in chosen], [phones[i] for i in chosen]


def nbest(n_train: int, n_words: int, k: int) -> tuple[list[Answers], Answers]:
    """Return the k best answers of one model to held-out words that have so many, and the truth."""
    words, chunks = _training_words(n_train)
    asked, truth = _held_out(n_words)
    lists = Pronouncer(3, 3).fit(words, chunks).nbest(asked, k)
    pairs = zip(lists, truth, strict=True)
    kept = [(found, right) for found, right in pairs if len(found) == k and all(found)]
    return [found for found, _ in kept], [right for _, right in kept]


# ---------------------------------------------------------------------------- judging


class Judged:
    """Experts' answers of different lengths, made ready for combiners in one of the two ways."""

    def __init__(self, outputs: list[Answers], gold: Answers, how: str) -> None:
        self.gold, self._mark = gold, PAD if how == "padded" else EPSILON
        self.said: ExpertOutputs
        self._right: Sequence[Sequence[str]]
        if how == "padded":
            longest = max(len(a) for column in (*outputs, gold) for a in column)
            padded = [[a + [PAD] * (longest - len(a)) for a in column] for column in outputs]
            self.said = as_outputs(padded)
            self._right = [a + [PAD] * (longest - len(a)) for a in gold]
        else:
            said, right = align(outputs, gold, epsilon=EPSILON)
            assert right is not None
            self.said, self._right = said, right
        self.experts = np.array([answer_losses(column, gold) for column in outputs])

    def losses(self, method: Any, train: NDArray[Any], test: NDArray[Any]) -> list[float]:
        """Return the mean losses on ``test`` of a method that learned from ``train``."""
        method.fit(self.said.take(train), [self._right[i] for i in train])
        found = strip(method.predict(self.said.take(test)), self._mark)
        means: list[float] = answer_losses(found, [self.gold[i] for i in test]).mean(0).tolist()
        return means


def answer_losses(answers: Answers, gold: Answers) -> NDArray[np.float64]:
    """Return the losses (S, 4) of each answer, in the order of :data:`LOSSES`.

    Examples
    --------
    >>> answer_losses([["K", "T"]], [["K", "AE", "T"]]).round(3).tolist()
    [[0.667, 0.333, 1.0, 1.0]]
    """
    losses = np.zeros((len(gold), len(LOSSES)))
    for i, (a, y) in enumerate(zip(answers, gold, strict=True)):
        if a != y:
            longest = max(len(a), len(y))
            same = sum(p == q for p, q in zip(a, y, strict=False))
            edits = edit_distance(a, y)
            losses[i] = (longest - same) / longest, edits / longest, edits, 1.0
    return losses


def sequence_losses(
    outputs: list[Answers],
    gold: Answers,
    names: Sequence[str],
    *,
    how: str,
    size: int,
    n_runs: int,
    beta: float,
) -> dict[str, list[list[float]]]:
    """Losses of methods in the paper's protocol; for each method one list of losses a run."""
    judged = Judged(outputs, gold, how)
    tie = "position" if how == "padded" else "label"
    found: dict[str, list[list[float]]] = {}
    for r, (train, test) in enumerate(disjoint_runs(len(gold), size, n_runs, 0)):
        for name in names:
            method = new_method(name, beta=beta, tie=tie, seed=r)
            found.setdefault(name, []).append(judged.losses(method, train, test))
        means = judged.experts[:, test].mean(axis=1)
        found.setdefault(BEST, []).append(means.min(axis=0).tolist())
    return found


# ---------------------------------------------------------------------------- computations


def trained(n_train: int, n_words: int, n_runs: int) -> dict[str, Any]:
    """Train experts, combine their answers."""
    words, chunks = _training_words(n_train)
    asked, truth = _held_out(n_words)
    outputs = []
    for seed, (window, longest, left_out) in enumerate(_MODELS):
        part = [i for i in range(len(words)) if i % 5 != left_out]
        model = Pronouncer(window, longest, seed)
        model.fit([words[i] for i in part], [chunks[i] for i in part])
        outputs.append(model.answers(asked))
    result: dict[str, Any] = {
        "experts": [answer_losses(column, truth).mean(axis=0).tolist() for column in outputs]
    }
    size = len(truth) // 10
    for how in ("aligned", "padded"):
        names = (*PAPER, *OWN) if how == "aligned" else PAPER
        result[how] = sequence_losses(
            outputs, truth, names, how=how, size=size, n_runs=n_runs, beta=0.95
        )
    return result | {"n_words": len(truth), "size": size}


def ranked(name: str, n_train: int, n_words: int, n_runs: int) -> dict[str, Any]:
    """The paper's protocol: the first of the 20 best answers is the target."""
    paper_words, paper_size, beta = NBEST_SETS[name]
    n_words = min(n_words, paper_words)
    lists, _ = nbest(n_train, n_words, N_BEST)
    gold = [answers[0] for answers in lists]
    outputs = [[answers[j] for answers in lists] for j in range(1, N_BEST)]
    size = min(paper_size, len(gold) // n_runs)
    result: dict[str, Any] = {
        how: sequence_losses(outputs, gold, PAPER, how=how, size=size, n_runs=n_runs, beta=beta)
        for how in ("aligned", "padded")
    }
    return result | {"n_words": len(gold), "size": size}


def calls(protocol: str) -> list[Call]:
    """Trained experts, and the two data sets of n-best lists."""
    sizes = _SIZES[protocol]
    first = Call("pronunciation trained", "trained experts", trained, sizes)
    rest = [
        Call(f"pronunciation {name}", f"n-best, {name}", ranked, (name, *sizes))
        for name in NBEST_SETS
    ]
    return [first, *rest]


# ---------------------------------------------------------------------------- report


def report(protocol: str, records: Records) -> str:
    """A table of trained experts, then Tables 3 and 4."""
    n_train, _, n_runs = _SIZES[protocol]
    record = records["pronunciation trained"]
    digits = (4, 4, 3, 4)
    rows = []
    for how in ("aligned", "padded"):
        for method, runs in record[how].items():
            columns = list(zip(*runs, strict=True))
            cells = [mean_sd(c, d) for c, d in zip(columns, digits, strict=True)]
            rows.append([method, "" if method == BEST else how, *cells])
            if method == BEST and how == "padded":
                rows.pop()  # the same experts
    parts = [
        f"Mean ± standard deviation over {n_runs} disjoint training sets of {record['size']} of "
        f"{record['n_words']:,} held-out words. {len(_MODELS)} experts are trained on four fifths "
        f"of {n_train:,} words each, with β = 0.95. The best h_j is another expert in each column "
        "if need be.",
        command("pronunciation", protocol),
        markdown(["method", "answers", *LOSSES], rows),
        _sentence(record["aligned"]),
        "### The paper's protocol: the first of 20 answers is the target (Tables 3 and 4)",
        "The n-best lists are of one perceptron, the paper's of a pronunciation model it does not "
        "describe, so that only the order of the methods can be compared.",
    ]
    for name, table in PUBLISHED.items():
        record = records[f"pronunciation {name}"]
        rows = []
        for method in (*PAPER, BEST):
            row = [method]
            for loss, theirs in zip((0, 2), table[method], strict=True):
                row.append(published(theirs))
                row += [
                    mean_sd([run[loss] for run in record[how][method]])
                    for how in ("padded", "aligned")
                ]
            rows.append(row)
        head = [
            f"{name}-like", "Hamming, published", "padded", "aligned",
            "edit distance, published", "padded", "aligned",
        ]  # fmt: skip
        parts.append(
            f"{record['n_words']:,} words, {record['size']} for training, "
            f"β = {NBEST_SETS[name][2]}, {n_runs} runs:"
        )
        parts.append(markdown(head, rows))
        parts.append(_nbest_sentence(name, record))
    return "\n\n".join(parts)


def _means(found: dict[str, list[list[float]]], loss: int) -> dict[str, float]:
    return {method: float(np.mean([run[loss] for run in runs])) for method, runs in found.items()}


def _sentence(found: dict[str, list[list[float]]]) -> str:
    texts = []
    for loss in (2, 3):
        means = _means(found, loss)
        best = min((m for m in means if m != BEST), key=means.__getitem__)
        texts.append(
            f"{LOSSES[loss]}: {best} is lowest ({means[best]:.4f}), the plain vote has "
            f"{means['vote']:.4f}, MVote {means['MVote']:.4f}, the best expert {means[BEST]:.4f}"
        )
    return "With aligned answers, " + "; ".join(texts) + "."


def _nbest_sentence(name: str, record: dict[str, Any]) -> str:
    texts = []
    for how in ("padded", "aligned"):
        means = _means(record[how], 2)
        gain = 1 - means["MVote"] / means[BEST]
        texts.append(f"{how} MVote's edit distance is {100 * gain:.0f} % below the best expert's")
    theirs, best = PUBLISHED[name]["MVote"][1], PUBLISHED[name][BEST][1]
    assert theirs is not None
    assert best is not None
    texts.append(f"in the paper {100 * (1 - theirs[0] / best[0]):.0f} %")
    return f"{name}: {', '.join(texts)}."


PRONUNCIATION = Experiment(
    "pronunciation", "Pronunciations (Tables 3 and 4)", calls, report, ("cmudict",)
)
