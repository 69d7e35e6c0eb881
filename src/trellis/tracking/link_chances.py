"""How probable a link is, and what else may have been, as a record."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LinkChance"]


class LinkChance(NamedTuple):
    """How probable a link is, and what else may have been.

    ``probability`` is that of the link, ``event`` that of all its event (of a division: with both
    daughters). ``past`` is the next best past of the target, as (frame, id), or None if the next
    best is that it appeared; ``fate`` the next best fate of the source, None: it disappeared.

    Examples
    --------
    >>> chance = LinkChance(0.9, 0.9, (3, 7), 0.08, None, 0.02)
    >>> chance.probability, chance.past
    (0.9, (3, 7))
    """

    probability: float
    event: float
    past: tuple[int, int] | None
    past_probability: float
    fate: tuple[int, int] | None
    fate_probability: float
