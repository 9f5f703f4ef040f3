"""docs/instructors.md agrees with the code: commands, points, limits."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("nbformat", reason="reading assignments needs nbformat")
pytest.importorskip("nbclient", reason="running submissions needs nbclient")

from accelviz import cli
from accelviz.course.autograde.assignments import find_assignments
from accelviz.course.autograde.border import Limits
from accelviz.course.autograde.cells import is_graded

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "instructors.md").read_text("utf-8")
COMMANDS = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    for line in block.splitlines()
]
INLINE = re.findall(r"`(accelviz assignments [^`]+|release [^`]+|grade --[^`]+)`", PAGE)


@pytest.mark.parametrize("command", [line for line in COMMANDS if "bin/accelviz" in line])
def test_commands_in_code_blocks_are_valid(command):
    words = shlex.split(command)
    start = next(i for i, word in enumerate(words) if word.endswith("bin/accelviz"))
    assert cli._parser().parse_args(words[start + 1 :]).run


@pytest.mark.parametrize("text", INLINE)
def test_commands_in_the_text_are_valid(text):
    words = text.removeprefix("accelviz assignments ").split()
    if len(words) > 1:
        extra = [] if words[0] != "grade" else ["--course", "spring"]
        assert cli._parser().parse_args(["assignments", *words, *extra]).run


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = {line.split()[1] for line in COMMANDS if line.startswith("make ")}
    assert targets >= {"install", "lab"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_points_are_those_of_the_assignments():
    for name, assignment in find_assignments().items():
        short = name.partition("-")[0]
        (row,) = re.findall(rf"^\| {short} \| [^|]+ \| (\d+)", PAGE, re.M)
        cells = [cell for cell in assignment.source.cells if is_graded(cell)]
        assert sum(cell.metadata["nbgrader"]["points"] for cell in cells) == int(row)


def test_the_limits_are_the_defaults():
    limits, output = Limits(), "what a cell prints or shows (text, PNG, JPEG alone)"
    for text in (
        f"| time of a cell | {limits.cell_seconds:g} s | `--cell-seconds`",
        f"| time of a submission | {limits.seconds:g} s | `--seconds`",
        f"| memory of a process | {limits.memory_gib:g} GiB of address space",
        f"| its files | {limits.file_mib} MiB each",
        f"| {output} | {limits.output_bytes // 10**6} MB",
    ):
        assert text in PAGE, text
