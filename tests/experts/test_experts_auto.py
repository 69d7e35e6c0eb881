"""The best way to combine, found by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.experts import AutoCombiner, MajorityVote, as_outputs
from trellis.experts.methods import METHODS, method_names, new_method

FEW = ("log-linear", "rerank")


def unequal_experts(n, seed=0, shares=(0.95, 0.5, 0.5, 0.45, 0.45), length=3):
    """Gold of three labels, and experts of whom one knows nearly everything."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(["a", "b", "c"], rng.integers(1, length + 1)).tolist() for _ in range(n)]
    said = [
        [[y if rng.random() < share else str(rng.choice(["a", "b", "c"])) for y in s] for s in gold]
        for share in shares
    ]
    return said, gold


def some(said, part):
    return [column[part] for column in said]


# ------------------------------------------------------------------ kinds of answers


def test_gold_of_another_length_makes_words():
    assert AutoCombiner().fit([[["a", "b"]], [["a", "b"]]], [["a"]]).kind_ == "words"


@pytest.mark.parametrize("kind", ["labels", "words"])
def test_every_method_is_made(kind):
    for name in method_names(kind, "BIO" if kind == "labels" else None):
        assert hasattr(new_method(name, kind, None, 0), "predict")
    with pytest.raises(DataError, match="there is no method 'x'; known are vote, "):
        new_method("x", kind, None, 0)


# ------------------------------------------------------------------ the choice


def test_a_method_that_is_surely_better_is_taken():
    said, gold = unequal_experts(300)
    auto = AutoCombiner(FEW).fit(some(said, slice(200)), gold[:200])
    assert auto.method_ in FEW
    assert auto.choice_.gain > 1
    assert auto.metric_ == "hamming"
    vote = MajorityVote().fit(said)
    test = some(said, slice(200, 300))
    assert auto.score(test, gold[200:]) > vote.score(test, gold[200:]) + 0.01


def test_equal_experts_vote():
    said, gold = unequal_experts(60, shares=(0.8, 0.8, 0.8))
    auto = AutoCombiner(FEW).fit(said, gold)
    assert auto.method_ == "vote"


def test_right_answers_of_some_samples():
    said, gold = unequal_experts(120)
    part = [*gold[:100], *[None] * 20]
    auto = AutoCombiner(FEW).fit(said, part)
    same = AutoCombiner(FEW).fit(some(said, slice(100)), gold[:100])
    assert auto.choice_ == same.choice_
    assert auto.answers_[100:] == auto.predict(some(said, slice(100, 120)))


def test_its_answers_were_not_learned_from():
    # The expert is an oracle of what it learned: each sample has a label of its own.
    gold = [[str(i)] for i in range(20)]
    said = [[["x"]] * 20, [["x"]] * 20, gold]
    auto = AutoCombiner(FEW).fit(said, gold)
    assert [len(answer) for answer in auto.answers_] == [1] * 20
    assert all(answer in (["x"], right) for answer, right in zip(auto.answers_, gold, strict=True))


def test_same_seed_same_bits():
    said, gold = unequal_experts(40)
    a, b = (AutoCombiner(FEW, random_state=1).fit(said, gold) for _ in range(2))
    assert a.choice_ == b.choice_
    assert a.predict(said) == b.predict(said)


def test_one_right_answer_is_too_few():
    said, gold = unequal_experts(10)
    auto = AutoCombiner(FEW).fit(said, [gold[0], *[None] * 9])
    assert auto.choice_ is None


