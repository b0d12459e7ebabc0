"""What the pages tell readers to type is accepted: commands by the command line, Python by the parser, names by their modules."""

import ast
import importlib
import re
import shlex

import pytest
from scripts.command_reference import reference
from typer.main import get_command

from gnomon.cli.app import build_app
from tests.docs.pages import DOCS, PAGES, ROOT, blocks, name_of, prose

APP = get_command(build_app())
INLINE = re.compile(r"`(gnomon [^`\n]+)`|^ {4,}(gnomon .+)$", re.MULTILINE)
READ = [page for page in PAGES if page.name != "commands.md"]


def commands_of(text: str) -> list[list[str]]:
    """The gnomon commands of a shell block, as their arguments."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.strip().removeprefix("$ "), posix=True, punctuation_chars="|&;>")
        lexer.whitespace_split = True
        words = list(lexer)
        cut = next((index for index, word in enumerate(words) if set(word) <= set("|&;>")), len(words))
        if words[:1] == ["gnomon"]:
            found.append(words[1:cut])
    return found


def found_command(words):
    """The command that the first words name, and the words after them."""
    command = APP
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def accept(arguments: list[str]) -> None:
    """Parses a command line, options and values, without running it."""
    if arguments == ["--version"]:
        return
    command, rest = found_command(arguments)
    assert command is not APP, f"there is no command {arguments[:1]}"
    command.make_context(command.name, list(rest))


def options_exist(line: str) -> None:
    """For a command named in passing, perhaps without values: the command and its options are there."""
    command, words = found_command(line.split()[1:])
    if command is APP:
        assert not words or not re.fullmatch(r"[a-z]+", words[0]), f"there is no command {words[0]!r}"
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    asked = {word.rstrip(",;.)").partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert asked <= known, f"{line!r} names {sorted(asked - known)}"


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_commands_are_accepted(page):
    for block in blocks(page):
        if block.language in ("bash", "sh", "shell", "console"):
            for arguments in commands_of(block.text):
                accept(arguments)
    for match in INLINE.finditer(prose(page)):
        options_exist(next(group for group in match.groups() if group))


def test_the_check_itself_finds_mistakes():
    accept(["survey", "x", "--length", "64"])
    for wrong in (["survey", "--lenght", "64"], ["survey", "--length", "none"], ["show"]):
        with pytest.raises(Exception, match=r"No such option|valid integer|Missing (argument|parameter)"):
            accept(wrong)
    with pytest.raises(AssertionError, match="--lenght"):
        options_exist("gnomon survey --lenght")
    with pytest.raises(AssertionError, match="no command"):
        options_exist("gnomon surveys RUN")
    assert commands_of("gnomon show 'a b' # remark\npip x\ngnomon runs | head") == [["show", "a b"], ["runs"]]


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_python_is_python_and_its_names_exist(page):
    for block in blocks(page):
        if block.language not in ("python", "py"):
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gnomon":
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}"), alias.name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gnomon":
                assert hasattr(importlib.import_module("gnomon"), node.attr) or importlib.util.find_spec(f"gnomon.{node.attr}")


def test_the_reference_of_commands_is_up_to_date():
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_the_example_of_a_measure_stands_in_its_page_as_it_is():
    example = (ROOT / "examples" / "my_measure.py").read_text(encoding="utf-8").rstrip()
    assert f"```python\n{example}\n```" in (DOCS / "adding-a-measure.md").read_text(encoding="utf-8")
