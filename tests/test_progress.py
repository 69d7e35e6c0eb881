"""Progress: bars on terminals and in notebooks, lines elsewhere, nothing in workers or afterwards.

Each test that waits for a bar makes the time between two drawings short.
"""

from __future__ import annotations

import builtins
import io
import logging
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from screens import Terminal, screen
from trellis import ChainCRF, progress
from trellis.progress import Reporter, Task, nothing_drawn, write_line

DATA = [["a", "b"]] * 4, [["A", "B"]] * 4


def drawing_threads():
    return [t for t in threading.enumerate() if t.name == "trellis progress"]


def wait_for(stream, text, seconds=20):
    """Until a text was written."""
    end = time.monotonic() + seconds
    while text not in stream.getvalue():
        assert time.monotonic() < end, stream.getvalue()[-500:]
        time.sleep(0.005)


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(progress, "_TICK", 0.01)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert drawing_threads() == []


# ------------------------------------------------------------------ lines


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
@pytest.mark.parametrize("enabled", [True, False])
def test_lines_are_shown_where_they_are_wanted(stream, enabled):
    out = stream()
    reporter = Reporter(enabled, stream=out)
    assert reporter.shown == enabled
    reporter.line("pass 1")
    reporter.line("not for everybody", shown=False)
    reporter.line("100 % done")
    assert out.getvalue() == ("pass 1\n100 % done\n" if enabled else "")


def test_lines_go_to_standard_error(monkeypatch, capsys):
    Reporter().line("hello")
    assert capsys.readouterr() == ("", "hello\n")
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    reporter = Reporter()
    reporter.line("nobody hears")
    with reporter.stage("reading"):
        assert drawing_threads() == []


def test_everything_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="trellis"):
        Reporter(enabled=False).line("100 % done")
        Reporter(stream=io.StringIO()).line("shown", shown=False)
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("trellis", "INFO", "100 % done"),
        ("trellis", "INFO", "shown"),
    ]


def test_a_fit_says_one_line_a_pass(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    ChainCRF(max_passes=3, tol=-1.0, verbose=True, random_state=0).fit(*DATA, dev=DATA)
    lines = screen(terminal.getvalue())[0][:-1]
    assert len(lines) == 3
    assert lines[0].startswith("pass 1 of 3  objective ") and "change" not in lines[0]
    assert "change" in lines[2] and "dev accuracy " in lines[2] and lines[2].endswith(" s")
    before = terminal.getvalue()
    ChainCRF(max_passes=3, random_state=0).fit(*DATA)
    assert terminal.getvalue() == before
    assert capsys.readouterr().out == ""


def test_lines_of_solvers_that_end_early(capsys):
    ChainCRF(solver="lbfgs", verbose=True).fit(*DATA)
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith("iteration   2 of at most 500  objective ")


def test_a_fit_in_a_pipe_is_seen(capsys):
    ChainCRF(max_passes=2, tol=-1.0, verbose=True, random_state=0).fit(*DATA)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("  ")[0] for line in lines] == ["pass 1 of 2", "pass 2 of 2"]


@pytest.mark.parametrize("solver", ["sgd", "lbfgs", "adf"])
def test_the_same_bits(monkeypatch, fast, solver):
    monkeypatch.setattr(sys, "stderr", Terminal())
    quiet, loud = (
        ChainCRF(solver=solver, verbose=verbose, random_state=0).fit(*DATA, dev=DATA)
        for verbose in (False, True)
    )
    for a, b in zip(quiet.weights_.arrays(), loud.weights_.arrays(), strict=True):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ bars


def test_words_of_tasks():
    assert Task("reading").words == "reading"
    steps = Task("pass", 12, 4)
    assert steps.words == "pass 5 of 12"
    steps.at(11.9, "scoring")
    assert steps.words == "pass 12 of 12, scoring"
    steps.at(12)
    assert steps.words == "pass 12 of 12"
    assert Task("iteration", 500, 30, limit=True).words == "iteration 31 of at most 500"


def test_a_stage_on_a_terminal(fast):
    out = Terminal()
    with Reporter(stream=out).stage("reading train.txt") as stage:
        wait_for(out, "reading train.txt  00:00")
        stage.now("encoding")
        wait_for(out, "encoding  00:00")
        assert len(drawing_threads()) == 1
    assert screen(out.getvalue()) == ([""], 0)


