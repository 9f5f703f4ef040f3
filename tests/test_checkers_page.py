"""docs/emulator.md says what benchmarks/results/checkers-*.csv hold."""

import pandas as pd

from tests.pages import check_page, script


def run(kernel, kind, warps, tool, found, seconds=1.0):
    result = "found" if found else "right"
    return {
        "kernel": kernel,
        "kind": kind,
        "warps": warps,
        "tool": tool,
        "found": found,
        "result": result,
        "seconds": seconds,
        "first_seconds": seconds + 0.5,
        "hardware": "H",
        "software": "S",
        "date": "D",
    }


def test_the_page_is_what_the_script_writes(monkeypatch, tmp_path):
    check_page(script(monkeypatch, "checkers"), tmp_path)


def test_tools_are_compared_on_the_same_runs_and_misses_are_named(monkeypatch):
    names = script(monkeypatch, "checkers")
    four = ("memcheck", "racecheck", "initcheck", "synccheck")
    made = [
        *(run("sum", "late write", 2, tool, tool == "racecheck") for tool in four),
        *(run("sum", "", 2, tool, tool == "initcheck", 2.0) for tool in four),
        run("sum", "late write", 2, "emulator", 0),
        run("sum", "late write", 8, "emulator", 1),  # which no other has
        run("sum", "", 2, "emulator", 0),
    ]
    table = names["four_together"](pd.DataFrame(made))
    lines = names["summary"](names["shared"](table)).splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}
    assert cells["compute-sanitizer, racecheck"] == ["1 of 1", "1 of 1", "0 of 1", "1.50"]
    assert cells["compute-sanitizer, all four"] == ["1 of 1", "1 of 1", "1 of 1", "6.00"]
    assert cells["**emulator**"] == ["0 of 1", "0 of 1", "0 of 1", "1.00"]
    said = names["exceptions"](table)
    assert "The emulator misses: `sum`, late write (2 warps)." in said
    assert "False alarms of initcheck: `sum` (2 warps)." in said
    assert "False alarms of racecheck: none." in said
    assert "3 runs; the tables compare the 2" in names["corpus"](table)
