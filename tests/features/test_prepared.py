"""Prepared corpora: the same arrays as in memory, in bounded memory; damage is always refused."""

from __future__ import annotations

import copy
import os
import random
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from trellis import ChainCRF, Corpus, DataError, TemplateError, Templates
from trellis.arrays import for_kernels
from trellis.corpus import Column, as_corpus, as_graph_corpus
from trellis.errors import CorruptModelError
from trellis.features import AttributeEncoder, Encoded, Prepared, TemplateEncoder, prepare
from trellis.features.encoded import PartList
from trellis.features.encoder import encoder_for
from trellis.features.prepared import _DiskParts, is_prepared
from trellis.files.container import PREPARED, map_container, stream_container

GOLDEN = Path(__file__).parents[1] / "golden" / "prepared_v1.prepared"
TEMPLATES = """
word[-1..1]; word[-1] & word; suffix(word, 1..2); ngrams(word, 2..2); bias; bos; word == word[1]
wordlist(word, 1..2)
"""


def sentences(n=40, seed=0):
    rng = random.Random(seed)
    words = ["a", "b", "ab", "ba", "cab", "Abba", "x", "é"]
    return [[rng.choice(words) for _ in range(rng.randint(1, 6))] for _ in range(n)]


def labels_of(samples):
    known = [*"XYZ", None, {"X", "Y"}]
    return [[known[(len(w) + t) % 5] for t, w in enumerate(s)] for s in samples]


def columns(n=40):
    words = sentences(n)
    height = [[str(len(w) / 2) for w in s] for s in words]
    return Corpus.from_columns({"word": words, "height": height}, labels_of(words))


def dicts(n=40):
    words = sentences(n)
    samples = [[{"w": w, "cap": w[0].isupper(), "n": len(w) / 3} for w in s] for s in words]
    return as_corpus(samples, labels_of(words))


def lists(n=40):
    words = sentences(n)
    return as_corpus([[[w, w[0]] for w in s] for s in words], labels_of(words))


def graphs(n=40):
    """Every position joined to the next, and the last to the first, which may be itself."""
    corpus = columns(n)
    first = np.arange(corpus.n_positions)
    second = first + 1
    second[corpus.offsets[1:] - 1] = corpus.offsets[:-1]
    types = Column(np.array([0, 2, 0], np.int32)[first % 3], ["near", "unused", "é"])
    return replace(corpus, edges=np.stack([first, second], axis=1), edge_types=types)


def segmented():
    samples = [list("abcab"), list("cabab"), list("ab")]
    return Corpus.from_columns({"word": samples}, [list("BEBME"), list("BMEBE"), list("BE")])


CASES = {
    "all kinds": (segmented(), TEMPLATES),
    "numbers": (columns(), "word; number(height); number(height)[-1]"),
    "rare": (columns(), "min_count = 3; word[-1..1]; word[-1] & word; ngrams(word, 2..3)"),
    "rare numbers": (columns(), "min_count = 9; word[-1] & word; number(height); word[1]"),
    "nothing": (columns(), "min_count = 999; word & word[1]"),
    "marked": (columns(), "edges = mark; word[-2..2]"),
    "auto": (columns(), "auto"),
    "none": (columns(), None),
    "lines": (columns(), ["word", "word[1]"]),
    "templates": (columns(), Templates.parse("word")),
    "dicts": (dicts(), "auto"),
    "lists of strings": (lists(), "auto"),
    "one position": (columns().take([0])[:1], "word"),
    "graphs": (graphs(), "word[-1..1]"),
    "edges without types": (replace(graphs(), edge_types=None), "word"),
    "no edge at all": (replace(columns(), edges=np.zeros((0, 2), np.int64)), "word"),
}


def arrays_of(encoded, corpus):
    e, labels, types = encoded, corpus.labels, corpus.edge_types
    arrays = [e.offsets, e.indptr, e.indices, e.values, labels.ids, labels.table, corpus.offsets]
    arrays += [] if corpus.edges is None else [corpus.edges]
    return arrays if types is None else [*arrays, types.codes]


