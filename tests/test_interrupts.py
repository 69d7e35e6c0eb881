"""Ctrl-C that comes while a kernel returns is a KeyboardInterrupt."""

import pytest

from trellis import ChainCRF
from trellis.interrupts import interrupts
from trellis.models import linear_model


def numba_like():
    raise SystemError("returned a result with an exception set") from KeyboardInterrupt()


def test_an_interrupt_of_a_kernel():
    with pytest.raises(KeyboardInterrupt), interrupts():
        numba_like()


def test_an_interrupt_at_the_end_of_a_chain():
    with pytest.raises(KeyboardInterrupt), interrupts():
        try:
            numba_like()
        except SystemError as error:
            raise SystemError("returned a result with an exception set") from error


def test_other_errors_stay_what_they_are():
    with pytest.raises(SystemError), interrupts():
        raise SystemError("something else")
    with interrupts():
        pass


def test_fit_is_interrupted(monkeypatch):
    monkeypatch.setattr(linear_model.LinearModel, "_learn_fresh", lambda *a, **k: numba_like())
    with pytest.raises(KeyboardInterrupt):
        ChainCRF().fit([["a"]], [["X"]])
