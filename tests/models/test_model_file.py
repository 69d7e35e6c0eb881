"""Model files: round trips of every kind of model, the golden file, and thousands of damaged ones.

``golden/chain_crf_v1.trellis`` was made once by::

    X, Y = toy_language(12)
    corpus = Corpus.from_columns(
        {"word": X, "length": [[str(len(w)) for w in s] for s in X]}, Y
    )
    templates = '''
        edges = mark
        word[-1..1]; word[-1] & word; ngrams(word, 2..2); number(length); bias; bos
        word[0] == word[1]; test(word, "^[A-Z]"); suffix(word, 2) @ min_count=2
    '''
    ChainCRF(
        templates, piece_size=2.5, l2=0.5, learning_rate=0.2, scheme="BIO", random_state=0
    ).fit(corpus).save("chain_crf_v1.trellis")

(``toy_language`` is that of ``chain_problems.py`` as it was then.) It is never made again: every
later version of Trellis must read it and give the answers below.
"""

from __future__ import annotations

import copy
import hashlib
import random
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from chain_problems import same_bits, toy_language
from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    CorruptModelError,
    DataError,
    Templates,
    load_model,
)
from trellis.corpus.schemes import get_scheme, words_to_tags
from trellis.errors import TrellisError
from trellis.files.container import MODEL, header_text, read_container, write_container
from trellis.files.stored import pack_strings

GOLDEN = Path(__file__).parents[1] / "golden" / "chain_crf_v1.trellis"
X, Y = toy_language(30)
X_NEW, _ = toy_language(10, seed=1)
NEW_WORDS = [["Zuse", "met", "Noether", "Ada"], ["qq"]]
BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])


def columns(samples) -> dict[str, list[list[str]]]:
    return {
        "word": samples,
        "pos": [["N" if w[0].isupper() else "x" for w in s] for s in samples],
        "height": [[str(len(w) / 2) for w in s] for s in samples],
    }


def characters(samples) -> tuple[list[list[str]], list[list[str]]]:
    return [list("".join(s)) for s in samples], [words_to_tags(s) for s in samples]


def dicts(samples) -> list:
    return [[{"w": w, "cap": w[0].isupper(), "n": len(w) / 3} for w in s] for s in samples]


def arrays(samples) -> list:
    return [np.array([[len(w), ord(w[0]) / 10, w < "M"] for w in s], float) for s in samples]


TEMPLATES = """
word[-2..2]; word[-1] & pos; suffix(word, 1..2) & pos[1]; lower(word)[-1]
ngrams(word, 2..3); number(height); number(height)[-1]; bias; bos; eos
word[0] == word[1]; test(word, "^[A-Z];?"); match(word, "[a-z]+") ; short_shape(word) @ min_count=2
"""
CASES = {
    "dicts": ("auto", dicts(X), Y, dicts([*X_NEW, *NEW_WORDS])),
    "lists": ("auto", [[[w, w[-1]] for w in s] for s in X], Y, [[[w] for w in s] for s in X_NEW]),
    "arrays": ("auto", arrays(X), Y, arrays([*X_NEW, *NEW_WORDS])),
    "words": ("auto", X, Y, [*X_NEW, *NEW_WORDS, []]),
    "templates": (
        TEMPLATES,
        Corpus.from_columns(columns(X)),
        Y,
        Corpus.from_columns(columns([*X_NEW, *NEW_WORDS])),
    ),
    "marked edges": (
        "edges = mark; " + TEMPLATES,
        Corpus.from_columns(columns(X)),
        Y,
        Corpus.from_columns(columns([*X_NEW, *NEW_WORDS])),
    ),
    "word list": (
        Templates.parse("char[-1..1]; wordlist(char, 2..4)").resolved(["word"]),
        *characters(X),
        characters([*X_NEW, *NEW_WORDS])[0],
    ),
    "named set": ("wordseg", *characters(X), characters(X_NEW)[0]),
}


def fitted(kind, case: str, **options):
    features, samples, labels, _ = CASES[case]
    options = {"max_passes": 3, "piece_size": 2.5, "random_state": 0, **options}
    return kind(features, **options).fit(samples, labels)