def test_steps_have_a_total_and_the_time_left(fast):
    out = Terminal()
    reporter = Reporter(stream=out)
    with reporter.steps("pass", 4) as passes:
        wait_for(out, "pass 1 of 4  |")
        wait_for(out, "00:00, ? to go")
        passes.started -= 60
        passes.at(1.0, "scoring")
        wait_for(out, "pass 2 of 4, scoring  |")
        wait_for(out, "01:00, 03:00 to go")
        reporter.line("pass 1: done")
        wait_for(out, "pass 1: done\n")
    assert screen(out.getvalue()) == (["pass 1: done", ""], 0)


def test_a_limit_promises_no_time(fast):
    out = Terminal()
    with Reporter(stream=out).under_way(Task("iteration", 500, 30, limit=True)):
        wait_for(out, "iteration 31 of at most 500  00:00")
    assert "to go" not in out.getvalue()


def test_nested_tasks_are_one_bar(fast):
    """The steps of the outer one, with what the inner one does."""
    out = Terminal()
    with Reporter(stream=out).stage("tuning"), Reporter(stream=out).steps("fit", 3) as fits:
        wait_for(out, "fit 1 of 3  |")
        fits.at(1)
        inner = Reporter(stream=out)
        with inner.stage("encoding"):
            wait_for(out, "fit 2 of 3, encoding  |")
        with inner.steps("pass", 12):
            wait_for(out, "fit 2 of 3, pass 1 of 12  |")
            inner.line("a line")
            assert len(drawing_threads()) == 1
        length = len(out.getvalue())
        while "fit 2 of 3  |" not in out.getvalue()[length:]:
            time.sleep(0.005)
    lines, column = screen(out.getvalue())
    assert (lines, column) == (["a line", ""], 0)
    assert "\n" not in out.getvalue().replace("a line\n", "")  # never a second bar below


def test_a_fit_draws_what_it_does(monkeypatch, fast):
    def slow(*args):
        wait_for(out, "pass 1 of 2, scoring the held-out data  |")
        return 0.5

    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr("trellis.evaluation.held_out.held_out_score", slow)
    ChainCRF(max_passes=2, tol=-1.0, verbose=True, random_state=0).fit(*DATA, dev=DATA)
    assert screen(out.getvalue())[1] == 0
    assert len(screen(out.getvalue())[0]) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_errors_leave_a_clean_line(fast, error):
    out = Terminal()
    with pytest.raises(error), Reporter(stream=out).steps("pass", 3):
        wait_for(out, "pass 1 of 3")
        out.write("^C")
        raise error
    assert screen(out.getvalue()) == ([""], 0)
    assert drawing_threads() == []


def test_what_is_written_elsewhere_is_not_in_the_way(fast):
    out = Terminal()
    with Reporter(stream=out).stage("tagging"):
        wait_for(out, "tagging")
        write_line("a warning", out)
        with nothing_drawn():
            before = out.getvalue()
            assert screen(before) == (["a warning", ""], 0)
            time.sleep(0.05)
            assert out.getvalue() == before
    with nothing_drawn():
        write_line("another", out)
    assert screen(out.getvalue()) == (["a warning", "another", ""], 0)


def test_bars_of_others(fast):
    tqdm = pytest.importorskip("tqdm").tqdm
    out = Terminal()
    with tqdm(total=3, desc="theirs", file=out, leave=False):
        Reporter(stream=out).line("a line")
    assert screen(out.getvalue())[0][0] == "a line"


def test_threads_of_others_do_not_stop_a_bar(fast):
    """Tasks may end in any order."""
    out = Terminal()
    reporter = Reporter(stream=out)
    with reporter.steps("fit", 2):
        first, second = reporter.stage("one"), reporter.stage("two")
        first.__enter__()
        second.__enter__()
        wait_for(out, "fit 1 of 2, two")
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    assert screen(out.getvalue()) == ([""], 0)


@pytest.mark.parametrize("drawn", [True, False])
def test_a_closed_stream_is_no_error(fast, drawn, capsys):
    out = Terminal()
    with Reporter(stream=out).stage("reading"):
        if drawn:
            wait_for(out, "reading")
        out.close()
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_no_thread_where_nothing_is_shown():
    with Reporter(False, stream=Terminal()).stage("reading"):
        assert drawing_threads() == []


def test_tqdm_starts_no_thread(fast):
    out, before = Terminal(), threading.active_count()
    with Reporter(stream=out).stage("reading"):
        wait_for(out, "reading")
        assert threading.active_count() == before + 1


# ------------------------------------------------------------------ pipes, notebooks, workers


def test_signs_of_life_in_a_pipe(fast, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.02)
    out = io.StringIO()
    with Reporter(stream=out).steps("pass", 3) as passes:
        passes.started -= 100
        wait_for(out, "pass 1 of 3: 100 s\n")
        passes.at(1, "scoring")
        wait_for(out, "pass 2 of 3, scoring: 100 s\n")
    assert "\r" not in out.getvalue()


