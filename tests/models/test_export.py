"""Exported files predict what their models predict, where neither Trellis nor Numba is."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    DataError,
    GraphCRF,
    MaxMargin,
    TreeCRF,
    read_conll,
)
from trellis.models import export_predictor

ALONE = """
import json, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"numpy", "predictor"}:
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
sys.path.insert(0, sys.argv[1])
import predictor
print(json.dumps(predictor.predict(json.load(sys.stdin))))
"""
WORDS = [
    "the", "The", "cat", "Cats", "IL-2", "IL-12", "1997", "x", "New", "York", "Oslo", "a-b", "-",
    "don't", "ÉTÉ", "ß", "中", "年", "三十", "カナ", "한국", "ǅ", "٣", "𠀀", "é", "of", "McX9",
]  # fmt: skip


def words_of(rng: np.random.Generator, n: int = 60, new: bool = False) -> list[list[str]]:
    """Sentences of these words, some of them new ones; one is empty, one a single word."""
    known = WORDS + ["unseen", "Q", "№", "zz-9", "\u3000"] * new
    lengths = [*[0] * new, 1, *rng.integers(1, 12, n)]  # empty ones are not learned from
    return [[known[i] for i in rng.integers(0, len(known), length)] for length in lengths]


def columns(rng: np.random.Generator, new: bool = False) -> Corpus:
    words = words_of(rng, new=new)
    pos = [[w[:1].upper() + str(len(w) % 3) for w in s] for s in words]
    numbers = [[f"{len(w) / 2 - 1}" for w in s] for s in words]
    return Corpus.from_columns({"word": words, "pos": pos, "height": numbers})


def labelled(corpus: Corpus, column: str = "word") -> list[list[str]]:
    """Spans in BIO that depend on the words and their neighbours, with exceptions."""
    result = []
    for s in range(len(corpus)):
        tags, words = ["O"], corpus[s].columns[column]
        for t, word in enumerate(words):
            old = tags[-1]
            kind = "PER" if ord(word[-1]) % 3 else "LOC"
            goes_on = old != "O" and (len(word) + t) % 3 != 0
            tags.append(f"I-{old[2:]}" if goes_on else f"B-{kind}" if len(word) % 2 else "O")
        result.append(tags[1:])
    return result


def dicts(rng: np.random.Generator, new: bool = False) -> list[list[dict[str, Any]]]:
    return [
        [{"w": w, "up": w[0].isupper(), "n": len(w) / 7, f"s:{w[-1]}": True} for w in s]
        for s in words_of(rng, new=new)
    ]


def lists(rng: np.random.Generator, new: bool = False) -> list[list[list[str]]]:
    return [[[w, w.lower(), w[:1]][: 1 + len(w) % 3] for w in s] for s in words_of(rng, new=new)]


def characters(rng: np.random.Generator, new: bool = False) -> Corpus:
    alphabet = "abcdeabc中年三" + "xyz" * new
    text = [["".join(rng.choice(list(alphabet), n)) for n in rng.integers(1, 4, 8)]] * 1
    sentences = [
        ["".join(rng.choice(list(alphabet), n)) for n in rng.integers(1, 4, rng.integers(1, 9))]
        for _ in range(60)
    ] + text
    return Corpus.from_columns({"char": [list("".join(s)) for s in sentences]})


def segmented(corpus: Corpus) -> list[list[str]]:
    """Words end behind a and c, and where two characters are equal."""
    result = []
    for s in range(len(corpus)):
        text = corpus[s].columns["char"]
        ends = [c in "ac" or text[t : t + 2] == [c, c] for t, c in enumerate(text)]
        ends[-1:] = [True] * bool(ends)
        starts = [True, *ends[:-1]]
        tags = {(1, 1): "S", (1, 0): "B", (0, 1): "E", (0, 0): "M"}
        result.append([tags[pair] for pair in zip(starts, ends, strict=True)])
    return result


ALL_KINDS = """
edges = mark
word[-2..2]; pos[-1] & lower(word) & shape(word)[1]; bias; bos; eos
prefix(word, 1..3); suffix(word, 2)[-1]; short_shape(word); char_type(word); digits(word)
has_digit(word); has_hyphen(word); has_upper(word)[1]; initial_upper(word); all_upper(word)
test(word, "^[A-Z]+.*[0-9]$"); match(word, "[a-z]+"); pos == pos[1]; lower(word)[-1] == lower(word)
ngrams(word, 1..3); number(height); number(height)[-1]; cluster(word, 2..3)
dictionary(word, "places")[-1..1]; pos & word @ min_count=2
"""
SCHEME = {"scheme": "BIO"}
RICH = {"rich_edges": True, "max_passes": 3, "random_state": 0}
TEXT = {"unlabelled": words_of(np.random.default_rng(9), 200)}
PLACES = {"dictionaries": {"places": ["New York", "Oslo", "the cat of", "x"]}}


def crf(features: Any = "auto", **parameters: Any) -> ChainCRF:
    return ChainCRF(features, **{"max_passes": 5, "random_state": 0, **parameters})


MODELS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any, dict[str, Any]]] = {
    "chunking": (columns, labelled, crf("chunking"), {}),
    "chunking, labels as given": (columns, labelled, crf("chunking", encoding="given"), {}),
    "chunking, refined": (columns, labelled, crf("chunking", encoding="iobes"), {}),
    "ner, in a scheme": (columns, labelled, crf("ner", scheme="BIO", encoding="given"), {}),
    "ner, refined, in a scheme": (columns, labelled, crf("ner", **SCHEME, encoding="iobes"), {}),
    "pos": (columns, labelled, crf("pos"), {}),
    "wordseg": (characters, segmented, crf("wordseg"), {}),
    "all kinds of templates": (columns, labelled, crf(ALL_KINDS), TEXT | PLACES),
    "no boundaries": (columns, labelled, crf(ALL_KINDS.replace("edges = mark", "")), TEXT | PLACES),
    "default": (columns, labelled, crf(), {}),
    "dicts": (dicts, None, crf(), {}),
    "lists": (lists, None, crf(), {}),
    "perceptron": (columns, labelled, ChainPerceptron("pos", max_passes=3, random_state=0), {}),
    "max-margin": (columns, labelled, MaxMargin("ner", max_passes=5, random_state=0), {}),
    "rich": (columns, labelled, crf("chunking", **RICH), {}),
    "rich, all pairs": (columns, labelled, crf("ner", **RICH, edge_pairs="all"), {}),
    "rich, both ends": (columns, labelled, crf("pos", **{**RICH, "rich_edges": "both"}), {}),
    "rich, of dicts": (dicts, None, crf(**RICH, edge_pairs="observed"), {}),
    "a template that is rich": (columns, labelled, crf("word @ edge; pos; bias @ edge"), {}),
    "perceptron, rich": (columns, labelled, ChainPerceptron("word; pos", **RICH), {}),
}  # fmt: skip


def plain(X: Any) -> Any:
    """Samples as JSON has them."""
    return [dict(sample.columns) for sample in X] if isinstance(X, Corpus) else X


def any_labels(X: Any) -> list[list[str]]:
    return [["BIOES"[len(str(x)) % 3] for x in sample] for sample in X]


def fitted(name: str) -> Any:
    make, label, model, options = MODELS[name]
    X = make(np.random.default_rng(0))
    y = any_labels(X) if label is None else label(X)
    return model.fit(X, y, **options)


def alone(folder: Path, samples: Any) -> Any:
    """What the exported file of a folder predicts where there is only NumPy."""
    ended = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, str(folder)],
        input=json.dumps(samples), capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_labels(tmp_path: Path, name: str) -> None:
    model = fitted(name)
    samples = [MODELS[name][0](np.random.default_rng(seed), new=True) for seed in (1, 2)]
    for small in (model, model.compressed(keep=0.3)):
        export_predictor(small, tmp_path / "predictor.py")
        found = alone(tmp_path, [sample for X in samples for sample in plain(X)])
        expected = [labels for X in samples for labels in small.predict(X)]
        assert found == expected
        assert len({label for labels in found for label in labels}) > 1


def test_nothing_else_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "predictor.py").write_text("import trellis\n")
    with pytest.raises(AssertionError, match="ImportError: trellis"):
        alone(tmp_path, [])


def test_real_data(tmp_path: Path, real_data: Any) -> None:
    path = real_data("conll2000") / "train.txt.xz"
    corpus = read_conll(path, ["word", "pos", "chunk"], "chunk")
    model = crf("chunking").fit(corpus.take(range(1000)))
    export_predictor(model, tmp_path / "predictor.py")
    new = corpus.take(range(1000, 3000))
    assert alone(tmp_path, plain(new)) == model.predict(new)


# ---------------------------------------------------------------------------- in this process


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Any]]:
    """A model and the ``predict`` of its file, by name."""
    known: dict[str, tuple[Any, Any]] = {}

    def make(name: str) -> tuple[Any, Any]:
        if name not in known:
            model = fitted(name)
            path = tmp_path_factory.mktemp("exported") / "predictor.py"
            export_predictor(model, path)
            known[name] = model, runpy.run_path(str(path))["predict"]
        return known[name]

    return make


SENTENCES = st.lists(
    st.lists(st.sampled_from([*WORDS, "unseen"]) | st.text(min_size=1, max_size=5))
)


@given(SENTENCES, st.sampled_from(["pos", "ner, refined, in a scheme", "default"]))
def test_any_words(made: Any, words: list[list[str]], name: str) -> None:
    model, predict = made(name)
    samples = {"word": words, "pos": [["N"] * len(s) for s in words]}
    samples["height"] = [["0.5"] * len(s) for s in words]
    corpus = Corpus.from_columns(samples)
    assert predict(plain(corpus)) == model.predict(corpus)


@given(st.lists(st.text("abcde中年xy", max_size=9)))
def test_any_characters(made: Any, text: list[str]) -> None:
    model, predict = made("wordseg")
    corpus = Corpus.from_columns({"char": [list(s) for s in text]})
    assert predict([list(s) for s in text]) == model.predict(corpus)  # one column needs no name


@pytest.mark.parametrize("name", ["ner, in a scheme", "chunking, refined", "rich"])
def test_constraints(made: Any, name: str) -> None:
    model, predict = made(name)
    X = columns(np.random.default_rng(3))
    free = model.predict(X)
    rng = np.random.default_rng(4)
    sets: list[Any] = [None, None, "O", {"O", "B-PER", "I-PER"}, frozenset({"B-LOC", "O"})]
    limits = [[sets[i] for i in rng.integers(0, len(sets), len(s))] for s in free]
    found = predict(plain(X), limits)
    assert found == model.predict(X, constraints=limits) != free


def test_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (4, 1, 6, 3)]
    y = [["ab"[int(row[0] > row[1])] for row in x] for x in X]
    model = crf().fit(X, y)
    export_predictor(model, tmp_path / "predictor.py")
    assert runpy.run_path(str(tmp_path / "predictor.py"))["predict"](X) == model.predict(X)


def test_sets_of_attributes_and_what_only_has_a_bias(tmp_path: Path) -> None:
    path = tmp_path / "predictor.py"
    model = crf().fit([[{"a", "b"}, {"c"}]], [["X", "Y"]])
    export_predictor(model, path)
    assert runpy.run_path(str(path))["predict"]([[{"c"}, {"b", "a"}]]) == [["Y", "X"]]
    model = crf("bias; bos").fit([["u", "v"]], [["X", "Y"]])
    export_predictor(model, path)
    assert runpy.run_path(str(path))["predict"]([["u", "v"], []]) == [["X", "Y"], []]


def test_the_same_bytes(tmp_path: Path) -> None:
    model = fitted("ner, in a scheme")
    for name in "ab":
        export_predictor(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_threads_share_a_file(made: Any) -> None:
    model, predict = made("chunking")
    corpora = [columns(np.random.default_rng(seed)) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(predict, map(plain, corpora)))
    assert found == [model.predict(X) for X in corpora]


def test_float16_weights_take_half_the_room(tmp_path: Path) -> None:
    model = fitted("ner, in a scheme")
    sizes = []
    for precision in ("float32", "float16"):
        path = tmp_path / precision
        export_predictor(model.compressed(keep=1, precision=precision), path)
        sizes.append(path.stat().st_size - (tmp_path / "float32").read_text().index("DATA ="))
    assert sizes[1] < 0.75 * sizes[0]


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "samples", "limits", "message"),
    [
        ("pos", [{"pos": ["N"]}], None, "sample 0: the templates need the column 'word'"),
        ("pos", ["a word"], None, "sample 0: expected a dict with the columns word"),
        ("chunking", [["a"]], None, "sample 0: expected a dict with the columns word, pos"),
        ("chunking", [{"word": ["a"], "pos": []}], None, "sample 0: its columns have different"),
        ("dicts", [["a"]], None, "sample 0: expected a list of dicts or of lists of attributes"),
        ("dicts", [{"w": ["a"]}], None, "sample 0: expected a list of dicts or of lists"),
        ("dicts", [[{"n": 1e39}]], None, "feature values are too large to be scored, or no"),
        ("dicts", [[{"n": float("nan")}]], None, "feature values are too large to be scored"),
        ("pos", [["a"]], [], "0 constraints for 1 samples"),
        ("pos", [["a"], ["b"]], [[None], []], "sample 1: 0 constraints, length 1"),
        ("pos", [["a"], ["b"]], [[None], [{"C"}]], "sample 1 has no allowed labelling under its"),
    ],
)  # fmt: skip
def test_bad_samples(made: Any, name: str, samples: Any, limits: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore", invalid="ignore"):
        made(name)[1](samples, limits)


EDGES = [np.array([[0, 1]])] * 2


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (TreeCRF(max_passes=1), {"edges": EDGES}, "only models of chains can be exported, this "
         "one is of trees; a model file"),
        (GraphCRF(max_passes=1), {"edges": EDGES}, "this one is of graphs"),
        (crf("variety(word, 1..2)"), {}, "the template 'variety(word, 1..2)' cannot be exported"),
        (crf('dictionary(word, "d") == dictionary(word, "d")[1]'), {"dictionaries": {"d": ["a"]}},
         """the template 'dictionary(word, "d") == dictionary(word, "d")[1]' cannot be exported"""),
        (crf('test(word, "^(a|a)*$")'), {}, "the expression '^(a|a)*$' of test cannot be exported: "
         "Python's own matching may take very long"),
    ],
)  # fmt: skip
def test_what_cannot_be_exported(
    tmp_path: Path, model: Any, options: dict[str, Any], message: str
) -> None:
    model.fit([["a", "b"], ["b", "b"]], [["X", "Y"], ["Y", "Y"]], **options)
    with pytest.raises(DataError) as caught:
        export_predictor(model, tmp_path / "predictor.py")
    assert message in str(caught.value)
    assert not (tmp_path / "predictor.py").exists()


def test_what_is_no_model() -> None:
    with pytest.raises(DataError, match="model must be"):
        export_predictor(3, "predictor.py")  # type: ignore[arg-type]  # on purpose
