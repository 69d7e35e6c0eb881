"""Training and tagging with hundreds of labels. One core.

    python -m benchmarks.many_labels

Labels of ud_ewt are put together from the fine-grained tag, the dependency relation and the side
that the head is on. CRFs learn them with weights for all transitions and for those that were seen
or are to be expected (``transitions=``), each from sentences as many as it says, with nothing else
set; ``tokens/s`` is that of a pass, one run each. Accuracy is on all development data, with a 95 %
interval of the difference (sentences drawn anew).

Then a perceptron learns from a part of the training data, and development data are tagged: by the
search that looks at all labels (as below 400), by that of ``predict``, which
finds the same labelling, by ``prune=k``, and with five labels allowed at each position (the right
one and four others). ``same`` are sentences with the labelling of the full search, ``proven`` those
whose bound says so. Seconds are from encoded features to labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, once, ratio, short
from studies.datasets import data_folder
from trellis import ChainCRF, ChainPerceptron, Corpus, read_conll
from trellis.corpus import Labels
from trellis.kernels import chain_max

COLUMNS = ["word", "upos", "xpos", "head", "relation"]


def read(part: str) -> Corpus:
    """Words with composed labels."""
    corpus = read_conll(data_folder("ud_ewt") / f"{part}.tsv.xz", COLUMNS, separator="\t")
    samples = []
    for sample in corpus:
        columns = sample.columns
        rows = zip(columns["xpos"], columns["relation"], columns["head"], strict=True)
        samples.append([f"{x} {r} {int(head) > t}" for t, (x, r, head) in enumerate(rows, 1)])
    words = {"word": [sample.columns["word"] for sample in corpus]}
    return Corpus.from_columns(words, samples)


def train_crfs(train: Corpus, dev: Corpus, sizes: list[int]) -> None:
    """Speeds and accuracies of CRFs with all transitions and with some."""
    title = "training a CRF, one core"
    table = Table(
        title, "sentences", "labels", "transitions", "weights of these", "passes", "s",
        "tokens/s", "accuracy", "more than with all",
    )  # fmt: skip
    gold, lengths = dev.label_lists(), dev.lengths
    for n in sizes:
        right: dict[str, np.ndarray] = {}
        for transitions in ("all", "observed"):
            crf = ChainCRF("pos", transitions=transitions, max_labels=5000, random_state=0)
            _, seconds = once(lambda crf=crf, n=n: crf.fit(train[:n]))
            a_pass = min(record.seconds for record in crf.history_)
            right[transitions] = np.array(
                [
                    sum(a == b for a, b in zip(x, y, strict=True))
                    for x, y in zip(crf.predict(dev), gold, strict=True)
                ]
            )
            more = right[transitions] - right["all"]
            told = [signed(x) for x in (100 * more.sum() / lengths.sum(), *interval(more, lengths))]
            table.add(
                n, len(crf.classes_), transitions,
                np.count_nonzero(crf.weights_.transitions), len(crf.history_), seconds,
                short(train[:n].n_positions / a_pass),
                f"{100 * right[transitions].sum() / lengths.sum():.2f}",
                "" if transitions == "all" else "{} ({} to {})".format(*told),
            )  # fmt: skip
    table.show()


def signed(points: float) -> str:
    """Points gained or lost."""
    return f"{points:+.2f}".replace("-", "−")


def interval(more: np.ndarray, lengths: np.ndarray) -> tuple[float, float]:
    """95 % interval of points gained, over sentences drawn anew."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(more), (1000, len(more)))
    points = 100 * more[drawn].sum(axis=1) / lengths[drawn].sum(axis=1)
    low, high = np.quantile(points, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    args = begin(
        __doc__,
        trained=([500, 1000, 3000], [30], "sentences that CRFs learn from"),
        sentences=(6000, 60, "to learn from"),
        tagged=(500, 20, "sentences to tag"),
        passes=(4, 2),
        rounds=(5, 1),
        prune=([8, 32, 64], [2, 8]),
    )
    train, dev = read("train"), read("dev")
    train_crfs(train, dev, args.trained)
    train, dev = train[: args.sentences], dev[: args.tagged]
    model = ChainPerceptron("pos", max_passes=args.passes, max_labels=5000, random_state=0)
    model.fit(train)
    n_labels = len(model.classes_)
    encoded = model.encoder_.encode(dev)
    rng = np.random.default_rng(0)
    allowed = [
        [{y, *rng.choice(model.classes_, 4).tolist()} & set(model.classes_) for y in sample]
        for sample in dev.label_lists()
    ]
    Labels.from_lists(allowed, model.classes_)  # refuses what the model cannot say

    def search(limit: int, **options: Any) -> Callable[[], list[list[str]]]:
        def run() -> list[list[str]]:
            usual, chain_max._MANY = chain_max._MANY, limit
            try:
                return model.labellings(dev, encoded, model.weights_, **options)
            finally:
                chain_max._MANY = usual

        return run

    runs = {"all labels": search(1 << 60), "predict": search(1)}
    runs |= {f"prune={k}": search(1, prune=k) for k in args.prune}
    runs["five labels allowed"] = search(1, constraints=allowed)
    gold = dev.label_lists()
    title = f"tagging with {n_labels} labels, one core"
    table = Table(title, "search", "tokens/s", "all labels takes", "accuracy", "same", "proven")
    measured = alternate(runs, args.rounds, keep=lambda labels: labels)
    full = measured[0]
    for run in measured:
        labels = run.kept[-1]
        right = [
            a == b for x, y in zip(labels, gold, strict=True) for a, b in zip(x, y, strict=True)
        ]
        same = np.mean([x == y for x, y in zip(labels, full.kept[-1], strict=True)])
        proven = "all"
        if run.name.startswith("prune"):
            k = int(run.name.partition("=")[2])
            proven = f"{np.mean([d.exact for d in model.decode(dev, prune=k)]):.3f}"
        table.add(
            run.name, short(dev.n_positions / run.wall.median), ratio(full.wall, run.wall),
            f"{100 * np.mean(right):.2f}", f"{same:.3f}", proven,
        )  # fmt: skip
    table.show()


if __name__ == "__main__":
    main()
