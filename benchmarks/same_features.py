"""Scores against python-crfsuite given the same features, on three tasks.

    python -m benchmarks.same_features                    # 10-pass averaged perceptron and L-BFGS
    python -m benchmarks.same_features --no-lbfgs         # minutes instead of half an hour

python-crfsuite gets the features that Trellis's templates give, by name, position by position.
"""

from __future__ import annotations

import argparse
import tempfile

from benchmarks.side_by_side import table
from studies.datasets import DataSet, load
from trellis import ChainCRF, ChainPerceptron
from trellis.corpus import Corpus
from trellis.evaluation import span_scores, token_accuracy
from trellis.features import Encoded


def items(encoded: Encoded, sample: int) -> list[list[str]]:
    """Features of one sample as attribute strings (ids, which are as good as names)."""
    a, b = encoded.offsets[sample], encoded.offsets[sample + 1]
    return [
        [str(i) for i in encoded.indices[encoded.indptr[t] : encoded.indptr[t + 1]]]
        for t in range(a, b)
    ]


def score(data: DataSet, predicted: list[list[str]]) -> float:
    gold = data.test.label_lists()
    if data.scheme is not None:
        return span_scores(gold, predicted, data.scheme).f1
    return token_accuracy(gold, predicted)


def crfsuite(
    train: Encoded, labels: Corpus, test: Encoded, algorithm: str, **parameters: object
) -> list[list[str]]:
    import pycrfsuite

    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as file:
        trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
        trainer.set_params(parameters)
        for s, y in enumerate(labels.label_lists()):
            trainer.append(pycrfsuite.ItemSequence(items(train, s)), y)
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        n = len(test.offsets) - 1
        return [tagger.tag(pycrfsuite.ItemSequence(items(test, s))) for s in range(n)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--no-lbfgs", action="store_true")
    arguments.add_argument("--tasks", default="conll2000,ud_ewt,jnlpba")
    args = arguments.parse_args()
    rows = []
    for name in args.tasks.split(","):
        data = load(name)
        crf = ChainCRF(data.features, random_state=0).fit(data.train)
        pieces = ChainCRF(data.features, piece_size=5.5, random_state=0).fit(data.train)
        perceptron = ChainPerceptron(data.features, random_state=0).fit(data.train)
        train, test = crf.encoder_.encode(data.train), crf.encoder_.encode(data.test)
        found = {
            "CRF": score(data, crf.predict(data.test)),
            "CRF, n' = 5.5": score(data, pieces.predict(data.test)),
            "perceptron": score(data, perceptron.predict(data.test)),
            "crfsuite ap, 10": score(
                data, crfsuite(train, data.train, test, "ap", max_iterations=10)
            ),
        }
        if not args.no_lbfgs:
            found["crfsuite L-BFGS"] = score(data, crfsuite(train, data.train, test, "lbfgs"))
        rows.append([name, *(f"{100 * value:.2f}" for value in found.values())])
        print(name, {k: round(100 * v, 2) for k, v in found.items()}, flush=True)
    print("\nF1 (ud_ewt: accuracy), same features for all\n")
    print(table(["task", *found], rows))


if __name__ == "__main__":
    main()
