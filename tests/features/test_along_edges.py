"""Templates along edges against their documented meaning in plain Python, one node at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import ChainCRF, GraphCRF, MaxMargin, TreeCRF, TreePerceptron, load_model
from trellis.corpus import Column, Corpus, as_graph_corpus
from trellis.errors import CorruptModelError, DataError, TemplateError
from trellis.features import Prepared, Template, TemplateEncoder, Templates, prepare
from trellis.features.state import encoder_from_state
from trellis.features.templates import TYPE, Term
from trellis.models import export_predictor

SYMBOLS = ["a", "B", "ab", "x-y", "", "a=b & c"]
FUNCTIONS = {
    "{}": lambda w: w,
    "lower({})": str.lower,
    "suffix({}, 1)": lambda w: w[-1:] or None,
    "has_hyphen({})": lambda w: "yes" if "-" in w else None,
}


@dataclass(frozen=True)
class Graph:
    """A sample: columns by name, edges (child, parent, type)."""

    columns: dict[str, list[str]]
    edges: list[tuple[int, int, str]]

    def __len__(self):
        return len(self.columns["word"])

    def parents(self, t):
        return [(b, kind) for a, b, kind in self.edges if a == t]

    def around(self, t, relation):
        children = [(a, kind) for a, b, kind in self.edges if b == t]
        return {
            "parents": self.parents(t), "children": children,
            "neighbours": self.parents(t) + children,
        }[relation]  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A term that is no bag: a function of a column at an offset or so many parents up."""

    column: str
    function: str = "{}"
    offset: int = 0
    steps: int = 0

    def __str__(self):
        symbol = self.function.format(self.column)
        if self.steps:
            return f"{symbol}[{'.'.join(['parent'] * self.steps)}]"
        return f"{symbol}[{self.offset}]" if self.offset else symbol

    def value(self, graph, t, mark):
        n, kind = len(graph), None
        if not self.steps:
            u = t + self.offset
            if u < 0:
                return f"<before {-u}>" if mark else None
            if u >= n:
                return f"<after {u - n + 1}>" if mark else None
            return FUNCTIONS[self.function](graph.columns[self.column][u])
        for step in range(self.steps):
            above = graph.parents(t)
            if not above:
                return f"<above {self.steps - step}>" if mark else None
            t, kind = above[0]
        if self.column == "type":
            return kind
        return FUNCTIONS[self.function](graph.columns[self.column][t])


@dataclass(frozen=True)
class Conjunction:
    """Places, and perhaps a bag before those from ``at`` on: its relation and its parts."""

    places: tuple[Place, ...]
    relation: str = ""
    inside: tuple[tuple[str, str], ...] = ()
    at: int = 0

    def __str__(self):
        parts = list(map(str, self.places))
        if self.relation:
            inner = " & ".join(function.format(column) for column, function in self.inside)
            parts.insert(self.at, f"any({self.relation}, {inner})")
        return " & ".join(parts)

    def names(self, graph, t, mark):
        values = [place.value(graph, t, mark) for place in self.places]
        if None in values:
            return set()
        parts = [f"{place}={value}" for place, value in zip(self.places, values, strict=True)]
        if not self.relation:
            return {" & ".join(parts)}
        found = set()
        for u, kind in graph.around(t, self.relation):
            own = []
            for column, function in self.inside:
                word = kind if column == "type" else graph.columns[column][u]
                own.append((function.format(column), FUNCTIONS[function](word)))
            if any(value is None for _, value in own):
                continue
            if len(own) == 1:
                bag = f"any({self.relation}, {own[0][0]})={own[0][1]}"
            else:
                inner = " & ".join(f"{symbol}={value}" for symbol, value in own)
                bag = f"any({self.relation}, {inner})"
            found.add(" & ".join([*parts[: self.at], bag, *parts[self.at :]]))
        return found


@dataclass(frozen=True)
class Equal:
    left: Place
    right: Place

    def __str__(self):
        return f"{self.left} == {self.right}"

    def names(self, graph, t, mark):
        a, b = (place.value(graph, t, mark=False) for place in (self.left, self.right))
        return {str(self)} if a is not None and a == b else set()


def reference(templates, graphs, *, mark):
    distinct = list(dict.fromkeys(templates))
    return [
        sorted(name for template in distinct for name in template.names(graph, t, mark))
        for graph in graphs
        for t in range(len(graph))
    ]


