"""CoNLL-2000 chunking against python-crfsuite: training, tagging, scores. One core.

    python -m benchmarks.chunking             # everything; about 10 minutes, most of it L-BFGS
    python -m benchmarks.chunking --quick     # without L-BFGS

Both sides go from file to trained model (read, extract CRFsuite's example features, train) and from
raw columns to labels (extract features, decode). python-crfsuite comes with the extra ``bench``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.crfsuite_chunking import attributes, read
from benchmarks.side_by_side import Times, alternate, one_core, ratio, table
from studies.datasets import data_folder
from trellis import ChainCRF, ChainPerceptron, read_conll
from trellis.evaluation import span_scores
from trellis.warmup import warmup

COLUMNS = ["word", "pos", "chunk"]


def crfsuite(folder: Path, model: str, algorithm: str, **parameters: object) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(parameters)
    for sentence in read(folder / "train.txt.xz"):
        trainer.append(pycrfsuite.ItemSequence(attributes(sentence)), [y for *_, y in sentence])
    trainer.train(model)


def crfsuite_tag(model: str, sentences: list) -> list[list[str]]:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return [tagger.tag(pycrfsuite.ItemSequence(attributes(s))) for s in sentences]


def trellis(folder: Path, model: ChainCRF | ChainPerceptron) -> ChainCRF | ChainPerceptron:
    return model.fit(read_conll(folder / "train.txt.xz", COLUMNS, "chunk"))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="without L-BFGS")
    arguments.add_argument("--rounds", type=int, default=5, help="rounds of the fast contestants")
    arguments.add_argument("--slow-rounds", type=int, default=2, help="rounds with L-BFGS")
    args = arguments.parse_args()
    one_core()
    warmup()
    folder = data_folder("conll2000")
    test = read_conll(folder / "test.txt.xz", COLUMNS, "chunk")
    sentences = read(folder / "test.txt.xz")
    gold = test.label_lists()
    fitted: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        lbfgs, perceptron = f"{scratch}/lbfgs.crfsuite", f"{scratch}/ap.crfsuite"

        def crf() -> None:
            fitted["Trellis CRF"] = trellis(folder, ChainCRF("chunking", random_state=0))

        def pieces() -> None:
            model = ChainCRF("chunking", piece_size=5.5, random_state=0)
            fitted["Trellis CRF, n' = 5.5"] = trellis(folder, model)

        def averaged() -> None:
            model = ChainPerceptron("chunking", max_passes=10, random_state=0)
            fitted["Trellis perceptron"] = trellis(folder, model)

        def ap() -> None:
            crfsuite(folder, perceptron, "ap", max_iterations=10)

        rows = []

        def report(times: Times, f1: float, against: str) -> None:
            rows.append([times.name, f"{100 * f1:.2f}", f"{times.median:.2f}", against])
            print(f"{times.name}: F1 {100 * f1:.2f}, {times.median:.2f} s, {against}", flush=True)

        def f1(predicted: list[list[str]]) -> float:
            return span_scores(gold, predicted, "BIO").f1

        a, b = alternate(
            {"python-crfsuite ap, 10": ap, "Trellis perceptron": averaged}, args.rounds
        )
        report(a, f1(crfsuite_tag(perceptron, sentences)), "")
        report(b, f1(fitted["Trellis perceptron"].predict(test)), f"ap takes {ratio(a, b)}")
        (c,) = alternate({"Trellis CRF, n' = 5.5": pieces}, args.rounds)
        report(c, f1(fitted[c.name].predict(test)), "")
        if args.quick:
            (d,) = alternate({"Trellis CRF": crf}, args.rounds)
            report(d, f1(fitted[d.name].predict(test)), "")
        else:

            def slow() -> None:
                crfsuite(folder, lbfgs, "lbfgs")

            e, d = alternate({"python-crfsuite L-BFGS": slow, "Trellis CRF": crf}, args.slow_rounds)
            report(e, f1(crfsuite_tag(lbfgs, sentences)), "")
            report(d, f1(fitted["Trellis CRF"].predict(test)), f"L-BFGS takes {ratio(e, d)}")
        print("\nfile to trained model, one core\n")
        print(table(["system", "F1", "seconds (median)", "ratio (range over rounds)"], rows))

        model = fitted["Trellis CRF"]
        tagger = perceptron if args.quick else lbfgs
        tag = {
            "python-crfsuite": lambda: crfsuite_tag(tagger, sentences),
            "Trellis": lambda: model.predict(test),
        }
        slow_tag, fast_tag = alternate(tag, args.rounds)
        encoded = model.encoder_.encode(test)

        def decode() -> None:
            model.labellings(test, encoded, model.weights_)

        (decoding,) = alternate({"Trellis, from encoded features": decode}, args.rounds)
        n = test.n_positions
        rows = [[t.name, f"{n / t.median:,.0f}"] for t in (slow_tag, fast_tag, decoding)]
        print("\ntagging, tokens a second on one core (raw columns to labels unless said)\n")
        print(table(["system", "tokens/s"], rows))
        print(f"\npython-crfsuite takes {ratio(slow_tag, fast_tag)} as long")


if __name__ == "__main__":
    main()
