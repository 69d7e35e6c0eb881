"""How fast: what this machine just did, beside what peers take for the same work elsewhere.

Live: seconds from sentences in memory to a model, and letters tagged in a second, one core, several
rounds. Peers are not installed with Trellis, so they are not run here; the table is the record of a
benchmark that ran both sides by turns on one machine (``yardsticks.json``, written by ``python -m
benchmarks.page`` from the records), and says on which.
"""

from __future__ import annotations

import html
import json
import statistics
from typing import Any

from trellis.demo.elements import asset, code_of, note, summary, table
from trellis.demo.warm import warm_plain

TITLE = "How fast"

_ROUNDS = 3


def example(seed: int) -> tuple[int, float, float]:
    """Learn and tag once; returns letters, and seconds of both."""
    import time

    from trellis import ChainCRF
    from trellis.datasets import stdlib_sentences

    corpus = stdlib_sentences(max_sentences=3000).corpus()
    started = time.perf_counter()
    crf = ChainCRF("wordseg", random_state=seed).fit(corpus)
    learned = time.perf_counter()
    crf.predict(corpus)
    tagged = time.perf_counter()
    return corpus.n_positions, learned - started, tagged - learned


WARM = (warm_plain,)


def panel(seed: int) -> str:
    """The panel."""
    rounds = [example(seed) for _ in range(_ROUNDS)]
    letters = rounds[0][0]
    learning, tagging = ([r[k] for r in rounds] for k in (1, 2))
    rows = [
        ["learning", f"{letters:,} letters, from text to model", _seconds(learning), ""],
        ["tagging", f"{letters:,} letters", _seconds(tagging), _rate(letters, tagging)],
    ]
    yardsticks = json.loads(asset("trellis.demo", "yardsticks.json"))
    return (
        summary(
            f"Here, one core: a model from {letters:,} letters in "
            f"{statistics.median(learning):.1f} s, "
            f"{letters / statistics.median(tagging) / 1e6:.1f} million letters tagged a second."
            + told(yardsticks)
        )
        + table(["on this machine", "what", "seconds, median (range)", "letters a second"], rows)
        + "".join(map(_yardstick, yardsticks))
        + code_of(example, seed=seed)
    )


def told(yardsticks: list[dict[str, Any]]) -> str:
    """The first yardstick in a sentence of its own."""
    return "".join(f" {record['sentence']}" for record in yardsticks[:1])


def _yardstick(record: dict[str, Any]) -> str:
    """A table of a benchmark, and where it comes from."""
    return (
        f"<h3>{html.escape(record['title'])}</h3>"
        + table(record["headings"], record["rows"])
        + note(f"Not measured here, but with {record['source']}.")
    )


def _seconds(rounds: list[float]) -> str:
    return f"{statistics.median(rounds):.2f} ({min(rounds):.2f} to {max(rounds):.2f})"


def _rate(letters: int, rounds: list[float]) -> str:
    return f"{letters / statistics.median(rounds):,.0f}"
