"""The picture of docs/experts.md: who agrees with whom, and F1 by the number of right answers.

    python -m benchmarks.combine_picture                # docs/experts.png, in about two minutes
    python -m benchmarks.combine_picture elsewhere.png

Seven weak taggers look for words of code in Python's manual. Left, how often two of them say the
same, and their accuracy; right, mean F1 of the plain vote, of the best single system on the right
answers given, and of ``AutoCombiner``, as :mod:`benchmarks.combine` measures them: gold for none,
20, ... or all sentences of one half, answers to the other half, eight times. Bars are 95 %
intervals of the difference to the plain vote.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.combine import VOTE, Point, combined, curve
from benchmarks.expert_sets import ExpertSet, code_word_taggers
from trellis.pictures import draw_agreement, picture_style
from trellis.pictures.style import line_style, save_figure

PICTURE = Path(__file__).parents[1] / "docs" / "experts.png"
SIZES = (0, 20, 50, 150, None)
NAMES = {"auto": "AutoCombiner", VOTE: "plain vote", "best-expert": "best single system"}


def measured(data: ExpertSet, sizes: Sequence[int | None] = SIZES, repeats: int = 8) -> list[Point]:
    """Scores of the vote, the best single system and the default."""
    methods = {name: combined(name, data) for name in ("auto", "best-expert")}
    points = curve(data, methods, sizes, repeats)
    # Without right answers nobody knows who is best.
    return [point for point in points if point.size != 0 or point.method != "best-expert"]


def draw(data: ExpertSet, points: Sequence[Point], path: str | Path) -> Any:
    """Draw and write the picture; the figure is returned."""
    with picture_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.6, 3.7), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        draw_agreement(data.outputs, gold=data.gold, ax=left, title="Who agrees with whom")
        sizes = list(dict.fromkeys(point.size for point in points))
        pool = len(data) - len(data) // 2
        for number, (name, shown) in enumerate(NAMES.items()):
            own = [point for point in points if point.method == name]
            places = [sizes.index(point.size) + 0.07 * (number - 1) for point in own]
            scores = [point.score for point in own]
            bars = None
            if name != VOTE:
                bars = [
                    [point.gain - point.low for point in own],
                    [point.high - point.gain for point in own],
                ]
            right.errorbar(places, scores, bars, label=shown, capsize=2.5, **line_style(number))
        right.set_xticks(range(len(sizes)), [str(pool if n is None else n) for n in sizes])
        right.set_xlabel("sentences with the right answer")
        right.set_ylabel("F1 of spans [%]")
        right.set_title("What right answers bring")
        right.grid(axis="y")
        right.legend(loc="best")
    save_figure(figure, path)
    return figure


def main() -> None:
    """Make the picture."""
    data = code_word_taggers()
    draw(data, measured(data), sys.argv[1] if len(sys.argv) > 1 else PICTURE)


if __name__ == "__main__":
    main()
