"""Text models of CRF++ and Wapiti predict as those programs do: by strings, looked up one by one.

The oracle makes the strings as CRF++'s and Wapiti's manuals say, and tries all labellings.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import Corpus, load_model
from trellis.compat import read_crfpp_model, read_wapiti_model
from trellis.errors import CorruptModelError, DataError, TemplateError

MACRO = re.compile(r"%([xX])\[(-?\d+),(\d+)\]")
LABELS = ["O", "B-X", "I-X"]  # not sorted, as in Wapiti's files
TEMPLATES = ["U00:%x[0,0]", "U01:%x[-1,0]/%x[0,0]", "U02:%x[-2,0]/%x[-1,1]/%x[1,0]", "U03", "B"]
WORDS = ["a", "b", "a/b", "/", "_B-1", "Ab"]
TAGS = ["N", "V"]
LETTERS = {"crfpp": "_B", "wapiti": "_x"}


def expanded(template: str, rows, t: int, boundary: str) -> str:
    def value(macro):
        s = t + int(macro[2])
        if s < 0:
            return f"{boundary}-{-s}"
        if s >= len(rows):
            return f"{boundary}+{s - len(rows) + 1}"
        cell = rows[s][int(macro[3])]
        return cell.lower() if macro[1] == "X" else cell

    return MACRO.sub(value, template)


class Oracle:
    """A model as a table of strings, with random weights for those seen in some samples."""

    def __init__(self, program: str, templates, samples, seed: int = 0) -> None:
        self.boundary, self.program = LETTERS[program], program
        self.templates = (
            [t[0].lower() + t[1:] for t in templates] if program == "wapiti" else templates
        )
        rng = np.random.default_rng(seed)
        n = len(LABELS)
        self.weights = {}
        for rows in samples:
            for t, template in itertools.product(range(len(rows)), self.templates):
                string = expanded(template, rows, t, self.boundary)
                size = {"u": n, "b": n * n, "*": n + n * n}[string[0].lower()]
                if string not in self.weights:
                    self.weights[string] = rng.normal(size=size).round(4)

    def score(self, rows, y) -> float:
        n, total = len(LABELS), 0.0
        for t, template in itertools.product(range(len(rows)), self.templates):
            weights = self.weights.get(expanded(template, rows, t, self.boundary))
            if weights is None:
                continue
            kind = template[0].lower()
            if kind in "u*":
                total += weights[y[t]]
            if kind in "b*" and t:
                total += weights[-n * n :][n * y[t - 1] + y[t]]
        return total

    def best(self, rows):
        every = itertools.product(range(len(LABELS)), repeat=len(rows))
        return [LABELS[i] for i in max(every, key=lambda y: self.score(rows, y))]

    def text(self, factor: float = 1.0) -> str:
        first, numbers = 0, {}
        for string, weights in self.weights.items():
            numbers[string] = first
            first += len(weights)
        flat = np.concatenate(list(self.weights.values()))
        if self.program == "crfpp":
            # As crf_learn writes them: strings in order, numbers as they came.
            strings = "".join(f"{numbers[s]} {s}\n" for s in sorted(numbers))
            return (
                f"version: 100\ncost-factor: {factor:g}\nmaxid: {first}\nxsize: 2\n\n"
                + "".join(f"{y}\n" for y in LABELS) + "\n"
                + "".join(f"{t}\n" for t in self.templates) + "\n"
                + strings + "\n"
                + "".join(f"{w / factor:.16f}\n" for w in flat)
            )  # fmt: skip

        def table(mark, texts):
            return f"{mark}\n" + "".join(f"{len(x.encode())}:{x},\n" for x in texts)

        active = [(i, float(w)) for i, w in enumerate(flat) if w]
        return (
            f"#mdl#2#{len(active)}\n"
            + table(f"#rdr#{len(self.templates)}/2/0", self.templates)
            + table(f"#qrk#{len(LABELS)}", LABELS) + table(f"#qrk#{len(numbers)}", numbers)
            + "".join(f"{i}={w.hex()}\n" for i, w in active)
        )  # fmt: skip


def corpus_of(samples) -> Corpus:
    return Corpus.from_columns(
        {"word": [[w for w, _ in s] for s in samples], "pos": [[p for _, p in s] for s in samples]}
    )


READERS = {"crfpp": read_crfpp_model, "wapiti": read_wapiti_model}
PROGRAMS = pytest.mark.parametrize("program", list(READERS))
rows = st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS))
samples = st.lists(st.lists(rows, min_size=1, max_size=4), min_size=1, max_size=5)


@PROGRAMS
@settings(deadline=None, max_examples=40)
@given(seen=samples, new=samples, seed=st.integers(0, 1000))
def test_predictions_are_theirs(tmp_path_factory, program, seen, new, seed):
    oracle = Oracle(program, TEMPLATES, seen, seed)
    file = tmp_path_factory.mktemp("models") / "model.txt"
    file.write_text(oracle.text(), encoding="utf-8")
    crf = READERS[program](file, ["word", "pos"])
    assert crf.classes_ == tuple(sorted(LABELS))
    # A token that looks like a boundary symbol is one to them, but not to us.
    clear = [s for s in seen + new if not any(w.startswith("_B") for w, _ in s)]
    for sample, found, scored in zip(
        clear, crf.predict(corpus_of(clear)), crf.decode(corpus_of(clear)), strict=True
    ):
        expected = oracle.best(sample)
        score = oracle.score(sample, [LABELS.index(y) for y in expected])
        assert scored.score == pytest.approx(score, abs=1e-4)
        assert oracle.score(sample, [LABELS.index(y) for y in found]) == pytest.approx(
            score, abs=1e-4
        )


SEEN = [[("The", "N"), ("ox", "V"), ("the", "N")], [("é", "V")]]


def written(tmp_path, oracle, **more):
    file = tmp_path / "model.txt"
    file.write_text(oracle.text(**more), encoding="utf-8")
    return file


def test_the_cost_factor_and_endings_of_lines(tmp_path):
    oracle = Oracle("crfpp", TEMPLATES, SEEN)
    file = written(tmp_path, oracle, factor=0.5)
    crf = read_crfpp_model(file, ["word", "pos"])
    expected = oracle.best(SEEN[0])
    assert crf.predict(corpus_of(SEEN))[0] == expected
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert read_crfpp_model(file, ["word", "pos"]).predict(corpus_of(SEEN))[0] == expected


def test_wapiti_lower_case_and_both_in_one(tmp_path):
    oracle = Oracle("wapiti", ["u:%X[0,0]%x[0,1]", "u:s=%X[0,0]-%x[0,0]", "*", "b"], SEEN)
    crf = read_wapiti_model(written(tmp_path, oracle), ["word", "pos"])
    for sample in [*SEEN, [("THE", "N"), ("The", "N")]]:
        assert crf.predict(corpus_of([sample])) == [oracle.best(sample)]


def test_older_files_of_wapiti(tmp_path):
    oracle = Oracle("wapiti", ["u:%x[0,0]", "b"], SEEN)
    text = oracle.text().replace("#mdl#2#", "#mdl#").replace("/2/0\n", "/2\n")
    file = tmp_path / "model"
    file.write_text(text, encoding="utf-8")
    crf = read_wapiti_model(file, ["word", "pos"])
    assert crf.predict(corpus_of(SEEN)) == [oracle.best(s) for s in SEEN]


def test_the_same_template_twice(tmp_path):
    oracle = Oracle("crfpp", ["U00:%x[0,0]", "U01:%x[0,0]"], SEEN)
    crf = read_crfpp_model(written(tmp_path, oracle), ["word", "pos"])
    assert crf.n_features_ == 4
    assert crf.predict(corpus_of(SEEN)) == [oracle.best(s) for s in SEEN]
    assert not crf.weights_.transitions.any()  # there is no B


@PROGRAMS
def test_such_models_are_like_others(program, tmp_path):
    crf = READERS[program](written(tmp_path, Oracle(program, TEMPLATES, SEEN)), ["word", "pos"])
    corpus = corpus_of(SEEN)
    crf.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.predict(corpus) == crf.predict(corpus)
    assert np.allclose(crf.predict_marginals(corpus)[0].sum(axis=1), 1)
    assert "word=The" in str(crf.explain(corpus[:1]))
    known = [["B-X", "O", "O"], ["O"]]
    crf.set_params(warm_start=True, random_state=0, max_passes=30)
    assert crf.fit(Corpus.from_columns(
        {"word": [["The", "ox", "the"], ["é"]], "pos": [["N", "V", "N"], ["V"]]}, known
    )).predict(corpus) == known  # fmt: skip


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (["U:%x[0,0]", "B:%x[0,0]"], r"transitions that look at columns \('B:%x\[0,0\]'\) are not"),
        (["U:%x[0,0]", "U:%x[1,0]"], "share one identifier"),
        (["U:%x[5,0]"], "looks 5 rows away, more than 4"),
        (["U:%x[0,3]"], "names column 3; there are 2: word, pos"),
        (["U:%y[0,0]"], "has a term other than %x"),
        (["B"], "no templates that start with U"),
    ],
)
def test_templates_without_a_counterpart(tmp_path, templates, message):
    oracle = Oracle("crfpp", ["U:%x[0,0]"], SEEN)
    oracle.templates = templates
    with pytest.raises(TemplateError, match=message):
        read_crfpp_model(written(tmp_path, oracle), ["word", "pos"])


def test_wapiti_tests_of_patterns_are_refused(tmp_path):
    oracle = Oracle("wapiti", ["u:%x[0,0]"], SEEN)
    oracle.templates = [r'u:%t[0,0,"^\u"]']
    with pytest.raises(TemplateError, match="has a term other than %x"):
        read_wapiti_model(written(tmp_path, oracle), ["word", "pos"])


@PROGRAMS
def test_damaged_files(program, tmp_path):
    text = Oracle(program, TEMPLATES, SEEN).text()
    file = tmp_path / "model"
    cuts = [text[: len(text) // k] for k in (2, 3, 5, 10, 50)]
    others = [
        "",
        "no model",
        "\n" * 9,
        text.replace("maxid: ", "maxid: 9"),
        text.replace("0.", "x"),
    ]
    for damaged in [*cuts, *others]:
        if damaged == text:
            continue
        file.write_text(damaged, encoding="utf-8")
        with pytest.raises(CorruptModelError, match="model: not a text model, or a damaged one"):
            READERS[program](file, ["word", "pos"])
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CorruptModelError, match="not UTF-8 text, so no text model"):
        READERS[program](file, ["word", "pos"])
    with pytest.raises(DataError, match=r"cannot read .*none: No such file"):
        READERS[program](tmp_path / "none", ["word", "pos"])