# ------------------------------------------------------------------------- round trips


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_is_the_saved_one(kind, case, tmp_path):
    model, new = fitted(kind, case), CASES[case][3]
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is kind
    assert loaded.classes_ == model.classes_ and loaded.n_features_ == model.n_features_
    assert same_bits(loaded.weights_, model.weights_)
    assert loaded.predict(new) == model.predict(new)
    assert loaded.predict_kbest(new, 3) == model.predict_kbest(new, 3)
    ids = np.arange(model.n_features_)
    assert loaded.encoder_.names(ids) == model.encoder_.names(ids)
    if kind is ChainCRF:
        pairs = zip(loaded.predict_marginals(new), model.predict_marginals(new), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pairs)
    assert loaded.n_passes_ == 0  # the history of training is not kept


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_equal_models_give_equal_bytes(kind, case, tmp_path):
    fitted(kind, case).save(tmp_path / "a")
    fitted(kind, case).save(tmp_path / "b")
    load_model(tmp_path / "a").save(tmp_path / "c")
    data = (tmp_path / "a").read_bytes()
    assert data == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_training_goes_on_after_loading(kind, case, tmp_path):
    """The vocabulary grows as if the model had never been a file."""
    _, samples, _, new = CASES[case]
    model = fitted(kind, case)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    more = model.predict(new)
    keep = [i for i, y in enumerate(more) if y]
    new = new.take(keep) if isinstance(new, Corpus) else [new[i] for i in keep]
    for one in (model, loaded):
        one.set_params(warm_start=True, max_passes=2).fit(new, [more[i] for i in keep])
    assert loaded.n_features_ == model.n_features_
    assert same_bits(loaded.weights_, model.weights_)
    assert loaded.predict(samples) == model.predict(samples)


def test_parameters_come_back(tmp_path):
    model = ChainCRF(
        ["word", "word[-1]"],
        piece_size=np.float64(2.5),
        l2=np.float32(0.5),
        max_passes=np.int64(2),
        scheme=get_scheme("iob2"),
        patience=3,
        random_state=np.int64(7),
    ).fit(X, Y)
    model.save(tmp_path / "m")
    found = load_model(tmp_path / "m").get_params()
    expected = model.get_params() | {"scheme": "BIO"}
    assert found == expected
    assert type(found["max_passes"]) is int and type(found["l2"]) is float


def test_templates_come_back_as_lines_that_mean_the_same(tmp_path):
    """A lone «pos» given as templates must not come back as the name of a set."""
    corpus = Corpus.from_columns(columns(X), Y)
    model = ChainCRF(Templates.parse("pos"), max_passes=1, random_state=0).fit(corpus)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.features == ["pos"]
    assert loaded.fit(corpus).n_features_ == model.n_features_ == 2


def test_settings_of_prediction_survive(tmp_path):
    model = ChainCRF("word", scheme="BIO", max_passes=1, random_state=0).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.scheme == "BIO"
    assert loaded.predict_spans(X_NEW) == model.predict_spans(X_NEW)
    assert loaded.explain(X_NEW[:1]) == model.explain(X_NEW[:1])


