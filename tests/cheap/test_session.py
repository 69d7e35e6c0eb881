"""Which questions an active learner chooses: candidates, beginnings, batches, parts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from toy_problem import ToyModel, ToyProblem, toy_data

from trellis import ChainCRF, GraphCRF, MaxMargin, TreeCRF
from trellis.cheap import ActiveLearner
from trellis.cheap.annotation_log import AnnotationLog
from trellis.cheap.session import FIRST, automatic
from trellis.errors import DataError

POOL, GOLD, TRUE = toy_data(14, seed=1)
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "far", "near"]


def sentences(n, seed=0):
    """Random words with labels that follow from them and the word before."""
    rng = np.random.default_rng(seed)
    words = [[WORDS[k] for k in rng.integers(0, 10, rng.integers(1, 8))] for _ in range(n)]
    labels = [
        ["X" if w in "the a on" else "Y" if before == w else "Z" for before, w in
         pairwise(["", *sentence])]
        for sentence in words
    ]  # fmt: skip
    return words, labels


def crf_learner(strategy="auto", **more):
    model = ChainCRF("word[-1..1]", random_state=0)
    return ActiveLearner(model, strategy, labels=["X", "Y", "Z"], **more)


def told(learner, pool, gold, n):
    """The learner after n questions, and these."""
    asked = []
    for _ in range(n):
        asked.append(learner.query(pool))
        learner.tell(asked[-1], gold[asked[-1]])
    return asked


def test_what_auto_stands_for():
    for model in (ChainCRF(), TreeCRF(), GraphCRF(), MaxMargin(), MaxMargin(structure="tree")):
        assert automatic(model) == "information-density"
    for model in (MaxMargin(structure="graph"), ToyModel()):
        assert automatic(model) == "best-vs-second"
    one, other = ActiveLearner(ToyModel()), ActiveLearner(ToyModel(), "best-vs-second")
    assert told(one, POOL, GOLD, 8) == told(other, POOL, GOLD, 8)


# ---------------------------------------------------------------------- candidates


def test_few_samples_are_looked_at_in_a_round_and_all_in_time(monkeypatch):
    looked, margins = [], ToyProblem.margins

    def watched(self, w, measure, samples):
        looked.append(list(samples))
        return margins(self, w, measure, samples)

    monkeypatch.setattr(ToyProblem, "margins", watched)
    learner = ActiveLearner(ToyModel(), candidates=4)
    asked = told(learner, POOL, GOLD, 9)
    assert max(map(len, looked)) <= 4
    assert len(set(asked)) == 9
    assert {i for some in looked for i in some} == set(range(len(POOL)))


def test_the_least_sure_of_the_candidates_is_asked_for():
    learner = ActiveLearner(ToyModel(), candidates=6)
    told(learner, POOL, GOLD, 3)
    session = learner._session
    near = session._candidates(session.left(False))
    assert len(near) == 6 and (np.diff(near) > 0).all()
    margins = session.problem.margins(session.w, "best-vs-second", near)
    assert learner.query(POOL) == near[margins.argmin()]


def test_the_average_is_over_the_same_samples_but_those_answered():
    learner = ActiveLearner(ToyModel(), candidates=8)
    before = None
    for _ in range(8):
        i = learner.query(POOL)
        learner.tell(i, GOLD[i])
        session = learner._session
        same, _ = session._halves(session.left(False))
        expected = np.exp(-session.problem.margins(session.w, "best-vs-second", same)).mean()
        assert learner.average_uncertainty_[-1] == pytest.approx(expected)
        if before is not None and len(session.left(False)) > 8:
            assert set(before) - set(same.tolist()) <= {i}
        before = same.tolist()


def test_all_candidates_is_the_whole_pool():
    asked = [told(ActiveLearner(ToyModel(), candidates=n), POOL, GOLD, 9) for n in (None, 14, 99)]
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize("parts", [None, 2])
def test_a_large_pool_gives_the_same_bits_from_its_log(tmp_path, parts):
    pool, gold = sentences(60)

    def annotator(question, x):
        if parts is None:
            return gold[question]
        return {t: gold[question.sample][t] for t in question.nodes}

    def run(path, *numbers):
        for n in numbers:
            with crf_learner(candidates=10, log=path) as learner:
                learner.run(pool, annotator, max_queries=n, parts=parts)
        return learner

    whole, resumed = run(tmp_path / "a", 24), run(tmp_path / "b", 5, 8, 11)
    np.testing.assert_array_equal(whole.weights_, resumed.weights_)
    assert whole.average_uncertainty_ == resumed.average_uncertainty_
    assert [(e.sample, e.nodes) for e in whole._entries] == [
        (e.sample, e.nodes) for e in resumed._entries
    ]


# ---------------------------------------------------------------------- beginnings


def test_first_questions_bring_the_most_new_features():
    pool, gold = sentences(40)
    learner = crf_learner()
    problem = learner.model.learning_problems({"pool": pool}, labels=["X", "Y", "Z"])["pool"]
    e, offsets = problem.encoded, problem.offsets
    features = [set(e.indices[e.indptr[a] : e.indptr[b]].tolist()) for a, b in pairwise(offsets)]
    times = np.bincount(e.indices)
    seen, open_ = set(), set(range(40))
    for _ in range(FIRST):
        worth = {
            i: sum(math.log1p(times[f]) for f in features[i] - seen if times[f] > 1)
            / (len(pool[i]) + 2)
            for i in open_
        }
        i = learner.query(pool)
        assert worth[i] == pytest.approx(max(worth.values()))
        learner.tell(i, gold[i])
        seen |= features[i]
        open_.discard(i)
    assert crf_learner().query_batch(pool, 4) == [e.sample for e in learner._entries[:4]]


def test_after_these_questions_are_by_what_was_learned():
    pool, gold = sentences(40)
    learner = crf_learner()
    told(learner, pool, gold, FIRST)
    session = learner._session
    left = session.left(False)
    margins = session.problem.margins(session.w, "information-density", left)
    assert learner.query(pool) == left[margins.argmin()]
    labelled = (pool, [*gold[:FIRST], *([None] * len(x) for x in pool[FIRST:])])
    learner = crf_learner()  # so much is known that there is no beginning
    i = learner.query(labelled)
    session = learner._session
    left = session.left(False)
    margins = session.problem.margins(session.w, "information-density", left)
    assert i == left[margins.argmin()]


def test_where_all_features_are_everywhere_nothing_is_new():
    rng = np.random.default_rng(0)
    pool = [rng.normal(size=(3, 2)) for _ in range(20)]
    learners = [
        ActiveLearner(MaxMargin(l2=1.0), strategy, labels=["X", "Y"])
        for strategy in ("auto", "information-density")
    ]
    asked = []
    for learner in learners:
        learner.query(pool)
        learner.tell(7, ["X", "Y", "X"])  # shows all features
        asked.append(told(learner, pool, [["X", "Y", "Y"]] * 20, 5))
    assert asked[0] == asked[1]


def test_a_strategy_that_is_named_begins_with_it():
    pool, _ = sentences(12)
    assert crf_learner("token-confidence").query(pool) == 0  # all labels are as likely


# ---------------------------------------------------------------------- several at once


@pytest.mark.parametrize("strategy", ["information-density", "best-vs-second", "random"])
def test_batches_are_distinct_and_begin_with_the_most_uncertain(strategy):
    pool, gold = sentences(40)
    learner = crf_learner(strategy, random_state=0)
    told(learner, pool, gold, 5)
    batch = learner.query_batch(pool, 7)
    assert batch[0] == learner.query(pool)
    assert len(set(batch)) == 7 and not set(batch) & set(learner.annotated_.tolist())
    assert len(learner.query_batch(pool, 99)) == 35
    parts = learner.query_parts(pool, 7, size=2)
    assert len({part.sample for part in parts}) == 7
    assert all(1 <= len(part.nodes) <= 2 for part in parts)


def test_problems_without_features_have_batches_too():
    learner = ActiveLearner(ToyModel())
    told(learner, POOL, GOLD, 3)
    session = learner._session
    left = session.left(False)
    order = np.argsort(session.margins(left), kind="stable")
    assert learner.query_batch(POOL, 4) == left[order[:4]].tolist()
    assert len(learner.query_parts(POOL, 4, size=1)) == 4


def test_a_batch_does_not_ask_for_the_same_sentence_twice():
    pool, gold = sentences(30)
    twice = [sentence for sentence in pool for _ in range(2)]
    learner = crf_learner()
    told(learner, twice, [y for y in gold for _ in range(2)], FIRST + 2)
    chosen = [tuple(twice[i]) for i in learner.query_batch(twice, 6)]
    assert len(set(chosen)) == 6


def test_answers_to_a_batch_of_parts_say_what_was_asked_for(tmp_path):
    pool, gold = sentences(20)
    with crf_learner(log=tmp_path / "log") as learner:
        parts = learner.query_parts(pool, 3, size=2)
        for i, nodes in reversed(parts):
            learner.tell(i, {t: gold[i][t] for t in nodes})
    with AnnotationLog(tmp_path / "log") as log:
        assert [(e.sample, e.nodes) for e in log.entries()] == [*reversed(parts)]


def test_numbers_of_questions_are_checked():
    learner = crf_learner()
    with pytest.raises(DataError, match="n must be a positive integer, got 0"):
        learner.query_batch(POOL, 0)
    with pytest.raises(DataError, match="n must be a positive integer, got 0"):
        learner.query_parts(POOL, 0)


# ---------------------------------------------------------------------- parts


def test_the_most_uncertain_span_of_the_whole_pool_is_asked_for():
    pool, gold = sentences(40)
    learner = crf_learner("token-confidence")
    told(learner, pool, gold, 8)
    learner.tell(20, {0: gold[20][0]})
    session = learner._session
    model = learner.model_
    best = (-1.0, None)
    for i, sentence in enumerate(pool):
        doubt = -np.log(model.predict_marginals([sentence])[0].max(axis=1))
        doubt = np.where(np.isin(np.arange(len(sentence)), session.problem.open_nodes(i)), doubt, 0)
        if i == 20:
            continue  # what is known of it changes the rest
        width = min(3, len(sentence))
        for a in range(len(sentence) + 1 - width):
            best = max(best, (doubt[a : a + width].sum(), (i, tuple(range(a, a + width)))))
    part = learner.query_part(pool, size=3)
    if part.sample != 20:
        assert part == best[1]
    assert len(learner.query_part(pool, size=3).nodes) <= 3


def test_random_parts_are_drawn_anew_for_each_question():
    pool, gold = sentences(40)

    def parts_of(seed, n=60):
        learner = crf_learner("random", random_state=seed)
        found = []
        for _ in range(n):
            found.append(learner.query_part(pool, size=2))
            assert learner.query_part(pool, size=2) == found[-1]  # until it is answered
            learner.tell(found[-1].sample, {t: gold[found[-1].sample][t] for t in found[-1].nodes})
        return found

    first, again, other = parts_of(0), parts_of(0), parts_of(1)
    assert first == again != other
    asked = [(i, t) for i, nodes in first for t in nodes]
    assert len(set(asked)) == len(asked)  # no node twice
    changes = sum(a.sample != b.sample for a, b in pairwise(first))
    assert changes > 50  # it does not stay with a sample
    assert len({i for i, _ in first}) > 20


def test_random_parts_are_where_nodes_are():
    """A sample is as likely to be asked for as it is long."""
    pool = [["a"], ["b"] * 9]
    times = 0
    for seed in range(200):
        learner = crf_learner("random", random_state=seed)
        times += learner.query_part(pool, size=3).sample
    assert 160 < times < 198


def test_random_parts_of_other_problems():
    learner = ActiveLearner(ToyModel(), "random", random_state=0)
    asked = []
    while not learner.should_stop:
        part = learner.query_part(POOL, size=2)
        asked += [(part.sample, node) for node in part.nodes]
        learner.tell(part.sample, {node: GOLD[part.sample][node] for node in part.nodes})
    assert len(set(asked)) == len(asked) == sum(map(len, POOL))


# ---------------------------------------------------------------------- the end


@pytest.mark.parametrize("parts", [None, 2])
@pytest.mark.parametrize("model", [ChainCRF, MaxMargin], ids=["CRF", "max-margin"])
def test_finish_is_fit_of_what_was_answered(model, parts):
    pool, gold = sentences(60)
    pool = [[*sentence, f"odd{i}"] for i, sentence in enumerate(pool)]
    gold = [[*labels, "Z"] for labels in gold]
    learner = ActiveLearner(model("word[-1..1]", random_state=0), labels=["X", "Y", "Z"])

    def annotator(question, x):
        if parts is None:
            return gold[question]
        return {t: gold[question.sample][t] for t in question.nodes}

    learner.run(pool, annotator, max_queries=15 if parts is None else 40, parts=parts)
    one, known = learner.finish(), learner.annotated_.tolist()
    y = [learner._session.problem.part(np.array([i])).labels.tolist() for i in known]
    other = model("word[-1..1]", random_state=0).fit([pool[i] for i in known], y)
    names = {name: k for k, name in enumerate(one.encoder_.names(np.arange(one.n_features_)))}
    place = [names[name] for name in other.encoder_.names(np.arange(other.n_features_))]
    np.testing.assert_allclose(one.weights_.node[place], other.weights_.node, atol=1e-4)
    np.testing.assert_allclose(one.weights_.transitions, other.weights_.transitions, atol=1e-4)
    rest = np.setdiff1d(np.arange(one.n_features_), place)
    assert rest.size and not one.weights_.node[rest].any()
