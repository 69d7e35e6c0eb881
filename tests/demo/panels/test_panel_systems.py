"""The panel of several systems: what it measures and says; it chooses as the command does."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import numpy as np
import pytest

from trellis.cli import main
from trellis.cli.combine import METHODS as OF_THE_COMMAND
from trellis.demo import manual
from trellis.demo.elements import source_of, summary_of
from trellis.demo.manual import code_words
from trellis.demo.panels import systems
from trellis.demo.panels.systems import (
    METHODS,
    Estimate,
    Look,
    Rule,
    Trial,
    choose,
    less_gold,
    summarise,
    verdict,
    weak_taggers,
)  # fmt: skip
from trellis.evaluation import paired_bootstrap, span_scores
from trellis.experts import BestExpert, MajorityVote, as_outputs, from_models

GAIN, NONE, LOSS = Estimate(5.1, 3.1, 7.2), Estimate(0.6, -0.5, 2.3), Estimate(-2.5, -4.9, -0.1)


@pytest.fixture(scope="module")
def small():
    """The panel from few sentences, twice, and what its example gave."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manual, "code_words", functools.partial(code_words, n=400))
        patch.setattr(systems, "_TRAIN", 120)
        patch.setattr(systems, "_GOLD", 60)
        patch.setattr(systems, "_LESS_GOLD", (20,))
        patch.setattr(systems, "_RESAMPLES", 200)
        yield systems.panel(0), systems.panel(0), systems.example(0, 120, 180)


def test_structure_and_determinism(small):
    first, second, _ = small
    assert first == second
    assert len(re.findall('<p class="summary">', first)) == 1
    assert first.count('<svg class="chart"') == 3
    assert first.count("<figure>") == first.count("</figure>") == 6
    assert "<pre><code>from trellis.demo.manual import code_words" in first
    assert "weak_taggers(words[:120], labels[:120], 0)" in first
    assert "return" not in source_of(systems.example)
    assert len(first.encode()) < 60_000
    assert not re.search(r"https?:|nan", first)


def test_the_summary_has_the_figures_of_the_example(small):
    first, _, (said, gold, new, _, truth, method, combined) = small
    text = summary_of(first)
    vote = MajorityVote().fit(said, gold).predict(new)
    best = BestExpert().fit(said, gold).predict(new)
    for name, answers in (("vote has F1", vote), ("them alone", best), ("combine has", combined)):
        assert f"{name} {100 * span_scores(truth, answers, 'BIO').f1:.1f}" in text
    assert f"trellis combine ({systems._name(method)})" in first
    compared = paired_bootstrap(truth, combined, vote, "f1")
    shown = re.search(
        r"combine, 60 gold sentences</text><text[^>]*>(\S+) \((\S+) to (\S+)\)", first
    )
    value, low, high = map(float, shown.groups())
    assert value == pytest.approx(100 * compared.difference, abs=0.051)
    assert [low, high] == pytest.approx([100 * x for x in compared.interval], abs=2.5)


def test_where_errors_are_counted_by_hand(small):
    _, _, (_, _, new, _, truth, _, combined) = small
    weights = np.random.default_rng(0).multinomial(len(truth), [1 / len(truth)] * len(truth), 50)
    look = Look.measure(new, truth, combined, weights.astype(float))
    rows = []
    answers = [new.lists(new.codes[:, j]) for j in range(new.n_experts)]
    for s, sentence in enumerate(truth):
        for k, right in enumerate(sentence):
            agree = sum(answer[s][k] == combined[s][k] for answer in answers)
            rows.append((agree, combined[s][k] != right))
    errors = sum(wrong for _, wrong in rows)
    low = [wrong for agree, wrong in rows if agree <= look.at_most]
    assert look.words.value == pytest.approx(100 * len(low) / len(rows))
    assert look.wrong_there.value == pytest.approx(100 * sum(low) / len(low))
    assert look.of_errors.value == pytest.approx(100 * sum(low) / errors)
    assert sum(low) >= errors / 2
    assert sum(wrong for agree, wrong in rows if agree < look.at_most) < errors / 2
    assert look.shares.sum() == pytest.approx(1)
    assert look.errors.sum() == pytest.approx(1)


