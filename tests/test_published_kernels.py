"""The program that counts which kernels of public repositories the emulator compiles."""

import sys
from pathlib import Path

import pytest

from tests.compilers import needs_compiler

pytestmark = needs_compiler

FOLDER = Path(__file__).parents[1] / "benchmarks" / "checkers"

MAIN = """#include "k.h"
#include "scaled.cuh"
#define WIDTH 4
constexpr int ROWS = WIDTH * 2;
__global__ void declared(int *Y);
template <int N> __global__ void fill(int *Y) {
    static_assert(N == 8, "");
    Y[threadIdx.x % N] = N;
}
#ifdef NEVER
__global__ void absent(int *Y) { *Y = 1; }
#endif
__global__ void beyond(int *Y, int n) { Y[1 << 20] = n; }
void run(int *Y) { fill<ROWS><<<1, 32>>>(Y); }
"""
REFUSED = "__global__ void refused(int *Y) { *Y = from_nowhere; }\n"
SCALED = "__global__ void scaled(float *Y) { Y[threadIdx.x] *= SCALE; }\n"


def test_kernels_of_a_checkout_are_compiled_and_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import published

    folder = tmp_path / "project"
    (folder / "include").mkdir(parents=True)
    (folder / "main.cu").write_text(MAIN)
    (folder / "refused.cu").write_text(REFUSED)
    (folder / "scaled.cuh").write_text(SCALED)
    (folder / "include" / "k.h").write_text("#define SCALE 2\n")
    (folder / "notes.cu").write_text(SCALED)
    entry = {"name": "someone/project", "include": {"": ["include"]}}
    entry["excluded"] = {"notes": "no code"}
    repository = published.Repository.of(entry, tmp_path)
    rows = [published.row(repository, *one) for one in repository.kernels()]
    results = {row["kernel"]: (row["outcome"], row["ended"]) for row in rows}
    assert results == {
        "fill": ("compiled", "end"),
        "absent": ("left out", ""),
        "refused": ("refused", ""),
        "beyond": ("compiled", "out-of-bounds"),
        "scaled": ("compiled", "end"),
    }
    assert {row["instance"] for row in rows} >= {"fill<((4) * 2)>", "beyond"}
    assert "someone/project: 3 of 4 (75.0 %), 2 end" in published.summary(rows)
    with pytest.raises(SystemExit, match="git clone https://github.com/someone/other"):
        published.Repository.of({"name": "someone/other"}, tmp_path)
    sys.modules.pop("published")
