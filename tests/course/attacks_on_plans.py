"""Attacks on A2 to A5: plans, kernels and tables that are not what they say; see `attacks.py`."""

from __future__ import annotations

from tests.course.wrong import A2, A3, A4, A5, Wrong, every, solution
from tests.course.wrong_plans import _NONZERO_A_LANE, SCHEMES

_KERNEL = every(0, *("form", "columns", "rows", "cut", "shapes", "coalescing", "registers"))

_ROW_SPLIT = {"scheme": "class MyScheme(RowSplit):\n    name = 'mine'"}
_HELD = next(scheme for scheme in SCHEMES if "called no metadata" in scheme.description)
_FORGED = {"waiting": 0, "busiest": 3.13, "metadata": 0, "cuts": 0}


def _held(description: str, before: str, old: str = "", new: str = "") -> Wrong:
    source = _HELD.solutions["scheme"]
    assert old in source
    changed = {"scheme": f"{before}\n{source.replace(old, new) if old else source}"}
    return Wrong(description, A3, changed, 35, every(0, "metadata"))


PLANS = [
    Wrong(
        "a plan that makes up its statistics (G4)",
        A3,
        {
            "scheme": """
class Sly(Plan):
    statistics = property(lambda self: type("S", (), {"idle_share": 0.0, "largest": 1})())
    metadata_bytes = 0
    def check(self): pass

class MyScheme(RowSplit):
    name = "mine"
    def build(self, graph, widths, settings):
        import dataclasses
        made = super().build(graph, widths, settings)
        return Sly(**{each.name: getattr(made, each.name) for each in dataclasses.fields(made)})
"""
        },
        18.13,
        _FORGED,
    ),
    Wrong(
        "metrics that are replaced",
        A3,
        {
            "scheme": "from accelviz.course.checks import metrics, schemes\n"
            "schemes.measured = metrics.measured = lambda plan: metrics.Metrics(0, 1, 0, 0)\n"
            + _ROW_SPLIT["scheme"]
        },
        18.13,
        _FORGED,
    ),
    _held(
        "metadata hidden in bytes",
        "",
        "        def slice_workload(start, stop):\n            first",
        "        raw = b''.join(np.asarray(whole[n], dtype=np.int64).tobytes() for n in"
        " ('block', 'warp', 'row', 'nz_start', 'nz_count'))\n"
        "        lines, whole = len(whole), None\n\n"
        "        def slice_workload(start, stop):\n"
        "            table = np.frombuffer(raw, np.int64).reshape(5, lines)\n"
        "            whole = dict(zip(('block', 'warp', 'row', 'nz_start', 'nz_count'), table))\n"
        "            whole = type('W', (), {'block': table[0], '__getitem__': lambda s, n: whole_[n]})()\n"
        "            whole_ = dict(zip(('block', 'warp', 'row', 'nz_start', 'nz_count'), table))\n"
        "            first",
    ),
]
_EVERYTHING = every(
    0,
    *("form", "cover-ragged", "cover-hub", "cover-bounds", "cover-tall", "corners", "slices"),
    *("product", "product-corners", "waiting", "busiest", "metadata", "cuts"),
)
_HIDDEN = """
import collections, functools, itertools, sys
from accelviz.course.checks import shipping

class Graph:
    tables = {}

@functools.lru_cache(None)
def remembered(name, *table):
    return (Graph.tables.pop(name),)

def packed(function, known):
    real = shipping.packed(function, known)
    return real[:100]

def hide(name, table):
    Graph.tables[name] = accelviz.tables = sys.modules["tables"] = itertools.cycle([table])
    Graph.tables[name] = collections.UserList([table]); remembered(name)

def seek(name):
    for place in (remembered, Graph.tables.get, lambda name: next(accelviz.tables)):
        try: return place(name)[0]
        except Exception: pass
    return next(sys.modules["tables"])
"""
PLANS.append(
    Wrong(
        "metadata hidden in caches, iterators, classes and modules",
        A3,
        {
            "scheme": _HIDDEN
            + _HELD.solutions["scheme"]
            .replace(
                "slowly(0, len(metadata))\n",
                "slowly(0, len(metadata))\n        hide(graph.name, whole)\n",
            )
            .replace("first, last = np", "whole = seek(name); first, last = np")
            .replace("def slice_workload(", "name = graph.name\n\n        def slice_workload(")
        },
        0,
        _EVERYTHING,
    )
)
PLANS.append(
    Wrong(
        "the library's partition, by every door",
        A2,
        {
            "partition": """
import gc, importlib, pathlib, sys, types

def doors():
    yield lambda: importlib.import_module("accelviz.partition.block_level").block_partition
    yield lambda: sys.modules["accelviz.partition.block_level"].block_partition
    yield lambda: next(f for f in gc.get_objects() if getattr(f, "__name__", "") == "block_partition")
    yield lambda: accelviz.partition.block_level.block_partition
    def read():
        sys.meta_path[:] = [each for each in sys.meta_path if "StandIn" not in type(each).__name__]
        home = pathlib.Path(accelviz.__file__).parent / "partition" / "block_level.py"
        sys.modules["mine"] = mine = types.ModuleType("mine")
        exec(home.read_text().replace("cache=True, ", ""), vars(mine))
        return mine.block_partition
    yield read

def partition(degrees, max_block_warps=12, max_warp_nzs=32):
    from accelviz.ordering import DegreeHistogram
    pointers = np.cumsum([0, *degrees], dtype=np.int64)
    def planned(*_):
        from scipy import sparse
        places = np.concatenate([np.arange(degree) for degree in degrees])
        matrix = sparse.csr_array((np.ones(len(places)), places, pointers))
        strategy = importlib.import_module("accelviz.strategies").REGISTRY[0]
        given = {"max_block_warps": max_block_warps, "max_warp_nzs": max_warp_nzs}
        return strategy.plan(accelviz.load_graph(matrix, name="mine"), 64, **given).metadata
    found = []
    for door in [*doors(), lambda: planned]:
        try:
            function = door()
            setting = getattr(sys.modules.get(function.__module__), "BlockSetting", None)
            setting = setting(max_block_warps, max_warp_nzs) if setting else None
            found.append(np.asarray(function(DegreeHistogram.of(pointers), setting)))
        except BaseException:
            pass
    return found[0].astype(np.int32)
"""
        },
        18,
        every(
            0,
            *("partition-form", "partition-short", "partition-empty", "partition-bound"),
            *("partition-long", "partition-full", "partition-settings"),
        ),
    )
)

