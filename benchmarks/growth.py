"""How the time of every main operation grows: slopes of log seconds against log size.

    python -m benchmarks.growth                       # some minutes on one core
    python -m benchmarks.growth --only predict

Four sizes, each at least twice the one before; CPU seconds, the best of three. The slope is that of
the last three sizes: 1 is linear, and where something else is expected by the nature of the work,
the table says so. A slope of 0.25 above what is expected is marked: it is a cliff, or a machine
that was busy. Data are generated: words by Zipf's law, labels in BIO that follow from them.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    GraphCRF,
    MaxMargin,
    TreeCRF,
    load_model,
    read_conll,
    read_conllu,
    read_crfsuite,
    read_graphs,
    read_jsonl,
    read_segmented,
)
from trellis.cheap import ActiveLearner, TransferLearner
from trellis.corpus import as_corpus, as_graph_corpus, write_conll, write_jsonl
from trellis.datasets import grid_edges, simulate_cells
from trellis.experts import Aligned, ForwardStepwise, MajorityVote, Stacking, WeightedMajority
from trellis.features import AttributeEncoder, TemplateEncoder, as_templates
from trellis.regression import GCRF
from trellis.structures import GraphPotentials, best, elimination_cost, marginals
from trellis.tracking import TrackingModel

TEMPLATES = "word[-2..2]; word[-1] & word; word & word[1]; prefix(word, 1..3); suffix(word, 1..3)"
LABELS = [*(f"{letter}-{kind}" for kind in "UVWX" for letter in "BI"), "O"]
ABOVE = 0.25
"""How far above what is expected a slope is marked."""

Run = Callable[[], Any]


@dataclass(frozen=True)
class Growth:
    """An operation: what grows, sizes as multiples of the first, and what is timed at a size."""

    operation: str
    grows: str
    first: int
    small: int
    prepare: Callable[[int], Run]
    factor: int = 2
    expected: float = 1.0

    def sizes(self, small: bool) -> list[int]:
        """Four sizes."""
        return [(self.small if small else self.first) * self.factor**k for k in range(4)]


def seconds(run: Run) -> float:
    """CPU seconds, the best of three."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def slope(sizes: list[int], taken: list[float]) -> float:
    """Slope of the logarithms over the last three sizes."""
    return float(np.polyfit(np.log(sizes[1:]), np.log(taken[1:]), 1)[0])


# ---------------------------------------------------------------- data


def words(n: int, rng: np.random.Generator) -> list[str]:
    """Words of which few are frequent and many are rare."""
    return [f"w{k}" for k in (rng.pareto(0.8, n) * 5).astype(np.int64) % 200_000]


def sentences(n: int, length: int = 25) -> tuple[list[list[str]], list[list[str]]]:
    """Samples of n words in all, and their labels."""
    rng = np.random.default_rng(0)
    drawn = words(n, rng)
    labels = [LABELS[hash_of(word) % len(LABELS)] for word in drawn]
    cuts = range(0, n, length)
    return [drawn[a : a + length] for a in cuts], [labels[a : a + length] for a in cuts]


def hash_of(word: str) -> int:
    """A number that follows from a word, in every process the same."""
    return int(word[1:]) * 2_654_435_761 >> 7


def corpus(n: int, length: int = 25) -> Corpus:
    """The same as a corpus of one column."""
    X, y = sentences(n, length)
    return Corpus.from_columns({"word": X}, y)


def attributes(n: int, m: int) -> tuple[Any, Any]:
    """Samples of n positions with m named features each."""
    X, y = sentences(n)
    rng = np.random.default_rng(1)
    more = iter(words(n * (m - 1), rng))
    return [[{w: 1.0} | {next(more): 1.0 for _ in range(m - 1)} for w in x] for x in X], y


def trees(n: int, size: int) -> Corpus:
    """Trees of n nodes in all."""
    X, y = sentences(n, size)
    rng = np.random.default_rng(0)
    edges = [
        [(v, int(rng.integers(max(0, v - 4), v))) for v in range(1, len(sample))] for sample in X
    ]
    return as_graph_corpus(X, y, edges=edges)


