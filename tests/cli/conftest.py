"""What the tests of the command line share: a runner, a folder of small files, trained models."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from toy_files import FORMATS, LABELLED, lines_of, write_all

from trellis.cli import main


@dataclass(frozen=True)
class Result:
    """What a command gave: exit code, standard output, lines of standard error."""

    code: int
    out: str
    err: list[str]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process: ``run("tag", model, file, stdin="…")``."""

    def call(*arguments, stdin=""):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        capsys.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return Result(code, captured.out, lines_of(captured.err))

    return call


@pytest.fixture
def fails(run):
    """Run a command that must fail with one line on standard error; returns the message."""

    def call(*arguments, stdin=""):
        result = run(*arguments, stdin=stdin)
        assert result.code == 1
        assert result.out == ""
        assert len(result.err) == 1, result.err
        head = "trellis: error: "
        assert result.err[0].startswith(head)
        return result.err[0].removeprefix(head)

    return call


@pytest.fixture
def spawn():
    """Start a command as a program of its own; what is still running at the end is killed."""
    started = []

    def call(*arguments, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        environment = {**os.environ, **options.pop("env", {})}
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from trellis.cli import main; sys.exit(main())"]
            + [str(a) for a in arguments],
            env=environment,
            **options,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """Folder with the same small corpus in every format."""
    folder = tmp_path_factory.mktemp("toys")
    write_all(folder)
    return folder


@pytest.fixture(scope="session")
def models(toys, tmp_path_factory):
    """A CRF for each format, and a perceptron: ``models["conllu"]``, ``models["perceptron"]``."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for name in (*FORMATS, "perceptron"):
        kind = "conll" if name == "perceptron" else name
        model = "perceptron" if name == "perceptron" else "crf"
        found[name] = folder / f"{name}.trellis"
        arguments = ["--format", kind, "--model", model, "--quiet", "-o", str(found[name])]
        assert main(["train", str(toys / LABELLED[kind]), *arguments]) == 0
    return found
