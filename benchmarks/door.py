"""From feature dicts and lists of attribute strings to numbers, against a plain loop.

    python -m benchmarks.door

The plain loop is what anybody would write: it numbers names by ``setdefault`` and checks nothing.
``as_corpus`` checks every key and value on the way. The dicts are those of sklearn-crfsuite's
tutorial (strings, truth values and a bias), those of CRFsuite's chunking example (strings: most of
the names are rare), and twenty floats a token; the lists are those of the example. Then a single
sentence is predicted, given as dicts and as a part of a corpus with many names, and a model file is
loaded. Seconds are CPU seconds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.crfsuite import attributes, read
from benchmarks.options import begin
from benchmarks.side_by_side import Seconds, Table, alternate, ratio
from benchmarks.tutorial import dicts
from studies.datasets import data_folder
from trellis import ChainCRF, load_model, read_conll
from trellis.corpus import Corpus, Features, as_corpus
from trellis.features import AttributeEncoder, Encoded

Samples = list[list[Any]]
Coded = tuple[Any, Any, list[str]]


def plain_dicts(samples: Samples) -> Coded:
    """Numbers and values of dict entries, and names, by a plain loop."""
    names: dict[str, int] = {}
    numbers, values, ends = [], [], [0]
    for sample in samples:
        for position in sample:
            for key, value in position.items():
                if isinstance(value, str):
                    numbers.append(names.setdefault(key + "=" + value, len(names)))
                    values.append(1.0)
                elif isinstance(value, bool):
                    if value:
                        numbers.append(names.setdefault(key, len(names)))
                        values.append(1.0)
                else:
                    numbers.append(names.setdefault(key, len(names)))
                    values.append(float(value))
            ends.append(len(numbers))
    return np.array(numbers, np.int32), np.array(values, np.float32), list(names)


def plain_lists(samples: Samples) -> Coded:
    """Numbers of strings, and names, by a plain loop."""
    names: dict[str, int] = {}
    numbers, ends = [], [0]
    for sample in samples:
        for position in sample:
            for name in position:
                numbers.append(names.setdefault(name, len(names)))
            ends.append(len(numbers))
    return np.array(numbers, np.int32), None, list(names)


def by_door(samples: Samples) -> Coded:
    """The same by the door."""
    features = as_corpus(samples).features
    assert features is not None
    return features.indices, features.values, list(features.names)


def known(encoder: AttributeEncoder, samples: Samples) -> Encoded:
    """The same for names that are known."""
    return encoder.encode(as_corpus(samples))


def entries(samples: Samples) -> int:
    """Number of dict entries or strings."""
    return sum(len(position) for sample in samples for position in sample)


def rate(n: int, seconds: Seconds) -> float:
    """Millions a second."""
    return n / 1e6 / seconds.median


def kinds(sentences: int) -> dict[str, tuple[Samples, Any]]:
    """Samples of each kind, and the plain loop for them."""
    path = data_folder("conll2000") / "train.txt.xz"
    corpus = read_conll(path, ["word", "pos", "chunk"], "chunk")[:sentences]
    lists: Samples = [attributes(sentence) for sentence in read(path)[:sentences]]
    pairs = [
        [dict(a.split("=", 1) if "=" in a else (a, True) for a in t) for t in s] for s in lists
    ]
    rng = np.random.default_rng(0)
    floats = [
        [{f"x{j}": v for j, v in enumerate(row)} for row in rng.normal(size=(n, 20)).tolist()]
        for n in corpus.lengths.tolist()
    ]
    return {
        "dicts of the tutorial": (dicts(corpus), plain_dicts),
        "dicts of the chunking example": (pairs, plain_dicts),
        "dicts of floats": (floats, plain_dicts),
        "lists of the chunking example": (lists, plain_lists),
    }


def many_names(n: int) -> Corpus:
    """A corpus of n attributes, 20 a position, 25 positions a sample; each occurs about once."""
    rng = np.random.default_rng(0)
    length = max(n // 500, 2)
    indices = rng.integers(0, n, 500 * length).astype(np.int32)
    names = [f"word[{i % 5 - 2}]={i:x}" for i in range(n)]
    features = Features(np.arange(0, len(indices) + 1, 20), indices, None, names)
    y = rng.integers(0, 10, (length, 25))
    corpus = Corpus(np.arange(0, 25 * length + 1, 25), features=features)
    return corpus.with_labels([[f"L{label}" for label in row] for row in y])


def main() -> None:
    args = begin(
        __doc__,
        sentences=(9000, 60, "of CoNLL-2000"),
        names=([10_000, 100_000, 1_000_000], [1000, 2000], "attributes of the corpora of many"),
        rounds=(7, 2),
    )
    title = "Millions of entries a second"
    table = Table(title, "samples", "entries", "plain loop", "as_corpus", "speed", "known names")
    for name, (samples, plain) in kinds(args.sentences).items():
        n = entries(samples)
        encoder = AttributeEncoder()
        encoder.learn(as_corpus(samples))
        runs: dict[str, Callable[[], Any]] = {
            "plain": partial(plain, samples),
            "door": partial(by_door, samples),
            "encoded": partial(known, encoder, samples),
        }
        loop, door, encoded = alternate(runs, args.rounds)
        table.add(
            name, n, rate(n, loop.cpu), rate(n, door.cpu), ratio(loop.cpu, door.cpu),
            rate(n, encoded.cpu),
        )  # fmt: skip
        (numbers, _, names), (own, _, own_names) = plain(samples), by_door(samples)
        assert np.array_equal(numbers, own) and names == own_names
    table.show()
    heads = ("ms, dicts", "ms, part of a corpus", "load, s", "file, MB")
    table = Table("A sentence of 25 positions, and a model file", "attributes", *heads)
    for n in args.names:
        corpus = many_names(n)
        model = ChainCRF(solver="sgd", max_passes=1, learning_rate=0.1, random_state=0).fit(corpus)
        assert corpus.features is not None
        names, ends = corpus.features.names, corpus.features.indptr
        given = [[{names[i]: True for i in corpus.features.indices[ends[t]:ends[t + 1]]}
                  for t in range(25)]]  # fmt: skip
        assert model.predict(given) == model.predict(corpus[0])
        with tempfile.NamedTemporaryFile(suffix=".trellis") as file:
            model.save(file.name)
            runs = {
                "dicts": partial(model.predict, given),
                "part": partial(model.predict, corpus[0]),
                "load": partial(load_model, file.name),
            }
            own, part, load = alternate(runs, args.rounds)
            size = Path(file.name).stat().st_size / 1e6
        table.add(n, 1e3 * own.cpu.median, 1e3 * part.cpu.median, str(load.cpu), size)
    table.show()


if __name__ == "__main__":
    main()
