"""Probabilities of links against listing every tracking, and the temperature against the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from tracking_problems import CROWD, assignments, listed
from trellis.datasets import LABS, simulate_cells
from trellis.structures import AssignmentSpace
from trellis.tracking import TrackingModel, annotated_events, make_hypotheses
from trellis.tracking.link_probabilities import (
    Witness,
    chances_of_links,
    hypothesis_probabilities,
    likeliest_temperature,
    linked_objects,
)
from trellis.tracking.problem import TrackingProblem

EVENTS = ("move", "division", "appear", "disappear", "split", "merge")
LAB = replace(LABS["b"], name="cells", over_segmentation=0.0, under_segmentation=0.0)


def hypotheses(events=EVENTS):
    return make_hypotheses(CROWD, events=events, n_neighbors=3, max_distance=20.0)


def space_of(h):
    covers = h.covers(3)
    return AssignmentSpace(covers, np.array([0, len(covers)]), np.array([0, 6]))


def links_in(h, choice):
    """Ids of all that are linked in a choice of hypotheses."""
    found = set()
    for (_, sources, targets), taken in zip(listed(h), choice, strict=True):
        if taken:
            found |= {(10 + i, 20 + j) for i in sources for j in targets}
    return found


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 3.0]))
def test_chances_agree_with_listing_every_tracking(seed, temperature):
    h = hypotheses()
    rng = np.random.default_rng(seed)
    scores = 2.0 * rng.normal(size=len(h))
    every = list(assignments(h, 3, 3))
    weights = np.exp([float(scores[one].sum()) / temperature for one in every])
    weights /= weights.sum()
    chosen = every[int(rng.integers(len(every)))]
    shares = hypothesis_probabilities(space_of(h), scores, temperature)
    n, ids = len(CROWD.source), [*CROWD.source.ids.tolist(), *CROWD.target.ids.tolist()]
    names = [(CROWD.frame + (k >= n), i) for k, i in enumerate(ids)]
    rows, sources, targets = linked_objects(h)
    found = chances_of_links(rows, sources, n + targets, shares, chosen, names)
    chances = {(ids[i], ids[j]): chance for (i, j), chance in found.items()}
    made = links_in(h, chosen)
    assert set(chances) == made
    linked = [links_in(h, one) for one in every]

    def share(holds):
        return float(sum(w for w, links in zip(weights, linked, strict=True) if holds(links)))

    for (a, b), chance in chances.items():
        assert chance.probability == pytest.approx(
            share(lambda links, one=(a, b): one in links), abs=1e-6
        )
        pasts = {
            (3, i): share(lambda links, one=(i, b): one in links)
            for i in (10, 11, 12)
            if (i, b) not in made
        }
        pasts[None] = share(lambda links, b=b: all(j != b for _, j in links))
        assert chance.past_probability == pytest.approx(max(pasts.values()), abs=1e-6)
        assert pasts[chance.past] == pytest.approx(chance.past_probability, abs=1e-6)
        fates = {
            (4, j): share(lambda links, one=(a, j): one in links)
            for j in (20, 21, 22)
            if (a, j) not in made
        }
        fates[None] = share(lambda links, a=a: all(i != a for i, _ in links))
        assert chance.fate_probability == pytest.approx(max(fates.values()), abs=1e-6)
        assert fates[chance.fate] == pytest.approx(chance.fate_probability, abs=1e-6)
        assert chance.event <= chance.probability + 1e-9


def test_the_event_of_a_division_is_less_sure_than_each_of_its_links():
    # One source, two targets: a division, two moves, or all alone.
    covers = [[0, 1, 2], [0, 1, -1], [0, 2, -1], [0, -1, -1], [1, -1, -1], [2, -1, -1]]
    space = AssignmentSpace(covers, [0, 6], [0, 3])
    shares = hypothesis_probabilities(space, np.log([6.0, 2.0, 1.0, 1.0, 1.0, 1.0]), 1.0)
    chances = chances_of_links(
        np.array([0, 0, 1, 2]), np.array([0, 0, 0, 0]), np.array([1, 2, 1, 2]), shares,
        np.array([True, False, False, False, False, False]), [(0, 7), (1, 8), (1, 9)],
    )  # fmt: skip
    assert chances[0, 1].event == chances[0, 2].event == pytest.approx(0.6)
    assert chances[0, 1].probability == pytest.approx(0.8)
    assert chances[0, 2].probability == pytest.approx(0.7)
    assert chances[0, 1].fate is None  # not its own sister
    assert chances[0, 1].fate_probability == pytest.approx(0.1)
    assert chances[0, 1].past is None
    assert chances[0, 1].past_probability == pytest.approx(0.2)


def known_of_drawn(rng, scores, temperature, n=4000):
    """Outcomes drawn at a temperature: an object goes on, or one goes and another comes."""
    s = rng.choice(scores, n)
    moved = rng.random(n) < 1 / (1 + np.exp(-s / temperature))
    covers = [[[2 * i, 2 * i + 1, -1], [2 * i, -1, -1], [2 * i + 1, -1, -1]] for i in range(n)]
    space = AssignmentSpace(np.concatenate(covers), 3 * np.arange(n + 1), 2 * np.arange(n + 1))
    known = np.where(moved[:, None], [1, 0, 0], [0, 1, 1]).ravel().astype(np.int8)
    return space, np.stack([s, 0 * s, 0 * s], axis=1).ravel(), known


@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0, 12.0])
def test_the_temperature_that_events_were_drawn_at_is_found(temperature):
    rng = np.random.default_rng(0)
    space, scores, known = known_of_drawn(rng, [-2.0, 1.0, 3.0, 6.0], temperature)
    found = likeliest_temperature(space, scores, known, coldest=0.01)
    assert found == pytest.approx(temperature, rel=0.15)


def test_the_temperature_is_the_most_likely_one():
    """Against the likelihood itself, on a grid; what is not known does not count."""
    from trellis.structures import mean_assignment

    rng = np.random.default_rng(1)
    space, scores, known = known_of_drawn(rng, [-1.0, 2.0], 2.0, n=300)
    known[rng.random(len(known)) < 0.3] = -1
    grid = np.exp(np.linspace(np.log(0.2), np.log(20), 93))  # steps of 5 %
    likelihood = [
        (
            mean_assignment(space, known, scores / t, reach=np.inf).log_counts
            - mean_assignment(space, None, scores / t, reach=np.inf).log_counts
        ).sum()
        for t in grid
    ]
    best = grid[int(np.argmax(likelihood))]
    assert likeliest_temperature(space, scores, known, coldest=0.1) == pytest.approx(best, rel=0.06)


def test_bounds_of_the_temperature():
    rng = np.random.default_rng(0)
    space, scores, _ = known_of_drawn(rng, [3.0], 1.0, n=50)
    right = np.tile(np.array([1, 0, 0], np.int8), 50)
    assert likeliest_temperature(space, scores, right) == 1.0  # without a mistake
    assert likeliest_temperature(space, scores, right, coldest=0.25) == 0.25
    assert likeliest_temperature(space, -scores, right, hottest=7.0) == 7.0  # all wrong
    nothing = AssignmentSpace(np.zeros((0, 3), int), [0], [0])
    assert likeliest_temperature(nothing, np.zeros(0), np.zeros(0, np.int8)) == 1.0


@pytest.fixture(scope="module")
def movie():
    return simulate_cells(60, 9, lab=LAB, seed=3)


@pytest.fixture(scope="module")
def model(movie):
    return TrackingModel(random_state=0).fit(movie[:4])


def test_probabilities_are_honest_and_find_the_wrong_links(movie, model):
    new = simulate_cells(100, 12, lab=LAB, seed=8)
    result = model.predict(new, probabilities=True)
    truth = {link.ends for link in annotated_events(new)[0]}
    right = np.array([link.ends in truth for link in result.links])
    p = np.array(result.probabilities)
    assert ((p >= 0) & (p <= 1)).all()
    wrong = int((~right).sum())
    assert wrong > 10
    assert (1 - p).sum() == pytest.approx(wrong, rel=0.7)
    least = np.argsort(p)[: len(p) // 20]
    assert (~right[least]).sum() > 0.3 * wrong  # a twentieth of the links


def test_links_are_the_same_with_probabilities(movie, model):
    plain, asked = model.predict(movie), model.predict(movie, probabilities=True, window=3)
    assert plain.links == asked.links and plain.tracks == asked.tracks
    assert plain.chances == [] and plain.probabilities == []
    assert len(asked.chances) == len(asked.links)
    divided = [
        chance for link, chance in zip(asked.links, asked.chances, strict=True)
        if link.kind == "division"
    ]  # fmt: skip
    assert divided and all(chance.event <= chance.probability + 1e-9 for chance in divided)


def test_the_window_does_not_change_probabilities(movie, model):
    alone = clone(model).set_params(max_gap=0).fit(movie[:4])
    one, all_ = (alone.predict(movie, probabilities=True, window=w) for w in (1, 50))
    np.testing.assert_allclose(one.probabilities, all_.probabilities, atol=1e-6)
    # Over gaps pairs depend on those that are behind the window.
    one, all_ = (model.predict(movie, probabilities=True, window=w) for w in (1, 50))
    np.testing.assert_allclose(one.probabilities, all_.probabilities, atol=0.02)


def test_annotated_events_tell_the_temperature_unless_they_are_few(movie, model):
    problem = TrackingProblem(movie[:4], model.hypothesis_space_)
    assert not Witness.of(problem, model.weights_).guessed
    bare = [replace(pair, annotation=None) for pair in movie[:4]]
    guessed = Witness.of(TrackingProblem(bare, model.hypothesis_space_), model.weights_)
    assert guessed.guessed and (guessed.known >= 0).all()
    assert guessed.temperature() >= 1.5
    assert model.temperature_ >= 1.0


def test_a_model_that_does_not_know_its_temperature_asks_the_movie(movie, model):
    problem = TrackingProblem(movie[:4], model.hypothesis_space_)
    other = model.with_weights(problem, model.weights_)
    assert other.temperature_ is None
    assert other.temperature_for(movie) >= 1.5
    result = other.predict(movie, probabilities=True)
    assert len(result.probabilities) == len(result.links)
    assert other.temperature_ is None  # a prediction changes no model
