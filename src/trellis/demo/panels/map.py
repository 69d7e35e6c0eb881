"""A map: prices of flats by a Gaussian CRF given the prices that are known, and as published.

The town is generated. A flat's price depends on its size, floor and age, on a quality of its
neighbourhood that varies smoothly and that no table has, and on chance. The prices of some flats
are known; the others are predicted by

    the mean                      of all known prices
    the nearest                   mean of the five nearest known prices
    the base model                a random forest over size, floor, age and both coordinates
    the GCRF as published         the same forest, smoothed over the graph of all flats
    the GCRF given known prices   the same forest, and what is known of the neighbourhood

all of which learn from known prices only. Errors are root mean squares over the unknown flats of
three towns; intervals (95 %) are of bootstrap samples of these flats, the same for all predictors,
so that their differences are of pairs. How many of the 90 % intervals hold the price is a binomial
share (Wilson's interval).
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.demo.charts import Curve, Measured, curves, intervals
from trellis.demo.elements import code_of, figure, note, percent, summary, table

if TYPE_CHECKING:
    from trellis.regression import GCRF

TITLE = "Predict prices on a map"

_FLATS = 700
_SHARES = (0.05, 0.1, 0.2, 0.4, 0.8)  # of the prices that are known
_SHOWN = 0.4  # on the maps
_TOWNS = 3
_DRAWS = 1000  # bootstrap samples
_NEAREST = 5
_HALF_90 = 1.6448536269514722  # half of a 90 % interval in standard deviations
_HALF_95 = 1.959963984540054
_GIVEN, _ALONE, _BASE, _NEAR, _MEAN = range(5)
_NAMES = (
    "GCRF given prices",
    "GCRF as published",
    "base model",
    "nearest five",
    "mean",
)
_WORDS = (
    "the GCRF given known prices",
    "the GCRF as published",
    "the base model",
    "the mean of the nearest five",
    "the mean of all",
)
_STYLE = """<style>
svg.town { display: block; width: 100%; max-width: 520px; height: auto; background: var(--paper);
  border: 1px solid var(--rule); border-radius: 6px; }
