r"""How good tracking is: links, divisions, and the task loss of events.

A link is right if sequence, frames, source and target are, whatever its kind; a division if
its parent and the set of its daughters are. Precision, recall and F1 are those of
:class:`~trellis.evaluation.spans.PrecisionRecall`.

The task loss compares all *events*. A move, a division (split, merge) with all its objects, an
appearance and a disappearance are one event each; with the true events :math:`y^*` and the
predicted ones y as 0/1 vectors over all events there might be,

.. math:: \Delta(y^*, y) = \frac{\lVert y - y^* \rVert_1}{\sum_i y^*_i}
                         = \frac{|Y \setminus Y^*| + |Y^* \setminus Y|}{|Y^*|} ,

so that an object linked wrongly counts at least twice, as a miss and as a false alarm.

References
----------
X. Lou and F. A. Hamprecht, *Structured learning for cell tracking*, 2011.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from trellis.domains import instance
from trellis.errors import DataError
from trellis.evaluation.spans import PrecisionRecall
from trellis.tracking.event_kinds import KINDS
from trellis.tracking.objects import EVENTS, Link, checked_events, checked_links
from trellis.tracking.result import TrackEvent

__all__ = ["EventKey", "LinkScores", "event_set", "score_links", "task_loss"]


class EventKey(NamedTuple):
    """One event: what happened to which objects; ``frame`` is that of the first object named.

    ``gaps`` says how many frames lie between, for each link, if there are any.
    """

    kind: str
    sequence: str
    frame: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    gaps: tuple[int, ...] = ()


@dataclass(frozen=True)
class LinkScores:
    """Scores of :func:`score_links`; ``str()`` gives a table.

    Attributes
    ----------
    links, divisions : PrecisionRecall
        With the counts ``correct``, ``predicted`` and ``support`` (true ones).
    kinds : dict of str to PrecisionRecall
        The same for each kind of event that links are of. The table has those of one's own, too.
    """

    links: PrecisionRecall
    divisions: PrecisionRecall
    kinds: Mapping[str, PrecisionRecall] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = ["           precision   recall       F1     true  predicted"]
        own = [(kind, s) for kind, s in self.kinds.items() if kind not in EVENTS]
        for name, s in (("links", self.links), ("divisions", self.divisions), *own):
            lines.append(
                f"{name:<9}  {s.precision:9.2%}  {s.recall:7.2%}  {100 * s.f1:7.2f}"
                f"  {s.support:7}  {s.predicted:9}"
            )
        return "\n".join(lines)


def score_links(truth: Iterable[Link], predicted: Iterable[Link]) -> LinkScores:
    """Precision, recall and F1 of links and of divisions.

    Parameters
    ----------
    truth, predicted : iterable of Link
        Links named twice count once.

    Examples
    --------
    >>> from trellis.tracking.objects import Link
    >>> truth = [Link("", 0, 7, 1, "division"), Link("", 0, 7, 2, "division")]
    >>> scores = score_links(truth, [Link("", 0, 7, 1, "move"), Link("", 0, 8, 3, "move")])
    >>> scores.links.precision, scores.links.recall, scores.divisions.recall
    (0.5, 0.5, 0.0)
    >>> print(score_links(truth, truth))
               precision   recall       F1     true  predicted
    links        100.00%  100.00%   100.00        2          2
    divisions    100.00%  100.00%   100.00        1          1
    """
    truth, predicted = checked_links(truth), checked_links(predicted)
    kinds = dict.fromkeys(["division", *sorted({link.kind for link in (*truth, *predicted)})])
    events = event_set(truth), event_set(predicted)
    by_kind = {
        kind: _compare(*({event for event in some if event.kind == kind} for some in events))
        for kind in kinds
    }
    ends = ({link.ends for link in some} for some in (truth, predicted))
    return LinkScores(_compare(*ends), by_kind["division"], by_kind)


def event_set(links: Iterable[Link], events: Iterable[TrackEvent] = ()) -> set[EventKey]:
    """Gather links and events to a set of events, each with all its objects.

    Links of one kind other than move are one event if they share their source (division, split) or
    their target (merge).

    Examples
    --------
    >>> from trellis.tracking.objects import Link
    >>> from trellis.tracking.result import TrackEvent
    >>> links = [Link("", 0, 7, 2, "division"), Link("", 0, 7, 1, "division")]
    >>> for event in sorted(event_set(links, [TrackEvent("", 1, 5, "appear")])):
    ...     print(event.kind, event.frame, event.sources, event.targets)
    appear 1 () (5,)
    division 0 (7,) (1, 2)
    """
    result = set()
    listed = set(checked_links(links))
    joining = _joining(listed)
    joint: dict[tuple[str, str, int, int], set[Link]] = defaultdict(set)
    for link in listed:
        if link.kind in joining:
            joint[link.kind, link.sequence, link.frame_target, link.target_id].add(link)
        elif link.kind != "move":
            joint[link.kind, link.sequence, link.frame, link.source_id].add(link)
        else:
            result.add(_event([link]))
    result |= {_event(together) for together in joint.values()}
    for sequence, frame, number, kind in checked_events(events):
        ends = ((), (number,)) if kind == "appear" else ((number,), ())
        result.add(EventKey(kind, sequence, frame, *ends))
    return result


def task_loss(truth: Set[EventKey], predicted: Set[EventKey]) -> float:
    """Number of events that are missed or wrong, divided by the number of true events.

    Parameters
    ----------
    truth, predicted : set of EventKey
        From :func:`event_set`.

    Raises
    ------
    DataError
        If there are no true events.

    Examples
    --------
    >>> from trellis.tracking.objects import Link
    >>> right, wrong = Link("", 0, 7, 1, "move"), Link("", 0, 7, 2, "move")
    >>> task_loss(event_set([right]), event_set([wrong]))
    2.0
    """
    instance(Set).check("truth", truth)
    instance(Set).check("predicted", predicted)
    if not truth:
        raise DataError("truth has no events: there is nothing to compare with")
    return len(truth ^ predicted) / len(truth)


def _joining(links: Set[Link]) -> set[str]:
    """Kinds of two sources; of those of one's own, that targets have several links says it."""
    targets = Counter(
        (link.kind, link.sequence, link.frame_target, link.target_id)
        for link in links
        if link.kind not in EVENTS
    )
    own = {target[0] for target, n in targets.items() if n > 1}
    return own | {kind.name for kind in KINDS if kind.n_sources == 2}


def _event(links: Iterable[Link]) -> EventKey:
    """The event that these links are."""
    together = sorted(links, key=lambda link: (link.frame, link.frame_target, *link.ends))
    first, gaps = together[0], tuple(link.gap for link in together)
    sources = tuple(dict.fromkeys(link.source_id for link in together))
    targets = tuple(dict.fromkeys(link.target_id for link in together))
    told = gaps if any(gaps) else ()
    return EventKey(first.kind, first.sequence, first.frame, sources, targets, told)


def _compare(truth: Set[object], predicted: Set[object]) -> PrecisionRecall:
    return PrecisionRecall(len(truth & predicted), len(predicted), len(truth))
