"""What an estimator needs to be saved: its parameters and what it has learned, as plain values.

``save`` and :func:`~trellis.files.registry.load_model` are written once. An estimator gives
``_state()``, a dict of what it has learned, and takes it back in ``_restore(state)``, which checks
everything: a file may hold whatever somebody wrote. An estimator that is stored otherwise overrides
``_stored`` and ``_restored`` instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import header_text, loading, write_container
from trellis.files.registry import estimator_name
from trellis.files.stored import header_value
from trellis.files.values import ValueReader, ValueWriter, parts_of

__all__ = ["Storable", "is_fitted"]

Arrays = Mapping[str, NDArray[Any]]
Stored = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class Storable:
    """An estimator that can be written to a file and read with ``load_model``."""

    def save(self, path: str | os.PathLike[Any]) -> None:
        """Write the model to a file (whole or not at all); read it with ``load_model``.

        What ``load_model`` would refuse, weights that are not finite among it, is not written: a
        :class:`~trellis.errors.DataError` says why, and an older file stays.
        """
        self._check_fitted()
        name = estimator_name(self)
        header, arrays = self._stored()
        self._check_loadable(path, header, arrays)
        write_container(path, {**header, "estimator": name}, arrays)

    def _check_loadable(
        self, path: str | os.PathLike[Any], header: dict[str, Any], arrays: Arrays
    ) -> None:
        """Refuse what could not be loaded, by loading it."""
        read = json.loads(header_text(header))  # of NumPy's numbers, a file has only the values
        try:
            with loading(path):
                type(self)._restored(read, {key: array.view() for key, array in arrays.items()})
        except CorruptModelError as error:
            raise DataError(
                f"cannot save this {type(self).__name__}, since nobody could load it: {error}"
            ) from error

    # ------------------------------------------------------------------ for subclasses

    def _state(self) -> dict[str, Any]:
        """What was learned."""
        raise NotImplementedError  # abstract

    def _restore(self, state: dict[str, Any]) -> None:
        """Take back what was learned, checking everything."""
        raise NotImplementedError  # abstract

    def _whole_state(self) -> dict[str, Any]:
        """What is written; a base class may write less of one that has learned nothing."""
        return self._state()

    def _restore_whole(self, state: dict[str, Any]) -> None:
        """Undo :meth:`_whole_state`."""
        self._restore(state)

    def _left_out(self) -> str:
        """What ``save`` does not write and has to be given again, for a message; "" if nothing."""
        return ""

    def _missing(self) -> str:
        """What has to be given again to a model just read, for a message; "" if nothing."""
        return ""

    def _parameter_values(self) -> dict[str, Any]:
        """Parameters as they are written."""
        return parts_of(self)

    # ------------------------------------------------------------------ both halves

    def _stored_parameters(self) -> Stored:
        """Header and arrays of an estimator that need not be fitted."""
        writer = ValueWriter()
        parameters = {name: writer(v, name) for name, v in self._parameter_values().items()}
        return {"parameters": parameters}, writer.arrays

    def _stored(self) -> Stored:
        """Header and arrays of a fitted estimator."""
        header, arrays = self._stored_parameters()
        writer = ValueWriter()
        header["state"] = {name: writer(v, f"{name}_") for name, v in self._whole_state().items()}
        return header, arrays | writer.arrays

    @classmethod
    def _unfitted(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        """An estimator with the parameters of a header, checked."""
        parameters = header_value(header, "parameters", dict)
        model: Self = ValueReader(arrays).build(cls, parameters, "parameters")
        return model

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        """The fitted estimator of a header and arrays, checked."""
        model = cls._unfitted(header, arrays)
        model._restore_whole(ValueReader(arrays).entries(header_value(header, "state", dict)))
        return model

    # ------------------------------------------------------------------ of estimators

    def _check_parameters(self) -> None:
        """Refuse bad parameters."""

    def _check_fitted(self) -> None:
        """Refuse what is not fitted."""

    def _is_fitted(self) -> bool:
        return not hasattr(self, "__sklearn_is_fitted__") or bool(self.__sklearn_is_fitted__())


def is_fitted(model: object) -> bool:
    """Whether this is an estimator that can be saved now: one of Trellis, and fitted."""
    return isinstance(model, Storable) and model._is_fitted()