def assert_same_encoder(a, b):
    (header, arrays), (header_b, arrays_b) = a.state(), b.state()
    assert header == header_b and arrays.keys() == arrays_b.keys()
    assert all(np.array_equal(arrays[name], arrays_b[name]) for name in arrays)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_as_in_memory(tmp_path, case, chunk):
    corpus, features = CASES[case]
    with (
        mock.patch("trellis.features.encoder._CHUNK", chunk),
        mock.patch("trellis.features.attributes._CHUNK", chunk),
    ):
        prepare(corpus, tmp_path / "p", features)
        encoder = encoder_for(features, corpus)
        expected = encoder.learn(corpus)  # here, since the order of ids depends on the chunks
    for verify in (True, False):
        found = Prepared.open(tmp_path / "p", verify=verify)
        assert type(found.encoder) is type(encoder)
        assert_same_encoder(found.encoder, encoder)
        assert found.labels.classes == corpus.labels.classes
        assert len(found) == len(corpus) and found.n_positions == corpus.n_positions
        types = (found.corpus.edge_types, corpus.edge_types)
        assert len({None if column is None else tuple(column.values) for column in types}) == 1
        for a, b in zip(
            arrays_of(found.encoded, found.corpus), arrays_of(expected, corpus), strict=True
        ):
            assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
            assert type(a) is np.ndarray and a.flags.aligned
            assert a.size == 0 or np.shares_memory(for_kernels(a), a)


def test_what_else_is_kept(tmp_path):
    layout = {"format": "jsonl", "label": "labels"}
    made = prepare(columns(), tmp_path / "p", "word; word[1]", input_format=layout)
    assert (made.features, made.input_format) == ("word; word[1]", layout)
    assert prepare(columns(), tmp_path / "p", Templates.parse("word")).features == ["word"]
    assert prepare(columns(), tmp_path / "p", iter(["word", "bos"])).features == ["word", "bos"]
    assert prepare(columns(), tmp_path / "p").features == "auto"
    assert prepare(columns(), tmp_path / "p", None).features == "auto"
    assert made.input_format == layout  # a replaced file stays mapped
    assert repr(made) == "<Prepared: 40 samples; 147 positions; 16 features; 3 labels>"
    made = prepare(graphs(), tmp_path / "p", "word")
    assert repr(made) == "<Prepared: 40 samples; 147 positions; 8 features; 3 labels; 147 edges>"
    assert made.corpus.edge_types.values == ["near", "unused", "é"]


def test_samples_as_models_take_them(tmp_path):
    X, y, edges, types = [["a", "b"], ["b"]], [["X", None], ["Y"]], [[(1, 0)], []], [["up"], []]
    corpus = as_graph_corpus(X, y, edges, types)
    ways = [
        prepare(corpus, tmp_path / "a", "word"),
        prepare(X, tmp_path / "b", "word", y=y, edges=edges, edge_types=types),
        prepare(list(zip(X, edges, strict=True)), tmp_path / "c", "word", y=y, edge_types=types),
        prepare(as_corpus(X, y), tmp_path / "d", "word", edges=edges, edge_types=types),
    ]
    assert len({(tmp_path / name).read_bytes() for name in "abcd"}) == 1
    assert all(made.corpus.edges.tolist() == [[1, 0]] for made in ways)
    assert prepare(X, tmp_path / "e", "word", y=y).corpus.edges is None