def test_a_model_replaces_the_file_whole_or_not_at_all(tmp_path):
    file = tmp_path / "m"
    fitted(ChainCRF, "words").save(file)
    before = file.read_bytes()
    bad = fitted(ChainCRF, "words")
    bad.features = object()
    with pytest.raises(DataError, match=r"parameter features=<object .*> cannot be written"):
        bad.save(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


# ------------------------------------------------------------------------- for ever


GOLDEN_SAMPLES = [
    ["Ada", "met", "Bohr", "Curie", "of"],
    ["the", "Noether", "and"],
    ["new"],
]


def golden_input() -> Corpus:
    return Corpus.from_columns(
        {
            "word": GOLDEN_SAMPLES,
            "length": [[str(len(w)) for w in s] for s in GOLDEN_SAMPLES],
        }
    )


GOLDEN_LABELS = [["B-PER", "O", "B-PER", "I-PER", "O"], ["O", "B-PER", "O"], ["O"]]
GOLDEN_MARGINALS = [
    [0.9283, 0.0, 0.0717],
    [0.0119, 0.0279, 0.9602],
    [0.9673, 0.0108, 0.0219],
    [0.1337, 0.8376, 0.0287],
    [0.0127, 0.0223, 0.965],
    [0.1271, 0.0, 0.8729],
    [0.695, 0.0786, 0.2263],
    [0.0318, 0.0425, 0.9257],
    [0.0888, 0.0, 0.9112],
]


def test_the_golden_file_is_read_for_ever():
    assert GOLDEN.stat().st_size < 20_000
    model = load_model(GOLDEN)
    assert type(model) is ChainCRF
    assert model.classes_ == ("B-PER", "I-PER", "O")
    assert (model.scheme, model.piece_size, model.l2) == ("BIO", 2.5, 0.5)
    assert model.predict(golden_input()) == GOLDEN_LABELS
    found = np.concatenate(model.predict_marginals(golden_input()))
    np.testing.assert_allclose(found, GOLDEN_MARGINALS, atol=2e-4)


# ------------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Bytes of a small model that has features of every kind, and what to ask it."""
    folder = tmp_path_factory.mktemp("small")
    found = {}
    for name, samples in (("marked edges", X[:6]), ("word list", X[:6]), ("dicts", X[:4])):
        features, _, _, new = CASES[name]
        if name == "marked edges":
            train, labels = Corpus.from_columns(columns(samples)), Y[:6]
        elif name == "word list":
            train, labels = characters(samples * 2)
        else:
            train, labels = dicts(samples), Y[:4]
        model = ChainCRF(features, max_passes=1, random_state=0).fit(train, labels)
        model.save(folder / name)
        found[name] = (folder / name, new)
    return found


def asked(path: Path, new) -> str:
    """Load and predict: «refused», «predicted» or «other input», and nothing else."""
    try:
        model = load_model(path)
    except CorruptModelError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
        return "refused"
    try:
        answers = model.predict(new)
    except DataError as error:  # a model in good order, but of another column or other scales
        assert any(why in str(error) for why in ("column", "ready-made", "too large")), error
        return "other input"
    assert all(label in model.classes_ for sample in answers for label in sample)
    assert [len(a) for a in answers] == [len(s) for s in new]
    return "predicted"


def put(file: Path, data: bytes) -> None:
    """Change a file in place: a hundred times as fast as writing a new one."""
    with file.open("r+b") as out:
        out.write(data)
        out.truncate()


def mutated(data: bytes, rng: random.Random, start: int = 0) -> bytes:
    """The bytes with a few changed, lost, repeated or added from ``start`` on."""
    while True:
        out = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(start, len(out))
            what = rng.randrange(6)
            if what <= 1:
                out[i] ^= 1 << rng.randrange(8)
            elif what == 2:
                out[i] = rng.randrange(256)
            elif what == 3:
                del out[i : i + rng.randint(1, 20)]
            elif what == 4:
                out[i:i] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
            else:
                j = rng.randrange(start, len(out))
                out[i : i + 8] = out[j : j + 8]
            if len(out) <= start:
                break
        if bytes(out) != data:
            return bytes(out)


def test_a_changed_file_is_always_refused(small, tmp_path):
    rng = random.Random(0)
    file = tmp_path / "m"
    file.touch()
    for path, _ in small.values():
        data = path.read_bytes()
        for k in range(300):
            file.write_bytes(
                data[: rng.randrange(len(data))] if k % 10 == 0 else mutated(data, rng)
            )
            with pytest.raises(CorruptModelError):
                load_model(file)


def sealed(payload: bytes) -> bytes:
    """A file whose checksum is right, whatever it holds."""
    start = MODEL.magic + (1).to_bytes(4, "little")
    return start + hashlib.sha256(start + payload).digest() + payload


def container(header: dict, arrays: dict) -> bytes:
    """What ``write_container`` writes, without waiting for the disk."""
    stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return sealed(save(stored, metadata={"trellis": header_text(header)}))


def test_changed_bytes_under_a_right_checksum(small, tmp_path):
    rng = random.Random(1)
    file = tmp_path / "m"
    file.touch()
    seen = {"refused": 0, "predicted": 0, "other input": 0}
    for path, new in small.values():
        payload = path.read_bytes()[44:]
        for k in range(400):
            # the table and the header come first; half of the changes go to the numbers behind
            start = 0 if k % 2 else 8 + int.from_bytes(payload[:8], "little")
            put(file, sealed(mutated(payload, rng, start)))
            seen[asked(file, new)] += 1
    assert seen["refused"] > 300 and seen["predicted"] > 100


NUMBERS = [0, 1, -1, 2, 3, 255, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -1.0, 1e30, -1e30, 3e38, 1e-30, np.inf, -np.inf, np.nan]
THINGS = [None, True, False, 0, -1, 1.5, 10**12, "", "BIO", "word", [], ["word"], {}, {"a": 1}]


def change_array(arrays: dict, rng: random.Random) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    what = rng.randrange(8)
    if what <= 3 and array.size:
        i = rng.randrange(array.size)
        if array.dtype.kind == "f":
            array.flat[i] = rng.choice(FLOATS)
        else:
            info = np.iinfo(array.dtype)
            value = rng.choice([*NUMBERS, int(array.flat[i]) + 1, int(array.flat[i]) - 1])
            array.flat[i] = min(max(value, info.min), info.max)
        arrays[name] = array
    elif what == 4:
        arrays[name] = array.astype(rng.choice(["i4", "i8", "f4", "f8", "u1"]), casting="unsafe")
    elif what == 5 and array.shape[0]:
        arrays[name] = rng.choice([array[:-1], array[1:], array[::-1], array[:0]]).copy()
    elif what == 6 and array.ndim == 1:
        arrays[name] = np.concatenate([array, array[:1]])
    elif what == 7:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        if rng.random() < 0.3:
            del arrays[name]
    else:
        rng.shuffle(flat := array.ravel().tolist())
        arrays[name] = np.array(flat, array.dtype).reshape(array.shape)


def change_header(header: dict, rng: random.Random) -> None:
    inner = [part for part in header.values() if isinstance(part, dict) and part]
    part = rng.choice([header, *inner, *inner])
    key = rng.choice(sorted(part))
    what = rng.randrange(6)
    if what == 0:
        del part[key]
    elif what == 1:
        part[f"{key}2"] = part[key]
    elif what <= 3 or not isinstance(part[key], str):
        part[key] = copy.deepcopy(rng.choice(THINGS))
    else:
        text = list(part[key])
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(text) + 1)
            piece = rng.choice([*'0123456789-&;\n"[](),.@=# wp', "word", "ngrams", "marks", ""])
            text[i : i + rng.randint(0, 2)] = [piece]
        part[key] = "".join(text)


