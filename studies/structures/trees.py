"""Dependency trees of ``ud_ewt``: labels of words by tree, by chain, and without structure.

Two tasks, heads being given in both:

- parts of speech (UPOS), from words alone, and from words with what the tree says of each (its
  relation, its head's word, where the head is); the types of a tree's edges are the relations;
- dependency relations, from words and parts of speech of the word and of its head.

What is known of the tree is given to *all* models as features, where it is given at all: the
difference that is left is that of the structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from studies.datasets import load_trees
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.structures.fitting import compared, fitted, right
from trellis import ChainCRF, ChainPerceptron, TreeCRF, TreePerceptron
from trellis.corpus import Column, Corpus

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
FEATURES = {"upos": _WORDS, "upos+": f"{_WORDS}; {_HEAD}", "deprel": _RELATIONS}
"""Templates of the three settings."""

_SETTINGS = {
    "upos": "Parts of speech, from words",
    "upos+": "Parts of speech, from words and what the tree says of each",
    "deprel": "Dependency relations",
}
_MODELS = {
    "none": "no structure (CRF, n′ = 1)",
    "chain": "chain CRF",
    "tree": "tree CRF, one type of edges",
    "typed": "tree CRF, typed edges",
    "chain-perceptron": "chain perceptron",
    "tree-perceptron": "tree perceptron",
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
    if kind in ("tree", "none"):
        train, test = (replace(part, edge_types=None) for part in (train, test))
    elif kind.startswith("chain"):
        train, test = (replace(part, edges=None, edge_types=None) for part in (train, test))
    family: Any = {
        "none": TreeCRF, "tree": TreeCRF, "typed": TreeCRF, "chain": ChainCRF,
        "chain-perceptron": ChainPerceptron, "tree-perceptron": TreePerceptron,
    }[kind]  # fmt: skip
    if family in (ChainPerceptron, TreePerceptron) and passes != "auto":
        passes = min(int(passes), 10)
    size = 1 if kind == "none" else piece_size
    model = family(FEATURES[setting], piece_size=size, max_passes=passes, random_state=0)
    record = fitted(model, train)
    record |= right(test.label_lists(), model.predict(test))
    return record | {"n_train": len(train), "n_labels": len(model.classes_)}


def _kinds(setting: str) -> list[str]:
    return [k for k in _MODELS if k != "typed" or setting != "deprel"]


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
        "difference between them is that of the structure. Typed edges have a table of "
        "transitions for each relation; the relations are the gold ones. Accuracy on test "
        "sentences in per cent, CPU seconds of training."
    ]
    for setting, title in _SETTINGS.items():
        kinds = _kinds(setting)
        found = {kind: TREE_FITS.of(records, protocol, setting, kind, None) for kind in kinds}
        first = found["none"]
        rows = [
            [_MODELS[kind], f"{100 * r['accuracy']:.2f}", f"{r['seconds']:.1f}", str(r["passes"])]
            for kind, r in found.items()
        ]
        tree = "tree" if setting == "deprel" else "typed"
        best = found[tree]
        parts += [
            f"### {title}",
            f"{first['n_train']:,} training sentences, {first['n_labels']} labels.",
            markdown(["model", "accuracy", "seconds", "passes"], rows),
            compared(f"The {_MODELS[tree]}", best, "the chain CRF", found["chain"]),
            compared(f"The {_MODELS[tree]}", best, "no structure", found["none"]),
        ]
    return "\n\n".join(parts)


TREES = Experiment("trees", "Tree, chain or no structure", _calls, _report, ("ud_ewt",))
