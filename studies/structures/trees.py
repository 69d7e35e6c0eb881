"""Dependency trees of ``ud_ewt``: labels of words by tree, by chain, and without structure.

Two tasks, heads being given in both:

- parts of speech (UPOS), from words alone, and from words with what the tree says of each (its
  relation, its head's word, where the head is); the types of a tree's edges are the relations;
- dependency relations, from words and parts of speech of the word and of its head, and of these and
  of what is below and further above (templates along edges).

What is known of the tree is given to *all* models as features, where it is given at all: the
difference that is left is that of the structure. How much that is depends on what is given: with
the children's words among the features, the labels around have little left to say.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from studies.datasets import load_trees
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.structures.fitting import compared, fitted, right
from trellis import ChainCRF, ChainPerceptron, MaxMargin, Templates, TreeCRF, TreePerceptron
from trellis.corpus import Column, Corpus
from trellis.corpus.corpus import split
from trellis.features import Encoded, TemplateEncoder

__all__ = ["LIMITS", "TREES", "TREE_FITS", "tree_corpus", "tree_fit"]

LIMITS: Mapping[str, tuple[int | None, int | None, int | str]] = {
    "quick": (600, 200, 3),
    "default": (None, None, "auto"),
    "full": (None, None, 30),
}
"""For each protocol: training sentences, test sentences, and passes."""

_WORDS = (
    "form[-2..2]; lower(form); prefix(form, 1..4); suffix(form, 1..4); shape(form)[-1..1]; "
    "form[-1] & form; form & form[1]"
)
_HEAD = "relation; head_form; side; relation & side; relation & head_form; form & head_form"
_RELATIONS = (
    "form[-1..1]; lower(form); suffix(form, 1..3); upos[-2..2]; upos[-1] & upos; upos & upos[1]; "
    "head_form; head_upos; side; upos & head_upos; side & upos & head_upos; form & head_upos; "
    "upos & head_form; form & head_form"
)
_AROUND = (
    "any(children, upos); any(children, lower(form)); any(children, upos) & upos; "
    "any(children, lower(form)) & upos; any(children, upos) & upos[parent]; "
    "upos & upos[parent] & upos[parent.parent]"
)
FEATURES = {
    "upos": _WORDS, "upos+": f"{_WORDS}; {_HEAD}",
    "deprel": _RELATIONS, "deprel+": f"{_RELATIONS}; {_AROUND}",
}  # fmt: skip
"""Templates of the four settings."""

_SETTINGS = {
    "upos": "Parts of speech, from words",
    "upos+": "Parts of speech, from words and what the tree says of each",
    "deprel": "Dependency relations",
    "deprel+": "Dependency relations, with what is below a word and two above",
}
_MODELS = {
    "none": "no structure (CRF, n′ = 1)",
    "svm": "no structure (scikit-learn's LinearSVC, C = 0.3)",
    "chain": "chain CRF",
    "tree": "tree CRF, one type of edges",
    "typed": "tree CRF, typed edges",
    "chain-perceptron": "chain perceptron",
    "tree-perceptron": "tree perceptron",
    "tree-margin": "tree, max-margin by steps",
}


@lru_cache(maxsize=4)
def tree_corpus(setting: str, part: str, limit: int | None) -> Corpus:
    """Sentences with what the tree says of each word as columns."""
    corpus = load_trees(setting.rstrip("+"), part)
    if limit is not None:
        corpus = corpus.take(np.linspace(0, len(corpus) - 1, min(limit, len(corpus))).astype(int))
    assert corpus.edges is not None
    dependent, head = corpus.edges.T
    columns = dict(corpus.columns)
    for name in ("form", "upos"):
        if name in columns:
            columns[f"head_{name}"] = _of_heads(columns[name], dependent, head, corpus)
    distance = np.zeros(corpus.n_positions, np.int64)
    distance[dependent] = np.clip(head - dependent, -3, 3)
    columns["side"] = Column((distance + 3).astype(np.int32), [f"{d:+d}" for d in range(-3, 4)])
    if corpus.edge_types is not None:
        codes = np.full(corpus.n_positions, len(corpus.edge_types.values), np.int32)
        codes[dependent] = corpus.edge_types.codes
        columns["relation"] = Column(codes, [*corpus.edge_types.values, "root"])
    return replace(corpus, columns=columns).only_used_labels()


def _of_heads(column: Column, dependent: Any, head: Any, corpus: Corpus) -> Column:
    codes = np.full(corpus.n_positions, len(column.values), np.int32)
    codes[dependent] = column.codes[head]
    return Column(codes, [*column.values, "<root>"])


def tree_fit(
    setting: str,
    kind: str,
    piece_size: float | None,
    limits: tuple[int | None, int | None, int | str],
) -> dict[str, Any]:
    """Fit one model, score it on the test part."""
    n_train, n_test, passes = limits
    train, test = tree_corpus(setting, "train", n_train), tree_corpus(setting, "test", n_test)
    if kind in ("tree", "none") or kind.startswith("chain"):
        train, test = (replace(part, edge_types=None) for part in (train, test))
    if kind == "svm":
        return _svm(FEATURES[setting], train, test)
    family: Any = {
        "none": TreeCRF, "tree": TreeCRF, "typed": TreeCRF, "chain": ChainCRF,
        "chain-perceptron": ChainPerceptron, "tree-perceptron": TreePerceptron,
        "tree-margin": MaxMargin,
    }[kind]  # fmt: skip
    if family in (ChainPerceptron, TreePerceptron) and passes != "auto":
        passes = min(int(passes), 10)
    size = 1 if kind == "none" else piece_size
    how = {"structure": "tree", "solver": "sgd"} if kind == "tree-margin" else {}
    model = family(FEATURES[setting], piece_size=size, max_passes=passes, random_state=0, **how)
    record = fitted(model, train)
    record |= right(test.label_lists(), model.predict(test))
    return record | {"n_train": len(train), "n_labels": len(model.classes_)}


def _svm(features: str, train: Corpus, test: Corpus) -> dict[str, Any]:
    """The same for a linear classifier of single words, on rows of the same features."""
    encoder = TemplateEncoder(Templates.parse(features))
    labels = [label for labels in train.label_lists() for label in labels]
    started = time.process_time()
    learned = encoder.learn(train)
    rows = _matrix(learned, encoder.n_features)
    model = LinearSVC(C=0.3, random_state=0).fit(rows, labels)
    seconds = time.process_time() - started
    predicted = model.predict(_matrix(encoder.encode(test), encoder.n_features)).tolist()
    record = right(test.label_lists(), split(predicted, test.offsets))
    found = {"seconds": seconds, "passes": None, "n_train": len(train)}
    return record | found | {"n_labels": len(model.classes_)}


def _matrix(encoded: Encoded, n_features: int) -> csr_matrix:
    shape = (len(encoded.indptr) - 1, n_features)
    return csr_matrix((np.ones(len(encoded.indices)), encoded.indices, encoded.indptr), shape=shape)


def _kinds(setting: str) -> list[str]:
    relations = setting.startswith("deprel")
    left_out = ("typed",) if relations else ("svm", "tree-margin")
    return [kind for kind in _MODELS if kind not in left_out]


TREE_FITS = Computation("trees", tree_fit)


def _calls(protocol: str) -> list[Call]:
    return [
        TREE_FITS.call(
            f"{_SETTINGS[setting]}: {_MODELS[kind]}", protocol, setting, kind, None,
            sizes=LIMITS[protocol],
        )
        for setting in _SETTINGS
        for kind in _kinds(setting)
    ]  # fmt: skip


def _report(protocol: str, records: Records) -> str:
    parts = [
        "Words of Universal Dependencies English EWT are labelled, their heads being given. What "
        "the tree says of a word by itself (its head's word, where the head is, and for parts of "
        "speech its relation) is a feature for all models of a setting, or for none, so that the "
        "difference between them is that of the structure. In the last setting so is what its "
        "children and its head's head say, by templates along edges. Typed edges have a table of "
        "transitions for each relation; the relations are the gold ones. C of LinearSVC was "
        "chosen on development sentences. Accuracy on test sentences in per cent, CPU seconds of "
        "training."
    ]
    for setting, title in _SETTINGS.items():
        kinds = _kinds(setting)
        found = {kind: TREE_FITS.of(records, protocol, setting, kind, None) for kind in kinds}
        first = found["none"]
        rows = [
            [
                _MODELS[kind],
                f"{100 * r['accuracy']:.2f}",
                f"{r['seconds']:.1f}",
                "–" if r["passes"] is None else str(r["passes"]),
            ]
            for kind, r in found.items()
        ]
        relations = setting.startswith("deprel")
        tree = "tree" if relations else "typed"
        best = found[tree]
        parts += [
            f"### {title}",
            f"{first['n_train']:,} training sentences, {first['n_labels']} labels.",
            markdown(["model", "accuracy", "seconds", "passes"], rows),
            compared(f"The {_MODELS[tree]}", best, "the chain CRF", found["chain"]),
            compared(f"The {_MODELS[tree]}", best, "no structure", found["none"]),
        ]
        if relations:
            margin = found["tree-margin"]
            parts.append(compared("The tree by max-margin", margin, "LinearSVC", found["svm"]))
    return "\n\n".join(parts)


TREES = Experiment("trees", "Tree, chain or no structure", _calls, _report, ("ud_ewt",))