def test_agreement_is_symmetric_and_words_to_look_at_are_escaped():
    new = as_outputs([[["B-code", "O"]], [["B-code", "O"]], [["O", "B-code"]]], names=list("xy<"))
    shown = systems._agreement(new, [["B-code", "O"]])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", shown)
    assert np.array(cells).reshape(4, 4).tolist() == [
        ["–", "100", "0", "100"], ["100", "–", "0", "100"],
        ["0", "0", "–", "0"], ["100", "100", "0", "–"],
    ]  # fmt: skip
    assert "C  &lt;" in shown
    text = systems._to_look_at(new, [["a<b", "&c"]], [["B-code", "O"]], [["O", "O"]])
    assert "<mark>a&lt;b</mark> &amp;c" in text
    assert re.findall(r'<i( class="right")?>(.)</i>', text) == [
        (' class="right"', "B"), (' class="right"', "B"), ("", "·"), ("", "·"),
    ]  # fmt: skip


def test_the_rule():
    words = ["Use", "str.join()", "x_y", "with", "in", "TypeError", "but", "while"]
    assert Rule().predict([words]) == [
        ["O", "B-code", "I-code", "I-code", "O", "B-code", "O", "B-code"]
    ]


def test_methods_are_those_of_the_command():
    assert list(METHODS) == list(OF_THE_COMMAND)


@pytest.mark.parametrize("seed", [0, 3])
def test_choose_takes_what_the_command_takes(seed, tmp_path, capsys):
    words, labels = code_words(seed, n=220)
    taggers = weak_taggers(words[:120], labels[:120], seed)
    said = from_models([*taggers.values()], words[120:], names=[*taggers])
    files = []
    for j, answers in enumerate([*(said.lists(column) for column in said.codes.T), labels[120:]]):
        path = tmp_path / f"{j}.txt"
        path.write_text("\n\n".join("\n".join(sentence) for sentence in answers) + "\n")
        files.append(str(path))
    out = str(tmp_path / "out.txt")
    command = ["combine", "--gold", files[-1], *files[:-1], "--apply", *files[:-1], "-o", out]
    assert main(command) == 0
    chosen = re.search(r"combined by ([\w-]+):", capsys.readouterr().out)[1]
    assert systems._name(choose(said, labels[120:])) == chosen


# ------------------------------------------------------------------------------- words

LOOK = Look(
    shares=np.zeros(8), wrong=np.zeros(8), errors=np.zeros(8), at_most=4,
    words=Estimate(4.4, 4.0, 5.0), wrong_there=Estimate(30.2, 25.0, 35.0),
    of_errors=Estimate(52.6, 47.0, 58.0),
)  # fmt: skip


def trial(n_gold, gain, method="rerank"):
    score = Estimate(70.0, 68.0, 72.0)
    return Trial(n_gold, score, score, score, NONE, gain, (method,))


def test_gains_losses_and_neither():
    assert verdict(GAIN) == "a sure gain of 5.1 (+3.1 to +7.2)"
    assert verdict(NONE) == "no sure gain (+0.6, −0.5 to +2.3)"
    assert verdict(LOSS) == "a sure loss of 2.5 (−4.9 to −0.1)"
    assert [e.sign for e in (GAIN, NONE, LOSS)] == [1, 0, -1]
    assert Estimate(2.0, 0.04, 4.0).sign == Estimate(-2.0, -4.0, 0.0).sign == 0


def test_less_gold_in_words():
    assert less_gold([]) == ""
    assert less_gold([trial(20, NONE), trial(100, NONE)]) == (
        "With 20 or 100 it makes no sure difference to the vote. "
    )
    assert less_gold([trial(20, LOSS), trial(50, NONE), trial(100, GAIN)]) == (
        "With 100 it surely gains; with 50 it makes no sure difference to the vote; "
        "with 20 it surely loses to the vote. "
    )


def test_summaries():
    text = summarise(7, [trial(20, LOSS), trial(400, GAIN)], LOOK)
    assert text == (
        "Seven weak taggers mark code in Python's manual. Their plain vote has F1 70.0, the best "
        "of them alone 70.0. Taught by 400 labelled sentences, trellis combine has 70.0: a sure "
        "gain of 5.1 (+3.1 to +7.2) over the vote. With 20 it surely loses to the vote. The 4 % of "
        "words where at most four of seven agree with the answer hold 53 % of all errors: a person "
        "should look there first."
    )
    assert "no sure gain (+0.6, −0.5 to +2.3) over the vote" in summarise(7, [trial(9, NONE)], LOOK)
    assert "a sure loss of 2.5" in summarise(7, [trial(9, LOSS)], LOOK)
    assert "gain of" not in summarise(7, [trial(9, LOSS)], LOOK)
    same = summarise(7, [trial(9, GAIN, "best-expert")], LOOK)
    assert "has 70.0, as it picks just that one: a sure gain" in same
    assert "where not all seven agree" in summarise(7, [trial(9, GAIN)], replace(LOOK, at_most=6))
