"""Tools of lessons: graphs of given degrees, traces of launches, changed kernels."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import accelviz
from accelviz.course import changed, folded_source, traced, verdict, whole_source
from accelviz.datasets import graph_of_degrees
from accelviz.devices import find_device
from accelviz.errors import ArgumentError
from accelviz.measure import random_inputs

UNAVAILABLE = find_device("emulator").unavailable_reason()


def test_graphs_of_degrees_share_all_columns_or_none():
    together, apart = (graph_of_degrees([2, 0, 3], apart=apart) for apart in (False, True))
    assert together.column_indices.tolist() == [0, 1, 0, 1, 2]
    assert apart.column_indices.tolist() == [0, 1, 2, 3, 4]
    assert (together.shape, apart.shape) == ((3, 3), (3, 5))


@pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
def test_a_launch_is_traced_block_by_block():
    plan = accelviz.plan(graph_of_degrees([1] * 5), "graphblast", 40)  # two tiles of two blocks
    accesses = traced(plan)
    X = random_inputs(plan.operation, plan.pattern, plan.widths)
    expected = [accelviz.trace(plan, *X, block=number) for number in range(4)]
    pd.testing.assert_frame_equal(accesses, pd.concat(expected, ignore_index=True))


def test_without_a_compiler_a_trace_is_empty(monkeypatch):
    kind = type(find_device("emulator"))
    monkeypatch.setattr(kind, "unavailable_reason", lambda *_: "there is no compiler")
    accesses = traced(accelviz.plan(graph_of_degrees([1]), "graphblast", 1))
    assert len(accesses) == 0
    assert {"warp", "lane", "array"} <= {*accesses.columns}


@pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
def test_a_changed_kernel_has_a_verdict():
    graph = graph_of_degrees([1, 2, 3])
    plan = accelviz.plan(graph, "row_thread", 2)
    X = random_inputs(plan.operation, plan.pattern, plan.widths)[0]
    assert "__global__" in whole_source(plan)
    assert verdict(plan, graph, X) == verdict(changed(plan), graph, X) == "right"
    assert verdict(changed(plan, ("sum += ", "sum -= ")), graph, X).startswith("WRONG")
    few = changed(plan, ("if (row >= n_rows) return;", "if (row != 0) return;"))
    assert verdict(few, graph, X).startswith("WRONG: Y[1, 0] is nan")
    late = changed(plan, ("if (row >= n_rows) return;", ""))
    said, line = verdict(late, graph, X).split("\n")
    assert "out of bounds" in said
    assert "row_pointers[row" in line
    with pytest.raises(ArgumentError, match="is there 0 times"):
        changed(plan, ("nowhere", ""))


def test_lesson_7_quotes_the_kernel_as_it_is():
    lesson = Path(__file__).parents[1] / "notebooks" / "07-a-cuda-kernel.ipynb"
    cells = json.loads(lesson.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    seen = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
    quoted = "// …\n".join(re.findall(r"```cuda\n(.*?)```", seen, re.S)).split("// …\n")
    plan = accelviz.plan(graph_of_degrees([1]), "accel_gcn", 1)
    kernel = "\n".join(line.strip() for line in whole_source(plan).splitlines())
    assert len(quoted) == 4
    for lines in quoted:
        assert "\n".join(line.strip() for line in lines.splitlines()) in kernel, lines


def test_a_folded_source_is_the_whole_kernel_as_text():
    plan = accelviz.plan(graph_of_degrees([1]), "accel_gcn", 1)
    page = folded_source(plan).data
    lines = whole_source(plan).splitlines()
    assert page.startswith(f"<details><summary>The whole kernel, {len(lines)} lines</summary>")
    assert "   1  #include &quot;common.cuh&quot;\n" in page
    assert f"{len(lines):4d}  {lines[-1]}</pre></details>" in page
