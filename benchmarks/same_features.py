"""Scores on test data, against python-crfsuite given the same features.

    python -m benchmarks.same_features                    # 10-pass averaged perceptron and L-BFGS
    python -m benchmarks.same_features --no-lbfgs         # minutes instead of half an hour

python-crfsuite gets the features that Trellis's templates give, by name, position by position. One
column is transductive: the model has seen the text of the test data, not their labels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import crfsuite
from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.datasets import DataSet, load
from trellis import ChainCRF, ChainPerceptron, MaxMargin
from trellis.evaluation import span_scores, token_accuracy
from trellis.features import Encoded
from trellis.features.encoder import encoder_for

MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "CRF": (ChainCRF, {}),
    "CRF, n' = 5.5": (ChainCRF, {"piece_size": 5.5}),
    "perceptron": (ChainPerceptron, {}),
    "max-margin": (MaxMargin, {}),
    "max-margin, n' = 2.5": (MaxMargin, {"piece_size": 2.5}),
}
PEERS: dict[str, dict[str, Any]] = {
    "crfsuite ap, 10": {"algorithm": "ap", "max_iterations": 10},
    "crfsuite L-BFGS": {"algorithm": "lbfgs"},
}


def items(encoded: Encoded) -> Iterator[Any]:
    """Features of each sample as attributes (ids, as good as names), with their values."""

    def item(t: int) -> list[str] | dict[str, float]:
        part = slice(encoded.indptr[t], encoded.indptr[t + 1])
        names = list(map(str, encoded.indices[part].tolist()))
        if not encoded.values.size:
            return names
        return dict(zip(names, encoded.values[part].tolist(), strict=True))

    for a, b in zip(encoded.offsets, encoded.offsets[1:], strict=False):
        yield [item(t) for t in range(a, b)]


def score(data: DataSet, predicted: list[list[str]]) -> str:
    gold = data.test.label_lists()
    if data.scheme is not None:
        return f"{100 * span_scores(gold, predicted, data.scheme).f1:.2f}"
    return f"{100 * token_accuracy(gold, predicted):.2f}"


def main() -> None:
    args = begin(
        __doc__,
        no_lbfgs=(False, False, "without the slowest peer"),
        tasks=(["conll2000", "ud_ewt", "jnlpba", "sxu"],) * 2,
    )
    peers = dict(PEERS) if crfsuite.is_there() else {}
    if args.no_lbfgs:
        peers.pop("crfsuite L-BFGS", None)
    title = "F1 (ud_ewt: accuracy), same features for all"
    table = Table(title, "task", *MODELS, "max-margin, transductive", *peers)
    for name in args.tasks:
        data = load(name)
        scores = []
        for kind, options in MODELS.values():
            model = kind(data.features, random_state=0, **options).fit(data.train)
            scores.append(score(data, model.predict(data.test)))
        model = MaxMargin(data.features, random_state=0).fit(data.train, unlabelled=data.test)
        scores.append(score(data, model.predict(data.test)))
        encoder = encoder_for(data.features, data.train)
        train, test = encoder.learn(data.train), encoder.encode(data.test)
        for options in peers.values():
            with tempfile.NamedTemporaryFile(suffix=".crfsuite") as file:
                crfsuite.train(file.name, items(train), data.train.label_lists(), **options)
                tagged = crfsuite.tagger(file.name)(items(test))
            scores.append(score(data, tagged))
        table.add(name, *scores)
    table.show()


if __name__ == "__main__":
    main()