RELATIONS = st.sampled_from(["parents", "children", "neighbours"])
COLUMNS, CALLS = st.sampled_from(["word", "pos"]), st.sampled_from(list(FUNCTIONS))


@st.composite
def places(draw, *, typed=True):
    kind = draw(st.sampled_from(["order", "up", "up", "type"] if typed else ["order", "up"]))
    if kind == "type":
        return Place("type", steps=draw(st.integers(1, 3)))
    if kind == "up":
        return Place(draw(COLUMNS), draw(CALLS), steps=draw(st.sampled_from([1, 1, 2, 3, 10])))
    return Place(draw(COLUMNS), draw(CALLS), draw(st.integers(-2, 2)))


@st.composite
def lines(draw):
    kind = draw(st.sampled_from(["places", "bag", "bag", "equal"]))
    if kind == "equal":
        place = draw(places(typed=False))
        other = draw(
            places(typed=False).filter(lambda p: (p.offset, p.steps) != (place.offset, place.steps))
        )
        return Equal(place, Place(place.column, place.function, other.offset, other.steps))
    if kind == "places":
        return Conjunction(tuple(draw(st.lists(places(), min_size=1, max_size=3))))
    part = st.tuples(COLUMNS, CALLS) | st.just(("type", "{}"))
    outside = draw(st.lists(places(), max_size=2))
    inside = draw(st.lists(part, min_size=1, max_size=2))
    at = draw(st.integers(0, len(outside)))
    return Conjunction(tuple(outside), draw(RELATIONS), tuple(inside), at)


@st.composite
def template_sets(draw):
    found = draw(st.lists(lines(), min_size=1, max_size=4))
    mark = draw(st.booleans())
    return "\n".join([*(["edges = mark"] if mark else []), *map(str, found)]), found, mark


@st.composite
def forests(draw, symbols=SYMBOLS, *, graphs=False):
    """Forests, or graphs without cycles whose nodes have one parent (graphs: several)."""
    result = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.sampled_from([0, 1, 1, 2, 3, 6]))
        order = draw(st.permutations(range(n)))
        edges = []
        for i in range(1, n):
            for parent in draw(st.sets(st.sampled_from(order[:i]), max_size=3 if graphs else 1)):
                edges.append((order[i], parent, draw(st.sampled_from(["x", "y", ""]))))
        symbol = st.sampled_from(symbols)
        columns = {c: draw(st.lists(symbol, min_size=n, max_size=n)) for c in ("word", "pos")}
        result.append(Graph(columns, draw(st.permutations(edges))))
    return result


def corpus_of(graphs, order=None):
    """A corpus; its edges sample by sample, or in another order."""
    columns = {c: [g.columns[c] for g in graphs] for c in ("word", "pos")}
    corpus = Corpus.from_columns(columns)
    edges = [
        (corpus.offsets[s] + a, corpus.offsets[s] + b, kind)
        for s, graph in enumerate(graphs)
        for a, b, kind in graph.edges
    ]
    if order is not None:
        edges = [edges[i] for i in order]
    pairs = np.array([(a, b) for a, b, _ in edges], np.int64).reshape(-1, 2)
    types = Column.from_strings([kind for _, _, kind in edges])
    return Corpus(corpus.offsets, corpus.columns, edges=pairs, edge_types=types)


def rows(encoder, encoded):
    names = encoder.names(encoded.indices)
    bounds = zip(encoded.indptr[:-1], encoded.indptr[1:], strict=True)
    return [sorted(names[a:b]) for a, b in bounds]


def encoder_of(text):
    return TemplateEncoder(Templates.parse(text))


@settings(max_examples=40)
@given(template_sets(), forests(), st.randoms(use_true_random=False))
def test_learns_exactly_the_documented_features(templates, graphs, random):
    text, expected, mark = templates
    encoder = encoder_of(text)
    n = sum(len(graph.edges) for graph in graphs)
    order = random.sample(range(n), n)
    assert rows(encoder, encoder.learn(corpus_of(graphs, order))) == reference(
        expected, graphs, mark=mark
    )
    everything = encoder.names(range(encoder.n_features))
    assert len(set(everything)) == encoder.n_features