@st.composite
def stored_graphs(draw):
    """Corpora with any edges inside their samples, in any order, with types or without."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    offsets = np.append(0, np.cumsum(lengths))
    label = st.one_of(st.sampled_from("XY"), st.none(), st.sets(st.sampled_from("XYZ"), min_size=1))
    y = [draw(st.lists(label, min_size=n, max_size=n)) for n in lengths]
    y[0][0] = "X"
    corpus = Corpus.from_columns({"word": [["w"] * n for n in lengths]}, y)
    node = st.integers(0, 3)
    drawn = draw(st.lists(st.tuples(st.integers(0, len(lengths) - 1), node, node)))
    edges = [(offsets[s] + a % lengths[s], offsets[s] + b % lengths[s]) for s, a, b in drawn]
    names = draw(st.lists(st.text(max_size=3), min_size=len(edges), max_size=len(edges)))
    types = Column.from_strings(names) if draw(st.booleans()) else None
    return replace(corpus, edges=np.array(edges, np.int64).reshape(-1, 2), edge_types=types)


@given(corpus=stored_graphs())
def test_edges_and_labels_come_back(corpus, tmp_path_factory):
    found = prepare(corpus, tmp_path_factory.getbasetemp() / "round", "word").corpus
    assert found.edges.tolist() == corpus.edges.tolist()
    assert found.label_lists() == corpus.label_lists()
    assert (found.edge_types is None) == (corpus.edge_types is None)
    if corpus.edge_types is not None:
        assert found.edge_types.strings() == corpus.edge_types.strings()


def test_the_first_format_is_read_for_ever(tmp_path):
    """Written before files had edges; what has none is still written so, byte for byte."""
    words = [["the", "cat", "sat"], ["a", "cat"], ["sat"]]
    heights = [["1", "2.5", "-1"], ["0.5", "2"], ["3"]]
    labels = [["D", "N", "V"], [None, {"N", "V"}], ["V"]]
    layout = {"format": "jsonl", "label": "labels"}
    found = Prepared.open(GOLDEN)
    assert (found.features, found.input_format) == ("word[-1..0]; number(height)", layout)
    assert found.corpus.edges is None and found.corpus.edge_types is None
    assert found.corpus.label_lists() == labels
    assert found.encoded.indices.tolist() == [3, 7, 0, 4, 7, 1, 5, 7, 6, 7, 2, 4, 7, 5, 7]
    corpus = Corpus.from_columns({"word": words, "height": heights}, labels)
    prepare(corpus, tmp_path / "p", "word[-1..0]; number(height)", input_format=layout)
    assert (tmp_path / "p").read_bytes() == GOLDEN.read_bytes()


def test_equal_corpora_give_equal_bytes(tmp_path):
    prepare(columns(), tmp_path / "a", "min_count = 2; word[-1..1]")
    with mock.patch("trellis.files.container._BLOCK", 99):
        prepare(columns(), tmp_path / "b", "min_count = 2; word[-1..1]")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_recognised_by_content(tmp_path):
    prepare(columns(), tmp_path / "p.txt", "word")
    (tmp_path / "q.prepared").write_text("TRELLIS is a word\n")
    assert is_prepared(tmp_path / "p.txt")
    assert not is_prepared(tmp_path / "q.prepared")
    assert not is_prepared(tmp_path / "none") and not is_prepared(tmp_path)


def test_a_pipe_is_not_touched(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    assert not is_prepared(tmp_path / "pipe")


@pytest.mark.parametrize("valued", [False, True])
def test_parts_on_disk_are_as_in_memory(tmp_path, valued):
    corpus = columns()
    encoder = TemplateEncoder(Templates.parse("word[-1..1]" + "; number(height)" * valued))
    memory = PartList()
    with mock.patch("trellis.features.encoder._CHUNK", 9):
        encoder.learn_into(corpus, memory)
    assert len(memory) > 5

    def thinned(part):
        keep = np.arange(len(part.indices)) % 3 > 0
        before = np.append(0, np.cumsum(keep))
        values = part.values[keep] if valued else part.values
        return Encoded.made(part.offsets, before[part.indptr], part.indices[keep], values)

    with _DiskParts(tmp_path) as disk:
        for part in memory:
            disk.append(part)
        for _ in range(2):
            for a, b in zip(disk, memory, strict=True):
                assert np.array_equal(a.indptr, b.indptr)
                assert np.array_equal(a.indices, b.indices)
                assert np.array_equal(a.values, b.values)
            disk.rewrite(thinned)
            memory.rewrite(thinned)


# ------------------------------------------------------------------------- memory


@pytest.mark.parametrize("min_count", [1, 2])
def test_memory_stays_bounded(tmp_path, min_count):
    n, templates = 60_000, f"min_count = {min_count}; word[-12..12]; number(height)"
    samples = [["a", "b", "c", "d"] * 5] * (n // 20)
    heights = [["1", "2", "3", "4"] * 5] * (n // 20)
    corpus = Corpus.from_columns({"word": samples, "height": heights}, samples)
    with mock.patch("trellis.features.encoder._CHUNK", 1000):
        prepare(corpus.take([0]), tmp_path / "p", templates)  # compile and import everything
        tracemalloc.start()
        made = prepare(corpus, tmp_path / "p", templates)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    size = (tmp_path / "p").stat().st_size
    assert made.encoded.nbytes > 7_000_000 and size > made.encoded.nbytes
    assert peak < 0.25 * made.encoded.nbytes
    tracemalloc.start()
    Prepared.open(tmp_path / "p")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The buffer that is hashed, and one for checking the order of pointers.
    assert peak < 0.5 * made.encoded.nbytes


def test_memory_of_attributes_stays_bounded(tmp_path):
    corpus = as_corpus([[["a", "b", "c", "d", "e"] * 8] * 20] * 1000, [["X"] * 20] * 1000)
    with mock.patch("trellis.features.attributes._CHUNK", 500):
        prepare(corpus.take([0]), tmp_path / "p")
        tracemalloc.start()
        made = prepare(corpus, tmp_path / "p")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 0.75 * made.encoded.nbytes


# ------------------------------------------------------------------------- refusals when writing


@pytest.mark.parametrize(
    ("corpus", "features", "message"),
    [
        (Corpus.from_columns({"word": [["a"]]}), "word", "the corpus has no labels: only labelled"),
        (Corpus.from_columns({"word": []}, []), "word", "prepare needs at least one sequence"),
        (
            Corpus.from_columns({"word": [["a"], []]}, [["X"], []]),
            "word",
            "sample 1 is empty; remove empty sequences before prepare",
        ),
        (Corpus.from_columns({"word": [["a"]]}, [[None]]), "word", "no position is annotated"),
        (columns(), "pos[1]", "needs the column"),
        (columns(), 7, "features must be a set's name"),
        (dicts(), "word", "leave features='auto'"),
        ("train.txt", "word", "expected a corpus or a list of samples, got str"),
        (Corpus.from_columns({"word": [["x"]]}, [["X"]]), "number(word)", "not a finite number"),
        (Corpus.from_columns({"word": [["\ud800"]]}, [["X"]]), "word", "lone surrogate"),
    ],
)
def test_what_cannot_be_prepared(tmp_path, corpus, features, message):
    (tmp_path / "p").write_bytes(b"old")
    with pytest.raises(DataError, match=message):
        prepare(corpus, tmp_path / "p", features)
    assert (tmp_path / "p").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


def test_where_no_file_can_be(tmp_path):
    with pytest.raises(FileNotFoundError, match="create its folder"):
        prepare(columns(), tmp_path / "no" / "p", "word")
    with pytest.raises(IsADirectoryError):
        prepare(columns(), tmp_path, "word")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "place",
    [
        "trellis.features.prepared._write_at",
        "trellis.features.prepared.stream_container",
        "trellis.files.container.header_text",
        "trellis.features.encoder.TemplateEncoder._drop_rare",
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_failure_leaves_the_old_file(tmp_path, place, error):
    (tmp_path / "p").write_bytes(b"old")
    with (
        mock.patch(place, side_effect=error),
        pytest.raises(type(error) if isinstance(error, OSError) else error) as caught,
    ):
        prepare(columns(), tmp_path / "p", "word")
    if isinstance(error, OSError):
        assert caught.value.filename == str(tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_process_leaves_the_old_file(tmp_path, number):
    (tmp_path / "p").write_bytes(b"old")
    code = f"""