svg.town text { fill: var(--ink); font-size: 13px; font-family: inherit; }
svg.town .known { fill: none; stroke: var(--faint); stroke-width: 1; opacity: .55; }
svg.town .dearer { fill: var(--c1); fill-opacity: .45; }
svg.town .cheaper { fill: none; stroke: var(--c0); stroke-opacity: .6; pointer-events: all; }
svg.town .dearer.bad { fill-opacity: 1; stroke: var(--paper); stroke-width: .6; }
svg.town .cheaper.bad { stroke-opacity: 1; stroke-width: 2; }
svg.town text.head { font-weight: 600; }
svg.town .bar { stroke: var(--ink); stroke-width: 2; }
svg.town .price { stroke: var(--c4); stroke-width: .8; }
svg.town .p0 { fill: color-mix(in srgb, var(--c3) 4%, var(--paper)); }
svg.town .p1 { fill: color-mix(in srgb, var(--c3) 25%, var(--paper)); }
svg.town .p2 { fill: color-mix(in srgb, var(--c3) 50%, var(--paper)); }
svg.town .p3 { fill: color-mix(in srgb, var(--c3) 75%, var(--paper)); }
svg.town .p4 { fill: var(--c3); }
@media (max-width: 520px) { svg.town text { font-size: 15px; } }
</style>"""


def town(flats: int, share: float, seed: int) -> tuple[Float64s, Float64s, Float64s]:
    """Generate the flats of a town.

    Returns
    -------
    X : (flats, 5)
        Kilometres east and north of the centre, square metres, floor, age in years.
    price : (flats,)
        Euros for a square metre where it is known, NaN elsewhere.
    truth : (flats,)
        The prices of all.

    Examples
    --------
    >>> X, price, truth = town(50, 0.4, 0)
    >>> X.shape, int(np.isfinite(price).sum()), bool(np.isfinite(truth).all())
    ((50, 5), 20, True)
    """
    rng = np.random.default_rng([seed, 0x70])
    angle, radius = rng.uniform(0, 2 * math.pi, flats), 5 * rng.uniform(size=flats) ** 0.6
    where = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    apart = math.sqrt(3) * np.linalg.norm(where[:, None] - where[None], axis=2)
    # A Gaussian process with a Matérn covariance of 1 km: smooth, alike within a kilometre or so.
    root = np.linalg.cholesky((1 + apart) * np.exp(-apart) + 1e-8 * np.eye(flats))
    quality, built = root @ rng.normal(size=flats), root @ rng.normal(size=flats)
    size = np.clip(rng.gamma(9, 8, flats), 20, 200).round()
    floor = rng.integers(0, 8, flats).astype(np.float64)
    age = np.clip(50 + 25 * built + 10 * rng.normal(size=flats), 0, 130).round()
    truth = 4700 + 700 * quality - 9 * (size - 70) + 60 * floor - 8 * age
    truth = np.maximum(truth + 150 * rng.normal(size=flats), 500).round()
    known = rng.permutation(flats) < round(share * flats)  # few are among the many
    return np.column_stack([where, size, floor, age]), np.where(known, truth, np.nan), truth


def example(
    seed: int, flats: int, share: float
) -> tuple[Float64s, Float64s, Float64s, GCRF, Float64s, Float64s]:
    """Learn from the known prices, and predict the others given these."""
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor

    from trellis.demo.panels.map import town
    from trellis.regression import GCRF, KNN

    X, price, truth = town(flats, share, seed)  # NaN where a price is not known
    known = np.isfinite(price)
    forest = RandomForestRegressor(30, random_state=seed)
    model = GCRF(forest, graph=KNN(columns=[0, 1]), random_state=seed).fit(X[known], price[known])
    mean, std = model.predict(X, observed=price, return_std=True)
    return X, price, truth, model, mean, std


@dataclass(frozen=True)
class Town:
    """A town and what is predicted of it, one row of `predictions` for each of the names."""

    X: Float64s
    known: NDArray[np.bool_]
    truth: Float64s
    predictions: Float64s
    std: Float64s

    def squared_errors(self) -> Float64s:
        """Of all predictors on the flats whose price is not known."""
        errors: Float64s = (self.predictions - self.truth)[:, ~self.known] ** 2
        return errors

    def held(self) -> NDArray[np.bool_]:
        """Which unknown prices lie in their 90 % intervals, given the known ones."""
        off = np.abs(self.truth - self.predictions[_GIVEN])[~self.known]
        inside: NDArray[np.bool_] = off <= _HALF_90 * self.std[~self.known]
        return inside


@dataclass(frozen=True)
class Score:
    """What came out at a share of known prices: figures with 95 % intervals."""

    share: float
    errors: tuple[Measured, ...]  # RMSE of every predictor
    changes: tuple[Measured, ...]  # % that the first one's RMSE is above every predictor's
    coverage: Measured


WARM = ()  # it needs no kernels


def panel(seed: int) -> str:
    """The panel."""
    return _page(seed, _FLATS, _SHARES, _SHOWN, _TOWNS)


def _page(seed: int, flats: int, shares: Sequence[float], shown: float, towns: int) -> str:
    from trellis.regression.bases import one_thread

    # Panels run side by side; matrices of this size gain nothing from threads that wait.
    with one_thread():
        tried = {
            share: [look(seed + 1000 * k, flats, share) for k in range(towns)] for share in shares
        }
    scores = [score(share, them) for share, them in tried.items()]
    here = next(s for s in scores if s.share == shown)
    first = tried[shown][0]
    maps = "".join(error_figure(first, which, _largest(first)) for which in (_BASE, _GIVEN))
    prices = figure(
        price_map(first),
        f"The same town: known prices (squares, {_percent(shown)} of {flats} flats) and what the "
        "GCRF says of the others given these (circles). The stronger the colour, the dearer; the "
        "larger the circle, the wider its 90 % interval.",
    )
    measured = figure(
        curves(
            [
                Curve(
                    name,
                    [100 * s.share for s in scores],
                    [s.errors[k].value for s in scores],
                    [s.errors[k].low for s in scores],
                    [s.errors[k].high for s in scores],
                )
                for k, name in enumerate(_NAMES[:_MEAN])  # the mean is far above: in the table
            ],
            "prices known, %",
            "RMSE, €/m²",
            log_x=True,
        ),
        f"Errors on the flats whose price is not known, in {towns} towns, with 95 % intervals. The "
        "table has the mean of all, too, far above.",
    ) + figure(
        intervals([_covered(s) for s in scores], "unknown prices in their 90 % intervals, %"),
        "How many of the GCRF's 90 % intervals, given the known prices, hold: 90 would be right.",
    )
    return "".join(
        [
            _STYLE,
            summary(summed_up(here, scores)),
            f'<div class="columns">{maps}</div>',
            f'<div class="columns"><div>{measured}</div>{prices}</div>',
            table(_HEADER, [_row(s) for s in scores]),
            note(
                f"The {towns} towns of {flats} flats are generated: a price is made of size, "
                "floor, age, a smooth quality of the neighbourhood that no table has, and noise. "
                "Other towns have other figures, and where places matter less, so does a map. The "
                "base model (a random forest of scikit-learn) sees the coordinates, too. All "
                "predictors learn from known prices only; but the kind of town and the base model "
                "were chosen after some were tried, with a look at such errors, for a base model "
                "as good as any and a town in which places matter. Intervals (95 %) are by paired "
                "bootstrap over flats, taken as independent, for these towns; those of coverage "
                "are binomial."
            ),
            code_of(example, seed=seed, flats=flats, share=shown),
        ]
    )


def look(seed: int, flats: int, share: float) -> Town:
    """Make a town, and predict its prices in all ways."""
    from sklearn.base import clone
    from sklearn.neighbors import KNeighborsRegressor

    X, price, truth, model, mean, std = example(seed, flats, share)
    known = np.isfinite(price)
    near = KNeighborsRegressor(min(_NEAREST, int(known.sum())))
    near.fit(X[known, :2], price[known])
    published = clone(model).set_params(observed=False).fit(X[known], price[known])
    ways = [
        mean,
        published.predict(X),
        model.predict_base(X),
        near.predict(X[:, :2]),
        np.full(len(X), price[known].mean()),
    ]
    return Town(X, known, truth, np.array(ways), std)


# ---------------------------------------------------------------------------- figures


def score(share: float, towns: Sequence[Town]) -> Score:
    """Put towns together: errors, differences of pairs and coverage."""
    rng = np.random.default_rng([len(towns), 0xB007])
    draws: list[Float64s] = []
    exact: list[Float64s] = []
    for one in towns:
        squares = one.squared_errors()
        m = squares.shape[1]
        times = rng.multinomial(m, np.full(m, 1 / m), size=_DRAWS)
        draws.append(times @ squares.T / m)
        exact.append(squares.mean(axis=1))
    rmse, drawn = np.sqrt(np.mean(exact, axis=0)), np.sqrt(np.mean(draws, axis=0))
    change, drawn_change = (100 * (e[..., :1] / e - 1) for e in (rmse, drawn))
    held = np.concatenate([one.held() for one in towns])
    return Score(
        share,
        _measured(rmse, drawn),
        _measured(change, drawn_change),
        wilson(int(held.sum()), len(held)),
    )


def _measured(values: Float64s, drawn: Float64s) -> tuple[Measured, ...]:
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    parts = zip(_NAMES, values, low, high, strict=True)
    return tuple(Measured(name, float(v), float(a), float(b)) for name, v, a, b in parts)


def wilson(successes: int, trials: int) -> Measured:
    """A share with its 95 % interval.

    Examples
    --------
    >>> share = wilson(9, 10)
    >>> round(share.value, 3), round(share.low, 3), round(share.high, 3)
    (0.9, 0.596, 0.982)
    """
    p, z = successes / trials, _HALF_95
    middle = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(p * (1 - p) / trials + (z / trials / 2) ** 2)
    return Measured("90 % intervals", p, middle - half, middle + half)


# ---------------------------------------------------------------------------- words


def summed_up(here: Score, scores: Sequence[Score]) -> str:
    """The sentence of the panel, from its figures only."""
    rivals = f"{against(here.changes[_BASE])} {_WORDS[_BASE]}, which knows the places too, and "
    rivals += f"{against(here.changes[_NEAR])} {_WORDS[_NEAR]}"
    return (
        f"Where {_percent(here.share)} of the prices are known, the GCRF given these misses the "
        f"others by {here.errors[_GIVEN].value:,.0f} €/m² (RMSE): {rivals}. "
        f"{held_words(here.coverage)} {elsewhere(scores)}"
    )


def against(change: Measured) -> str:
    """How an error compares with another one, as far as its interval says.

    Examples
    --------
    >>> against(Measured("", -12.3, -14.0, -10.1)), against(Measured("", -1.0, -3.0, 1.4))
    ('12.3 % (10.1 to 14.0) less than',
     'no different, as far as can be told (−3.0 to +1.4 %), from')
    """
    low, high = change.low, change.high
    if high < 0:
        return f"{-change.value:.1f} % ({-high:.1f} to {-low:.1f}) less than"
    if low > 0:
        return f"{change.value:.1f} % ({low:.1f} to {high:.1f}) more than"
    span = f"{_signed(low)} to {_signed(high)} %"
    return f"no different, as far as can be told ({span}), from"


def held_words(coverage: Measured) -> str:
    """What to think of a share of 90 % intervals that hold."""
    span = f"{percent(coverage.value)} ({100 * coverage.low:.1f} to {100 * coverage.high:.1f})"
    if coverage.low > 0.9:
        return f"Its 90 % intervals hold {span} of them: they are wider than they need be."
    if coverage.high < 0.9:
        return f"Its 90 % intervals hold only {span} of them: they are too narrow."
    return f"Its 90 % intervals hold {span} of them."


def elsewhere(scores: Sequence[Score]) -> str:
    """At which shares of known prices something else is as good, or better."""
    better = _rivals(scores, lambda change: change.low > 0)
    open_ = _rivals(scores, lambda change: change.low <= 0 <= change.high)
    if not better and not open_:
        return f"It is ahead of all the others at every share tried ({_each(scores)} %)."
    said = f"Better than it: {better}. " if better else ""
    said += f"No worse than it, as far as can be told: {open_}. " if open_ else ""
    return f"{said}Elsewhere it is ahead (tried: {_each(scores)} %)."


def _rivals(scores: Sequence[Score], wanted: Callable[[Measured], bool]) -> str:
    """Predictors, and the shares at which the change from theirs is such."""
    found = []
    for k in range(1, len(_NAMES)):
        at = [s for s in scores if wanted(s.changes[k])]
        if at:
            found.append(f"{_WORDS[k]} at {_each(at)} %")
    return "; ".join(found)


def _each(scores: Sequence[Score]) -> str:
    return ", ".join(f"{100 * s.share:g}" for s in scores)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


_HEADER = ("known", *_NAMES, "given, against base", "given, against nearest")


def _row(one: Score) -> list[str]:
    return [
        _percent(one.share),
        *(f"{e.value:,.0f}" for e in one.errors),
        *(_change(one.changes[k]) for k in (_BASE, _NEAR)),
    ]


def _change(change: Measured) -> str:
    return f"{_signed(change.value)} % ({_signed(change.low)} to {_signed(change.high)})"


def _covered(one: Score) -> Measured:
    c = one.coverage
    return Measured(f"{_percent(one.share)} known", 100 * c.value, 100 * c.low, 100 * c.high)


# ---------------------------------------------------------------------------- maps

_SIDE, _EDGE, _HEAD, _FOOT = 420, 14, 26, 36
_LARGEST = 15.0  # pixels
_BAD = 500  # euros


def error_figure(one: Town, which: int, largest: float) -> str:
    """A map of errors, and what to see on it."""
    return figure(
        error_map(one, which, largest),
        f"Errors of {_WORDS[which]} on the flats whose price is not known. The wider a circle, the "
        f"larger the error, strong from {_BAD} €/m² on. Filled: the flat is dearer than predicted; "
        "hollow: it is cheaper. Crosses: known prices.",
    )


def missed(one: Town, which: int) -> float:
    """The share of unknown prices that are missed badly."""
    return float(np.mean(one.squared_errors()[which] > _BAD**2))


def _largest(one: Town) -> float:
    """The error that is drawn as the largest circle, the same on all maps."""
    return math.sqrt(float(one.squared_errors()[[_GIVEN, _BASE]].max()))


def _spots(one: Town) -> tuple[Float64s, float]:
    """Where flats stand in the picture, and the pixels of a kilometre."""
    reach = float(np.abs(one.X[:, :2]).max())
    scale = (_SIDE - 2 * _EDGE) / (2 * reach)
    return _SIDE / 2 + scale * one.X[:, :2] * [1, -1], scale


def error_map(one: Town, which: int, largest: float) -> str:
    """A circle as wide as the error for each unknown price, filled if the flat is dearer."""
    spots, scale = _spots(one)
    errors = one.predictions[which] - one.truth
    circles = []
    unknown = np.flatnonzero(~one.known)
    for i in unknown[np.argsort(-np.abs(errors[unknown]), kind="stable")]:
        kind = _kind(errors[i])
        circles.append(_circle(spots[i], _width(errors[i], largest), kind, _tip(one, i, which)))
    crosses = "".join(f"M{x - 2:.0f},{y:.0f}h4m-2-2v4" for x, y in spots[one.known])
    body = f'<path class="known" d="{crosses}"/>{"".join(circles)}'
    said = f"{_NAMES[which]}: {percent(missed(one, which), 0)} off by > {_BAD} €"
    return _svg(body + _error_key(largest), said, scale)


def _kind(error: float) -> str:
    """How an error is drawn."""
    return ("dearer" if error < 0 else "cheaper") + (" bad" if abs(error) > _BAD else "")


def _width(error: float, largest: float) -> float:
    return max(1.0, _LARGEST * abs(error) / largest)


def price_map(one: Town) -> str:
    """Predicted and known prices, and how sure the predictions are."""
    spots, scale = _spots(one)
    given = one.predictions[_GIVEN]
    steps = np.quantile(given, [0.2, 0.4, 0.6, 0.8])
    half = _HALF_90 * one.std
    low, high = float(half[~one.known].min()), float(half[~one.known].max())
    parts = []
    for i in np.argsort(-half, kind="stable"):
        x, y = spots[i]
        kind = f"price p{int(np.searchsorted(steps, given[i]))}"
        if one.known[i]:
            parts.append(
                f'<rect class="{kind}" x="{x - 3:.0f}" y="{y - 3:.0f}" width="6" height="6">'
                f"<title>known: {given[i]:,.0f} €/m²</title></rect>"
            )
        else:
            r = 2.5 + 5.5 * (half[i] - low) / ((high - low) or 1.0)
            parts.append(_circle(spots[i], r, kind, _tip(one, i, _GIVEN)))
    return _svg("".join(parts) + _price_key(steps, low, high), "prices, €/m²", scale)


def _tip(one: Town, i: int, which: int) -> str:
    """What the mouse finds out about a flat."""
    said = f"{one.truth[i]:,.0f} €/m², predicted {one.predictions[which][i]:,.0f}"
    if which == _GIVEN:
        middle, half = one.predictions[which][i], _HALF_90 * one.std[i]
        said += f" ({middle - half:,.0f} to {middle + half:,.0f})"
    return said


def _circle(spot: Float64s, r: float, kind: str, tip: str) -> str:
    return f'<circle class="{kind}" cx="{spot[0]:.0f}" cy="{spot[1]:.0f}" r="{r:.1f}">' + (
        f"<title>{tip}</title></circle>" if tip else "</circle>"
    )


def _error_key(largest: float) -> str:
    """Circles of round errors, filled and hollow."""
    y, parts, x = _SIDE + _FOOT - 20, [], 16.0
    for size in (250, 500, 1000):
        r = _width(size, largest)
        for error in (-size, size):
            parts.append(_circle(np.array([x + r, y]), r, _kind(error * 1.001), ""))
            x += 2 * r + 3
        parts.append(f'<text x="{x + 2:.0f}" y="{y + 4}">{size:,}</text>')
        x += 16 + 9 * len(str(size))
    parts.append(f'<text x="{x:.0f}" y="{y + 4}">€/m²</text>')
    return "".join(parts)


def _price_key(steps: Any, low: float, high: float) -> str:
    """Shades and what they mean; the smallest and the largest circle."""
    y, parts = _SIDE + _FOOT - 20, []
    for k in range(5):
        parts.append(
            f'<rect class="price p{k}" x="{14 + 16 * k}" y="{y - 8}" width="16" height="16"/>'
        )
    parts.append(f'<text x="100" y="{y + 4}">&lt; {steps[0]:,.0f} … &gt; {steps[-1]:,.0f}</text>')
    parts.append(f'<circle class="price p0" cx="258" cy="{y}" r="2.5"/>')
    parts.append(f'<circle class="price p0" cx="276" cy="{y}" r="8"/>')
    parts.append(f'<text x="290" y="{y + 4}">±{low:,.0f}, ±{high:,.0f}</text>')
    return "".join(parts)


def _svg(body: str, heading: str, scale: float) -> str:
    """A map below its heading and the length of a kilometre."""
    right = _SIDE - _EDGE
    return (
        f'<svg class="town" viewBox="0 {-_HEAD} {_SIDE} {_HEAD + _SIDE + _FOOT}" role="img" '
        f'aria-label="map: {html.escape(heading)}">{body}'
        f'<text class="head" x="12" y="-5">{html.escape(heading)}</text>'
        f'<path class="bar" d="M{right - scale:.1f},6h{scale:.1f}"/>'
        f'<text x="{right - scale / 2:.1f}" y="-1" text-anchor="middle">1 km</text></svg>'
    )