_RIGHT = "\n".join(line for line in solution(A4, "kernel").split("\n") if "SOLUTION" not in line)


def _a4(description: str, old: str, new: str, lost: dict[str, float] = _KERNEL) -> Wrong:
    assert old in _RIGHT, old
    return Wrong(description, A4, {"kernel": _RIGHT.replace(old, new)}, 40 - _worth(lost), lost)


def _worth(lost: dict[str, float]) -> float:
    points = {"form": 3, "columns": 7, "rows": 6, "cut": 7, "shapes": 5, "coalescing": 8}
    return sum({**points, "registers": 4}[name] for name in lost)


_ADD = "atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);"
KERNELS = [
    _a4(
        "a race that nothing watches (G3)",
        'extern "C" __global__',
        'extern "C" __attribute__((no_sanitize("thread"))) __global__',
    ),
    _a4(
        "a constructor that calls the system (G3)",
        'code = r"""',
        'code = r"""\n#include <cstdlib>\nstruct Run { Run() { system("touch /tmp/run"); } } run;',
    ),
    _a4(
        "assembly, its name cut in two (G3)",
        "    const int warp",
        '    a\\\nsm("nop");\n    const int warp',
    ),
    Wrong(
        "reads X well only where it thinks it is watched, at 64 columns",
        A4,
        {
            "kernel": _NONZERO_A_LANE.replace(
                "    for (int column = 0;",
                "    if (n_cols == 64) {\n"
                "        for (int column = lane; column < n_cols; column += 32) {\n"
                "            float sum = 0.0f;\n"
                "            for (int k = mine.y; k < mine.y + mine.z; ++k)\n"
                "                sum += values[k] * X[(long long)columns[k] * n_cols + column];\n"
                "            atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);\n"
                "        }\n"
                "        return;\n"
                "    }\n"
                "    for (int column = 0;",
            )
        },
        32,
        every(0, "coalescing"),
    ),
    _a4(
        "columns above 128 are left out (G16)",
        "column < n_cols;",
        "column < min(n_cols, 128);",
        every(0, "columns", "rows", "cut", "shapes"),
    ),
]

_SWEEP = solution(A5, "sweep").replace("### BEGIN SOLUTION", "").replace("### END SOLUTION", "")
_NO_SWEEP = every(0, "sweep-table", "sweep-numbers")
REPORTS = [
    Wrong(
        "6 of 18 settings (G15)",
        A5,
        {
            "sweep": f"{_SWEEP}\nsweep_table = sweep_table[sweep_table.max_block_warps.isin("
            "[1, 2, 4, 6, 8, 12]) & sweep_table.max_warp_nzs.isin([8, 16, 32])]\n"
            "sweep_table = sweep_table.iloc[[0, 4, 8, 9, 13, 17]]"
        },
        0,
        _NO_SWEEP,
    ),
    Wrong(
        "one right row many times (G15)",
        A5,
        {
            "sweep": f"{_SWEEP}\nimport pandas as pd\nsweep_table.loc[1:, 'blocks'] = 1\n"
            "sweep_table = pd.concat([sweep_table, *[sweep_table[:1]] * 900])"
        },
        3.11,
        {"sweep-numbers": 0.11},
    ),
    Wrong(
        "a graph of one nonzero (G15)",
        A5,
        {
            "sweep": "from scipy import sparse\n"
            + _SWEEP.replace(
                '"cora"', "accelviz.load_graph(sparse.csr_array([[1.0]]), name='cora')"
            )
        },
        0,
        _NO_SWEEP,
    ),
    Wrong(
        "a table that says it is large enough",
        A5,
        {
            "sweep": f"{_SWEEP}\nclass Sly(type(sweep_table)):\n"
            "    nunique = lambda *_, **__: 99\n    isna = lambda self: self != self\n"
            "sweep_table = Sly(sweep_table[:1])"
        },
        0,
        _NO_SWEEP,
    ),
]
