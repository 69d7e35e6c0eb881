"""The frame of the command line: help, usage, exit codes, the log, and what is printed where."""

from __future__ import annotations

import io
import logging
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from toy_files import lines_of

from trellis import __version__
from trellis.cli import main
from trellis.cli.main import parser
from trellis.cli.output import flush_stdout, write_stdout

COMMANDS = (
    "train", "prepare", "tune", "tag", "eval", "inspect", "compress", "export", "combine",
    "regress", "track", "demo", "reproduce", "warmup",
)  # fmt: skip


# ------------------------------------------------------------------ help and usage


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    result = run(command, "--help")
    assert (result.code, result.err) == (0, [])
    assert re.search(rf"^  (\w+=\S+ |cat new.txt \| )?trellis {command}\b", result.out, re.M)
    assert result.out.isascii()  # prints on any terminal


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command):
    subparsers = next(a for a in parser()._actions if hasattr(a, "choices") and a.choices)
    for action in subparsers.choices[command]._actions:
        assert action.help, action.option_strings or action.dest


def test_examples_of_the_help_parse():
    """Every example is a command line that is understood, with options that exist."""
    subparsers = next(a for a in parser()._actions if hasattr(a, "choices") and a.choices)
    texts = [parser().description, *(p.description for p in subparsers.choices.values())]
    examples = [
        line.split("#")[0] for text in texts for line in text.splitlines() if line[:2] == "  "
    ]
    seen = set()
    for line in examples:
        if "trellis " not in line:
            continue
        words = shlex.split(line.split(">")[0])
        arguments = words[words.index("trellis") + 1 :]
        understood, rest = parser().parse_known_args(arguments)
        assert understood.run
        assert not rest or arguments[0] == "reproduce"  # which passes its options on
        seen.add(arguments[0])
    assert seen == set(COMMANDS)


def test_help_names_all_commands(run):
    result = run("--help")
    assert result.code == 0
    assert result.out.isascii()
    for command in COMMANDS:
        assert re.search(rf"^    {command}\s", result.out, re.M)


def test_version(run):
    assert run("--version").out == f"trellis {__version__}\n"


def test_the_name_alone_shows_the_help(run):
    alone = run()
    assert (alone.code, alone.err) == (0, [])
    assert alone.out == run("--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["train"],
        ["train", "a.txt"],
        ["train", "a.txt", "-o"],
        ["train", "a.txt", "-o", "m", "--model", "svm"],
        ["train", "a.txt", "-o", "m", "--piece-size", "large"],
        ["train", "a.txt", "-o", "m", "--format", "xml"],
        ["train", "a.txt", "-o", "m", "--no-such-option"],
        ["tag"],
        ["tag", "m", "a.txt", "b.txt"],
        ["tag", "m", "--kbest", "many"],
        ["eval"],
        ["inspect"],
        ["demo", "--seed", "any"],
        ["warmup", "now"],
    ],
)
def test_wrong_usage(run, arguments):
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err[0].startswith("usage: trellis")
    assert re.match(r"trellis( \w+)?: error: ", result.err[-1])


# ------------------------------------------------------------------ errors and the log


@pytest.fixture
def inspect_raises(monkeypatch):
    """Let ``trellis inspect`` raise something."""

    def install(error):
        def raising(_):
            raise error

        monkeypatch.setattr("trellis.files.load_model", raising)

    return install


def test_message_of_several_lines_is_one(fails, inspect_raises):
    inspect_raises(OSError(5, "two\nlines", "a\nb"))
    assert fails("inspect", "m") == "a b: two lines"


def test_error_of_the_system_without_a_file(fails, inspect_raises):
    inspect_raises(OSError("out of order"))
    assert fails("inspect", "m") == "out of order"


def test_interrupt(run, inspect_raises):
    inspect_raises(KeyboardInterrupt())
    result = run("inspect", "m")
    assert (result.code, result.out, result.err) == (130, "", ["trellis: interrupted"])


def test_a_bug_is_not_hidden(inspect_raises):
    inspect_raises(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["inspect", "m"])


