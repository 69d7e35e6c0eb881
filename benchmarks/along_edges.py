"""Templates along edges: what parents and children bring, and what a tree adds to them.

Words of ud_ewt with their heads given: relations, from words and parts of speech, and parts of
speech, from words; edges have no types. Three sets of templates: of the word and those around it,
with the parent's, with the children's, too. All models have the same features: those without
structure (a CRF of single nodes, scikit-learn's LogisticRegression and LinearSVC) and those of
trees. Ours have their defaults; C of scikit-learn's was chosen on development sentences.

Accuracy is the mean over draws of the training sentences. The difference is to the best model
without structure of the same draw, size and features, with its 95 % interval by 2,000 bootstrap
samples of the test sentences.

The second table is about the default templates: with those of parents and children, which trees
have whose edges have no types, or without; with gold relations as types, too, where they do not
pay, and are therefore left out.

    python -m benchmarks.along_edges [--sizes 300 3000 12544] [--part dev] [--no-logistic]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once
from studies.datasets import load_trees
from trellis import Corpus, MaxMargin, Templates, TreeCRF, TreePerceptron
from trellis.corpus import Column
from trellis.features import TemplateEncoder

TASKS = {"deprel": "relations", "upos": "parts of speech"}
_RELATIONS = (
    "form[-1..1]; lower(form); suffix(form, 1..3); upos[-2..2]; upos[-1] & upos; upos & upos[1]",
    "side; form[parent]; upos[parent]; upos & upos[parent]; side & upos & upos[parent]; "
    "form & upos[parent]; upos & form[parent]; form & form[parent]",
    "any(children, upos); any(children, lower(form)); any(children, upos) & upos; "
    "any(children, lower(form)) & upos; any(children, upos) & upos[parent]; "
    "upos & upos[parent] & upos[parent.parent]",
)
_TAGS = (
    "form[-2..2]; lower(form); prefix(form, 1..4); suffix(form, 1..4); shape(form)[-1..1]; "
    "form[-1] & form; form & form[1]",
    "side; lower(form)[parent]; suffix(form, 1..3)[parent]; shape(form)[parent]; "
    "form & form[parent]; side & suffix(form, 2)[parent]; side & lower(form)[parent]",
    "any(children, lower(form)); any(children, suffix(form, 1..3)); "
    "any(children, short_shape(form)); any(children, lower(form)) & suffix(form, 2)",
)
SETS = ("own", "and parent's", "and children's")
FEATURES = {
    (task, name): "; ".join(parts[: i + 1])
    for task, parts in (("deprel", _RELATIONS), ("upos", _TAGS))
    for i, name in enumerate(SETS)
}
SINGLE = {
    "no structure, CRF": lambda f, seed: TreeCRF(f, piece_size=1, random_state=seed),
    "LogisticRegression": lambda f, seed: LogisticRegression(C=10.0, max_iter=300),
    "LinearSVC": lambda f, seed: LinearSVC(C=0.3, random_state=seed),
}
TREES = {
    "TreeCRF": lambda f, seed: TreeCRF(f, random_state=seed),
    "TreePerceptron": lambda f, seed: TreePerceptron(f, random_state=seed),
    "MaxMargin, tree, steps": lambda f, seed: MaxMargin(
        f, structure="tree", solver="sgd", random_state=seed
    ),
}
Right = NDArray[np.int64]


def trees(task: str, part: str, size: int | None = None, seed: int = 0) -> Corpus:
    """Some sentences, with where the head of each word is; all in their order if there are less."""
    corpus = load_trees(task, part)
    if size is not None and size < len(corpus):
        order = np.random.default_rng(seed).permutation(len(corpus))
        corpus = corpus.take(np.sort(order[:size]))
    assert corpus.edges is not None
    dependent, head = corpus.edges.T
    distance = np.zeros(corpus.n_positions, np.int64)
    distance[dependent] = np.clip(head - dependent, -3, 3)
    side = Column((distance + 3).astype(np.int32), [f"{d:+d}" for d in range(-3, 4)])
    return replace(corpus, columns={**corpus.columns, "side": side}).only_used_labels()


def untyped(corpus: Corpus) -> Corpus:
    return replace(corpus, edge_types=None)


def right(corpus: Corpus, predicted: list[Any]) -> Right:
    """How many labels of each sentence are right; ``predicted`` are those of all words."""
    gold = np.array([label for labels in corpus.label_lists() for label in labels], object)
    same = np.concatenate([[0], np.cumsum(gold == np.array(predicted, object))])
    return np.diff(same[corpus.offsets])


def of_trees(model: Any, train: Corpus, test: Corpus) -> tuple[Right, float]:
    """Labels that are right, and seconds of training."""
    _, seconds = once(lambda: model.fit(train))
    return right(test, [label for labels in model.predict(test) for label in labels]), seconds


def of_rows(model: Any, features: str, train: Corpus, test: Corpus) -> tuple[Right, float]:
    """The same for a model of scikit-learn, on rows of the same features."""
    encoder = TemplateEncoder(Templates.parse(features))
    rows = []
    for encoded in (encoder.learn(train), encoder.encode(test)):
        ones = np.ones(len(encoded.indices))
        shape = (len(encoded.indptr) - 1, encoder.n_features)
        rows.append(csr_matrix((ones, encoded.indices, encoded.indptr), shape=shape))
    labels = [label for labels in train.label_lists() for label in labels]
    _, seconds = once(lambda: model.fit(rows[0], labels))
    return right(test, list(model.predict(rows[1]))), seconds


def difference(a: Right, b: Right, lengths: NDArray[Any]) -> str:
    """Difference of two accuracies in points, with its interval; a minus that is no figure's."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(lengths), (2000, len(lengths)))
    points = 100 * (a - b)[chosen].sum(axis=1) / lengths[chosen].sum(axis=1)
    low, high = np.quantile(points, (0.025, 0.975))
    mean = 100 * (a - b).sum() / lengths.sum()
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−")


