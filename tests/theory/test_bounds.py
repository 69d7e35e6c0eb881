"""Theorems 4 and 11–14, Lemma 10, Corollary 12: printed values, directions, and refusals."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.theory import (
    VARIANTS,
    Stability,
    mini_sample_stability_bound,
    overfit_bound,
    overfit_order,
    risk_bound,
    risk_bound_from_stability,
    sample_stability_bound,
    stability_from_function,
)

positive = st.floats(0.01, 100)


@st.composite
def settings(draw) -> dict[str, float]:
    n = draw(st.floats(1, 100))
    return {
        "m": draw(st.integers(1, 10**6)),
        "n": n,
        "d": draw(st.integers(1, 10**6)),
        "alpha": 1 + draw(st.floats(0, 1)) * (n - 1),
        "lam": draw(positive),
        "v": draw(positive),
        "rho": draw(positive),
        "tau": draw(positive),
    }


losses = st.floats(0, 100)
deltas = st.floats(1e-6, 0.999)
variants = st.sampled_from(VARIANTS)


def printed(variant, *, m, n, d, alpha, lam, v, rho, tau, gamma, delta):
    """Eq. (9) as each paper prints it."""
    top = d * tau**2 * rho**2 * v**2 * n**2
    if variant == "arxiv":
        return 2 * top / (m * lam * alpha) + (
            (4 * m - 2) * top / (m * lam * alpha) + gamma
        ) * math.sqrt(math.log(1 / delta) / (2 * m))
    return 2 * top / (m * lam * alpha) + (
        (4 * m - 2) * top / (m * lam * alpha**2) + gamma
    ) * math.sqrt(alpha * math.log(1 / delta) / (2 * m))


@given(settings(), losses, deltas, variants)
def test_overfit_bound_is_as_printed(setting, gamma, delta, variant):
    expected = printed(variant, **setting, gamma=gamma, delta=delta)
    found = overfit_bound(**setting, gamma=gamma, delta=delta, variant=variant)
    assert found == pytest.approx(expected, rel=1e-9)
    assert risk_bound(0.5, **setting, gamma=gamma, delta=delta, variant=variant) == pytest.approx(
        0.5 + expected, rel=1e-9
    )


@given(settings())
def test_stability_bounds_are_as_printed(setting):
    m, n, d, a = (setting[k] for k in ("m", "n", "d", "alpha"))
    lam, v, rho, tau = (setting[k] for k in ("lam", "v", "rho", "tau"))
    sup = d * tau * rho**2 * v**2 * n**2 / (m * lam * a**2)
    mini, full = mini_sample_stability_bound(**setting), sample_stability_bound(**setting)
    assert mini.function == pytest.approx(sup)
    assert mini.loss == pytest.approx(d * tau**2 * rho**2 * v**2 * n**2 / (m * lam * a**2))
    assert mini.sample_loss == pytest.approx(d * tau**2 * rho**2 * v**2 * n**3 / (m * lam * a**2))
    for name in ("function", "loss", "sample_loss"):  # Corollary 12: α times as much
        assert getattr(full, name) == pytest.approx(a * getattr(mini, name))


@given(settings(), losses, deltas)
def test_theorem_13_with_corollary_12_is_theorem_14(setting, gamma, delta):
    stability = sample_stability_bound(**setting).function
    by_13 = risk_bound_from_stability(
        0.25, stability=stability, m=setting["m"], gamma=gamma, tau=setting["tau"], delta=delta
    )
    assert by_13 == pytest.approx(risk_bound(0.25, **setting, gamma=gamma, delta=delta))


@given(settings(), losses, deltas, variants, st.floats(1.01, 10))
def test_bound_falls_with_data_and_penalty_and_rises_with_the_rest(
    setting, gamma, delta, variant, factor
):
    def bound(**changed):
        fixed = setting | {"gamma": gamma, "delta": delta, "variant": variant}
        return overfit_bound(**fixed | changed)

    here = bound()
    assert bound(lam=setting["lam"] * factor) < here
    assert bound(m=math.ceil(setting["m"] * factor) + 1) < here
    for name in ("d", "v", "rho", "tau"):
        assert bound(**{name: setting[name] * factor}) > here
    assert bound(gamma=gamma + here) > here
    assert bound(n=setting["n"] * factor) > here
    assert bound(delta=delta / factor) > here


@given(settings(), losses, deltas, st.floats(1.01, 10))
def test_bound_falls_with_alpha(setting, gamma, delta, factor):
    stronger = setting["alpha"] * factor
    assume(stronger <= setting["n"])
    here = overfit_bound(**setting, gamma=gamma, delta=delta)
    there = overfit_bound(**setting | {"alpha": stronger}, gamma=gamma, delta=delta)
    assert there < here
    # Without γ the bound is proportional to 1/α; NIPS 2014's falls faster than that.
    part = {"gamma": 0.0, "delta": delta}
    weak, strong = setting, setting | {"alpha": stronger}
    arxiv = overfit_bound(**strong, **part) / overfit_bound(**weak, **part)
    nips = overfit_bound(**strong, **part, variant="nips2014") / overfit_bound(
        **weak, **part, variant="nips2014"
    )
    assert arxiv == pytest.approx(1 / factor)
    assert nips < arxiv
    assert nips > factor**-1.5 * (1 - 1e-9)
    for name in ("function", "loss", "sample_loss"):
        mini = [getattr(mini_sample_stability_bound(**s), name) for s in (weak, strong)]
        full = [getattr(sample_stability_bound(**s), name) for s in (weak, strong)]
        assert mini[1] / mini[0] == pytest.approx(factor**-2)
        assert full[1] / full[0] == pytest.approx(factor**-1)


def test_with_a_large_gamma_the_nips_bound_rises_with_alpha():
    setting = {"m": 100, "n": 10, "d": 1, "lam": 100.0, "gamma": 1e3, "variant": "nips2014"}
    assert overfit_bound(**setting, alpha=5) > overfit_bound(**setting, alpha=1)


@given(settings(), losses, deltas)
def test_variants_agree_without_structure_regularisation(setting, gamma, delta):
    setting = setting | {"alpha": 1.0}
    a, b = (overfit_bound(**setting, gamma=gamma, delta=delta, variant=v) for v in VARIANTS)
    assert a == pytest.approx(b)


@given(settings(), losses, deltas, variants)
def test_gap_vanishes_with_more_data(setting, gamma, delta, variant):
    def bound(m):
        return overfit_bound(**setting | {"m": m}, gamma=gamma, delta=delta, variant=variant)

    assert bound(1e40) < 1e-3 * (1 + bound(1e4))
    assert bound(4e20) / bound(1e20) == pytest.approx(0.5, rel=1e-3)  # as 1/√m in the end


@given(settings(), losses, deltas)
def test_what_no_penalty_can_remove_is_the_term_of_gamma(setting, gamma, delta):
    left = gamma * math.sqrt(math.log(1 / delta) / (2 * setting["m"]))
    found = overfit_bound(**setting | {"lam": 1e30}, gamma=gamma, delta=delta)
    assert found == pytest.approx(left, abs=1e-3)


@given(settings(), deltas, variants)
def test_order_is_what_is_left_of_the_bound(setting, delta, variant):
    """With many samples and γ small the bound is 4/√2 times the order, and constants of v, ρ, τ."""
    setting = setting | {"m": 1e30, "v": 1.0, "rho": 1.0, "tau": 1.0}
    assume(delta < 0.9)
    core = {k: setting[k] for k in ("m", "n", "d", "alpha", "lam")}
    order = overfit_order(**core, delta=delta, variant=variant)
    bound = overfit_bound(**setting, gamma=0.0, delta=delta, variant=variant)
    assert bound == pytest.approx(4 / math.sqrt(2) * order, rel=1e-6)


@given(st.floats(0, 100), st.floats(1, 100), positive)
def test_lemma_10(function, n, tau):
    assert stability_from_function(function, n=n, tau=tau) == Stability(
        function, tau * function, n * tau * function
    )


GOOD = {"m": 10, "n": 5, "d": 3, "alpha": 2, "lam": 0.1, "gamma": 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"m": 0}, "m must be a number of at least 1, got 0"),
        ({"m": math.nan}, "m must be a number of at least 1, got nan"),
        ({"n": 0.5}, "n must be a number of at least 1, got 0.5"),
        ({"d": "3"}, "d must be a number of at least 1, got '3'"),
        ({"d": True}, "d must be a number of at least 1, got True"),
        ({"alpha": 0.9}, r"alpha must lie in \[1, n\] = \[1, 5\], got 0.9: it is the number of"),
        ({"alpha": 5.1}, r"alpha must lie in \[1, n\] = \[1, 5\], got 5.1"),
        ({"alpha": None}, r"alpha must lie in \[1, n\] = \[1, 5\], got None"),
        ({"lam": 0.0}, "lam must be a positive number, got 0.0"),
        ({"lam": math.inf}, "lam must be a positive number, got inf"),
        ({"gamma": -1}, "gamma must be a number of at least 0, got -1"),
        ({"v": 0}, "v must be a positive number, got 0"),
        ({"rho": -1.0}, "rho must be a positive number, got -1.0"),
        ({"tau": None}, "tau must be a positive number, got None"),
        ({"delta": 0}, "delta must be a number between 0 and 1, both excluded, got 0"),
        ({"delta": 1}, "delta must be a number between 0 and 1, both excluded, got 1"),
        ({"delta": "x"}, "delta must be a number between 0 and 1, both excluded, got 'x'"),
        ({"variant": "icml"}, "variant must be 'arxiv' or 'nips2014', got 'icml'"),
    ],
)
def test_ranges_are_checked(changed, message):
    with pytest.raises(DataError, match=message):
        overfit_bound(**GOOD | changed)
    with pytest.raises(DataError, match=message):
        risk_bound(0.1, **GOOD | changed)
    (name,) = changed
    if name not in ("gamma", "delta", "variant"):
        rest = {k: x for k, x in (GOOD | changed).items() if k != "gamma"}
        for bound in (mini_sample_stability_bound, sample_stability_bound):
            with pytest.raises(DataError, match=message):
                bound(**rest)
    if name not in ("gamma", "v", "rho", "tau"):
        rest = {k: x for k, x in (GOOD | changed).items() if k != "gamma"}
        with pytest.raises(DataError, match=message):
            overfit_order(**rest)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: risk_bound(-0.1, **GOOD), "empirical_risk must be a number of at least 0"),
        (
            lambda: risk_bound_from_stability(0.1, stability=-1, m=3, gamma=1),
            "stability must be a number of at least 0, got -1",
        ),
        (
            lambda: risk_bound_from_stability(-1, stability=1, m=3, gamma=1),
            "empirical_risk must be a number of at least 0, got -1",
        ),
        (
            lambda: risk_bound_from_stability(0.1, stability=1, m=0, gamma=1),
            "m must be a number of at least 1, got 0",
        ),
        (
            lambda: risk_bound_from_stability(0.1, stability=1, m=3, gamma=1, tau=0),
            "tau must be a positive number, got 0",
        ),
        (
            lambda: risk_bound_from_stability(0.1, stability=1, m=3, gamma=-1),
            "gamma must be a number of at least 0, got -1",
        ),
        (
            lambda: risk_bound_from_stability(0.1, stability=1, m=3, gamma=1, delta=2),
            "delta must be a number between 0 and 1, both excluded, got 2",
        ),
        (lambda: stability_from_function(-1, n=2), "function must be a number of at least 0"),
        (lambda: stability_from_function(1, n=0), "n must be a number of at least 1, got 0"),
        (lambda: stability_from_function(1, n=2, tau=0), "tau must be a positive number, got 0"),
        (
            lambda: overfit_order(m=1, n=1e308, d=1, alpha=1, lam=1),
            "overfit_order is beyond what a float holds; use less extreme numbers$",
        ),
        (  # an error of its parts, and what is no number
            lambda: overfit_bound(m=1, n=1e308, d=1, alpha=1, lam=1, gamma=1),
            "sample_stability_bound is beyond what a float holds; use less extreme numbers$",
        ),
        (
            lambda: overfit_bound(m=1e308, n=5, d=5, alpha=1, lam=10**300, gamma=1),
            "overfit_bound is beyond what a float holds; use less extreme numbers$",
        ),
    ],
)
def test_other_refusals(call, message):
    with pytest.raises(DataError, match=message):
        call()
