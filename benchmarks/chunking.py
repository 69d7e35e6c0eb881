"""CoNLL-2000 chunking against python-crfsuite: training, tagging, scores. One core.

    python -m benchmarks.chunking             # everything; about 10 minutes, most of it L-BFGS
    python -m benchmarks.chunking --quick     # without L-BFGS

Both sides go from file to trained model (read, extract CRFsuite's example features, train) and from
lists of strings to labels (extract features, decode; the model is open). The CRF has twice as many
states as labels inside, unless it takes labels as given. python-crfsuite comes with the extra
``bench``.
"""

from __future__ import annotations

import tempfile
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import crfsuite
from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio, short
from studies.datasets import data_folder
from trellis import ChainCRF, ChainPerceptron, Corpus, read_conll
from trellis.evaluation import span_scores

COLUMNS = ["word", "pos", "chunk"]
MODELS: dict[str, Any] = {
    "Trellis perceptron": partial(ChainPerceptron, "chunking", max_passes=10, random_state=0),
    "Trellis CRF, n' = 5.5": partial(ChainCRF, "chunking", piece_size=5.5, random_state=0),
    "Trellis CRF": partial(ChainCRF, "chunking", random_state=0),
}
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Trellis perceptron": ("ap, 10", {"algorithm": "ap", "max_iterations": 10}),
    "Trellis CRF": ("L-BFGS", {"algorithm": "lbfgs"}),
}


def peer(train: Path, model: str, options: dict[str, Any]) -> None:
    sentences = crfsuite.read(train)
    items = map(crfsuite.attributes, sentences)
    crfsuite.train(model, items, ([y for *_, y in s] for s in sentences), **options)


def main() -> None:
    args = begin(
        __doc__,
        quick=(False, False, "without L-BFGS"),
        rounds=(5, 2, "rounds of the fast contestants"),
        slow_rounds=(2, 1, "rounds with L-BFGS"),
    )
    peers = dict(PEERS) if crfsuite.is_there() else {}
    if args.quick:
        peers.pop("Trellis CRF", None)
    folder = data_folder("conll2000")
    train = folder / "train.txt.xz"
    test = read_conll(folder / "test.txt.xz", COLUMNS, "chunk")
    sentences = crfsuite.read(folder / "test.txt.xz")
    gold = test.label_lists()
    columns = {
        name: [[row[c] for row in s] for s in sentences] for c, name in enumerate(COLUMNS[:2])
    }

    def f1(predicted: list[list[str]]) -> str:
        return f"{100 * span_scores(gold, predicted, 'BIO').f1:.2f}"

    table = Table(
        "file to trained model, one core",
        *("system", "F1", "seconds (median)", "ratio (range over rounds)"),
    )
    tagger = None
    fitted: deque[Any] = deque(maxlen=1)  # memory of the others is free for the next

    def latest(result: Any) -> None:
        fitted.append(result)

    with tempfile.TemporaryDirectory() as scratch:
        for name, make in MODELS.items():
            runs = {name: lambda make=make: make().fit(read_conll(train, COLUMNS, "chunk"))}
            rounds, against = args.rounds, ""
            if name in peers:
                kind, options = peers[name]
                path = f"{scratch}/{kind}.crfsuite"
                runs = {kind: lambda p=path, o=options: peer(train, p, o), **runs}
                rounds = args.slow_rounds if kind == "L-BFGS" else rounds
            *others, ours = alternate(runs, rounds, keep=latest)
            for other in others:
                tagger = crfsuite.tagger(path)
                predicted = tagger(map(crfsuite.attributes, sentences))
                table.add(f"python-crfsuite {other.name}", f1(predicted), other.wall.median, "")
                against = f"{other.name} takes {ratio(other.wall, ours.wall)}"
            model = fitted[-1]
            table.add(name, f1(model.predict(test)), ours.wall.median, against)
    table.show()

    given = ChainCRF("chunking", encoding="given", random_state=0)
    given.fit(read_conll(train, COLUMNS, "chunk"))
    encoded, as_given = (crf.encoder_.encode(test) for crf in (model, given))
    runs = {
        "Trellis": lambda: model.predict(Corpus.from_columns(columns)),
        "Trellis, from a corpus as read": lambda: model.predict(test),
        "Trellis, from encoded features": lambda: model.labellings(test, encoded, model.weights_),
    }
    few = "Trellis, labels as given"
    runs[few] = lambda: given.predict(Corpus.from_columns(columns))
    runs[f"{few}, from encoded features"] = lambda: given.labellings(test, as_given, given.weights_)
    if tagger:
        runs["python-crfsuite"] = lambda: tagger(map(crfsuite.attributes, sentences))
    title = "tagging on one core, from lists of strings to labels unless said"
    table = Table(title, "system", "tokens/s", "time, times Trellis (range)")
    tagged = alternate(runs, args.rounds)
    for run in tagged:
        per_second = short(test.n_positions / run.wall.median)
        table.add(run.name, per_second, ratio(run.wall, tagged[0].wall))
    table.show()


if __name__ == "__main__":
    main()
