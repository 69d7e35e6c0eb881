"""The panel of several systems: what it measures and says; it combines as the command does."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from trellis.cli import main
from trellis.demo import manual
from trellis.demo.doubts import Look
from trellis.demo.elements import source_of, summary_of
from trellis.demo.manual import code_words
from trellis.demo.panels import systems
from trellis.demo.panels.systems import summarise, verdict, what_gold_adds
from trellis.demo.taggers import weak_taggers
from trellis.demo.trials import Estimate, Trial
from trellis.evaluation import span_scores
from trellis.experts import AutoCombiner, BestExpert, MajorityVote, as_outputs, from_models

GAIN, NONE, LOSS = Estimate(5.1, 3.1, 7.2), Estimate(0.6, -0.5, 2.3), Estimate(-2.5, -4.9, -0.1)


@pytest.fixture(scope="module")
def small():
    """The panel from few sentences, twice, and what its example gave."""
    given, example = [], systems.example

    @functools.wraps(example)
    def kept(*arguments, **named):
        given.append(example(*arguments, **named))
        return given[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manual, "code_words", functools.partial(code_words, n=400))
        patch.setattr(systems, "_TRAIN", 120)
        patch.setattr(systems, "_GOLD", 60)
        patch.setattr(systems, "_LESS_GOLD", (20,))
        patch.setattr(systems, "_PARTS", 2)
        patch.setattr(systems, "_RESAMPLES", 200)
        patch.setattr(systems, "example", kept)
        yield systems.panel(0), systems.panel(0), given[0]


def test_structure_and_determinism(small):
    first, second, _ = small
    assert first == second
    assert len(re.findall('<p class="summary">', first)) == 1
    assert first.count('<svg class="chart"') == 4
    assert first.count("<figure>") == first.count("</figure>") == 7
    assert "<pre><code>from trellis.demo.manual import code_words" in first
    assert "weak_taggers(words[:120], labels[:120], 0)" in first
    assert "return" not in source_of(systems.example)
    assert len(first.encode()) < 60_000
    assert not re.search(r"https?:|nan", first)


def test_the_panel_has_the_figures_of_the_example(small):
    first, _, (_, labels, said, new, alone, combiner, answers, doubts) = small
    text = summary_of(first)
    gold, truth = labels[120:180], labels[180:]
    vote, best = MajorityVote().fit(said), BestExpert().fit(said, gold)
    for name, one in (("vote has F1", vote), ("them alone", best), ("answer they have", alone)):
        assert f"{name} {100 * span_scores(truth, one.predict(new), 'BIO').f1:.1f}" in text
    shown = re.search(
        r"combined, 60 gold \(([\w-]+)\)</text><text[^>]*>(\S+) \((\S+) to (\S+)\)", first
    )
    assert shown[1] == combiner.method_
    assert float(shown[2]) == round(100 * span_scores(truth, answers, "BIO").f1, 1)
    assert float(shown[3]) < float(shown[2]) < float(shown[4])
    assert f"in {len(doubts):,} places" in first


def test_agreement_is_symmetric():
    new = as_outputs([[["B-code", "O"]], [["B-code", "O"]], [["O", "B-code"]]], names=list("xy<"))
    shown = systems._agreement(new, [["B-code", "O"]])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", shown)
    assert np.array(cells).reshape(4, 4).tolist() == [
        ["–", "100", "0", "100"], ["100", "–", "0", "100"],
        ["0", "0", "–", "0"], ["100", "100", "0", "–"],
    ]  # fmt: skip
    assert "C  &lt;" in shown


@pytest.mark.parametrize("n_gold", [0, 100])
def test_the_command_takes_the_same_method(n_gold, tmp_path, capsys):
    words, labels = code_words(3, n=220)
    taggers = weak_taggers(words[:120], labels[:120], 3)
    said = from_models([*taggers.values()], words[120:], names=[*taggers])
    files = []
    for j, answers in enumerate([*(said.lists(column) for column in said.codes.T), labels[120:]]):
        path = tmp_path / f"{j}.txt"
        path.write_text("\n\n".join("\n".join(sentence) for sentence in answers) + "\n")
        files.append(str(path))
    out = tmp_path / "out.txt"
    gold = ["--gold", files[-1]] if n_gold else []
    assert main(["combine", *files[:-1], *gold, "-o", str(out)]) == 0
    taken = re.search(r"combined by ([\w-]+)", capsys.readouterr().out)[1]
    combiner = AutoCombiner().fit(said, labels[120:] if n_gold else None)
    assert combiner.method_ == taken
    written = [block.split("\n") for block in out.read_text().strip().split("\n\n")]
    assert written == combiner.answers_


# ------------------------------------------------------------------------------- words

LOOK = Look(
    n_places=9, in_places=8.0, errors_in_places=66.0, looked=(0, 5),
    found=(Estimate(0.0, 0.0, 0.0), Estimate(52.6, 47.0, 58.0)), levels=(),
)  # fmt: skip


def trial(n_gold, gain, more=None, methods=("rerank",)):
    score = Estimate(70.0, 68.0, 72.0)
    best = score if n_gold else None
    return Trial(n_gold, score, score, gain, methods, best, NONE if n_gold else None, more)


def test_gains_losses_and_neither():
    assert verdict(GAIN) == "a sure gain of 5.1 (+3.1 to +7.2)"
    assert verdict(NONE) == "no sure gain (+0.6, −0.5 to +2.3)"
    assert verdict(LOSS) == "a sure loss of 2.5 (−4.9 to −0.1)"


def test_what_gold_adds_in_words():
    assert what_gold_adds([]) == ""
    assert what_gold_adds([trial(n, GAIN, NONE) for n in (20, 100, 400)]) == (
        "Right answers to 20, 100 or 400 sentences make no sure difference to that. "
    )
    assert what_gold_adds(
        [trial(20, LOSS, LOSS), trial(100, NONE, NONE), trial(400, GAIN, GAIN)]
    ) == (
        "Right answers to 400 sentences surely add to that (+5.1, +3.1 to +7.2); those to 20 "
        "sentences surely take from that (−2.5, −4.9 to −0.1); those to 100 sentences make no sure "
        "difference to that; those to 20 sentences leave it surely behind the vote. "
    )


def test_summaries():
    text = summarise(7, [trial(0, GAIN), trial(400, GAIN, NONE)], LOOK)
    assert text == (
        "Seven weak taggers mark code in Python's manual. Their plain vote has F1 70.0, the best "
        "of them alone 70.0. Combined without a single right answer they have 70.0: a sure gain of "
        "5.1 (+3.1 to +7.2) over the vote. Right answers to 400 sentences make no sure difference "
        "to that. The 5 % of words that are most in doubt hold 53 % (47 to 58) of all errors that "
        "are left: a person should look there first."
    )
    for gain, words in ((NONE, "no sure gain (+0.6, −0.5 to +2.3)"), (LOSS, "a sure loss of 2.5")):
        told = summarise(12, [trial(0, gain)], LOOK)
        assert told.startswith("12 weak taggers")
        assert words in told
        assert "gain of" not in told
        assert "alone" not in told  # which is best is not known without gold


def test_methods_taken_are_grouped():
    trials = [trial(0, NONE), trial(20, NONE, methods=("vote", "spans", "vote")), trial(400, NONE)]
    assert (
        "The method taken: rerank with no or 400; vote or spans with 20 gold sentences."
        in systems._over_the_vote(trials)
    )
