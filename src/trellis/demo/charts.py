"""Charts as SVG that take their colours from the page: light, dark, or printed in black and white.

Every series has a colour, a marker and a dash of its own, so that none is told by its colour alone.
A chart is drawn at a fixed size and scaled by the page to the width that there is; its text stays
readable on a phone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Curve", "Measured", "curves", "intervals"]

_WIDTH, _HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 14, 12, 46
_MARKS = 6  # series that look different


@dataclass(frozen=True)
class Curve:
    """A series: points, and maybe the interval around each."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Measured:
    """A figure with its interval."""

    name: str
    value: float
    low: float
    high: float


def curves(series: Sequence[Curve], x_label: str, y_label: str, *, log_x: bool = False) -> str:
    """Lines over x, with their intervals as bands, and a legend above them.

    Examples
    --------
    >>> svg = curves([Curve("random", [10, 20], [50.0, 60.0])], "labels", "F1")
    >>> svg.count("<circle") >= 2, "random" in svg
    (True, True)
    """
    xs = [x for curve in series for x in curve.x]
    ys = [y for c in series for part in (c.y, c.low, c.high) if part is not None for y in part]
    along = math.log10 if log_x else float
    to_x = _scale(min(map(along, xs)), max(map(along, xs)), _LEFT + 8, _WIDTH - _RIGHT - 8)
    ticks = _ticks(min(ys), max(ys), 5)
    to_y = _scale(
        min(*ys, ticks[0]),
        max(*ys, ticks[-1]),
        _HEIGHT - _BOTTOM,
        _TOP + 22 * _rows(series),
    )
    parts = [_grid(ticks, to_y)]
    for x in sorted(set(xs)):
        parts.append(_text(to_x(along(x)), _HEIGHT - _BOTTOM + 18, f"{x:,g}", "middle"))
    parts.append(_text((_LEFT + _WIDTH) / 2, _HEIGHT - 8, x_label, "middle", "axis"))
    parts.append(_upright(y_label))
    for k, curve in enumerate(series):
        at = [(to_x(along(x)), to_y(y)) for x, y in zip(curve.x, curve.y, strict=True)]
        if curve.low is not None and curve.high is not None:
            over = [(x, to_y(v)) for (x, _), v in zip(at, curve.high, strict=True)]
            under = [(x, to_y(v)) for (x, _), v in zip(at, curve.low, strict=True)]
            band = _points([*over, *reversed(under)])
            parts.append(f'<polygon class="band s{k % _MARKS}" points="{band}"/>')
        parts.append(f'<polyline class="line s{k % _MARKS}" points="{_points(at)}"/>')
        parts += [_mark(k, x, y) for x, y in at]
    parts.append(_legend([curve.name for curve in series]))
    return _svg(_HEIGHT, parts, f"{y_label} over {x_label}")


def intervals(rows: Sequence[Measured], x_label: str) -> str:
    """One line for each figure: a dot, and a whisker as long as its interval.

    Examples
    --------
    >>> svg = intervals([Measured("vote", 93.4, 92.9, 93.8)], "F1")
    >>> "vote" in svg and "93.4" in svg
    True
    """
    height = _TOP + 40 * len(rows) + _BOTTOM
    low, high = min(r.low for r in rows), max(r.high for r in rows)
    ticks = _ticks(low, high, 4)
    to_x = _scale(min(low, ticks[0]), max(high, ticks[-1]), 16, _WIDTH - 16)
    parts = []
    for tick in ticks:
        x = to_x(tick)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - _BOTTOM}"/>'
        )
        parts.append(_text(x, height - _BOTTOM + 18, _number(tick), "middle"))
    parts.append(_text(_WIDTH / 2, height - 8, x_label, "middle", "axis"))
    for k, row in enumerate(rows):
        y = _TOP + 40 * k + 28
        parts.append(_text(4, y - 13, row.name, "start", "name"))
        parts.append(
            _text(_WIDTH - 4, y - 13, f"{row.value:.1f} ({row.low:.1f} to {row.high:.1f})", "end")
        )
        parts.append(
            f'<line class="line s{k % _MARKS}" x1="{to_x(row.low):.1f}" '
            f'x2="{to_x(row.high):.1f}" y1="{y}" y2="{y}"/>'
        )
        parts.append(_mark(k, to_x(row.value), y))
    return _svg(height, parts, x_label)


# ---------------------------------------------------------------------------- parts of charts


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """A function from numbers to pixels."""
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _ticks(low: float, high: float, n: int) -> list[float]:
    """Round numbers within the range, or around it if there are fewer than two."""
    span = high - low
    if span < 1e-6 * max(1.0, abs(low), abs(high)):  # all alike
        span = max(1.0, abs(high))
    step = 10 ** math.floor(math.log10(span / n))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= n)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last <= first:
        first, last = math.floor(low / step), math.floor(low / step) + 1
    return [round(i * step, 10) for i in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:,g}"


def _grid(ticks: Sequence[float], to_y: Callable[[float], float]) -> str:
    lines = []
    for tick in ticks:
        y = to_y(tick)
        lines.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            + _text(_LEFT - 6, y + 4, _number(tick), "end")
        )
    return "".join(lines)


def _rows(series: Sequence[Curve]) -> int:
    return len(_lay_out([curve.name for curve in series]))


def _lay_out(names: Sequence[str]) -> list[list[int]]:
    """Which names of a legend stand in which row."""
    rows: list[list[int]] = [[]]
    used = 0.0
    for k, name in enumerate(names):
        wide = 36 + 7.5 * len(name)
        if rows[-1] and used + wide > _WIDTH - _LEFT:
            rows.append([])
            used = 0.0
        rows[-1].append(k)
        used += wide
    return rows


def _legend(names: Sequence[str]) -> str:
    parts = []
    for row, members in enumerate(_lay_out(names)):
        x, y = float(_LEFT), _TOP + 6 + 20 * row
        for k in members:
            parts.append(
                f'<line class="line s{k % _MARKS}" x1="{x:.0f}" x2="{x + 24:.0f}" '
                f'y1="{y}" y2="{y}"/>'
                + _mark(k, x + 12, y)
                + _text(x + 29, y + 4, names[k], "start")
            )
            x += 36 + 7.5 * len(names[k])
    return "".join(parts)


def _mark(k: int, x: float, y: float) -> str:
    """The marker of a series: circle, square, triangle, diamond, ring, cross."""
    k %= _MARKS
    name = f'class="mark s{k}"'
    if k == 0:
        return f'<circle {name} cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    if k == 1:
        return f'<rect {name} x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>'
    if k == 4:
        return f'<circle {name} style="fill:none" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    if k == 5:
        return f'<path {name} style="fill:none" d="M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8"/>'
    corners = {2: ((0, -5), (5, 4), (-5, 4)), 3: ((0, -5), (5, 0), (0, 5), (-5, 0))}[k]
    return f'<polygon {name} points="{_points([(x + a, y + b) for a, b in corners])}"/>'


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{html.escape(text)}</text>"
    )


def _upright(text: str) -> str:
    y = (_HEIGHT - _BOTTOM + _TOP) / 2
    return (
        f'<text class="axis" text-anchor="middle" transform="translate(14 {y:.0f}) rotate(-90)">'
        f"{html.escape(text)}</text>"
    )


def _svg(height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height:g}" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
    )
