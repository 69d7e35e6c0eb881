"""The experiments on chains, on tiny data: what is computed, and what the report says of it."""

from __future__ import annotations

import lzma

import numpy as np
import pytest

from studies.cheap_data import chains
from studies.cheap_data.chains import Sizes, active_run, chain_experiments, partial_run
from studies.experiments import study_of
from trellis import DataError

pytestmark = pytest.mark.extras  # whole studies, if tiny

CHUNKED = [
    "the/DT/B-NP cat/NN/I-NP sat/VBD/B-VP ././O",
    "a/DT/B-NP dog/NN/I-NP saw/VBD/B-VP the/DT/B-NP cat/NN/I-NP",
    "dogs/NNS/B-NP ran/VBD/B-VP on/IN/B-PP the/DT/B-NP mat/NN/I-NP ././O",
]
TAGGED = ["the/DET cat/NOUN sat/VERB", "a/DET dog/NOUN saw/VERB cats/NOUN", "dogs/NOUN ran/VERB"]
TINY = Sizes(12, 6, 2, (0.25, 1.0), (6, 12), (12,), (0.25, 1.0))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a tiny conll2000 and a tiny ud_ewt; the genres of the latter are its halves."""
    folder = tmp_path / "data"
    for name, sentences, line, ending in (
        ("conll2000", CHUNKED, "{} {} {}\n", "txt"),
        ("ud_ewt", TAGGED, "{}\t{}\tX\t0\troot\n", "tsv"),
    ):
        (folder / name).mkdir(parents=True)
        text = "".join(
            "".join(line.format(*token.split("/")) for token in sentence.split()) + "\n"
            for sentence in sentences * 12
        )
        for part in ("train", "dev", "test"):
            (folder / name / f"{part}.{ending}.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setenv("TRELLIS_DATA", str(folder))
    monkeypatch.setattr(chains, "EMAILS", slice(0, 14))
    monkeypatch.setattr(chains, "REVIEWS", slice(14, None))
    monkeypatch.setitem(chains.SIZES, "quick", TINY)


def test_a_tiny_run(data, tmp_path):
    out = tmp_path / "out"
    records = study_of("Chains", chain_experiments).run(out, protocol="quick", n_jobs=1)
    report = (out / "report.md").read_text("utf-8")
    for experiment in chain_experiments:
        assert f"## {experiment.title}" in report
        assert (out / f"{experiment.name}.png").read_bytes().startswith(b"\x89PNG")
    # The toy language can be learned: all of it, and by transfer as well.
    assert records["chains-partial/quick/bridge/1/0"]["f1"] == 1.0
    assert records["chains-transfer/quick/transfer/1/0"]["accuracy"] > 0.9
    means = [
        np.mean([records[f"chains-partial/quick/crf/{share}/{run}"]["f1"] for run in (0, 1)])
        for share in ("0.25", "1")
    ]
    row = next(line for line in report.splitlines() if line.startswith("| CRF of label sets"))
    assert [cell.split(" ± ")[0].strip() for cell in row.split("|")[2:-1]] == [
        f"{100 * mean:.1f}" for mean in means
    ]


def test_partial_annotation_counts_tokens(data):
    few, whole = (partial_run(method, 0.25, 0, TINY)["tokens"] for method in ("crf", "whole"))
    assert few == round(0.25 * chains._chunks(TINY, 0)[0].n_positions)
    assert few <= whole <= few + 6  # the sentence that goes beyond is annotated in full


def test_runs_have_sentences_of_their_own(data):
    (a, _), (b, _), (again, _) = (chains._chunks(TINY, run) for run in (0, 1, 0))
    assert a.label_lists() == again.label_lists() != b.label_lists()


@pytest.mark.parametrize("unit", ["sentences", "spans"])
def test_active_learning_asks_for_as_many_tokens_as_said(data, unit):
    found = active_run("best-vs-second", unit, 0, TINY)
    longest = 6 if unit == "sentences" else 5
    for asked, goal in zip(found["asked"], TINY.tokens, strict=True):
        assert goal <= asked < goal + longest
    assert len(found["perceptron"]) == 2
    assert len(found["combined"]) == 1


def test_too_few_sentences(data):
    with pytest.raises(DataError, match="500 sentences are needed, but there are 36"):
        partial_run("crf", 0.5, 0, Sizes(500, 6, 1, (1.0,), (6,), (6,), (1.0,)))


def test_genres_of_the_real_data(real_data):
    real_data("ud_ewt")
    from studies.datasets import load

    words = load("ud_ewt").train.columns["word"].strings()
    offsets = load("ud_ewt").train.offsets

    def share(genre, word):
        own = words[offsets[genre.start] : offsets[genre.stop] if genre.stop else None]
        return sum(w.lower() == word for w in own) / len(own)

    assert share(chains.EMAILS, "attached") > 10 * share(chains.REVIEWS, "attached")
    assert share(chains.REVIEWS, "recommend") > 10 * share(chains.EMAILS, "recommend")