@settings(max_examples=30)
@given(
    st.lists(lines().filter(lambda t: "[parent" not in str(t)), min_size=1, max_size=3),
    forests(graphs=True),
)
def test_bags_of_graphs(templates, graphs):
    encoder = encoder_of("\n".join(map(str, templates)))
    found = rows(encoder, encoder.learn(corpus_of(graphs)))
    assert found == reference(templates, graphs, mark=False)


@settings(max_examples=30)
@given(template_sets(), forests(SYMBOLS[:3]), forests())
def test_encodes_what_it_knows_and_survives_the_state(templates, train, test):
    text, expected, mark = templates
    encoder = encoder_of(text)
    encoder.learn(corpus_of(train))
    known = {name for row in reference(expected, train, mark=mark) for name in row}
    known |= {str(t) for t in expected if isinstance(t, Equal)}
    wanted = [
        [name for name in row if name in known] for row in reference(expected, test, mark=mark)
    ]
    for copy in (encoder, encoder_from_state(*encoder.state())):
        assert rows(copy, copy.encode(corpus_of(test))) == wanted
    keep = np.arange(encoder.n_features) % 2 == 0
    small, old = encoder.only(keep)
    names = encoder.names(old)
    assert small.names(range(small.n_features)) == names
    assert rows(small, small.encode(corpus_of(test))) == [
        [name for name in row if name in names] for row in wanted
    ]


@settings(max_examples=30)
@given(template_sets(), forests(SYMBOLS[:3]), forests(), st.sampled_from([1, 2, 5]))
def test_chunks_and_later_lessons_make_no_difference(templates, first, second, size):
    text, expected, mark = templates
    whole, chunked = encoder_of(text), encoder_of(text)
    for graphs in (first, second):
        a = whole.learn(corpus_of(graphs))
        with mock.patch("trellis.features.encoder._CHUNK", size):
            b = chunked.learn(corpus_of(graphs))
        assert rows(whole, a) == rows(chunked, b) == reference(expected, graphs, mark=mark)


def test_many_children_and_equal_ones():
    """A row of more than a few entries is put in order; each value is there once."""
    n = 50
    words = [str(t % 20) for t in range(n)]
    graph = Graph({"word": words, "pos": words}, [(t, 0, "") for t in range(1, n)])
    encoder = encoder_of("any(children, word)")
    found = rows(encoder, encoder.learn(corpus_of([graph])))
    assert found == [sorted(f"any(children, word)={t}" for t in range(20))] + [[]] * (n - 1)


# ------------------------------------------------------------------------------ numbers

NUMBERS = st.sampled_from(["0", "1", "-2.5", "1e3", "0.25"])


@given(forests(["0", "1", "-2.5", "1e3", "0.25"], graphs=True), RELATIONS)
def test_means(graphs, relation):
    encoder = encoder_of(f"mean({relation}, number(word)); bias")
    corpus = corpus_of(graphs)
    encoded = encoder.learn(corpus)
    means = []
    for graph in graphs:
        for t in range(len(graph)):
            around = [float(graph.columns["word"][u]) for u, _ in graph.around(t, relation)]
            means.append(sum(around) / len(around) if around else 0.0)
    there = [m for m in means if m]
    scale = math.sqrt(sum(m * m for m in there) / len(there)) if there else 1.0
    dense = np.zeros(corpus.n_positions)
    for t in range(corpus.n_positions):
        part = slice(encoded.indptr[t], encoded.indptr[t + 1])
        for f, value in zip(encoded.indices[part], encoded.values[part], strict=True):
            if f == 0:
                dense[t] = value
    np.testing.assert_allclose(dense, np.array(means) / scale, rtol=1e-5, atol=1e-6)
    again = encoder_from_state(*encoder.state()).encode(corpus)
    assert np.array_equal(again.values, encoded.values)


@given(forests(["0", "1", "-2.5"]), st.integers(1, 3))
def test_numbers_of_parents(graphs, steps):
    place = Place("word", steps=steps)
    encoder = encoder_of(f"number(word)[{'.'.join(['parent'] * steps)}]; bias")
    corpus = corpus_of(graphs)
    encoded = encoder.learn(corpus)
    numbers = np.array([float(w) for g in graphs for w in g.columns["word"]])
    scale = np.sqrt(np.mean(numbers[numbers != 0] ** 2)) if numbers.any() else 1.0
    values = [place.value(g, t, mark=False) for g in graphs for t in range(len(g))]
    wanted = [float(v) / scale for v in values if v is not None and float(v)]
    np.testing.assert_allclose(encoded.values[encoded.indices == 0], wanted, rtol=1e-6)


