"""How sure combined answers are, and whether the doubtful ones are those that are wrong.

    python -m benchmarks.doubts
    python -m benchmarks.doubts --sets letters fields

Sets of experts as in ``benchmarks.combine``, those with a label for each position. In each repeat
half of the samples are for testing; ``AutoCombiner`` is given gold for none, 50 or all of the
others, and the answers to the test half. Two ways to say how sure its answers are: its own
confidence, and the share of the experts that say the same, which is the obvious one.

«Off by» is the expected calibration error: positions are sorted by confidence and cut into ten
groups of one size, and the mean distance between the mean confidence and the share that is right is
told, in points. «Found» is for a person who looks at a tenth of the positions, the least sure first
(equally sure ones at random): how many of all mistakes are among them. At random it would be 10 %.
The range of repeats is in brackets; differences are means of repeats with their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

from benchmarks.combine import joined, samples, title
from benchmarks.expert_sets import SETS, ExpertSet, skewed, take
from benchmarks.options import begin
from benchmarks.side_by_side import Table
from trellis.experts import AutoCombiner, ExpertOutputs

SIZES = (0, 50, None)
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def off_by(sure: Floats, right: Bools, groups: int = 10) -> float:
    """Expected calibration error, in points."""
    order = np.argsort(sure, kind="stable")
    parts = np.array_split(order, groups)
    gaps = [len(part) * abs(sure[part].mean() - right[part].mean()) for part in parts if len(part)]
    return 100 * sum(gaps) / len(sure)


def found(sure: Floats, right: Bools, share: float = 0.1, seed: int = 0) -> float:
    """Share of the mistakes among the least sure positions, in per cent."""
    shuffled = np.random.default_rng(seed).permutation(len(sure))
    least = shuffled[np.argsort(sure[shuffled], kind="stable")[: round(share * len(sure))]]
    return 100 * float((~right[least]).sum() / max((~right).sum(), 1))


def agreement(answers: Sequence[Sequence[str]], outputs: ExpertOutputs) -> Floats:
    """Share of the experts, of those that say something, who say the same at each position."""
    code = {label: k for k, label in enumerate(outputs.labels)}
    chosen = np.array([code.get(label, -2) for label in chain(*answers)])
    same = (outputs.codes == chosen[:, None]).sum(axis=1)
    shares: Floats = same / np.maximum((outputs.codes >= 0).sum(axis=1), 1)
    return shares


def measure(data: ExpertSet, size: int | None, repeats: int) -> Floats:
    """(repeats, 4): off by and found, of the confidence and of the agreement."""
    n = len(data)
    rows = []
    for r in range(repeats):
        order = np.random.default_rng([2, r]).permutation(n)
        test, pool = np.sort(order[: n // 2]), order[n // 2 :][:size]
        asked = take(data.outputs, test)
        assert isinstance(asked, ExpertOutputs)
        every = joined(take(data.outputs, pool), asked)
        gold = [*(data.gold[i] for i in pool), *[None] * (samples(every) - len(pool))]
        model = AutoCombiner(metric=data.metric, scheme=data.scheme).fit(every, gold)
        answers = model.answers_[len(pool) :]
        truth = [*chain(*(data.gold[i] for i in test))]
        right = np.array([a == b for a, b in zip(chain(*answers), truth, strict=True)])
        told = (np.concatenate(model.answer_levels_[len(pool) :]), agreement(answers, asked))
        rows.append([f(sure, right) for f in (off_by, found) for sure in told])
    return np.array(rows)


def main() -> None:
    names = [name for name in SETS if name not in ("transcripts", "morphseg-eng")]
    args = begin(
        __doc__,
        sets=(names, ["skewed"], "sets of experts"),
        repeats=(3, 1),
        cache=("", "", "folder in which answers of weak taggers are kept"),
    )
    table = Table(
        "Confidence of combined answers", "set", "right answers", "off by, points (range)",
        "agreement is off by (range)", "mistakes found, % (range)", "by agreement, % (range)",
    )  # fmt: skip
    with threadpool_limits(1):
        for name in args.sets:
            data = skewed(n=120) if args.small else SETS[name](args.cache or None)
            for size in SIZES:
                if size is None or size <= len(data) // 4:
                    columns = measure(data, size, args.repeats).T
                    told = [f"{c.mean():.1f} ({c.min():.1f}–{c.max():.1f})" for c in columns]
                    table.add(name, title(size), *told)
    table.show()


if __name__ == "__main__":
    main()