def test_two_right_answers_are_enough():
    said, gold = unequal_experts(10)
    auto = AutoCombiner(FEW).fit(said, [*gold[:2], *[None] * 8])
    assert auto.choice_ is not None


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_anything_is_answered(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    words = rng.random() < 0.5
    lengths = rng.integers(1, 4, n)

    def answer(i):
        if rng.random() < 0.2:
            return None
        length = int(rng.integers(0, 4)) if words else lengths[i]
        return [str(y) for y in rng.choice(["a", "b"], length)]

    said = [[answer(i) for i in range(n)] for _ in range(p)]
    said[0] = [["a"] * int(lengths[i]) if one is None else one for i, one in enumerate(said[0])]
    gold = [answer(i) for i in range(n)]
    auto = AutoCombiner(["log-linear"]).fit(said, gold)
    found = auto.predict(said)
    assert len(found) == len(auto.answers_) == n
    for answer_, level in zip(found, auto.predict_confidence(said), strict=True):
        assert len(answer_) == len(level)
        assert ((level >= 0) & (level <= 1)).all()


# ------------------------------------------------------------------ confidence and doubts


def test_confidence_is_calibrated():
    said, gold = unequal_experts(1200)
    auto = AutoCombiner(FEW).fit(some(said, slice(400)), gold[:400])
    test = some(said, slice(400, 1200))
    sure = np.concatenate(auto.predict_confidence(test))
    right = np.concatenate(
        [np.equal(a, g) for a, g in zip(auto.predict(test), gold[400:], strict=True)]
    )
    assert abs(sure.mean() - right.mean()) < 0.02
    low = sure < np.median(sure)
    assert abs(sure[low].mean() - right[low].mean()) < 0.04


def test_spans_of_tags_and_their_confidence():
    gold = [["B-X", "I-X", "O"], ["O", "O", "B-Y"]] * 15
    other = [["B-X", "O", "O"], ["O", "O", "B-Y"]] * 15
    said = [gold, gold, other]
    auto = AutoCombiner(FEW).fit(said, gold)
    assert (auto.scheme_, auto.metric_) == ("BIO", "span-f1")
    spans = auto.predict_spans(some(said, slice(2)))
    assert [[s[:3] for s in sample] for sample in spans] == [[(0, 2, "X")], [(2, 3, "Y")]]
    assert spans[1][0][3] > spans[0][0][3] > 0.5
    plain = AutoCombiner(FEW, scheme=None).fit(said, gold)
    assert plain.metric_ == "hamming"
    with pytest.raises(DataError, match="labels that follow no tag scheme have no spans"):
        AutoCombiner().fit([[["a"]], [["a"]]]).predict_spans([[["a"]], [["a"]]])


def test_doubts():
    said = [
        [["a", "b", "c"], ["a"], ["a"]],
        [["a", "c", "b"], ["a"], None],
        [["a", "c", None], ["b"], ["a"]],
    ]
    auto = AutoCombiner().fit(said)
    doubts = auto.review(said)
    assert [(d.sample, d.start, d.end, d.answer) for d in doubts] == [
        (0, 1, 3, "c c"),
        (1, 0, 1, "a"),
    ]
    assert doubts[0].said == ("b c", "c b", "c ")
    assert doubts[0].confidence <= doubts[1].confidence
    assert auto.review(said, 1) == doubts[:1]
    with pytest.raises(DataError, match="n must be"):
        auto.review(said, -1)


def test_doubts_about_whole_sequences():
    said = [[["a", "b"], ["c"]], [["a"], ["c"]], [["a", "b"], ["c"]]]
    doubts = AutoCombiner().fit(said).review(said)
    assert [(d.sample, d.answer, d.said) for d in doubts] == [(0, "a b", ("a b", "a", "a b"))]


SPANS = [
    [[(0, 2, "X"), (4, 5, "Y")], [(1, 3, "X")]] * 6,
    [[(0, 2, "X")], [(1, 3, "X")]] * 6,
    [[(0, 2, "X"), (4, 6, "Y")], None] * 6,
]


def test_spans_with_and_without_gold():
    right = [[(0, 2, "X"), (4, 5, "Y")], [(1, 3, "X")]] * 6
    for gold in (None, right, [*right[:6], *[None] * 6]):
        auto = AutoCombiner().fit(SPANS, gold)
        assert (auto.kind_, auto.metric_) == ("spans", "span-f1")
        assert (auto.choice_ is None) == (gold is None)
        found = auto.predict_spans(SPANS)
        kept = [[span[:3] for span in sample] for sample in found]
        assert kept == [[tuple(span) for span in sample] for sample in auto.predict(SPANS)]
        assert (0, 2, "X") in kept[0]
        for sample, levels in zip(found, auto.predict_confidence(SPANS), strict=True):
            assert [span[3] for span in sample] == levels.tolist()


def test_doubts_about_spans():
    doubts = AutoCombiner().fit(SPANS).review(SPANS)
    first = [d for d in doubts if d.sample == 0]
    assert {(d.start, d.end) for d in first} == {(4, 5), (4, 6)}
    said = {(d.start, d.end): d.said for d in first}
    assert said[4, 5] == ("Y", "-", "-")
    assert all(0 <= d.confidence <= 1 for d in doubts)


def test_samples_beyond_those_that_are_tried(monkeypatch):
    said, gold = unequal_experts(60)
    whole = AutoCombiner(["log-linear"], method="log-linear").fit(said, gold)
    monkeypatch.setattr("trellis.experts.auto._TRIED", 20)
    part = AutoCombiner(["log-linear"], method="log-linear").fit(said, gold)
    assert len(part.answers_) == len(part.answer_levels_) == 60
    assert part.predict(said) == whole.predict(said)  # in the end all teach
    assert sum(a == g for a, g in zip(part.answers_, gold, strict=True)) > 40


def test_a_method_may_be_asked_for():
    said, gold = unequal_experts(30)
    auto = AutoCombiner(["rerank"], method="best-expert").fit(said, gold)
    assert auto.method_ == "best-expert"
    assert [trial.name for trial in auto.choice_.trials] == ["vote", "rerank", "best-expert"]
    assert len(auto.expert_trials_) == 5
    assert AutoCombiner(method="rover").fit(said).method_ == "rover"
    with pytest.raises(DataError, match="method 'spans' cannot combine labels"):
        AutoCombiner(method="spans").fit(said)


def test_the_kind_may_be_given():
    said = [[["a", "b"]], [["a", "b"]]]
    assert AutoCombiner(kind="words").fit(said).kind_ == "words"
    with pytest.raises(DataError, match="outputs that are laid out are labels"):
        AutoCombiner(kind="words").fit(as_outputs(said))


def test_names():
    said = [[["a"]], [["b"]], [["a", "a"]]]
    assert AutoCombiner().fit(said, names=["x", "y", "z"]).expert_names_ == ("x", "y", "z")
    assert AutoCombiner().fit(said[:2]).expert_names_ == ("expert 1", "expert 2")


# ------------------------------------------------------------------ files and errors


def test_saved(tmp_path):
    said, gold = unequal_experts(60)
    auto = AutoCombiner(FEW).fit(said, gold)
    auto.save(tmp_path / "combo.trellis")
    loaded = load_model(tmp_path / "combo.trellis")
    assert loaded.predict(said) == auto.predict(said)
    assert loaded.choice_ == auto.choice_
    assert all(map(np.array_equal, loaded.predict_confidence(said), auto.predict_confidence(said)))
    assert loaded.review(said, 5) == auto.review(said, 5)
    assert loaded.expert_trials_ == auto.expert_trials_
    with pytest.raises(DataError, match="does not hold the answers to the samples of training"):
        loaded.answers_  # noqa: B018


def test_saved_without_gold(tmp_path):
    said = [[["a", "b"]], [["a"]], [["a", "b"]]]
    AutoCombiner().fit(said).save(tmp_path / "combo.trellis")
    loaded = load_model(tmp_path / "combo.trellis")
    assert loaded.predict(said) == [["a", "b"]]
    assert loaded.choice_ is None


@pytest.fixture(scope="module")
def log_linear():
    return AutoCombiner(["log-linear"]).fit(*unequal_experts(10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"combiner": None}, "the combiner inside is none, or not fitted"),
        ({"method": "magic"}, "the combiner inside is none, or not fitted"),
        ({"method": "rover"}, "the combiner inside is not one of 'rover'"),
        ({"calibration": [1.0]}, "calibration must be two numbers"),
        ({"gain": [1.0]}, "the trials are not those of the method"),
    ],
)
def test_damaged_files(log_linear, change, message):
    with pytest.raises(CorruptModelError, match=message):
        AutoCombiner()._restore(log_linear._state() | change)


@pytest.mark.parametrize(
    ("auto", "said", "gold", "message"),
    [
        (AutoCombiner(["magic"]), [[["a"]]], None, "there is no method 'magic' for labels; known"),
        (AutoCombiner(metric="span-f1"), [[["a"]]], None, "cannot score labels without a tag"),
        (AutoCombiner(metric="hamming"), [[["a"]], [[]]], None, "answers of different lengths"),
        (AutoCombiner(), [[["a"]]], [["a"], ["b"]], "gold has 2 samples, the experts answer 1"),
        (AutoCombiner(), [[]], None, "no samples"),
        (AutoCombiner(), 3, None, "outputs"),
    ],
)
def test_errors(auto, said, gold, message):
    with pytest.raises(DataError, match=message):
        auto.fit(said, gold)


def test_nothing_to_score():
    auto = AutoCombiner().fit([[["a"]]])
    with pytest.raises(DataError, match="no samples to score"):
        auto.score([[["a"]]], [None])


def test_numpy_outputs_are_taken():
    said, gold = unequal_experts(12)
    assert AutoCombiner(FEW).fit(as_outputs(said), gold).predict(as_outputs(said))


def test_names_are_known():
    assert next(iter(METHODS)) == "vote"