# ------------------------------------------------------------------------------ complaints


def tree(**more):
    return as_graph_corpus([["a", "b", "c"]], edges=[[(0, 1), (2, 1)]], **more)


def test_what_a_corpus_lacks():
    chain = Corpus.from_columns({"word": [["a", "b"]]})
    for text in ("word[parent]", "bias; any(children, word)", "mean(neighbours, number(word))"):
        with pytest.raises(DataError, match="need trees or graphs: there are no edges"):
            encoder_of(text).learn(chain)
    with pytest.raises(DataError, match=r"'type\[parent\]' needs types of edges, but these have"):
        encoder_of("word; type[parent]").learn(tree())
    encoder = encoder_of("word; any(children, type)")
    encoder.learn(tree(edge_types=[["x", "y"]]))
    assert rows(encoder, encoder.encode(as_graph_corpus([["a"]], edges=[[]]))) == [["word=a"]]
    two = as_graph_corpus([["a"], ["a", "b", "c"]], edges=[[], [(1, 0), (1, 2)]])
    message = r"sample 1: node 1 has several parents, but the template 'word\[parent\]' asks for"
    with pytest.raises(DataError, match=message):
        encoder_of("word; word[parent]").learn(two)
    assert encoder_of("any(parents, word)").learn(two).indices.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("any(parent, word)", "expected parents, children or neighbours, found parent"),
        ("any(children)", "expected ,, found )"),
        ("any(children, word", "expected ), found the end"),
        ("any(children, word)[1]", "did not expect ["),
        ("any(children, word[1])", "a term in any(…) has no place of its own; leave out […]"),
        ("any(children, word[parent])", "has no place of its own"),
        ("any(children, a) & any(parents, b)", "a template has one any(…)"),
        ("any(children, a) & b & any(children, c)", "a template has one any(…)"),
        ("any(children, a) == any(children, a)", "any(…) and types of edges cannot be compared"),
        ("type[parent] == type[parent.parent]", "cannot be compared by =="),
        ("word[parent] == word[parent]", "both sides of == are the same term"),
        ("word[children]", "there may be several children; say any(children, …)"),
        ("word[parents]", "there may be several parents; say any(parents, …)"),
        ("word[parent.child]", "expected parent, found child"),
        ("word[parent.]", "expected parent, found ]"),
        ("word[parent", "expected ], found the end"),
        ("word[" + ".".join(["parent"] * 11) + "]", "a path has ten parents at most"),
        ("lower(type)[parent]", "types of edges take no function; a column type stands in quotes"),
        ("any(children, lower(type))", "types of edges take no function"),
        ("mean(children, word)", "a mean is one of numbers, as mean(children, number(height))"),
        ("mean(word)", "expected parents, children or neighbours, found word"),
        ("mean(children, number(h)) & word", "did not expect &"),
        ("ngrams(word, 2..3)[parent]", "did not expect ["),
        ("any(children, suffix(w, 1..2)) & prefix(w, 1..3)", "ranges of different lengths"),
    ],
)  # fmt: skip
def test_what_is_no_template(text, message):
    with pytest.raises(TemplateError) as error:
        Templates.parse(text)
    assert message in str(error.value)
    assert "template line 1" in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("conjunction", (Term("w", along="uncle"),)), "cannot look along 'uncle'; expected paren"),
        (("conjunction", (Term("w", along=3),)), "cannot look along 3"),
        (("conjunction", (Term("w", None, 1, "parent"),)), "at an offset or along edges, not bo"),
        (("conjunction", (Term("", TYPE),)), "a type is that of an edge"),
        (("equal", (Term("", TYPE, 0, "parent"), Term("w"))), "a type is that of an edge"),
        (("mean", (Term("w"),)), "a mean is one of parents, children or neighbours"),
        (("mean", (Term("w", along="parent"),)), "a mean is one of parents, children or neighb"),
        (("ngrams", (Term("w", along="parent"),), 1, 2), "ngrams cannot look along parent"),
        (("number", (Term("w", along="children"),)), "number cannot look along children"),
        (("equal", (Term("w", along="children"), Term("w"))), "equal cannot look along children"),
        (
            ("conjunction", (Term("a", along="children"), Term("b", along="parents"))),
            "a template has one any(…)",
        ),
        (
            ("conjunction", (Term("a", along="children"), Term("b"), Term("c", along="children"))),
            "a template has one any(…)",
        ),
    ],
)
def test_templates_that_cannot_be(arguments, message):
    with pytest.raises(TemplateError) as error:
        Template(*arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word[ parent . parent ]", ["word[parent.parent]"]),
        ("suffix(w, 1..2)[parent]", ["suffix(w, 1)[parent]", "suffix(w, 2)[parent]"]),
        ("any(children, suffix(w, 1..2)) & w[-1..0]",
         ["any(children, suffix(w, 1)) & w[-1]", "any(children, suffix(w, 2)) & w"]),
        ("w & any(parents, w & type) & pos @ min_count=2 @ edge",
         ["w & any(parents, w & type) & pos @ min_count=2 @ edge"]),
        ("type; type[1]; type[parent]", ["type", "type[1]", "type[parent]"]),
        ('"type"[parent]; lower("type")[parent]', ['"type"[parent]', 'lower("type")[parent]']),
        ("any(children, \"type\" & type)", ["any(children, \"type\" & type)"]),
        ("mean(neighbours, number(type))", ['mean(neighbours, number("type"))']),
        ("number(h)[parent] @ edge", ["number(h)[parent] @ edge"]),
        ("any; any & mean; mean[1]; mean @ edge; parent[parent]; children; any(children, children)",
         ["any", "any & mean", "mean[1]", "mean @ edge", "parent[parent]", "children",
          "any(children, children)"]),
    ],
)  # fmt: skip
def test_meaning(text, expected):
    templates = Templates.parse(text)
    assert [template.line() for template in templates] == expected
    assert Templates.parse(templates.text()) == templates


