"""Every exception Trellis raises on purpose.

All derive from :class:`TrellisError`; those caused by what the user passed in are also
``ValueError``, so that code written for scikit-learn keeps working.
"""

from __future__ import annotations

__all__ = [
    "CorruptModelError",
    "DataError",
    "InfeasibleError",
    "TemplateError",
    "TrellisError",
]


class TrellisError(Exception):
    """Base class of all errors raised by Trellis."""


class DataError(TrellisError, ValueError):
    """Input that cannot be used; the message names the place and what was expected."""


class TemplateError(DataError):
    """A feature template that cannot be read or does not fit the columns at hand."""


class InfeasibleError(DataError):
    """Constraints that leave no allowed labelling; the message names the sample."""


class CorruptModelError(TrellisError, ValueError):
    """A model file that is damaged, truncated, not a model file, or from a newer version."""
