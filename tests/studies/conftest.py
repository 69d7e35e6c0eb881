"""A tiny run, made once; tests that change a run work on a copy."""

from __future__ import annotations

import shutil

import pytest
from tiny import TINY

from studies.structure_regularisation.run import reproduce


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Folder of a finished run. Do not write to it."""
    folder = tmp_path_factory.mktemp("finished")
    reproduce(folder, protocol=TINY, tasks=["roles"], n_jobs=1)
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of a finished run."""
    return shutil.copytree(finished, tmp_path / "copied")
