"""Metadata routing: which arguments of ``fit``, ``score`` … scikit-learn hands on to an estimator.

With ``sklearn.set_config(enable_metadata_routing=True)`` a search or a pipeline passes, say,
``sample_weight`` or ``edges`` to the estimators inside it that have asked for them:
``crf.set_fit_request(edges=True).set_score_request(edges=True)``. What can be asked for is read off
the methods: all arguments but X and y. scikit-learn is imported when it asks.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from trellis.errors import DataError

__all__ = ["MetadataRequests"]

_METHODS = ("fit", "partial_fit", "predict", "predict_proba", "score")
_DATA = ("self", "X", "y")


class _Requests(dict[str, dict[str, bool | str | None]]):
    """Arguments asked for, by method; ``clone`` copies them."""

    def __sklearn_clone__(self) -> _Requests:
        return _Requests(self)


class MetadataRequests:
    """The manners of scikit-learn's metadata routing."""

    _metadata_request: _Requests

    def get_metadata_routing(self) -> Any:
        """Return what is asked for, as scikit-learn's ``MetadataRequest``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        requests = MetadataRequest(owner=type(self).__name__)
        for method in _METHODS:
            for name in self._routable(method):
                asked = vars(self).get("_metadata_request", {}).get(method, {}).get(name)
                getattr(requests, method).add_request(param=name, alias=asked)
        return requests

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Ask for arguments of ``fit``: ``sample_weight=True``, or the name they go by there."""
        return self._ask("fit", requests)

    def set_partial_fit_request(self, **requests: bool | str | None) -> Self:
        """Ask for arguments of ``partial_fit``."""
        return self._ask("partial_fit", requests)

    def set_predict_request(self, **requests: bool | str | None) -> Self:
        """Ask for arguments of ``predict``."""
        return self._ask("predict", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Ask for arguments of ``score``."""
        return self._ask("score", requests)

    def _routable(self, method: str) -> list[str]:
        """Arguments of a method that can be asked for."""
        call = getattr(type(self), method, None)
        if call is None:
            return []
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        arguments = inspect.signature(call).parameters.values()
        return [a.name for a in arguments if a.kind in named and a.name not in _DATA]

    def _ask(self, method: str, requests: dict[str, bool | str | None]) -> Self:
        known = self._routable(method)
        for name in requests:
            if name not in known:
                has = ", ".join(known) or "none besides X and y"
                raise DataError(f"{method} has no argument {name!r} to ask for; it has {has}")
        asked = vars(self).get("_metadata_request", {})
        self._metadata_request = _Requests(asked | {method: asked.get(method, {}) | requests})
        return self
