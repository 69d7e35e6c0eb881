"""The study of ensembles from end to end on toy data: what it writes, and what it says."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

from studies import ensembles, reproduce
from studies.datasets import ExpertData
from studies.ensembles import (
    artificial,
    curves,
    labelling,
    letters,
    methods,
    pronunciation,
    systems,
    tables,
)
from studies.texts import mean_sd
from trellis.corpus import read_conll
from trellis.errors import DataError

pytestmark = pytest.mark.extras  # whole studies, if tiny

FOLDERS = ("ud_ewt", "ocr", "conll2003_experts", "morphseg2022", "cmudict")


def toy_experts(name):
    """Three systems; the second is right more often than the others."""
    rng = np.random.default_rng(0)
    labels = ["B-X", "I-X", "O"] if name == "conll2003" else ["B", "I"]
    gold = [[labels[i] for i in rng.integers(0, len(labels), n)] for n in rng.integers(2, 16, 60)]

    def system(share):
        return [[y if rng.random() < share else labels[0] for y in sample] for sample in gold]

    outputs = [system(0.7), system(0.95), system(0.8)]
    if name == "morphseg-eng":
        outputs[0] = [sample[1:] for sample in outputs[0]]
    scheme = "BIO" if name == "conll2003" else None
    aligned = name != "morphseg-eng"
    return ExpertData(name, gold, gold, outputs, ("poor", "good", "fair"), scheme, aligned)


def toy_pronunciations(part):
    rng = np.random.default_rng(len(part))
    words = [[str(x) for x in rng.choice(list("abcdef"), n)] for n in rng.integers(4, 7, 60)]
    return words, [[x.upper() for x in word if x != "f"] or ["F"] for word in words]


def toy_treebank(name):
    rng = np.random.default_rng(1)
    words = {"D": ["the", "a"], "N": ["cat", "Rome", "mat"], "V": ["sat", "ran"]}
    lines = []
    for _ in range(80):
        for tag in ("D", "N", "V", "D", "N")[: rng.integers(2, 6)]:
            lines.append(f"{rng.choice(words[tag])} {tag}")
        lines.append("")
    text = "\n".join(lines).encode()
    corpus = read_conll(io.BytesIO(text), ["word", "xpos"], "xpos")
    return SimpleNamespace(train=corpus, dev=corpus, test=corpus)


def toy_letters(folder):
    rng = np.random.default_rng(2)
    shapes = {letter: rng.integers(0, 2, 12) for letter in "abc"}

    def word(fold):
        found = [str(x) for x in rng.choice(list("abc"), rng.integers(2, 5))]
        return np.array([shapes[x] ^ (rng.random(12) < 0.1) for x in found]), found, fold

    return [word(fold) for fold in range(10) for _ in range(12)]


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """Toy data in place of the real ones, and small sizes."""
    data = tmp_path_factory.mktemp("data")
    for name in FOLDERS:
        (data / name).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRELLIS_DATA", str(data))
        patch.setattr(systems, "load_experts", toy_experts)
        patch.setattr(curves, "load_experts", toy_experts)
        patch.setattr(pronunciation, "load_pronunciations", toy_pronunciations)
        patch.setattr(labelling, "load", toy_treebank)
        patch.setattr(labelling, "word_images", toy_letters)
        patch.setitem(artificial._SIZES, "quick", (150, 40, 30, 2))
        patch.setitem(labelling._SIZES, "quick", (12, 40, 10, 2))
        patch.setitem(systems._SIZES, "quick", (40, 2, 50))
        patch.setattr(systems, "_QUICK", systems.METHODS)
        patch.setattr(systems, "_data", lambda protocol: list(systems.SYSTEM_DATA))
        patch.setitem(pronunciation._SIZES, "quick", (50, 40, 2))
        patch.setitem(curves._SIZES, "quick", (50, 40, 2, 40, 2))
        yield


@pytest.fixture(scope="module")
def finished(toys, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    reproduce("ensembles", folder, protocol="quick", n_jobs=1)
    return folder


def records(folder):
    return json.loads((folder / "results.json").read_text("utf-8"))


def test_all_sections_and_figures_are_there(finished):
    report = (finished / "report.md").read_text("utf-8")
    for experiment in ensembles.EXPERIMENTS:
        assert f"## {experiment.title}\n" in report
        assert f"--tasks {experiment.name} --quick" in report
        if experiment.draw is not None:
            assert (finished / f"{experiment.name}.png").read_bytes().startswith(b"\x89PNG")
            assert f"]({experiment.name}.png)" in report
    assert "NaN" not in report
    assert "nan" not in report


def test_every_method_of_the_paper_is_in_every_table(finished):
    found = records(finished)
    names = {*methods.PAPER, methods.BEST}
    assert names <= set(found["artificial ADS1 as_printed"]["losses"])
    assert names <= set(found["labelling TR1"]["losses"])
    assert len(found["labelling TR1"]["experts"]) == 9
    assert len(found["labelling TR2"]["experts"]) == 5
    assert len(found["labelling OCR"]["experts"]) == 9
    for how in ("aligned", "padded"):
        assert names <= set(found["pronunciation trained"][how])
        assert names <= set(found["pronunciation PDS1"][how])
        assert names <= set(found["curves n-best"][how]["5"])


def test_tables_hold_the_numbers_of_the_log(finished):
    report = (finished / "report.md").read_text("utf-8")
    cells = {cell.strip() for line in report.splitlines() for cell in line.split("|")}
    found = records(finished)
    for losses in found["artificial ADS3 as_tabulated"]["losses"].values():
        assert mean_sd(losses) in cells
    for key, record in found.items():
        for method, r in record.get("methods", {}).items():
            assert f"{r['hamming']:.4f}" in cells
            assert f"{100 * r['exact']:.2f}" in cells
            if method != "vote":
                assert tables.gain_text(r["over vote"]) in cells, key


def test_a_second_run_gives_the_same_numbers(finished, toys, tmp_path):
    reproduce("ensembles", tmp_path, protocol="quick", tasks=["systems"], n_jobs=1, figures=False)
    first, second = records(finished), records(tmp_path)
    keys = [key for key in second if key.startswith("systems")]
    assert keys
    for key in keys:
        for method, record in second[key]["methods"].items():
            same = first[key]["methods"][method]
            assert {**record, "seconds": 0} == {**same, "seconds": 0}


def test_the_report_is_rendered_from_the_log_alone(finished, monkeypatch):
    before = (finished / "report.md").read_text("utf-8")
    monkeypatch.setattr(systems, "combined", None)
    ensembles.STUDY.render(finished, figures=False)
    assert (finished / "report.md").read_text("utf-8") == before


def test_unknown_task(tmp_path):
    with pytest.raises(DataError, match="unknown task 'tables'; known: artificial, labelling"):
        reproduce("ensembles", tmp_path, tasks=["tables"])


def test_too_few_sentences(toys):
    with pytest.raises(DataError, match="too few sentences"):
        labelling.losses("TR1", 50, 40, 10, 2)


# ---------------------------------------------------------------------------- claims


def _artificial_records(mvote):
    losses = {m: [0.3] for m in (*methods.PAPER, methods.BEST, *artificial.OTHER_SCALE)}
    losses["MVote"] = [mvote]
    return {call.key: {"losses": losses} for call in artificial.calls("default")}


def test_claims_follow_the_numbers():
    good = artificial.report("default", _artificial_records(0.18))
    assert "MVote beats the best expert on ADS1, ADS2, ADS3." in good
    assert "MVote +0.0012 (within ±0.005)" in good
    assert "CV +0.1212 (NOT within ±0.005)" in good
    bad = artificial.report("default", _artificial_records(0.4))
    assert "on none, but not on ADS1, ADS2, ADS3." in bad


def test_winners_follow_the_intervals():
    def record(low, high):
        gain = {"gain": (low + high) / 2, "low": low, "high": high}
        return {"score": 0.9 + low, "over vote": gain, "over best expert": gain}

    found = {"best expert": record(0, 0), "vote": record(0, 0)}
    sure = systems._winners(found | {"SLE": record(0.01, 0.02), "FPL": record(-0.01, 0.02)})
    assert "The highest score is that of SLE (91.00" in sure
    assert "plain vote with an interval above 0: SLE." in sure
    unsure = systems._winners(found | {"FPL": record(-0.01, 0.02)})
    assert "No interval of a gain over the plain vote lies above 0." in unsure
    assert "No interval of a gain over the best system lies above 0;" in unsure


def test_best_expert_of_a_run_is_that_of_the_test_part():
    gold = [["a", "b"]] * 4
    good_later = [["b", "a"]] * 2 + [["a", "b"]] * 2
    good_first = [["a", "b"]] * 2 + [["b", "a"]] * 2
    from trellis.experts import BestExpert, as_outputs

    said = as_outputs([good_later, good_first])
    found = methods.run_losses(
        {"chosen": BestExpert()}, said, gold, np.array([0, 1]), np.array([2, 3])
    )
    assert found == {"chosen": 1.0, methods.BEST: 0.0}


def test_training_sets_are_disjoint():
    runs = list(methods.disjoint_runs(50, 10, 5, seed=0))
    trained = np.concatenate([train for train, _ in runs])
    assert sorted(trained.tolist()) == list(range(50))
    for train, test in runs:
        assert sorted([*train, *test]) == list(range(50))


# ---------------------------------------------------------------------------- letters


def test_chunks_spell_the_pronunciation():
    words = [list("box"), list("fix"), list("ox"), list("bob"), list("fib")] * 2
    phones = [list("bAks"), list("fIks"), list("Aks"), list("bAb"), list("fIb")] * 2
    chunks = letters.align_letters(words, phones, min_count=1)
    assert chunks[0] == ["b", "A", "k_s"]
    for word, phone, chunk in zip(words, phones, chunks, strict=True):
        assert len(chunk) == len(word)
        assert letters.joined(chunk) == phone


def test_words_without_an_alignment():
    words = [list("ab")] * 3 + [["a"], list("q")]
    phones = [list("AB")] * 3 + [list("ABC"), ["Q"]]
    found = letters.align_letters(words, phones)
    assert found[0] == ["A", "B"]
    assert found[3] is None  # three phones for one letter
    assert found[4] is None  # a chunk that occurs once


def test_losses_of_answers():
    gold = [["K", "AE", "T"], ["AA"]]
    found = pronunciation.answer_losses([["AE", "T"], ["AA"]], gold)
    assert found.tolist() == [[1.0, 1 / 3, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]


def test_padding_is_stripped_from_answers(toys):
    outputs = [[["K", "T"]] * 8, [["K", "AE", "T"]] * 8]
    gold = [["K", "AE", "T"]] * 8
    for how in ("aligned", "padded"):
        found = pronunciation.sequence_losses(
            outputs, gold, ["SLE"], how=how, size=4, n_runs=2, beta=0.9
        )
        assert found["SLE"] == [[0.0] * 4] * 2
        assert found[methods.BEST] == [[0.0] * 4] * 2