class ZMQInteractiveShell:
    """As that of IPython, by name."""


class Shell(ZMQInteractiveShell):
    """As that of Colab."""


@pytest.mark.parametrize("shell", [ZMQInteractiveShell, Shell])
def test_in_a_notebook(monkeypatch, fast, shell):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(builtins, "get_ipython", shell, raising=False)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)  # no ipywidgets
    with Reporter().steps("pass", 3):
        wait_for(out, "\rpass 1 of 3  |")
    ChainCRF(max_passes=2, tol=-1.0, verbose=True, random_state=0).fit(*DATA)
    lines, column = screen(out.getvalue())
    assert [line.partition("  ")[0] for line in lines] == ["pass 1 of 2", "pass 2 of 2", ""]
    assert column == 0


def test_which_bar(monkeypatch):
    class TerminalInteractiveShell:
        pass

    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    assert progress._bar_kind(out) is None
    assert progress._bar_kind(Terminal()) == "terminal"
    monkeypatch.setattr(builtins, "get_ipython", TerminalInteractiveShell, raising=False)
    assert progress._bar_kind(out) is None
    monkeypatch.setattr(builtins, "get_ipython", Shell)
    assert progress._bar_kind(io.StringIO()) is None  # a log, in a notebook
    for spec, kind in ((None, "terminal"), (object(), "widget")):
        monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name, spec=spec: spec)
        assert progress._bar_kind(out) == kind


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_workers_are_silent(backend, capfd):
    from joblib import Parallel, delayed

    model = ChainCRF(max_passes=1, verbose=True, random_state=0)
    with Reporter(stream=io.StringIO()).stage("searching"):
        Parallel(2, backend=backend)(delayed(model.fit)(*DATA) for _ in range(2))
    assert "pass" not in capfd.readouterr().err
    Parallel(1)([delayed(model.fit)(*DATA)])
    assert "pass 1 of 1" in capfd.readouterr().err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_the_bar_alone(fast):
    out = Terminal()
    with Reporter(stream=out).stage("reading"):
        wait_for(out, "reading")
        before = len(out.getvalue())
        child = os.fork()
        if child == 0:  # pragma: no cover
            code = 1
            try:
                with Reporter(False).stage("in the child"):
                    code = len(drawing_threads())
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert len(out.getvalue()) >= before


def test_the_interpreter_does_not_wait():
    """Not even for a bar that nobody took away."""
    code = (
        "import io, sys; from trellis.progress import Reporter\n"
        "class T(io.StringIO):\n    def isatty(self): return True\n"
        "task = Reporter(stream=T()).stage('reading'); task.__enter__(); print('ends')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert (result.stdout, result.stderr) == ("ends\n", "")


# ------------------------------------------------------------------ silence


def test_a_fit_is_never_silent_for_long(monkeypatch):
    """However slow encoding, the search for a rate, a pass or the score is."""

    def slowly(owner, name):
        function = getattr(owner, name)

        def slow(*args, **kwargs):
            time.sleep(3)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, slow)

    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    slowly(ChainCRF, "training_data")
    slowly(ChainCRF, "_learn_fresh")
    slowly(ChainCRF, "_find_rate")
    slowly(sys.modules["trellis.solvers.sgd"].StochasticGradient, "end_pass")
    out.times = [time.monotonic()]
    ChainCRF(max_passes=1, verbose=True, random_state=0).fit(*DATA)
    assert out.silence() < 2
    shown = out.getvalue()
    for words in ("looking at the samples", "encoding 4 samples", "preparing the solver"):
        assert f"{words}  00:0" in shown
    assert "pass 1 of 1  |" in shown


def test_batches_and_queries_say_what_they_do(monkeypatch, caplog):
    from trellis.cheap import ActiveLearner

    data = [["a", "b"]] * 3, [["A", "B"]] * 3
    with caplog.at_level(logging.DEBUG, logger="trellis"):
        ChainCRF(random_state=0).partial_fit(*data)
        learner = ActiveLearner(ChainCRF("word"), labels=["A", "B"], random_state=0)
        i = learner.query(data[0])
        learner.tell(i, ["A", "B"])
        learner.query_part(data[0], 1)
        learner.finish()
    said = {record.getMessage() for record in caplog.records}
    assert said >= {
        "looking at the batch", "choosing a sample to ask for", "choosing a part to ask for",
        "learning from the answer", "training on all answers",
    }  # fmt: skip
