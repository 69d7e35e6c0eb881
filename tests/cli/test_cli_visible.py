"""Nothing that a command prints for people can act on their terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from trellis import ChainCRF
from trellis.cli.output import one_line, visible

ESC = "\x1b[2J\x1b]0;owned\x07"
HIDDEN = [*map(chr, range(32)), "\x7f", "\x80", "\x9b", "\x9f", "\u202e", "\u2066", "\u200f"]
HIDDEN += ["\u2028", "\u2029", "\ufeff", "\U000e0041", "\u061c", "\xad", "\ud800"]


@pytest.mark.parametrize("c", [c for c in HIDDEN if c not in "\n\t"], ids=ascii)
def test_characters_that_are_escaped(c):
    shown = visible(f"a{c}b")
    assert shown.startswith("a\\")
    assert shown.endswith("b")
    assert shown.isprintable()


@pytest.mark.parametrize(
    "text",
    ["", "plain", "two\nlines\tand tabs", "café 語 עברית", "می\u200cخواهم", "Dos\r\nlines\r\n"],
)
def test_texts_that_stay(text):
    assert visible(text) == text


def test_within_a_line():
    assert one_line("a\nb\r\nc\x1b") == r"a\nb\r\nc\x1b"


def hostile(model, path):
    """A model whose every text wants to clear the screen."""
    words, tags = [[f"w{ESC}", "b"]] * 4, [[f"X{ESC}\nY", "Z\u202e"]] * 4
    model.fit(words, tags).save(path)
    return path


def assert_harmless(result):
    text = result.out + "\n".join(result.err)
    assert all(c in "\n\t" or c.isprintable() for c in text), ascii(text)


def test_inspect(run, tmp_path):
    model = hostile(ChainCRF("word", random_state=0), tmp_path / "m")
    result = run("inspect", model)
    assert result.code == 0
    assert_harmless(result)
    assert r"X\x1b[2J\x1b]0;owned\x07\nY: strongest features" in result.out
    assert r"Z\u202e" in result.out
    assert_harmless(run("inspect", model, "--label", f"no{ESC}"))


def test_eval_and_errors(run, tmp_path):
    model = hostile(ChainCRF("word", random_state=0), tmp_path / "m")
    (tmp_path / "gold.txt").write_text(f"w{ESC} A{ESC}\nb B\u202e\n")
    result = run("eval", "--model", model, tmp_path / "gold.txt")
    assert result.code == 0
    assert_harmless(result)
    assert r"\x1b[2J" in result.out
    (tmp_path / f"bad{ESC}.txt").write_text(f"w{ESC} A B\nb\n")
    for line in (
        ["eval", tmp_path / f"bad{ESC}.txt"],
        ["inspect", tmp_path / f"none{ESC}"],
        ["train", tmp_path / f"bad{ESC}.txt", "-o", tmp_path / f"m{ESC}" / "x"],
        ["train", tmp_path / f"bad{ESC}.txt", "-o", tmp_path / f"bad{ESC}.txt"],
        ["train", "a", "-o", "b", f"--{ESC}"],
        ["tune", "a", "--l2", ESC],
        [ESC],
    ):
        result = run(*line)
        assert result.code in (1, 2)
        assert_harmless(result)


def test_what_commands_say_of_their_work(run, tmp_path):
    (tmp_path / "in.txt").write_text("a X\nb Y\n\n" * 5)
    result = run("train", tmp_path / "in.txt", "-o", tmp_path / f"m{ESC}", "--progress")
    assert result.code == 0
    assert_harmless(result)
    assert r"m\x1b[2J" in result.err[-1]


@pytest.fixture
def tagged(tmp_path):
    """A command that gives labels with controls in them, and what it gives exactly."""
    model = tmp_path / "m"
    ChainCRF("word", random_state=0).fit([["a", "b"]] * 4, [["X\x1b[2J", "Y\u202e"]] * 4).save(
        model
    )
    (tmp_path / "in.txt").write_text("a\nb\n")
    command = [sys.executable, "-m", "trellis", "tag", str(model), str(tmp_path / "in.txt")]
    return command, "a X\x1b[2J\nb Y\u202e\n\n".encode()


def test_labels_are_data_in_files_and_pipes(tagged, tmp_path):
    command, exact = tagged
    assert subprocess.run(command, stdout=-1, check=True).stdout == exact
    subprocess.run([*command, "-o", str(tmp_path / "out")], check=True)
    assert (tmp_path / "out").read_bytes() == exact


def test_labels_on_a_terminal_are_shown(tagged):
    command, _ = tagged
    ours, theirs = pytest.importorskip("pty").openpty()
    try:
        subprocess.run(command, stdout=theirs, check=True)
        shown = os.read(ours, 10_000)
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown.replace(b"\r\n", b"\n") == b"a X\\x1b[2J\nb Y\\u202e\n\n"
