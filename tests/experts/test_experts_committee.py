"""A committee of combiners."""

import numpy as np
import pytest

from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.experts import (
    AnnotatorModel,
    BestExpert,
    Committee,
    LogLinearVote,
    MajorityVote,
    Rerank,
    SpanVote,
)
from trellis.experts.committee import plurality

SAID = [[["a", "b"], ["b"]], [["a", "a"], ["b"]], [["b", "a"], ["a"]]]
GOLD = [["a", "a"], ["b"]]
TEAM = Committee([BestExpert(), LogLinearVote(), Rerank()])


def test_most_members_decide():
    assert plurality([[["a", "b"]], [["c", "d"]], [["c", "d"]]]) == [["c", "d"]]
    # Runs of disputed positions are decided one by one.
    assert plurality([[["a", "b", "c"]], [["x", "b", "c"]], [["a", "b", "y"]]]) == [["a", "b", "c"]]


def test_answers_are_those_of_most_members():
    team = TEAM.fit(SAID, GOLD)
    answers = [member.predict(SAID) for member in team.members_]
    assert team.predict(SAID) == plurality(answers)
    assert [type(member) for member in team.members_] == [BestExpert, LogLinearVote, Rerank]
    assert not hasattr(team.members[0], "classes_")  # copies were fitted


def test_without_gold_it_is_the_vote():
    assert TEAM.fit(SAID).predict(SAID) == MajorityVote().fit(SAID).predict(SAID)


def test_members_that_learn_without_right_answers_do():
    rng = np.random.default_rng(0)
    gold = rng.choice(["a", "b", "c"], (60, 1)).tolist()
    said = [
        [[y if rng.random() < share else "a" for y in right] for right in gold]
        for share in (0.9, 0.5, 0.4)
    ]
    part = [*gold[:10], *[None] * 50]
    team = Committee([AnnotatorModel("dawid-skene"), LogLinearVote()]).fit(said, part)
    alone = AnnotatorModel("dawid-skene").fit(said, part)
    few = LogLinearVote().fit([column[:10] for column in said], gold[:10])
    for member, same in zip(team.members_, (alone, few), strict=True):
        levels = member.predict_confidence(said), same.predict_confidence(said)
        assert all(map(np.array_equal, *levels))


def test_of_fitted_ones():
    members = [member.fit(SAID, GOLD) for member in (BestExpert(), LogLinearVote(), Rerank())]
    team = Committee.of_fitted(members)
    assert team.predict(SAID) == TEAM.fit(SAID, GOLD).predict(SAID)
    assert team.members_ == members


def test_new_labels():
    team = TEAM.fit(SAID, GOLD)
    assert team.predict([[["n"]], [["n"]], [["a"]]]) == [["n"]]


def test_saved(tmp_path):
    team = TEAM.fit(SAID, GOLD)
    team.save(tmp_path / "team.trellis")
    assert load_model(tmp_path / "team.trellis").predict(SAID) == team.predict(SAID)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "the committee has no members"),
        ([MajorityVote()], "a member of the committee is none, or not fitted"),
        ([MajorityVote().fit(SAID[:2])], "a member of the committee knows other experts"),
    ],
)
def test_damaged_files(members, message):
    state = TEAM.fit(SAID, GOLD)._state() | {"fitted": members}
    with pytest.raises(CorruptModelError, match=message):
        Committee([MajorityVote()])._restore(state)


def test_tags_that_only_a_member_writes():
    """Nobody says B-X, but spans are written with it."""
    said = [[["I-X", "O", "I-X"]] * 2] * 2
    team = Committee([SpanVote(scheme="BIO"), MajorityVote(), SpanVote(scheme="BIO")])
    assert team.fit(said, said[0]).predict(said) == [["B-X", "O", "B-X"]] * 2


def test_nobody():
    with pytest.raises(DataError, match="a committee needs members, at least one"):
        Committee([]).fit(SAID, GOLD)