def grids(n: int) -> Corpus:
    """Grids of 4 × 4 with n nodes in all."""
    n = 16 * (-(-n // 16))
    X, y = sentences(n, 16)
    kinds = [[label[-1] for label in sample] for sample in y]
    return as_graph_corpus(X, kinds, edges=[grid_edges(4, 4)] * len(X))


def one_grid(n: int, rows: int) -> GraphPotentials:
    """Scores of one grid of n nodes with three labels."""
    edges = grid_edges(rows, max(1, n // rows))
    rng = np.random.default_rng(0)
    n = rows * max(1, n // rows)
    return GraphPotentials(rng.normal(size=(n, 3)), 0.5 * np.eye(3), edges, [0, n])


def answers(n: int, length: int, edits: bool) -> tuple[Any, Any]:
    """Answers of five experts to n samples, and the right ones."""
    _, gold = sentences(n * length, length)
    rng = np.random.default_rng(0)
    said = []
    for j in range(5):
        wrong = rng.random(n * length) < 0.05 * (j + 1)
        flat = iter(zip(wrong, rng.integers(0, len(LABELS), n * length), strict=True))
        column = []
        for sample in gold:
            drawn = [(y, *next(flat)) for y in sample]
            column.append([LABELS[k] if bad else y for y, bad, k in drawn if not (bad and edits)])
        said.append(column)
    return said, gold


# ---------------------------------------------------------------- operations


def reading(folder: Path) -> Iterator[Growth]:
    """Every format, from memory."""

    def read(write: Callable[[int], bytes], how: Callable[[Any], Any]) -> Callable[[int], Run]:
        def prepare(n: int) -> Run:
            data = write(n)
            return lambda: how(io.BytesIO(data))

        return prepare

    def written(write: Callable[..., None], n: int) -> bytes:
        path = folder / "written"
        write(path, corpus(n))
        return path.read_bytes()

    def conllu(n: int) -> bytes:
        X, y = sentences(n)
        rows = [
            f"{t + 1}\t{w}\t_\t{label}\t_\t_\t{t}\tdep\t_\t_" + "\n" * (t + 1 == len(x))
            for x, labels in zip(X, y, strict=True)
            for t, (w, label) in enumerate(zip(x, labels, strict=True))
        ]
        return ("\n".join(rows) + "\n").encode()

    def crfsuite(n: int) -> bytes:
        X, y = sentences(n)
        samples = [
            "".join(f"{label}\tw={w}\ts={w[-1]}\n" for w, label in zip(x, labels, strict=True))
            for x, labels in zip(X, y, strict=True)
        ]
        return "\n".join(samples).encode()

    def graphs(n: int) -> bytes:
        X, y = sentences(n)
        samples = []
        for x, labels in zip(X, y, strict=True):
            lines = [f"{w} {label}" for w, label in zip(x, labels, strict=True)]
            samples.append("\n".join(lines + [f"@edge {t} {t + 1}" for t in range(1, len(x))]))
        return "\n\n".join(samples).encode()

    def segmented(n: int) -> bytes:
        return "\n".join(" ".join(x) for x in sentences(n)[0]).encode()

    columns = ["word", "label"]
    for name, write, how in (
        ("conll", lambda n: written(write_conll, n), lambda f: read_conll(f, columns, "label")),
        ("conllu", conllu, lambda f: read_conllu(f, label="upos")),
        ("jsonl", lambda n: written(write_jsonl, n), read_jsonl),
        ("crfsuite", crfsuite, read_crfsuite),
        ("graphs", graphs, lambda f: read_graphs(f, columns, "label")),
        ("segmented", segmented, read_segmented),
    ):
        yield Growth(f"read {name}", "tokens", 40_000, 40, read(write, how))


def encoding() -> Iterator[Growth]:
    """Features of columns and of dictionaries."""

    def templates(n: int) -> Run:
        data, parsed = corpus(n), as_templates(TEMPLATES, ["word"])
        return lambda: TemplateEncoder(parsed).learn(data)

    def dicts(n: int) -> Run:
        X, _ = attributes(n, 10)
        return lambda: AttributeEncoder().learn(as_corpus(X))

    yield Growth("encode by templates", "tokens", 40_000, 40, templates)
    yield Growth("encode from dicts", "tokens", 10_000, 40, dicts)


def fitting(small: bool) -> Iterator[Growth]:
    """Training of chains."""
    tokens = 2000 if small else 25_000
    steps: dict[str, Any] = {"learning_rate": 0.1, "max_passes": 2, "random_state": 0}
    models: dict[str, Callable[[], Any]] = {
        "fit, default rate": lambda: ChainCRF(TEMPLATES, max_passes=2, random_state=0),
        "fit, SGD": lambda: ChainCRF(TEMPLATES, solver="sgd", **steps),
        "fit, ADF": lambda: ChainCRF(TEMPLATES, solver="adf", **steps),
        "fit, perceptron": lambda: ChainPerceptron(TEMPLATES, max_passes=2, random_state=0),
        "fit, L-BFGS": lambda: ChainCRF(TEMPLATES, solver="lbfgs", max_passes=3, tol=0),
        "fit, max margin": lambda: MaxMargin(TEMPLATES, solver="frank-wolfe", max_passes=1),
    }

    def by_tokens(model: Callable[[], Any]) -> Callable[[int], Run]:
        def prepare(n: int) -> Run:
            data = corpus(n)
            return lambda: model().fit(data)

        return prepare

    def by_length(model: Callable[[], Any]) -> Callable[[int], Run]:
        def prepare(length: int) -> Run:
            data = corpus(tokens, length)
            return lambda: model().fit(data)

        return prepare

    def by_features(m: int) -> Run:
        X, y = attributes(tokens // 5, m)
        data = as_corpus(X, y)
        return lambda: ChainCRF(solver="sgd", **steps).fit(data)

    def domains(n: int) -> Run:
        data = {str(d): corpus(60, 6)[d % 5 :] for d in range(n)}
        return lambda: TransferLearner(MaxMargin("word", l2=1.0), rho=0.5, tol=0.1).fit(data)

    for name, model in models.items():
        yield Growth(name, "tokens", 20_000, 100, by_tokens(model))
    del models["fit, SGD"], models["fit, ADF"]  # a fixed rate is too high for long sequences
    for name, model in models.items():
        yield Growth(name, "length, as many tokens", 25, 2, by_length(model), factor=10, expected=0)
    yield Growth("fit, SGD", "features a token", 5, 2, by_features)
    yield Growth("fit, transfer", "domains", 2, 1, domains)


def predicting(folder: Path, small: bool) -> Iterator[Growth]:
    """What a fitted chain model does."""
    size = 200 if small else 20_000
    crf = ChainCRF(TEMPLATES, learning_rate=0.1, max_passes=2, random_state=0).fit(corpus(size))
    named = ChainCRF(learning_rate=0.1, max_passes=1, random_state=0)

    def by_tokens(how: Callable[[Any], Any]) -> Callable[[int], Run]:
        def prepare(n: int) -> Run:
            data = corpus(n)
            return lambda: how(data)

        return prepare

    def by_length(how: Callable[[Any], Any]) -> Callable[[int], Run]:
        def prepare(length: int) -> Run:
            data = corpus(size, length)
            return lambda: how(data)

        return prepare

    def k_best(k: int) -> Run:
        data = corpus(size // 10)
        return lambda: crf.predict_kbest(data, k)

    def one_of(n: int) -> Run:
        X, y = attributes(n, 5)
        data = as_corpus(X, y)
        named.fit(data[:4])
        return lambda: [named.predict(data[i]) for i in range(4)]

    def with_features(n: int) -> tuple[ChainCRF, Path]:
        X = [[f"v{i}" for i in range(a, min(a + 25, n))] for a in range(0, n, 25)]
        y = [[LABELS[i % 9] for i in range(len(x))] for x in X]
        return ChainCRF("word", learning_rate=0.1, max_passes=1).fit(X, y), folder / "model"

    def save(n: int) -> Run:
        model, path = with_features(n)
        return lambda: model.save(path)

    def load(n: int) -> Run:
        model, path = with_features(n)
        model.save(path)
        return lambda: load_model(path)

    questions: dict[str, Callable[[Any], Any]] = {
        "predict": crf.predict,
        "marginals": crf.predict_marginals,
        "predict_spans": crf.predict_spans,
    }
    for name, how in questions.items():
        yield Growth(name, "tokens", 20_000, 100, by_tokens(how))
    for name, how in questions.items():
        yield Growth(name, "length, as many tokens", 20, 4, by_length(how), factor=10, expected=0)
    yield Growth("k best", "k", 5, 2, k_best)
    yield Growth("predict(corpus[i])", "corpus", 5000, 100, one_of, expected=0)
    yield Growth("save", "features", 20_000, 100, save)
    yield Growth("load", "features", 20_000, 100, load)


def structured(small: bool) -> Iterator[Growth]:
    """Trees and graphs."""
    nodes = 2000 if small else 20_000
    steps: dict[str, Any] = {"learning_rate": 0.1, "max_passes": 2, "random_state": 0}

    def fit_trees(n: int) -> Run:
        data = trees(n, 20)
        return lambda: TreeCRF("word", **steps).fit(data)

    def fit_sizes(size: int) -> Run:
        data = trees(nodes, size)
        return lambda: TreeCRF("word", max_passes=2, random_state=0).fit(data)

    def predict_trees(n: int) -> Run:
        data = trees(n, 20)
        model = TreeCRF("word", **steps).fit(data[:20])
        return lambda: model.predict(data)

    def fit_graphs(n: int) -> Run:
        data = grids(n)
        return lambda: GraphCRF("word", **steps).fit(data)

    def margin_graphs(n: int) -> Run:
        data = grids(n)
        return lambda: MaxMargin("word", structure="graph", max_passes=1).fit(data)

    def grid(how: Callable[[Any], Any], rows: int) -> Callable[[int], Run]:
        def prepare(n: int) -> Run:
            p = one_grid(n, rows)
            return lambda: how(p)

        return prepare

    yield Growth("fit trees", "nodes", 10_000, 100, fit_trees)
    yield Growth("fit trees", "size, as many nodes", 20, 2, fit_sizes, factor=10, expected=0)
    yield Growth("predict trees", "nodes", 10_000, 100, predict_trees)
    yield Growth("fit graphs, by trees", "nodes", 5000, 50, fit_graphs)
    yield Growth("fit graphs, max margin", "nodes", 500, 20, margin_graphs)
    bp = grid(lambda p: marginals(p, method="bp", max_iterations=20), 20)
    dual = grid(lambda p: best(p, method="dual", max_iterations=20), 20)
    yield Growth("belief propagation, 20 turns", "nodes", 1000, 40, bp)
    yield Growth("dual decomposition, 20 turns", "nodes", 1000, 40, dual)
    yield Growth("cost of elimination, 3 rows", "nodes", 1000, 30, grid(elimination_cost, 3))


def others() -> Iterator[Growth]:
    """Regression, tracking, ensembles, active learning."""

    def field(n: int, what: str) -> Run:
        rng = np.random.default_rng(0)
        places, others = rng.uniform(size=(2, n, 2))
        y = np.sin(9 * places).sum(axis=1)
        r = y + 0.5 * rng.normal(size=n)  # neighbours know better
        model = GCRF("precomputed", random_state=0)
        if what == "fit":
            return lambda: model.fit(r, y, coords=places)
        model.fit(r, y, coords=places)
        return lambda: model.predict(r, coords=others, return_std=True)

    def track(frames: int) -> Run:
        movie = simulate_cells(20, frames + 1, seed=0)
        model = TrackingModel(solver="perceptron", max_iter=2, random_state=0)
        model.fit(simulate_cells(20, 4, seed=1))
        return lambda: model.predict(movie)

    def aligned(n: int) -> Run:
        said, gold = answers(n, 30, True)
        return lambda: Aligned(MajorityVote()).fit(said, gold)

    def aligned_length(length: int) -> Run:
        said, gold = answers(5, length, True)
        return lambda: Aligned(MajorityVote()).fit(said, gold)

    def combined(combiner: Callable[[], Any]) -> Callable[[int], Run]:
        def prepare(n: int) -> Run:
            said, gold = answers(n, 20, False)
            return lambda: combiner().fit(said, gold).predict(said)

        return prepare

    def active(n: int) -> Run:
        X, y = sentences(n * 10, 10)
        crf = ChainCRF("word", learning_rate=0.1)
        learner = ActiveLearner(crf, labels=LABELS, random_state=0)

        def step() -> None:
            i = learner.query(X)
            learner.tell(i, y[i])

        step()  # prepares the pool
        return step

    yield Growth("fit GCRF", "nodes", 20_000, 200, lambda n: field(n, "fit"))
    yield Growth("predict GCRF", "nodes", 20_000, 200, lambda n: field(n, "predict"))
    yield Growth("track", "frames", 4, 2, track)
    yield Growth("align and fit", "samples", 50, 4, aligned)
    yield Growth("align and fit", "length", 50, 4, aligned_length, expected=2)
    combiners: dict[str, Callable[[], Any]] = {
        "weighted majority": WeightedMajority,
        "stepwise": lambda: ForwardStepwise(random_state=0),
        "stacking": Stacking,
    }
    for name, combiner in combiners.items():
        yield Growth(f"combine, {name}", "samples", 100, 8, combined(combiner))
    yield Growth("round of active learning", "pool", 500, 10, active)


def main() -> None:
    """Time all operations and show the slopes."""
    args = begin(__doc__, only=("", "", "operations with this in their names alone"))
    table = Table(
        "CPU seconds, best of three; slopes of the last three of four sizes",
        *("operation", "what grows", "sizes", "seconds", "slope", "expected"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder), args.small
        for part in (
            reading(path), encoding(), fitting(small), predicting(path, small), structured(small),
            others(),
        ):  # fmt: skip
            for growth in part:
                if args.only not in growth.operation:
                    continue
                sizes = growth.sizes(small)
                growth.prepare(sizes[0])()  # compiles, imports
                taken = [seconds(growth.prepare(size)) for size in sizes]
                found = slope(sizes, taken)
                mark = " (!)" if found > growth.expected + ABOVE else ""
                table.add(
                    growth.operation, growth.grows, ", ".join(map(str, sizes)),
                    ", ".join(f"{s:.2g}" for s in taken), f"n^{found:.2f}{mark}",
                    f"n^{growth.expected:g}",
                )  # fmt: skip
    table.show()


if __name__ == "__main__":
    main()
