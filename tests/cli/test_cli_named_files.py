"""No command writes over what it reads: every option that names a file, found in the parser."""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from toy_files import LABELLED, conll

from trellis.cli import main as entry
from trellis.cli.main import parser
from trellis.cli.named_files import (
    DictionaryFile,
    InputFile,
    NamedFile,
    OutputFile,
    OutputFolder,
    ReplacedFile,
    TemplatesText,
    TrainedModel,
)

# Options that take any text, none of it the name of a file. A new option is either of a type or
# stands here: test_every_text_says_what_it_is.
TEXTS = {
    "columns", "group", "label", "skip",  # how an input looks
    "column", "gold", "id", "only", "systems",  # combine; --gold may be a file or a column
    "base", "encoding", "sep", "target",  # regress: columns and more
    "spacing",  # track
}  # fmt: skip


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands, with their arguments."""
    (action,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    for command in action.choices.values():
        command._complete()
    return dict(action.choices)


COMMANDS = commands()


def named(command: str) -> list[argparse.Action]:
    """The arguments of a command that name files."""
    return [
        a
        for a in COMMANDS[command]._actions
        if isinstance(a.type, type) and issubclass(a.type, NamedFile)
    ]


def is_input(action: argparse.Action) -> bool:
    return issubclass(action.type, InputFile | TemplatesText | DictionaryFile)


PAIRS = [
    (command, i, o)
    for command in COMMANDS
    for i in named(command)
    for o in named(command)
    if is_input(i) and not is_input(o)
]
RESULTS = [
    (command, a, b)
    for command in COMMANDS
    for a, b in itertools.combinations([x for x in named(command) if not is_input(x)], 2)
]


def name_of(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else action.dest


def told(case: object) -> str:
    return name_of(case) if isinstance(case, argparse.Action) else str(case)


def line_for(command: str, given: dict[argparse.Action, str]) -> list[str]:
    """A command line with these files, and others where some are needed."""
    words = [command]
    places = []
    for action in COMMANDS[command]._actions:
        value = given.get(action)
        if action.option_strings:
            if value is not None or action.required:
                is_output = action in named(command) and not is_input(action)
                usual = "new.txt" if is_output else "other.txt"
                words += [action.option_strings[-1], value or usual]
        elif not isinstance(action, argparse._HelpAction):
            places.append(value or "other.txt")
    return [*words, "--", *places] if places else words


def value_for(action: argparse.Action, file: Path) -> str:
    """What an argument has to be to name this file."""
    if issubclass(action.type, TemplatesText):
        return f"@{file}"
    if issubclass(action.type, DictionaryFile):
        return f"name={file}"
    if issubclass(action.type, OutputFolder):
        return str(file.parent)
    return str(file)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to be in, with a file that is not the victim; commands that tell when they run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.txt").write_text("other")
    monkeypatch.setattr(sys, "stdin", None)
    ran = []

    def parsed():
        top = parser()
        (action,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
        for name, command in action.choices.items():
            command.set_defaults(run=lambda args, name=name: ran.append(name) or 0)
        return top

    monkeypatch.setattr(sys.modules["trellis.cli.main"], "parser", parsed)
    return tmp_path, ran


def victim_for(folder: Path, output: argparse.Action) -> Path:
    """A file that the output would be written to."""
    if issubclass(output.type, OutputFolder):
        (folder / "results").mkdir()
        return folder / "results" / output.type.names[0]
    return folder / "victim.png"


def test_every_text_says_what_it_is():
    """An option that takes text says by its type whether it names a file, or is known not to."""
    for command, its in COMMANDS.items():
        for action in its._actions:
            if action.type is None and action.choices is None and action.nargs != 0:
                assert action.dest in TEXTS, f"{command}: {name_of(action)} may name a file"


def test_the_commands_are_all_there():
    assert {command for command, *_ in PAIRS} == {
        "train", "prepare", "tune", "tag", "compress", "export", "combine", "regress", "track",
        "inspect", "eval",
    }  # fmt: skip
    assert len(PAIRS) > 30
    assert {(c, name_of(a), name_of(b)) for c, a, b in RESULTS} >= {
        ("tune", "--output", "--log"), ("track", "--output", "--ctc"),
        ("track", "--plot", "--save"),
    }  # fmt: skip


@pytest.mark.parametrize("way", ["same", "dotted", "symbolic link", "hard link", "linked folder"])
@pytest.mark.parametrize(("command", "source", "output"), PAIRS, ids=told)
def test_no_output_is_an_input(place, capsys, command, source, output, way):
    folder, ran = place
    victim = victim_for(folder, output)
    victim.write_text("precious")
    alias = {
        "same": victim,
        "dotted": Path(f"./{victim.relative_to(folder)}"),
        "linked folder": folder / "linked" / victim.relative_to(folder),
    }.get(way, folder / "alias.txt")
    if way == "symbolic link":
        alias.symlink_to(victim)
    elif way == "hard link":
        alias.hardlink_to(victim)
    elif way == "linked folder":
        (folder / "linked").symlink_to(folder)
    given = {source: value_for(source, alias), output: value_for(output, victim)}
    code = entry(line_for(command, given))
    error = capsys.readouterr().err
    if issubclass(source.type, ReplacedFile) and issubclass(output.type, TrainedModel):
        assert (code, ran) == (0, [command])  # a model may be trained further in its place
        return
    assert (code, ran) == (1, []), error
    assert error.count("\n") == 1
    assert " would be written over " in error
    assert error.endswith(", which is read; name another file to write\n")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(("command", "source", "output"), PAIRS, ids=told)
def test_other_files_are_accepted(place, capsys, command, source, output):
    folder, ran = place
    victim = victim_for(folder, output)
    (folder / "input.txt").write_text("x")
    given = {source: value_for(source, folder / "input.txt"), output: value_for(output, victim)}
    assert entry(line_for(command, given)) == 0, capsys.readouterr().err
    assert ran == [command]


@pytest.mark.parametrize("way", ["same", "dotted", "other case", "symbolic link", "composed"])
@pytest.mark.parametrize(("command", "one", "other"), RESULTS, ids=told)
def test_no_two_results_in_one_file(place, capsys, command, one, other, way):
    folder, ran = place
    folders = [a for a in (one, other) if issubclass(a.type, OutputFolder)]
    victim = victim_for(folder, (folders or [one])[0])
    if not folders:
        victim = victim.with_name("résult.png")
    alias = victim
    if way == "dotted":
        alias = Path(f"./{victim.relative_to(folder)}")
    elif way == "other case":  # one file on some systems
        alias = victim.with_name(victim.name.upper())
    elif way == "composed":
        alias = victim.with_name(victim.name.replace("é", "e\u0301"))
    elif way == "symbolic link":
        alias = folder / "alias.png"
        alias.symlink_to(victim)
    last = other if issubclass(one.type, OutputFolder) else one
    first = one if last is other else other
    given = {last: value_for(last, alias), first: value_for(first, victim)}
    assert (entry(line_for(command, given)), ran) == (1, [])
    error = capsys.readouterr().err
    assert error.endswith(" would be written twice; each result needs a file of its own\n")


def test_the_checkpoint_is_an_output(place, capsys):
    folder, ran = place
    (folder / "m.checkpoint").write_text("precious")
    for line in (["m.checkpoint"], ["other.txt", "--warm-start", "m.checkpoint"]):
        assert entry(["train", *line, "-o", "m"]) == 1
        message = "m.checkpoint would be written over m.checkpoint, which is read; "
        assert message in capsys.readouterr().err
    assert entry(["train", "m.checkpoint", "-o", "m", "--no-checkpoint"]) == 0
    assert ran == ["train"]


def test_tables_a_folder_deeper(place, capsys):
    """Which folders --ctc writes to depends on the data, so all that are there count."""
    folder, ran = place
    (folder / "results" / "movie").mkdir(parents=True)
    (folder / "results" / "movie" / "res_track.txt").write_text("precious")
    line = ["track", "results/movie/res_track.txt", "--ctc", "results"]
    assert (entry(line), ran) == (1, [])
    assert "res_track.txt would be written over " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("-", "'-' is no name of a file to write (./- would be one)"),
        ("", "'' is no name of a file to write (./- would be one)"),
        ("/dev/null", "/dev/null is not a regular file; name a file to write"),
        (".", ". is a folder; name a file to write"),
        ("no/x", "cannot write no/x: the folder no does not exist"),
        ("other.txt/x", "cannot write other.txt/x: the folder other.txt does not exist"),
    ],
)
@pytest.mark.parametrize("command", ["train", "tag", "prepare"])
def test_impossible_outputs(place, capsys, command, output, message):
    _, ran = place
    words = ["other.txt"] if command != "tag" else ["model", "other.txt"]
    assert (entry([command, *words, "-o", output]), ran) == (1, [])
    assert capsys.readouterr().err == f"trellis: error: {message}\n"


def test_standard_input_is_one_file(place, capsys):
    _, ran = place
    assert (entry(["train", "-", "--dev", "-", "-o", "m"]), ran) == (1, [])
    message = "trellis: error: standard input can be one file only; name the others\n"
    assert capsys.readouterr().err == message


# ------------------------------------------------------------------------------- as a program


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = line.replace("trellis ", f"{sys.executable} -m trellis ")
    return subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trellis train in.txt -o in.txt", "in.txt would be written over in.txt, which is read"),
        ("trellis prepare in.txt -o ./in.txt", "./in.txt would be written over in.txt, which is"),
        ("trellis train - -o in.txt < in.txt", "in.txt would be written over standard input, "),
        ("trellis tag model -o in.txt < in.txt", "in.txt would be written over standard input, "),
        ("trellis tag model in.txt >> in.txt", "standard output goes to in.txt, which is read; "),
        ("trellis tag model < in.txt >> in.txt", "standard output goes to standard input, which"),
        ("trellis tag model in.txt -o /dev/stdout >> in.txt", "/dev/stdout would be written over"),
    ],
)
def test_through_the_shell(toys, models, tmp_path, line, message):
    (tmp_path / "in.txt").write_bytes((toys / LABELLED["conll"]).read_bytes())
    (tmp_path / "model").write_bytes(models["conll"].read_bytes())
    done = shell(line, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"trellis: error: {message}")
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "in.txt").read_text() == conll()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt", "model"]


def test_roles_are_plain_text():
    assert InputFile("a").read() == ["a"]
    assert OutputFile("a").read() == [] == NamedFile("a").written(argparse.Namespace())
    assert TemplatesText("word[0]").read() == []
    assert DictionaryFile("a=b=c").read() == ["b=c"] and DictionaryFile("a=b").name == "a"
    assert f"{TrainedModel('m')} {TrainedModel('m').checkpoint}" == "m m.checkpoint"
