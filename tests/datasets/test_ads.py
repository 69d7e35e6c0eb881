import numpy as np
import pytest

from trellis.datasets import artificial_experts
from trellis.errors import DataError
from trellis.experts import FollowPerturbedLeader, WeightedMajority


def errors(name, variant="as_tabulated", n=4000):
    outputs, gold = artificial_experts(name, n, variant=variant, random_state=3)
    return np.array(outputs), np.array(gold), np.array(outputs) != np.array(gold)


@pytest.mark.parametrize(("variant", "own", "other"), [("as_printed", 0.03, 0.5),
                                                       ("as_tabulated", 0.02, 0.7)])  # fmt: skip
def test_ads1_errs_where_it_should(variant, own, other):
    _, _, wrong = errors("ADS1", variant)
    rates = wrong.mean(axis=1)
    mine = np.arange(10) // 2 == np.arange(5)[:, None]
    assert rates[mine] == pytest.approx(own, abs=0.015)
    assert rates[~mine] == pytest.approx(other, abs=0.03)


def test_ads2_errs_four_times():
    _, _, wrong = errors("ADS2")
    assert (wrong.sum(axis=2) == 4).all()
    assert wrong.mean(axis=1) == pytest.approx(0.4, abs=0.04)


@pytest.mark.parametrize(("variant", "other"), [("as_printed", 0.3), ("as_tabulated", 0.4)])
def test_ads3_knows_its_own_letters(variant, other):
    _, gold, wrong = errors("ADS3", variant)
    sizes = []
    for j in range(5):
        seen = {letter for letter in "abcdefghijklmnopqrstuvwxyz"
                if not wrong[j][gold == letter].any()}  # fmt: skip
        sizes.append(len(seen))
        outside = ~np.isin(gold, sorted(seen))
        assert wrong[j][outside].mean() == pytest.approx(other, abs=0.02)
    assert sum(sizes) == 26


@pytest.mark.parametrize("name", ["ADS1", "ADS2", "ADS3"])
def test_mistakes_are_neighbours(name):
    said, gold, wrong = errors(name)
    distance = np.abs(np.vectorize(ord)(said) - np.vectorize(ord)(gold))
    assert (distance[wrong] == 1).all()
    assert (distance[~wrong] == 0).all()


def test_wrong_experts_agree_as_tabulated_only():
    for variant, agree in (("as_tabulated", True), ("as_printed", False)):
        said, _, wrong = errors("ADS3", variant)
        both = wrong[0] & wrong[1]
        assert (said[0][both] == said[1][both]).all() == agree


@pytest.mark.parametrize("cyclic", [False, True])
def test_experts_of_fixed_direction_err_their_way(cyclic):
    outputs, gold = artificial_experts(
        "ADS2", 500, variant="fixed_direction", cyclic=cyclic, random_state=3
    )
    said, truth = (np.vectorize(ord)(np.array(x)) - ord("a") for x in (outputs, gold))
    step = said - truth
    assert ((step != 0).sum(axis=2) == 4).all()
    for j, way in enumerate([1, -1, 1, -1, 1]):
        wrong = step[j] != 0
        end = truth == (25 if way > 0 else 0)
        assert (step[j][wrong & ~end] == way).all()
        assert (step[j][wrong & end] == (-25 * way if cyclic else -way)).all()
    for name in ("ADS1", "ADS3"):
        other = artificial_experts(name, 50, variant="fixed_direction")
        assert other == artificial_experts(name, 50)


def test_a_seed_is_a_data_set():
    assert artificial_experts("ADS1", 50) == artificial_experts("ADS1", 50)
    assert artificial_experts("ADS1", 50) != artificial_experts("ADS1", 50, random_state=1)


@pytest.mark.parametrize(("name", "vote", "rand"), [
    ("ADS1", 0.0197, None), ("ADS2", None, 0.4000), ("ADS3", 0.1788, 0.3196),
])  # fmt: skip
def test_the_published_figures_come_out(name, vote, rand):
    outputs, gold = artificial_experts(name, 6000, random_state=1)
    train = [expert[:200] for expert in outputs], gold[:200]
    test = [expert[200:] for expert in outputs], gold[200:]
    best = min((np.array(expert) != np.array(test[1])).mean() for expert in test[0])
    model = WeightedMajority().fit(*train)
    loss = 1 - model.score(*test)
    assert loss < best - 0.05
    if vote is not None:
        assert loss == pytest.approx(vote, abs=0.01)
        one = WeightedMajority("cross-validation").fit(*train)
        assert 1 - one.score(*test) == pytest.approx(vote, abs=0.01)
    if rand is not None:
        assert model.expected_loss(*test) == pytest.approx(rand, abs=0.005)
    assert 1 - FollowPerturbedLeader(random_state=0).fit(*train).score(*test) < best


@pytest.mark.parametrize(("args", "message"), [
    ({"name": "ADS4"}, "name must be"), ({"variant": "x"}, "variant must be"),
    ({"n_samples": 0}, "n_samples must be"),
])  # fmt: skip
def test_bad_requests_are_refused(args, message):
    with pytest.raises(DataError, match=message):
        artificial_experts(**args)
