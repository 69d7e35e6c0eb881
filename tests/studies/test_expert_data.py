"""Loaders of expert outputs: real files if there are any, and small ones made here."""

from __future__ import annotations

import lzma

import pytest

from studies.datasets import ExpertData, load_experts, load_pronunciations
from trellis.errors import DataError
from trellis.evaluation import span_scores


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Write a data file where the loaders look: ``place("morphseg2022/x.tsv.xz", text)``."""
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))

    def write(name, text):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(lzma.compress(text.encode()))

    return write


def accuracy(data, j):
    return sum(a == b for a, b in zip(data.outputs[j], data.gold, strict=True)) / len(data)


def test_conll2003(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("conll2003_experts").parent))
    data = load_experts("conll2003")
    assert (len(data), len(data.names), data.scheme, data.aligned) == (3453, 14, "BIO", True)
    assert sum(map(len, data.gold)) == 46435
    j = data.names.index("flair_glove_lstm_crf_b")
    assert round(100 * span_scores(data.gold, data.outputs[j]).f1, 2) == 93.03


def test_czech(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("morphseg2022").parent))
    data = load_experts("morphseg-ces")
    assert (len(data), len(data.names), data.aligned) == (4000, 13, True)
    assert data.inputs[0] == list("abbé")
    assert data.gold[0] == ["B", "I", "I", "B"]
    assert round(100 * accuracy(data, 0), 2) == 87.25
    missing = [sum(answer is None for answer in column) for column in data.outputs]
    assert missing[data.names.index("jb132")] == 16
    assert missing[0] == 0


def test_english(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("morphseg2022").parent))
    data = load_experts("morphseg-eng")
    assert (len(data), len(data.names), data.aligned) == (57755, 13, False)
    assert "".join(data.gold[0]) == "subside|y|ise|ed"
    assert abs(accuracy(data, 0) - 0.9036) < 2e-4


def test_pronunciations(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("cmudict").parent))
    letters, phones = load_pronunciations("test")
    assert len(letters) == len(phones) == 4168
    assert sum(map(len, phones)) == 28979
    assert letters[4] == ["a", "b", "b"]


def test_take():
    data = ExpertData("toy", [["a"], ["b"]], [["X"], ["Y"]], [[["X"], None]], ("rules",), "BIO")
    part = data.take([1, 1])
    assert (part.inputs, part.gold, part.outputs) == ([["b"]] * 2, [["Y"]] * 2, [[None, None]])
    assert (part.names, part.scheme, part.aligned, len(part)) == (("rules",), "BIO", True, 2)


def test_small_files(place):
    place("conll2003_experts/test_experts.tsv.xz", "token\tgold\tx\n\na\tO\tO\n\nb\tO\tB-X\n\n")
    data = load_experts("conll2003")
    assert (data.inputs, data.outputs) == ([["a"], ["b"]], [[["O"], ["B-X"]]])
    place("morphseg2022/ces_test_experts.tsv.xz", "word\tgold\tx\ty\nabc\ta bc\tab c\tac\n")
    data = load_experts("morphseg-ces")
    assert (data.gold, data.outputs) == ([["B", "B", "I"]], [[["B", "I", "B"]], [None]])


@pytest.mark.parametrize(
    ("name", "file", "text", "expected"),
    [
        ("conll2003", "conll2003_experts/test_experts", "", "is empty"),
        (
            "conll2003",
            "conll2003_experts/test_experts",
            "t\tg\tx\n\na\tO\n",
            "line 3: 2 fields, ex",
        ),
        ("morphseg-ces", "morphseg2022/ces_test_experts", "", "is empty"),
        (
            "morphseg-ces",
            "morphseg2022/ces_test_experts",
            "w\tg\tx\na\n",
            "line 2: 1 fields, expec",
        ),
        (
            "morphseg-ces",
            "morphseg2022/ces_test_experts",
            "w\tg\tx\nab\ta\tab\n",
            "line 2: the right answer does not spell 'ab'",
        ),
    ],
)
def test_damaged_files(place, name, file, text, expected):
    place(f"{file}.tsv.xz", text)
    with pytest.raises(DataError, match=expected):
        load_experts(name)


def test_damaged_pronunciations(place):
    place("cmudict/sigmorphon2021_eng_us_dev.tsv.xz", "word\n")
    with pytest.raises(DataError, match="line 1: 1 fields, expected 2"):
        load_pronunciations("dev")