def test_log_is_left_as_it_was(run, toys, tmp_path):
    logger = logging.getLogger("trellis")
    before = (logger.handlers, logger.propagate, logger.level)
    for arguments in (
        ["train", toys / "train.txt", "--progress", "-o", tmp_path / "m"],
        ["train", toys / "none.txt", "-o", tmp_path / "m"],
        ["warm"],
    ):
        run(*arguments)
        assert (logger.handlers, logger.propagate, logger.level) == before


def test_warnings_of_the_library_are_shown_with_the_name(run, monkeypatch):
    def warning(_):
        logging.getLogger("trellis.somewhere").warning("mind %s", "the gap")
        logging.getLogger("trellis.somewhere").info("not shown")
        raise KeyboardInterrupt

    monkeypatch.setattr("trellis.files.load_model", warning)
    assert run("inspect", "m").err == ["trellis: mind the gap", "trellis: interrupted"]


# ------------------------------------------------------------------ standard output


class Raw(io.RawIOBase):
    """Takes at most ``step`` bytes at a time and, if there is a limit, no more than that."""

    def __init__(self, step, limit=10**9, error=None):
        self.data, self.step, self.limit, self.error = b"", step, limit, error

    def writable(self):
        return True

    def write(self, data):
        n = min(self.step, len(data), self.limit - len(self.data))
        if n == 0 and len(data):
            raise self.error
        self.data += bytes(data[:n])
        return n


def test_all_is_written_by_a_stream_that_takes_a_part(monkeypatch):
    raw = Raw(3)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "utf-8", write_through=True))
    write_stdout("naïve → text\n", "utf-8")
    assert raw.data == "naïve → text\n".encode()


def test_order_is_kept_with_what_is_printed(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    print("first")
    write_stdout("second\n")
    assert stream.buffer.getvalue() == b"first\nsecond\n"


def test_what_cannot_be_shown_is_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    write_stdout("a → b\n")
    assert stream.buffer.getvalue() == b"a \\u2192 b\n"


def test_stream_for_text_only(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    write_stdout("a → b\n", "utf-8")
    assert sys.stdout.getvalue() == "a → b\n"


def test_full_disk_is_an_error_that_names_standard_output(monkeypatch):
    raw = Raw(3, 6, OSError(28, "No space left on device"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "utf-8", write_through=True))
    with pytest.raises(OSError, match="No space left on device: 'standard output'"):
        write_stdout("more than six\n")
    raw.limit = 10**9  # let go of the rest


def test_reader_that_goes_away_is_no_error(models, monkeypatch):
    raw = Raw(3, 6, BrokenPipeError(32, "Broken pipe"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "utf-8", write_through=True))
    assert main(["inspect", str(models["conll"])]) == 0
    assert raw.data == b"ChainC"
    raw.limit = 10**9


def test_full_disk_noticed_when_flushing(monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, "No space left on device")

    stream = Full()
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(OSError, match="No space left on device: 'standard output'"):
        flush_stdout()
    monkeypatch.undo()
    Full.flush = io.StringIO.flush


def test_closed_standard_output(fails, models, monkeypatch):
    class Sys:
        stdout = None

    monkeypatch.setattr("trellis.cli.output.sys", Sys)
    for arguments in (["inspect", models["conll"]], ["tag", models["conll"]]):
        message = fails(*arguments, stdin="Run VB\n")
        assert message == "standard output: It is closed"
    flush_stdout()  # nothing to flush


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_full_device_as_a_program(spawn, models):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        for arguments in (["inspect", models["conll"]], ["--help"]):
            process = spawn(*arguments, stdout=full, env={"PYTHONUNBUFFERED": ""})
            lines = lines_of(process.communicate()[1].decode())
            assert process.returncode == 1
            assert lines == ["trellis: error: standard output: No space left on device"]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that no one can read")
@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "/proc/self/mem"],
        ["train", "/proc/self/mem", "--columns", "word,label", "-o", "m.trellis"],
        ["tag", "/proc/self/mem", "in.txt"],
    ],
    ids=" ".join,
)
def test_a_failed_read_names_the_file(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a\n")
    assert main(command) == 1
    assert re.search("/proc/self/mem: Input/output error", capsys.readouterr().err)
