"""Training on a prepared corpus: the same bits as on the corpus it was made of."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from chain_problems import same_bits, toy_language
from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    DataError,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
    load_model,
)
from trellis.corpus import Column, as_corpus
from trellis.features import Prepared, prepare
from trellis.kernels import crf, perceptron
from trellis.models import Checkpoint

X, Y = toy_language(40)
X_NEW, Y_NEW = toy_language(10, seed=1)
BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])
PARTIAL = [[None if t % 5 == 4 else y for t, y in enumerate(labels)] for labels in Y]

SEGMENTED = [list("abcab"), list("cabab"), list("ab")] * 5
TAGS = [list("BEBME"), list("BMEBE"), list("BE")] * 5


def columns(samples):
    return {"word": samples, "n": [[str(len(w)) for w in s] for s in samples]}


def dicts(samples):
    return [[{"w": w, "cap": w[0].isupper(), "n": len(w) / 3} for w in s] for s in samples]


CASES = {
    "templates": ("word[-1..1]; suffix(word, 1..2)", Corpus.from_columns(columns(X), Y)),
    "numbers": ("word; number(n); bias", Corpus.from_columns(columns(X), PARTIAL)),
    "rare": ("min_count = 2; word[-1..1]; word[-1] & word", Corpus.from_columns(columns(X), Y)),
    "auto": ("auto", as_corpus(X, Y)),
    "dicts": ("auto", as_corpus(dicts(X), Y)),
    "word list": (
        "word[-1..1]; wordlist(word, 1..2); ngrams(word, 2..2); word == word[1]",
        Corpus.from_columns({**columns(SEGMENTED), "char": SEGMENTED}, TAGS),
    ),
}


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_the_same_bits(tmp_path, kind, case):
    features, corpus = CASES[case]
    prepare(corpus, tmp_path / "p", features)
    before = (tmp_path / "p").read_bytes()
    options = {"max_passes": 3, "piece_size": 2.5, "random_state": 0}
    weight = np.linspace(0.5, 2, len(corpus))
    plain = kind(features, **options).fit(corpus, sample_weight=weight)
    for given in (features, "auto"):
        model = kind(given, **options)
        model.fit(Prepared.open(tmp_path / "p"), sample_weight=weight)
        assert same_bits(model.weights_, plain.weights_)
        assert model.classes_ == plain.classes_
        assert [r.objective for r in model.history_] == [r.objective for r in plain.history_]
        assert model.n_seen_ == len(corpus)
        new = dicts(X_NEW) if case == "dicts" else Corpus.from_columns(columns(X_NEW))
        assert model.predict(new) == plain.predict(new)
    model.set_params(features=features).save(tmp_path / "a")
    plain.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "p").read_bytes() == before


@BOTH
def test_no_kernel_is_compiled_anew(tmp_path, kind):
    """Numba has other types for read-only and for unaligned arrays."""
    features, corpus = CASES["templates"]
    kind(features, max_passes=1).fit(corpus)
    kernel = crf.crf_steps if kind is ChainCRF else perceptron.averaged_perceptron
    variants = set(kernel.signatures)
    assert variants
    kind(max_passes=1).fit(prepare(corpus, tmp_path / "p", features))
    assert set(kernel.signatures) == variants


@BOTH
def test_dev_data_are_encoded_by_the_model(tmp_path, kind):
    corpus = as_corpus(X, Y)
    prepared = prepare(corpus, tmp_path / "p", "word[-1..1]")
    options = {"max_passes": 4, "random_state": 0}
    model = kind(**options).fit(prepared, dev=(X_NEW, Y_NEW))
    plain = kind("word[-1..1]", **options).fit(corpus, dev=(X_NEW, Y_NEW))
    assert [r.dev_score for r in model.history_] == [r.dev_score for r in plain.history_]
    assert same_bits(model.weights_, plain.weights_)


def test_later_learning_does_not_touch_the_prepared(tmp_path):
    prepared = prepare(as_corpus(X, Y), tmp_path / "p", "word")
    n = prepared.encoder.n_features
    model = ChainCRF(max_passes=1, random_state=0, warm_start=True).fit(prepared)
    model.fit([["never", "seen"]], [[Y[0][0], Y[0][0]]])
    assert model.n_features_ > prepared.encoder.n_features == n
    with pytest.raises(DataError, match="warm_start: the model has other features"):
        model.fit(prepared)


@BOTH
def test_training_goes_on_over_the_same_file(tmp_path, kind):
    corpus = as_corpus(X, Y)
    prepared = prepare(corpus, tmp_path / "p", "word[-1..1]")
    kind("word[-1..1]", max_passes=2, random_state=0).fit(prepared).save(tmp_path / "m")
    loaded, plain = load_model(tmp_path / "m"), load_model(tmp_path / "m")
    loaded.set_params(warm_start=True).fit(prepared)
    plain.set_params(warm_start=True).fit(corpus)
    assert same_bits(loaded.weights_, plain.weights_)
    if kind is ChainCRF:  # the perceptron makes no mistake any more, and so learns nothing
        assert not same_bits(loaded.weights_, load_model(tmp_path / "m").weights_)


# ------------------------------------------------------------------------- trees and graphs


def with_edges(corpus, structure, typed=True):
    """Every word below a random earlier one; in a graph its neighbours are joined, too."""
    rng, pairs = np.random.default_rng(0), set()
    for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        pairs |= {(v, int(rng.integers(a, v))) for v in range(a + 1, b)}
        if structure == "graph":
            pairs |= {(v, v - 1) for v in range(a + 1, b)}
    edges = np.array(sorted(pairs), np.int64)
    edges = edges[rng.permutation(len(edges))]  # not sample by sample
    types = Column(rng.integers(0, 2, len(edges)).astype(np.int32), ["up", "side", "unused"])
    return replace(corpus, edges=edges, edge_types=types if typed else None)


CLASSES = {
    "tree": {"crf": TreeCRF, "perceptron": TreePerceptron, "max-margin": MaxMargin},
    "graph": {"crf": GraphCRF, "perceptron": GraphPerceptron, "max-margin": MaxMargin},
}
KINDS = pytest.mark.parametrize("kind", ["crf", "perceptron", "max-margin"])
STRUCTURES = pytest.mark.parametrize("structure", ["tree", "graph"])
# Labels, whether edges have types, parameters of all kinds, and of one.
GRAPH_CASES = {
    "complete": (Y, True, {}, {}),
    "partial": (PARTIAL, True, {}, {}),
    "no types": (Y, False, {"directed": False}, {}),
    "pieces": (PARTIAL, True, {"piece_size": 2.5}, {"max-margin": {"solver": "sgd"}}),
    "batches": (Y, True, {"n_jobs": 2, "batch_size": 4}, {"crf": {"solver": "adf"}}),
    "rich edges": (
        Y, True, {"rich_edges": "both", "edge_pairs": "observed"}, {"crf": {"solver": "lbfgs"}}
    ),
}  # fmt: skip


def model_of(kind, structure, features="auto", **parameters):
    if kind == "max-margin":
        parameters["structure"] = structure
    parameters = {"max_passes": 3, "random_state": 0} | parameters
    return CLASSES[structure][kind](features, **parameters)


@KINDS
@STRUCTURES
@pytest.mark.parametrize("case", GRAPH_CASES)
def test_the_same_bits_on_trees_and_graphs(tmp_path, case, structure, kind):
    labels, typed, common, special = GRAPH_CASES[case]
    corpus = with_edges(Corpus.from_columns(columns(X), labels), structure, typed)
    features, weight = "word[-1..1]", np.linspace(0.5, 2, len(corpus))
    prepare(corpus, tmp_path / "p", features)
    before = (tmp_path / "p").read_bytes()
    parameters = common | special.get(kind, {})
    plain = model_of(kind, structure, features, **parameters).fit(corpus, sample_weight=weight)
    model = model_of(kind, structure, features, **parameters)
    model.fit(Prepared.open(tmp_path / "p"), sample_weight=weight)
    assert plain.edge_types_ == (("side", "up") if typed else ())
    assert len(model.history_) > 0
    assert [r.objective for r in model.history_] == [r.objective for r in plain.history_]
    for name, fitted in (("a", model), ("b", plain)):
        fitted.set_params(n_jobs=None).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "p").read_bytes() == before


def test_pieces_that_keep_their_loops(tmp_path):
    corpus = with_edges(Corpus.from_columns(columns(X), Y), "graph")
    made = prepare(corpus, tmp_path / "p", "word")
    options = {"pieces": "graph", "piece_size": 3, "max_passes": 2, "random_state": 0}
    model, plain = GraphCRF(**options).fit(made), GraphCRF("word", **options).fit(corpus)
    assert same_bits(model.weights_, plain.weights_)
    options = {"max_passes": 2, "random_state": 0}
    model, plain = GraphCRF(**options).fit(made), GraphCRF("word", **options).fit(corpus)
    assert model.edge_share_ == plain.edge_share_ < 1


def test_a_chain_takes_no_notice_of_edges(tmp_path):
    corpus = Corpus.from_columns(columns(X), Y)
    made = prepare(with_edges(corpus, "graph"), tmp_path / "p", "word")
    model, plain = (ChainCRF("word", random_state=0).fit(data) for data in (made, corpus))
    assert same_bits(model.weights_, plain.weights_)


@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
def test_costs_of_mistakes(tmp_path, structure):
    corpus = with_edges(Corpus.from_columns(columns(X), Y), structure)
    made = prepare(corpus, tmp_path / "p", "word")
    costs = 1.0 - np.eye(len(corpus.labels.classes))
    costs[0, 1] = 3.0

    def trained(data, **more):
        return MaxMargin("word", structure=structure, max_passes=3, random_state=0, **more).fit(
            data
        )

    model = trained(made, cost=costs)
    assert same_bits(model.weights_, trained(corpus, cost=costs).weights_)
    assert not same_bits(model.weights_, trained(made).weights_)


@STRUCTURES
@KINDS
def test_dev_data_of_trees_and_graphs(tmp_path, structure, kind):
    corpus = with_edges(Corpus.from_columns(columns(X), Y), structure)
    dev = with_edges(Corpus.from_columns(columns(X_NEW), Y_NEW), structure)
    made = prepare(corpus, tmp_path / "p", "word")
    model = model_of(kind, structure).fit(made, dev=dev)
    plain = model_of(kind, structure, "word").fit(corpus, dev=dev)
    scores = [r.dev_score for r in model.history_]
    assert scores[-1] is not None and scores == [r.dev_score for r in plain.history_]
    assert same_bits(model.weights_, plain.weights_)


class Interrupted(Checkpoint):
    """A checkpoint that is written once."""

    def save(self, *state):
        super().save(*state)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("structure", "kind"),
    [("tree", "crf"), ("tree", "perceptron"), ("tree", "max-margin"), ("graph", "crf")],
)
def test_a_run_goes_on_from_either(tmp_path, structure, kind):
    corpus = with_edges(Corpus.from_columns(columns(X), Y), structure)
    made = prepare(corpus, tmp_path / "p", "word")
    whole = model_of(kind, structure, "word").fit(made)
    for first, second in ((made, made), (made, corpus), (corpus, made)):
        with pytest.raises(KeyboardInterrupt):
            model_of(kind, structure, "word").fit(first, checkpoint=Interrupted(tmp_path / "c"))
        model = model_of(kind, structure, "word")
        model.fit(second, checkpoint=tmp_path / "c", resume=True)
        assert same_bits(model.weights_, whole.weights_)
        assert not (tmp_path / "c").exists()


@STRUCTURES
def test_training_of_trees_and_graphs_goes_on(tmp_path, structure):
    corpus = with_edges(Corpus.from_columns(columns(X), Y), structure)
    made = prepare(corpus, tmp_path / "p", "word")
    model, plain = (
        model_of("crf", structure, "word", warm_start=True).fit(data).fit(data)
        for data in (made, corpus)
    )
    assert same_bits(model.weights_, plain.weights_)
    other = replace(corpus, edge_types=Column(corpus.edge_types.codes, ["up", "new"]))
    with pytest.raises(DataError, match="edge type 'new' is unknown; the model has side, up"):
        model.fit(prepare(other, tmp_path / "q", "word"))
    with pytest.raises(DataError, match="the model has types of edges, but these edges have none"):
        model.fit(prepare(replace(corpus, edge_types=None), tmp_path / "q", "word"))


@KINDS
@STRUCTURES
def test_features_stay_on_the_disk(tmp_path, structure, kind):
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(10, 500)).astype(np.float32) for _ in range(200)]
    corpus = as_corpus(samples, [list("XYXYXYXYXY")] * 200)
    made = prepare(with_edges(corpus, structure), tmp_path / "p")
    model = model_of(kind, structure, **({"solver": "sgd"} if kind == "max-margin" else {}))
    few = prepare(with_edges(corpus.take([0, 1]), structure), tmp_path / "q")
    model.fit(few)  # compile and import everything
    tracemalloc.start()
    model.fit(made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.encoded.nbytes > 7_000_000
    assert peak < 0.25 * made.encoded.nbytes


@pytest.mark.parametrize("kind", ["crf", "perceptron"])
def test_no_tree_kernel_is_compiled_anew(tmp_path, kind):
    corpus = with_edges(Corpus.from_columns(columns(X), Y), "tree")
    model_of(kind, "tree", "word").fit(corpus)
    kernel = crf.crf_steps if kind == "crf" else perceptron.averaged_perceptron
    variants = set(kernel.signatures)
    model_of(kind, "tree").fit(prepare(corpus, tmp_path / "p", "word"))
    assert variants and set(kernel.signatures) == variants


# ------------------------------------------------------------------------- refusals


@KINDS
@STRUCTURES
def test_a_tree_or_graph_needs_edges(tmp_path, structure, kind):
    made = prepare(as_corpus(X, Y), tmp_path / "p", "word")
    message = f"prepared without edges, but a {structure} has some; prepare a corpus with edges"
    with pytest.raises(DataError, match=message):
        model_of(kind, structure).fit(made)


@KINDS
def test_a_tree_has_no_cycle(tmp_path, kind):
    graph = prepare([["a", "b", "c"]], tmp_path / "p", y=[["X", "Y", "X"]],
                    edges=[[(0, 1), (1, 2), (2, 0)]])  # fmt: skip
    with pytest.raises(DataError, match="sample 0: the edges close a cycle at node"):
        model_of(kind, "tree").fit(graph)
    model_of(kind, "graph").fit(graph)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1, 1)], "sample 0: the edge between nodes 1 and 1 joins a node to itself; remove it"),
        ([(0, 1), (1, 0)], "sample 0: the edge between nodes 1 and 0 is there twice; give each"),
    ],
)
@STRUCTURES
def test_edges_that_no_model_takes(tmp_path, structure, edges, message):
    made = prepare([["a", "b"]], tmp_path / "p", y=[["X", "Y"]], edges=[edges])
    with pytest.raises(DataError, match=message):
        model_of("crf", structure).fit(made)
    ChainCRF(max_passes=1).fit(made)


@pytest.mark.parametrize("more", [{"edges": [[]] * 40}, {"edge_types": [[]] * 40}])
def test_edges_are_in_the_file(tmp_path, more):
    made = prepare(with_edges(as_corpus(X, Y), "tree"), tmp_path / "p", "word")
    for model in (TreeCRF(), ChainCRF()):
        with pytest.raises(DataError, match="leave out y, edges and edge_types"):
            model.fit(made, **more)


@pytest.fixture
def prepared(tmp_path):
    return prepare(as_corpus(X, Y), tmp_path / "p", "word[-1..1]")


@BOTH
def test_other_features(kind, prepared):
    model = kind("word")
    with pytest.raises(DataError, match=r"differs from the templates .* \(word\[-1\]; word; word"):
        model.fit(prepared)
    assert not hasattr(model, "classes_")


@BOTH
def test_labels_are_in_the_file(kind, prepared):
    with pytest.raises(DataError, match="a prepared corpus carries its labels and edges; leave"):
        kind().fit(prepared, Y)


def test_weights_must_fit(prepared):
    with pytest.raises(DataError, match=r"sample_weight must have shape \(40,\)"):
        ChainCRF().fit(prepared, sample_weight=[1.0])


def test_labels_must_fit_the_scheme(tmp_path):
    made = prepare(as_corpus([["a"]], [["NOUN"]]), tmp_path / "q")
    with pytest.raises(DataError, match="NOUN"):
        ChainCRF(scheme="BIO").fit(made)


@BOTH
def test_only_fit_takes_it(kind, prepared):
    model = kind(max_passes=1).fit(prepared)
    for use in (
        kind().partial_fit,
        model.partial_fit,
        model.predict,
        lambda X: kind().fit(prepared, dev=X),
    ):
        with pytest.raises(DataError, match="a prepared corpus is for fit alone"):
            use(prepared)