def measured(
    fit: Callable[[int], tuple[Right, float]], draws: int
) -> tuple[NDArray[np.float64], float]:
    """Right labels of each sentence and seconds, means over draws."""
    found = [fit(seed) for seed in range(draws)]
    return np.mean([r for r, _ in found], axis=0), float(np.mean([s for _, s in found]))


def same_features(args: Any) -> None:
    """All models on the same features."""
    header = ("task", "sentences", "features", "model", "accuracy, %", "more", "seconds")
    table = Table("The same features, without structure and on trees", *header)
    for task, name in TASKS.items():
        test = untyped(trees(task, args.part))
        for size in args.sizes:
            draws = args.draws if size < args.few else 1
            data = [untyped(trees(task, "train", size, seed)) for seed in range(draws)]
            for kind in SETS:
                features = FEATURES[task, kind]
                best = np.zeros(len(test))
                for label, make in {**SINGLE, **TREES}.items():
                    large = sum(map(len, data)) > args.few
                    if label == "LogisticRegression" and (args.no_logistic or large):
                        continue

                    def fit(
                        seed: int,
                        label: str = label,
                        make: Any = make,
                        features: str = features,
                        data: list[Corpus] = data,
                        test: Corpus = test,
                    ) -> tuple[Right, float]:
                        model = make(features, seed)
                        if label.startswith("L"):
                            return of_rows(model, features, data[seed], test)
                        return of_trees(model, data[seed], test)

                    found, seconds = measured(fit, draws)
                    more = "–"
                    if label in TREES:
                        more = difference(found, best, test.lengths)
                    elif found.sum() > best.sum():
                        best = found
                    score = f"{100 * found.sum() / test.n_positions:.2f}"
                    table.add(name, f"{len(data[0]):,}", kind, label, score, more, seconds)
    table.show()


def defaults(args: Any) -> None:
    """The default templates, with and without parents and children."""
    header = ("task", "edges", "sentences", "model", "without, %", "with, %", "more")
    table = Table("Parents and children among the default templates", *header)
    plain, along = (
        Templates.default_for(["form"], trees=more).text().split("\n") for more in (False, True)
    )
    for task, typed in (("deprel", False), ("upos", False), ("upos", True)):
        change = (lambda corpus: corpus) if typed else untyped
        test = change(trees(task, args.part))
        for size in args.sizes:
            draws = args.draws if size < args.few else 1
            data = [change(trees(task, "train", size, seed)) for seed in range(draws)]
            for label, make in TREES.items():
                found = [
                    measured(
                        lambda seed, f=f, make=make, data=data, test=test: of_trees(
                            make(f, seed), data[seed], test
                        ),
                        draws,
                    )[0]
                    for f in (plain, along)
                ]
                scores = [f"{100 * r.sum() / test.n_positions:.2f}" for r in found]
                kind = "relations as types" if typed else "no types"
                more = difference(found[1], found[0], test.lengths)
                table.add(TASKS[task], kind, f"{len(data[0]):,}", label, *scores, more)
    table.show()


def main() -> None:
    args = begin(
        __doc__,
        sizes=([300, 3000, 12544], [20, 40], "training sentences"),
        draws=(3, 2, "of training sentences, where they are not all"),
        few=(10_000, 100, "sentences from which on there is one draw, and no LogisticRegression"),
        part=("test", "test", "test or dev: sentences to score"),
        no_logistic=(False, False, "leave LogisticRegression out, which takes longest"),
    )
    same_features(args)
    defaults(args)


if __name__ == "__main__":
    main()