@given(template_sets())
def test_any_set_survives_writing(templates):
    parsed = Templates.parse(templates[0])
    assert Templates.parse(parsed.text()) == parsed
    assert "type" not in parsed.columns()
    assert all(map(str, parsed.along_edges()))


# ------------------------------------------------------------------------------ models

X = [["the", "old", "man", "saw"], ["dogs", "saw", "wood"], ["the", "saw", "cut"]]
Y = [["D", "A", "N", "V"], ["N", "V", "N"], ["D", "N", "V"]]
EDGES = [[(0, 2), (1, 2), (2, 3)], [(0, 1), (2, 1)], [(0, 1), (1, 2)]]
TYPES = [["det", "amod", "nsubj"], ["nsubj", "obj"], ["det", "nsubj"]]
TEXT = (
    "edges = mark; word; word[parent]; any(children, word & type); suffix(word, 1)[parent.parent]"
)


@pytest.mark.parametrize("family", [TreeCRF, TreePerceptron, GraphCRF])
def test_models_learn_predict_and_are_kept(family, tmp_path):
    how = {"edges": EDGES, "edge_types": TYPES}
    model = family(TEXT, random_state=0).fit(X, Y, **how)
    assert model.predict(X, **how) == Y
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.predict(X, **how) == Y
    prepared = prepare(X, tmp_path / "prepared", TEXT, y=Y, **how)
    assert np.array_equal(prepared.encoded.indices, model.encoder_.encode(
        as_graph_corpus(X, Y, **how)).indices)  # fmt: skip
    trained = family(random_state=0).fit(Prepared.open(tmp_path / "prepared"))
    assert np.array_equal(trained.weights_.node, model.weights_.node)
    shown = str(model.explain(X[:1], edges=EDGES[:1], edge_types=TYPES[:1], n_features=99))
    for name in ("word[parent]=man", "word[parent]=<above 1>", "suffix(word, 1)[parent.parent]=w",
                 "any(children, word=old & type=amod)"):  # fmt: skip
        assert name in shown, name
    assert family(TEXT, random_state=0).fit(X[:2], Y[:2], edges=EDGES[:2], edge_types=TYPES[:2])
    more = model.partial_fit(X, Y, **how)
    assert more.predict(X, **how) == Y