def test_changed_contents_under_a_right_checksum(small, tmp_path):
    rng = random.Random(2)
    file = tmp_path / "m"
    file.touch()
    seen = {"refused": 0, "predicted": 0, "other input": 0}
    for path, new in small.values():
        original = read_container(path)
        for k in range(400):
            header, arrays = copy.deepcopy(original[0]), dict(original[1])
            for _ in range(rng.randint(1, 2)):
                change_header(header, rng) if k % 3 == 0 else change_array(arrays, rng)
            put(file, container(header, arrays))
            seen[asked(file, new)] += 1
    assert seen["refused"] > 300 and seen["predicted"] > 100


# ------------------------------------------------------------------------- refusals, one by one


def rewritten(path: Path, tmp_path: Path, change) -> Path:
    header, arrays = read_container(path)
    change(header, arrays)
    write_container(tmp_path / "changed", header, arrays)
    return tmp_path / "changed"


def set_parameter(**values):
    return lambda header, arrays: header["parameters"].update(values)


def set_layout(layout):
    return lambda header, arrays: header.update(input_format=layout)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda h, a: h.update(estimator="Pipeline"),
            "it holds a 'Pipeline', which this version of Trellis does not know",
        ),
        (lambda h, a: h.update(estimator="ChainPerceptron"), "parameters are not those of Chain"),
        (set_parameter(extra=1), "parameters are not those of ChainCRF"),
        (set_parameter(l2=-1.0), "l2 must be 'auto' or a number of at least 0, got -1.0"),
        (
            set_parameter(piece_size="x"),
            "piece_size must be None or a number of at least 1, got 'x'",
        ),
        (set_parameter(scheme="BMES"), "does not fit the tag scheme BMES"),
        (lambda h, a: a.update({"classes.blob": a["classes.blob"][::-1]}), "classes must be dist"),
        (lambda h, a: a.update(pack_strings((), "classes.")), "it has no classes"),
        (lambda h, a: a.pop("node"), "array 'node' is missing"),
        (lambda h, a: a.update(node=a["node"][:-1]), "array 'node' has shape"),
        (lambda h, a: a.update(node=a["node"] * np.nan), "array 'node' holds a number that is"),
        (lambda h, a: a.update(transitions=a["transitions"].astype(float)), "has dtype float64"),
        (lambda h, a: h.pop("encoder"), "header entry 'encoder' is missing"),
        (lambda h, a: h["encoder"].update(kind="magic"), "'kind' is 'magic', one of"),
        (set_layout(["conll"]), "'input_format' is a list, dict expected"),
        (set_layout({"format": 1}), "input format has a wrong entry 'format'"),
        (set_layout({"evil": "x"}), "input format has a wrong entry 'evil'"),
        (set_layout({"format": "x", "columns": [1]}), "input format has a wrong entry 'columns'"),
        (set_layout({"format": "conll"}), "input format lacks an entry"),
    ],
)
def test_what_is_wrong_is_said(small, tmp_path, change, message):
    path = rewritten(small["marked edges"][0], tmp_path, change)
    with pytest.raises(CorruptModelError) as caught:
        load_model(path)
    assert message in str(caught.value)
    assert isinstance(caught.value, TrellisError)


def test_a_missing_file_is_missing_not_corrupt(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing here")


def test_a_pickle_is_not_looked_at(tmp_path):
    (tmp_path / "m").write_bytes(b"\x80\x04cposix\nsystem\n")
    with pytest.raises(CorruptModelError, match="not a Trellis model file"):
        load_model(tmp_path / "m")