import sys
from trellis import Corpus
from trellis.features import prepare, prepared
stream = prepared.stream_container
def slow(*arguments):
    print("writing", flush=True)
    while True:
        stream(*arguments)
prepared.stream_container = slow
corpus = Corpus.from_columns({{"word": [["a", "b"]] * 1000}}, [["X", "Y"]] * 1000)
prepare(corpus, {str(tmp_path / "p")!r}, "word")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(number)
    process.communicate()
    assert process.returncode != 0
    assert (tmp_path / "p").read_bytes() == b"old"
    if number == signal.SIGINT:
        assert [p.name for p in tmp_path.iterdir()] == ["p"]


# ------------------------------------------------------------------------- refusals when opening


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small prepared corpus with everything in it."""
    file = tmp_path_factory.mktemp("small") / "p"
    layout = {"format": "jsonl", "label": "labels"}
    prepare(graphs(12), file, "word[-1..0]; number(height)", input_format=layout)
    return file


def test_changed_bytes_are_always_refused(small, tmp_path):
    rng = random.Random(0)
    data, file = small.read_bytes(), tmp_path / "p"
    for k in range(600):
        changed = bytearray(data)
        if k % 5 == 0:
            del changed[rng.randrange(len(data)) :]
        elif k % 5 == 1:
            i = rng.randrange(len(data))
            changed[i:i] = rng.randbytes(rng.randint(1, 9))
        else:
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(changed)
        with pytest.raises(DataError) as caught:
            Prepared.open(file)
        assert type(caught.value) is DataError
        assert str(caught.value).startswith(f"{file}: ") and str(caught.value).isprintable()
        try:
            found = Prepared.open(file, verify=False)
        except DataError:
            continue
        assert len(changed) == len(data)  # what is cut off or put in is always seen
        e = found.encoded
        assert e.indptr[0] == 0 and e.indptr[-1] == len(e.indices)
        assert np.all(np.diff(e.indptr) >= 0) and np.all(np.diff(e.offsets) > 0)
        assert found.labels.ids.max() < len(found.labels.table)
        owner = np.searchsorted(e.offsets, found.corpus.edges, side="right")
        assert np.all(owner[:, 0] == owner[:, 1]) and np.all(found.corpus.edges >= 0)
        assert found.corpus.edges.max() < e.offsets[-1]


def rewritten(path, target, change):
    """The same file with other contents, under a right checksum."""
    header, arrays = map_container(path, PREPARED)
    header, arrays = copy.deepcopy(header), {name: a.copy() for name, a in arrays.items()}
    change(header, arrays)
    with target.open("wb") as file:
        stream_container(file, header, arrays, PREPARED)
    return target


def put(name, where, value):
    return lambda h, a: a[name].__setitem__(where, value)


def shorter(name):
    return lambda h, a: a.update({name: a[name][:-1]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: a.pop("indices"), "array 'indices' is missing"),
        (lambda h, a: a.update(indices=a["indices"].astype("i8")), "has dtype int64"),
        (lambda h, a: a.update(offsets=a["offsets"][:1]), "there are no samples"),
        (lambda h, a: a.update(offsets=a["offsets"][:0]), "there are no samples"),
        (put("offsets", 0, 1), "sample offsets are not in order"),
        (put("offsets", 1, 0), "sample offsets are not in order"),
        (put("offsets", 1, 2**63 - 1), "sample offsets are not in order"),
        (put("offsets", -1, 2**40), "array 'indptr' has shape"),
        (put("indptr", 0, -1), "feature pointers are not in order"),
        (put("indptr", 3, 2**62), "feature pointers are not in order"),
        (put("indptr", 3, -(2**63)), "feature pointers are not in order"),
        (put("indptr", -1, 2**62), "array 'indices' has shape"),
        (shorter("indptr"), "array 'indptr' has shape"),
        (shorter("indices"), "array 'indices' has shape"),
        (shorter("values"), "values for"),
        (put("indices", 5, 10**6), "feature ids lie in"),
        (put("indices", -1, -1), "feature ids lie in -1"),
        (put("values", 3, np.nan), "feature values lie in nan"),
        (put("values", 3, -np.inf), "feature values lie in -inf"),
        (put("labels.ids", 0, 5), "label ids must lie in"),
        (put("labels.ids", 0, -1), "label ids must lie in"),
        (shorter("labels.ids"), "array 'labels.ids' has shape"),
        (put("labels.table", (0, 0), False), "must start with the single labels"),
        (put("classes.blob", slice(None), 65), "classes must be distinct"),
        (put("edges", (0, 1), 2**40), "edges hold 1099511627776 at index (0, 1); expected 0 to"),
        (put("edges", (0, 0), -1), "edges hold -1 at index (0, 0); expected 0 to"),
        (put("edges", (0, 1), 40), "edge 0 joins samples 0 and"),
        (lambda h, a: a.update(edges=a["edges"].reshape(-1)), "array 'edges' has shape"),
        (lambda h, a: a.update(edges=a["edges"].astype("i4")), "array 'edges' has dtype int32"),
        (shorter("edges"), "edge types for"),
        (lambda h, a: a.pop("edges"), "edge types for 0 edges"),
        (put("edge_types.codes", 0, 3), "column codes hold 3 at index 0; expected 0 to 2"),
        (shorter("edge_types.codes"), "edge types for"),
        (lambda h, a: a.pop("edge_types.blob"), "array 'edge_types.blob' is missing"),
        (put("edge_types.blob", slice(None), 255), "of a table is not valid UTF-8"),
        (lambda h, a: h.pop("encoder"), "header entry 'encoder' is missing"),
        (lambda h, a: h["encoder"].update(n_features=3), "feature ids of template 0"),
        (lambda h, a: h.pop("features"), "header entry 'features' is missing"),
        (lambda h, a: h.update(features=[1]), "'features' holds a int, str expected"),
        (lambda h, a: h.update(input_format={"evil": "x"}), "a wrong entry 'evil'"),
        (lambda h, a: h.update(input_format=[]), "'input_format' is a list, dict expected"),
    ],
)
def test_what_is_wrong_is_said(small, tmp_path, change, message):
    path = rewritten(small, tmp_path / "p", change)
    with pytest.raises(DataError) as caught:
        Prepared.open(path)
    assert type(caught.value) is DataError and message in str(caught.value)


def test_order_is_checked_across_blocks(small, tmp_path):
    for place in (3, 4, 5, 6, 8, 9):
        path = rewritten(small, tmp_path / "p", put("indptr", place, 0))
        with mock.patch("trellis.features.prepared._BLOCK", 4), pytest.raises(DataError):
            Prepared.open(path)
    with mock.patch("trellis.features.prepared._BLOCK", 4):
        Prepared.open(small)


def test_without_verification_only_entries_are_trusted(small, tmp_path):
    for change in (put("indices", 5, 10**6), put("values", 3, np.nan)):
        Prepared.open(rewritten(small, tmp_path / "p", change), verify=False)
    for change in (
        put("indptr", 3, 2**62), put("offsets", 1, 0), put("labels.ids", 0, 5),
        put("edges", (0, 1), 2**40), put("edge_types.codes", 0, 3),
    ):  # fmt: skip
        with pytest.raises(DataError):
            Prepared.open(rewritten(small, tmp_path / "p", change), verify=False)


def test_foreign_files(tmp_path):
    file = tmp_path / "p"
    for content, message in (
        (b"", "the file is empty"),
        (b"The DT B-NP\n" * 9, "not a Trellis prepared corpus"),
        (b"\x80\x04cposix\nsystem\n", "not a Trellis prepared corpus"),
        (save({"a": np.zeros(3)}), "not a Trellis prepared corpus"),
    ):
        file.write_bytes(content)
        with pytest.raises(DataError, match=message) as caught:
            Prepared.open(file)
        assert not isinstance(caught.value, CorruptModelError)
    with pytest.raises(FileNotFoundError):
        Prepared.open(tmp_path / "none")


# ------------------------------------------------------------------------- made by hand


def parts():
    """What a prepared corpus is made of."""
    corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    encoder = AttributeEncoder()
    return {"encoder": encoder, "encoded": encoder.learn(corpus), "corpus": corpus}


def test_a_prepared_corpus_made_by_hand_is_learned_from():
    model = ChainCRF(random_state=0, max_passes=5)
    assert model.fit(Prepared(**parts())).predict([[["a"], ["b"]]]) == [["X", "Y"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"encoded": Encoded([0, 2], [0, 1, 2], [0, 10**8], [])},
            "feature indices go up to 100000000, but the encoder knows 2 features",
        ),
        (
            {"encoded": Encoded([0, 2], [0, 1, 2], [0, 2], [])},
            "feature indices go up to 2, but the encoder knows 2 features",
        ),
        ({"encoder": AttributeEncoder()}, "feature indices go up to 1, but the encoder knows 0"),
        (
            {"encoded": Encoded([0, 1, 2], [0, 1, 2], [0, 1], [])},
            "the features and the corpus have other samples",
        ),
        (
            {"encoded": Encoded([0, 1], [0, 2], [0, 1], [])},
            "the features and the corpus have other samples",
        ),
        (
            {"corpus": as_corpus([[["a"], ["b"]]])},
            "the corpus has no labels: only labelled data can be trained on",
        ),
        ({"encoder": None}, "encoder must be an Encoder, got None"),
        ({"encoded": None}, "encoded must be an Encoded, got None"),
        ({"corpus": None}, "corpus must be a Corpus, got None"),
        ({"features": 3}, "features must be a string or a list of strings, got 3"),
        ({"input_format": "jsonl"}, "input_format must be None or a dict, got 'jsonl'"),
    ],
)
def test_a_prepared_corpus_whose_parts_do_not_fit(change, message):
    with pytest.raises(DataError, match=message):
        ChainCRF(random_state=0, max_passes=1).fit(Prepared(**(parts() | change)))


# ------------------------------------------------------------------------- the encoder it hands out


def test_the_encoder_is_a_copy(small):
    found = Prepared.open(small)
    n = found.encoder.n_features
    taken = found.encoder_for("auto")
    taken.learn(Corpus.from_columns({"word": [["new", "words"]], "height": [["1", "2"]]}))
    assert taken.n_features > found.encoder.n_features == n
    found.check_made_by(found.encoder_for(None))
    with pytest.raises(DataError, match="the model has other features than the prepared corpus"):
        found.check_made_by(taken)
    with pytest.raises(DataError, match="warm_start: the model has other features"):
        found.check_made_by(AttributeEncoder())


def test_features_may_be_named_again_but_not_changed(small, tmp_path):
    found = Prepared.open(small)
    for same in (
        "word[-1..0]; number(height)",
        ["word[-1]", "word", "number(height)"],
        Templates.parse("word[-1..0]; number(height)"),
    ):
        found.encoder_for(same)
    for other in ("word", "chunking", "edges = mark; word[-1..0]; number(height)", "other[1]"):
        with pytest.raises(DataError, match="differs from the templates the corpus was prepared"):
            found.encoder_for(other)
    with pytest.raises(TemplateError, match="no-such-set"):
        found.encoder_for("no-such-set")
    ready = prepare(dicts(), tmp_path / "p")
    ready.encoder_for("auto")
    with pytest.raises(DataError, match="the prepared corpus holds ready-made features"):
        ready.encoder_for("word")
