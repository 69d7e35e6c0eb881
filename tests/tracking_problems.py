"""Frame pairs small enough to list everything that may have happened in them."""

from __future__ import annotations

import numpy as np

from trellis.tracking.objects import FramePair, Objects


def objects(points, first_id=0):
    position = np.array(points, dtype=float).reshape(-1, 2)
    return Objects(np.arange(first_id, first_id + len(position)), position)


def frame_pair(source, target, annotation=None):
    """Ids of sources begin with 10, of targets with 20, so that rows and ids cannot be confused."""
    return FramePair("film", 3, objects(source, 10), objects(target, 20), annotation)


def listed(h):
    return [
        (h.kinds[kind].name, tuple(i for i in a if i >= 0), tuple(j for j in b if j >= 0))
        for kind, a, b in zip(h.kind, h.source.tolist(), h.target.tolist(), strict=True)
    ]


def assignments(h, n, m):
    """Every choice of hypotheses that covers each object once."""
    rows = [set(r[r >= 0].tolist()) for r in h.covers(n)]

    def complete(left, chosen):
        if not left:
            yield chosen
            return
        for i, r in enumerate(rows):
            if min(left) in r and r <= left:
                yield from complete(left - r, [*chosen, i])

    for choice in complete(set(range(n + m)), []):
        mask = np.zeros(len(h), dtype=bool)
        mask[choice] = True
        yield mask


CROWD = frame_pair([(0, 0), (2, 0), (9, 9)], [(0, 1), (2, 1), (1, 3)])
