"""Labels and systems as a picture shows them: in one line, not too long, in a sensible order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trellis.corpus.label_values import label_name
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.errors import DataError

__all__ = ["arranged", "as_systems", "legend_name", "shown"]

_LONGEST = 28


def shown(label: Any, longest: int = _LONGEST) -> str:
    """A label as text for matplotlib: one line, cut where it is long, no formula.

    Examples
    --------
    >>> shown("B-NP"), shown(("a", 1)), shown("long" * 9, 10), shown("")
    ('B-NP', "('a', 1)", 'longlongl…', '(empty)')
    """
    name = " ".join(label_name(label).encode("utf-8", "replace").decode("utf-8").split())
    name = "".join(sign if sign.isprintable() else "�" for sign in name)
    if len(name) > longest:
        name = f"{name[: longest - 1]}…"
    return name.replace("$", r"\$") or "(empty)"  # what stands between two $ is a formula


def legend_name(label: Any) -> str:
    """A name for a legend, which leaves out those that begin with «_»."""
    name = shown(label, 40)
    return f" {name}" if name.startswith("_") else name


def arranged(classes: Sequence[Any]) -> list[int]:
    """Places of labels in the order of a picture: those of a type of spans together, others as is.

    Examples
    --------
    >>> classes = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
    >>> [classes[i] for i in arranged(classes)]
    ['O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER']
    """
    places = list(range(len(classes)))
    name = detect_scheme(classes)
    if name is None:
        return places
    scheme = get_scheme(name)
    parts = [scheme.parse(label) for label in classes]
    return sorted(
        places, key=lambda i: (parts[i][0] != "O", parts[i][1], "OBIES".find(parts[i][0]))
    )


def as_systems(given: Any) -> dict[str, Any]:
    """Several systems by name, or a single one without a name; refuses none at all.

    Raises
    ------
    DataError
        If it is an empty mapping.
    """
    if not isinstance(given, Mapping):
        return {"": given}
    if not given:
        raise DataError("there is nothing to draw: the mapping of names to systems is empty")
    systems = {legend_name(name): system for name, system in given.items()}
    if len(systems) < len(given):  # cut, two are alike
        systems = {f"{i + 1}: {legend_name(name)}": s for i, (name, s) in enumerate(given.items())}
    return systems