def test_chains_may_look_along_the_edges_of_a_corpus(tmp_path):
    corpus = as_graph_corpus(X, Y, EDGES)
    crf = ChainCRF("word; word[parent]", random_state=0).fit(corpus)
    assert crf.predict(corpus) == Y
    with pytest.raises(DataError, match=r"'word\[parent\]', need trees or graphs"):
        crf.predict(X)
    with pytest.raises(DataError, match="need trees or graphs"):
        ChainCRF("word[parent]").fit(X, Y)
    with pytest.raises(DataError, match=r"template 'word\[parent\]' cannot be exported"):
        export_predictor(crf, tmp_path / "file.py")


def test_hostile_templates_in_a_file():
    header, arrays = encoder_of("word; word[parent]").state()
    for text in ("word; any(children, word[1])", "word[parent.x]", "word; any(children, word)\x00"):
        with pytest.raises(CorruptModelError, match="templates cannot be read"):
            encoder_from_state(header | {"templates": text}, arrays)
    encoder = encoder_of("edges = mark; word & word[parent]; mean(children, number(n))")
    corpus = Corpus.from_columns({"word": [["a", "b"]], "n": [["1", "2"]]})
    encoder.learn(Corpus(corpus.offsets, corpus.columns, edges=np.array([[0, 1]])))
    header, arrays = encoder.state()
    for text in ("edges = mark; word & word[parent.parent]; mean(children, number(n))",
                 "edges = mark; word & word[-1]; mean(children, number(n))",
                 "edges = mark; any(children, word) & word; mean(children, number(n))",
                 "word & word[parent]; mean(children, number(n)); bias"):  # fmt: skip
        try:
            other = encoder_from_state(header | {"templates": text}, arrays)
        except CorruptModelError:
            continue
        other.names(range(other.n_features))
    for scale in (0.0, -1.0, np.inf):
        with pytest.raises(CorruptModelError):
            encoder_from_state(header, arrays | {"column1.scale": np.array([scale])})


# ------------------------------------------------------------------------------ the default


def test_default_templates_of_trees():
    plain, more = (Templates.default_for(["w", "p"], trees=t).templates for t in (False, True))
    assert more[: len(plain)] == plain
    assert [str(t) for t in more[len(plain) :]] == [
        "any(parents, lower(w))", "any(parents, short_shape(w))", "any(parents, p)",
        "any(children, lower(w))", "any(children, short_shape(w))", "any(children, p)",
    ]  # fmt: skip
    numbers = Templates.default_for(["w", "n"], ["n"], trees=True).text()
    assert "any(children, lower(w))" in numbers and "any(children, n)" not in numbers
    assert Templates.default_for(["n"], ["n"], trees=True) == Templates.parse("number(n)")


def test_who_has_them():
    def text(model, **more):
        return model.fit(X, Y, edges=EDGES, **more).encoder_.templates.text()

    margin = MaxMargin(structure="tree", random_state=0)
    for model in (TreeCRF(random_state=0), TreePerceptron(random_state=0), margin):
        assert "any(children, lower(word))" in text(model)
        assert "any(" not in text(model, edge_types=TYPES)
    assert "any(" not in text(GraphCRF(random_state=0))
    corpus = as_graph_corpus(X, Y, EDGES)
    assert "any(" not in ChainCRF(random_state=0).fit(corpus).encoder_.templates.text()
    # Edges may lead anywhere, as long as there are no cycles.
    turned = [[(b, a) for a, b in edges] for edges in EDGES]
    tree = TreeCRF(random_state=0).fit(X, Y, edges=turned)
    assert tree.predict(X, edges=turned) == Y
    problem = TreeCRF().learning_problems({"a": corpus})["a"]
    assert "any(children" in problem.owner.encoder_.templates.text()


def test_prepared_for_trees(tmp_path):
    known = {"y": Y, "edges": EDGES}
    prepared = prepare(X, tmp_path / "tree", structure="tree", **known)
    model = TreeCRF(random_state=0).fit(X, Y, edges=EDGES)
    trained = TreeCRF(random_state=0).fit(prepared)
    assert trained.encoder_.templates == model.encoder_.templates
    assert np.array_equal(trained.weights_.node, model.weights_.node)
    assert "any(" not in prepare(X, tmp_path / "chain", **known).encoder.templates.text()
    with pytest.raises(DataError, match="structure"):
        prepare(X, tmp_path / "no", structure="bush", **known)
