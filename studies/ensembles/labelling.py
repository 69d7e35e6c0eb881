"""A Table 5 of our own: experts trained on parts of the data, for part-of-speech tags and letters.

- *TR1*: four disjoint parts of the training sentences of ``ud_ewt``, two kinds of classifiers of
  single words for each (linear SVM, logistic regression), and one CRF of all four parts.
- *TR2*: five structured perceptrons of disjoint parts.
- *OCR*: three folds of handwritten words; for each a linear SVM, a logistic regression and a CRF.

The paper has the Penn Treebank and other software. Combinations learn from disjoint sets of
samples that no expert was trained on, and are judged on all other such samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

from studies.datasets import data_folder, load
from studies.datasets.ocr import word_images
from studies.ensembles.losses import expert_losses
from studies.ensembles.methods import BEST, PAPER, hamming_losses
from studies.ensembles.tables import Published, command, published
from studies.experiments import Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.texts import mean_sd
from trellis.errors import DataError
from trellis.experts import ExpertOutputs, as_outputs
from trellis.models import ChainCRF, ChainPerceptron

__all__ = ["LABELLING", "word_features"]

TASKS = {"TR1": 0.95, "TR2": 0.98, "OCR": 0.95}
"""Tasks, and the paper's β (of OCR none is given)."""

OWN = ("vote", "MVote by expert", "MVote by position", "log-linear vote", "re-ranking")

PUBLISHED: dict[str, dict[str, Published]] = {
    "TR1": {
        "MVote": (0.0850, 0.00096), "FPL": (0.0859, 0.0011), "CV": (0.0843, 0.00006),
        "FPL-CV": (0.1093, 0.00129), "ESPBoost": (0.1041, 0.00056), "SLE": (0.0778, 0.00934),
        "Rand": (0.1128, 0.00048), BEST: (0.1032, 0.00007),
    },
    "TR2": {
        "MVote": (0.0746, 0.00014), "FPL": (0.0769, 0.00218), "CV": (0.0741, 0.00011),
        "FPL-CV": (0.1550, 0.00182), "ESPBoost": (0.1414, 0.00233), "SLE": (0.0814, 0.02558),
        "Rand": (0.1652, 0.00077), BEST: (0.1415, 0.00005),
    },
    "OCR": {},
}  # fmt: skip

# Samples an expert's part, samples to combine on at most, training set, runs.
_SIZES = {
    "quick": (60, 300, 60, 2),
    "default": (500, 4100, 400, 10),
    "full": (2500, 4100, 400, 10),
}

Words = list[tuple[list[Any], list[str]]]


def losses(task: str, part: int, n_samples: int, size: int, n_runs: int) -> dict[str, Any]:
    """Train the experts of a task, combine them; losses by method, a list over runs for each."""
    said, gold = _ocr(part, n_samples) if task == "OCR" else _pos(task, part, n_samples)
    names = (*PAPER, *OWN)
    found = hamming_losses(said, gold, names, size=size, n_runs=n_runs, beta=TASKS[task])
    each = expert_losses(said, gold)
    experts = {name: float(loss) for name, loss in zip(said.names, each, strict=True)}
    return {"losses": found, "experts": experts, "n_samples": len(said)}


def word_features(words: Sequence[str], i: int) -> list[str]:
    """Word, its shape and its neighbours.

    Examples
    --------
    >>> word_features(["The", "cat"], 1)[:3]
    ['w=cat', 'l=the', 'r=']
    """
    word = words[i]
    left = words[i - 1].lower() if i else ""
    right = words[i + 1].lower() if i + 1 < len(words) else ""
    features = [f"w={word.lower()}", f"l={left}", f"r={right}"]
    features += [f"s{n}={word[-n:].lower()}" for n in (1, 2, 3)]
    shape = "A" if word[:1].isupper() else "1" if any(c.isdigit() for c in word) else "a"
    return [*features, f"shape={shape}", f"first={not i}{shape}"]


def _pos(task: str, part: int, n_samples: int) -> tuple[ExpertOutputs, list[list[str]]]:
    data = load("ud_ewt")
    assert data.dev is not None
    train = _sentences(data.train)
    held_out = [*_sentences(data.dev), *_sentences(data.test)][:n_samples]
    n_parts = 4 if task == "TR1" else 5
    order = np.random.default_rng(0).permutation(len(train))
    parts = [[train[i] for i in order[k * part : (k + 1) * part]] for k in range(n_parts)]
    if not parts[-1] or not held_out:
        raise DataError("ud_ewt has too few sentences for this protocol")
    asked = [words for words, _ in held_out]
    answers: list[list[list[str]]] = []
    names = []
    if task == "TR1":
        for k, sentences in enumerate(parts):
            for kind in _KINDS:
                names.append(f"{kind} {k + 1}")
                answers.append(_local_words(kind, sentences, asked))
        crf = ChainCRF(l2=1.0, max_passes=10, random_state=0)
        names.append("CRF")
        answers.append(_sequence_words(crf, [s for p in parts for s in p], asked))
    else:
        for k, sentences in enumerate(parts):
            perceptron = ChainPerceptron(max_passes=8, random_state=k)
            names.append(f"perceptron {k + 1}")
            answers.append(_sequence_words(perceptron, sentences, asked))
    return as_outputs(answers, names=names), [tags for _, tags in held_out]


def _sentences(corpus: Any) -> Words:
    words, tags = corpus.columns["word"].strings(), corpus.labels.tolist()
    ends = corpus.offsets.tolist()
    return [(words[a:b], tags[a:b]) for a, b in pairwise(ends)]


_KINDS = {"SVM": "hinge", "logistic": "log_loss"}


def _sequence_words(model: Any, train: Words, asked: list[list[str]]) -> list[list[str]]:
    model.fit([_rows(words) for words, _ in train], [tags for _, tags in train])
    found: list[list[str]] = model.predict([_rows(words) for words in asked])
    return found


def _rows(words: Sequence[str]) -> list[list[str]]:
    return [word_features(words, i) for i in range(len(words))]


def _local_words(kind: str, train: Words, asked: list[list[str]]) -> list[list[str]]:
    hasher = FeatureHasher(2**17, input_type="string", alternate_sign=False)
    rows = hasher.transform([row for words, _ in train for row in _rows(words)])
    model = _classifier(kind).fit(rows, [tag for _, tags in train for tag in tags])
    flat = model.predict(hasher.transform([row for words in asked for row in _rows(words)]))
    return _split([str(tag) for tag in flat], asked)


def _classifier(kind: str) -> Any:
    return SGDClassifier(loss=_KINDS[kind], alpha=1e-5, max_iter=8, tol=None, random_state=0)


def _split(flat: list[str], asked: Sequence[Sequence[Any]]) -> list[list[str]]:
    ends = np.cumsum([len(sample) for sample in asked]).tolist()
    return [flat[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _ocr(part: int, n_samples: int) -> tuple[ExpertOutputs, list[list[str]]]:
    words = sorted(word_images(data_folder("ocr")), key=lambda word: word[2])
    held_out = [word for word in words if word[2] >= 3]
    order = np.random.default_rng(0).permutation(len(held_out))[:n_samples]
    asked = [held_out[i][0] for i in order]
    answers: list[list[list[str]]] = []
    names = []
    for k in range(3):
        fold = [word for word in words if word[2] == k][:part]
        X = [_images(images) for images, _, _ in fold]
        y = [letters for _, letters, _ in fold]
        flat = np.concatenate(X)
        for kind in _KINDS:
            model = _classifier(kind).fit(flat, [letter for letters in y for letter in letters])
            found = model.predict(np.concatenate([_images(images) for images in asked]))
            names.append(f"{kind} {k + 1}")
            answers.append(_split([str(letter) for letter in found], asked))
        crf = ChainCRF(l2=1.0, max_passes=15, random_state=0).fit(X, y)
        names.append(f"CRF {k + 1}")
        answers.append(crf.predict([_images(images) for images in asked]))
    return as_outputs(answers, names=names), [held_out[i][1] for i in order]


def _images(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Pixels of each letter, and a one."""
    return np.hstack([images, np.ones((len(images), 1))])


def _key(task: str) -> str:
    return f"labelling {task}"


def calls(protocol: str) -> list[Call]:
    """One computation for each task."""
    return [Call(_key(task), task, losses, (task, *_SIZES[protocol])) for task in TASKS]


def report(protocol: str, records: Records) -> str:
    """A table of losses, one of experts, and sentences."""
    part, _, size, n_runs = _SIZES[protocol]
    parts = [
        f"Normalised Hamming loss, mean ± standard deviation over {n_runs} disjoint training sets "
        f"of {size} samples; experts trained on {part} samples each (the CRF of TR1 on four times "
        "as many). Samples differ in length, so that MVote, CV and Rand have one weight for each "
        "expert and label it says, and FPL and ESPBoost one for each expert, unless the row says "
        "otherwise. The published figures are for other data and other experts.",
        command("labelling", protocol),
    ]
    rows = []
    for method in (*PAPER, BEST, *OWN):
        row = [method]
        for task in TASKS:
            if PUBLISHED[task]:
                row.append(published(PUBLISHED[task].get(method)))
            row.append(mean_sd(records[_key(task)]["losses"][method]))
        rows.append(row)
    head = ["method"]
    for task in TASKS:
        head += [f"{task}, published"] if PUBLISHED[task] else []
        head.append(f"{task}, ours")
    parts.append(markdown(head, rows))
    for task in TASKS:
        record = records[_key(task)]
        each = ", ".join(f"{name} {loss:.4f}" for name, loss in record["experts"].items())
        parts.append(f"Experts of {task} on {record['n_samples']:,} samples: {each}.")
        parts.append(_sentence(task, record["losses"]))
    return "\n\n".join(parts)


def _sentence(task: str, found: dict[str, list[float]]) -> str:
    means = {m: float(np.mean(v)) for m, v in found.items()}
    best = min((m for m in means if m != BEST), key=means.__getitem__)
    relation = "below" if means["MVote"] < means[BEST] else "not below"
    return (
        f"{task}: MVote {means['MVote']:.4f} is {relation} the best expert ({means[BEST]:.4f}); "
        f"the lowest loss is that of {best} ({means[best]:.4f})."
    )


LABELLING = Experiment(
    "labelling", "Tags and letters (Table 5 of our own)", calls, report, ("ud_ewt", "ocr")
)
