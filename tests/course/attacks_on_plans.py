"""Attacks on A2 to A5: deceptive plans, kernels and tables; see `attacks.py`."""

from __future__ import annotations

from tests.course import wrong_answers
from tests.course.wrong import A2, A3, A4, A5, table

_NONZERO_A_LANE = next(
    code
    for wrong in wrong_answers.WRONG
    if "a lane for each nonzero" in wrong.description
    for code in wrong.solutions.values()
)

PLANS = [
    *table(
        A3,
        """
# scheme: a partition that lies about its sizes, and metrics that are replaced (G4)
= waiting busiest=3.13 metadata cuts
+ from accelviz.course.checks import metrics, schemes
+ metrics.measured = lambda plan: metrics.Metrics(0, 1, 0, 0)
+ schemes.compared = metrics.compared = lambda *_: (metrics.Metrics(1, 1, 1, 1),) * 4
+
+ class MyScheme(RowSplit):
+     name = "mine"
+     statistics = property(lambda self: type("S", (), {"idle_share": 0.0, "largest": 1})())
+     metadata_bytes = 0
+     def build(self, graph, widths, settings):
+         return accelviz.plan(graph, "accel_gcn", **widths)
# scheme: records whose end wraps around, so that each seems to lie in its row
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
- return Workload(*np.array(lines, dtype=np.int64).reshape(-1, 5).T)
+ table = np.array(lines, dtype=np.int64).reshape(-1, 5)
+         table[table[:, 4] > 1, 3] = 2**63 - 1
+         return Workload(*table.T)
# scheme: warps of -2**63, which are 0 in 32 bits
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
- return Workload(*np.array(lines, dtype=np.int64).reshape(-1, 5).T)
+ table = np.array(lines, dtype=np.int64).reshape(-1, 5)
+         table[table[:, 1] == 0, 1] = -(2**63)
+         return dict(zip(("block", "warp", "row", "nz_start", "nz_count"), table.T))
# scheme: metadata that say they have no bytes
= metadata
- reshape(-1, 3)
+ reshape(-1, 3).astype(np.int64)
+         metadata = metadata.repeat(20, axis=1)[:, ::20].copy()
+         class Sly(np.ndarray):
+             nbytes = itemsize = size = 0
+         metadata = np.concatenate([metadata] * 20, axis=1).view(Sly)
- metadata[block].tolist()
+ metadata[block].tolist()[:3]
# scheme: metadata that are no numbers
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
- len(metadata), self.block_warps, metadata,
+ len(metadata), self.block_warps, metadata.astype(str),
- metadata[block].tolist()
+ map(int, metadata[block])
# scheme: metadata hidden in the object, caches, iterators, classes, modules and files
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
- class MyScheme
+ import functools, itertools, pathlib, pickle, sys, tempfile
+ from accelviz.course import scheme as library
+
+ class Tables:
+     tables = {}
+
+ @functools.lru_cache(None)
+ def remembered(matrix):
+     return Tables.tables.pop(0)
+
+ FILES = [pathlib.Path(name, "table") for name in (".", tempfile.gettempdir(), pathlib.Path.home())]
+
+ def hide(table):
+     Tables.tables[0] = Tables.table = accelviz.table = library.table = table
+     sys.modules["table"] = itertools.cycle([table])
+     remembered(0)
+     for path in FILES:
+         try: path.write_bytes(pickle.dumps(table))
+         except OSError: pass
+
+ def seek():
+     for find in (lambda: remembered(0), lambda: Tables.table, lambda: accelviz.table,
+                  lambda: library.table, lambda: next(sys.modules["table"]),
+                  *(functools.partial(lambda path: pickle.loads(path.read_bytes()), p)
+                    for p in FILES)):
+         try: return find()
+         except Exception: pass
+
+ class MyScheme
- reshape(-1, 3)
+ reshape(-1, 3)
+         hide(metadata); self.table = metadata
- metadata, order,
+ None, order,
- bound, pointers, lines
+ metadata = getattr(self, "table", None)
+         metadata = seek() if metadata is None else metadata
+         bound, pointers, lines
""",
    ),
    *table(
        A2,
        """
# partition: the library's partition, by every door
= partition-form partition-short partition-empty partition-bound partition-long partition-full
= partition-settings
+ import gc, importlib, pathlib, sys, types
+
+ def doors():
+     yield lambda: importlib.import_module("accelviz.partition.block_level").block_partition
+     yield lambda: sys.modules["accelviz.partition.block_level"].block_partition
+     yield lambda: next(f for f in gc.get_objects() if getattr(f, "__name__", "") == "block_partition")
+     yield lambda: accelviz.partition.block_level.block_partition
+     def read():
+         sys.meta_path[:] = [each for each in sys.meta_path if "StandIn" not in type(each).__name__]
+         home = pathlib.Path(accelviz.__file__).parent / "partition" / "block_level.py"
+         sys.modules["mine"] = mine = types.ModuleType("mine")
+         exec(home.read_text().replace("cache=True, ", ""), vars(mine))
+         return mine.block_partition
+     yield read
+
+ def partition(degrees, max_block_warps=12, max_warp_nzs=32):
+     from accelviz.ordering import DegreeHistogram
+     pointers = np.cumsum([0, *degrees], dtype=np.int64)
+     def planned(*_):
+         from scipy import sparse
+         places = np.concatenate([np.arange(degree) for degree in degrees])
+         matrix = sparse.csr_array((np.ones(len(places)), places, pointers))
+         strategy = importlib.import_module("accelviz.strategies").REGISTRY[0]
+         given = {"max_block_warps": max_block_warps, "max_warp_nzs": max_warp_nzs}
+         return strategy.plan(accelviz.load_graph(matrix, name="mine"), 64, **given).metadata
+     found = []
+     for door in [*doors(), lambda: planned]:
+         try:
+             function = door()
+             setting = getattr(sys.modules.get(function.__module__), "BlockSetting", None)
+             setting = setting(max_block_warps, max_warp_nzs) if setting else None
+             found.append(np.asarray(function(DegreeHistogram.of(pointers), setting)))
+         except BaseException:
+             pass
+     return found[0].astype(np.int32)
# info: the judge's answers
= info-form info-hidden partition-form decode-form
+ from accelviz.course.checks.blocks import right_pack_info as pack_info
+ from accelviz.course.checks.remote import RIGHT_HELPERS
+
+ def unpack_info(info): return RIGHT_HELPERS["unpack_info"](info)
""",
    ),
]

_SUM = """\
# kernel: reads X well only where it thinks it is watched, at 64 columns
= coalescing
-     for (int column = 0;
+     if (n_cols == 64) {
+         for (int column = lane; column < n_cols; column += 32) {
+             float sum = 0.0f;
+             for (int k = mine.y; k < mine.y + mine.z; ++k)
+                 sum += values[k] * X[(long long)columns[k] * n_cols + column];
+             atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);
+         }
+         return;
+     }
+     for (int column = 0;
"""
_BY_VALUE = """\
# kernel: a nonzero a lane, whose reads hide in arguments of calls beside others that do nothing
= coalescing
- extern "C"
+ struct Wide { float v[32]; };
+ __device__ __noinline__ float pick(Wide wide, int c) { return wide.v[c]; }
+ extern "C"
-     for (int column = lane;
+     if (n_cols % 32 == 0) {
+         const bool has = lane < mine.z;
+         const int mine_k = has ? mine.y + lane : mine.y;
+         const float *x = X + (long long)columns[mine_k] * n_cols;
+         float nothing = 0.0f;
+         for (int k = 0; k < mine.z; ++k)
+             for (int c = lane; c < n_cols; c += 32)
+                 nothing += X[(long long)columns[mine.y + k] * n_cols + c];
+         if (nothing == 1234567.25f) return;
+         for (int c = 0; c < n_cols; ++c) {
+             float sum = has ? values[mine_k] * pick(*(const Wide *)(x + c / 32 * 32), c % 32) : 0;
+             for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
+             if (lane == 0) atomicAdd(&Y[(long long)mine.x * n_cols + c], sum);
+         }
+         return;
+     }
+     for (int column = lane;
"""
KERNELS = [
    *table(
        A4,
        r'''
# kernel: a race that nothing watches (G3)
= form columns rows cut shapes coalescing registers
- extern "C" __global__
+ extern "C" __attribute__((no_sanitize("thread"))) __global__
# kernel: a constructor that calls the system (G3)
= form columns rows cut shapes coalescing registers
- code = r"""
+ code = r"""
+ #include <cstdlib>
+ struct Run { Run() { system("touch /tmp/run"); } } run;
# kernel: assembly, its name cut in two (G3)
= form columns rows cut shapes coalescing registers
-     const int warp
+     a\
+ sm("nop");
+     const int warp
# kernel: a race that nothing watches, by a macro of the host's C library
= form columns rows cut shapes coalescing registers
- extern "C"
+ __CONCAT(__attri, bute__)((no_sanitize("thread"))) __device__ void add(float *y, float x) {
+     *y += x;
+ }
+ extern "C"
- atomicAdd
+ add
# kernel: columns above 128 are left out (G16)
= columns rows cut shapes
- column < n_cols;
+ column < min(n_cols, 128);
''',
    ),
    *table(A4, _SUM, {"kernel": _NONZERO_A_LANE}),
    *table(A4, _BY_VALUE),
]

REPORTS = table(
    A5,
    """
# sweep: 6 of 18 settings (G15)
= sweep-table sweep-numbers
+ ...
+ sweep_table = sweep_table[sweep_table.max_block_warps.isin([1, 2, 4, 6, 8, 12])
+                           & sweep_table.max_warp_nzs.isin([8, 16, 32])]
+ sweep_table = sweep_table.iloc[[0, 4, 8, 9, 13, 17]]
# sweep: one right row many times (G15)
= sweep-numbers=0.11
+ ...
+ import pandas as pd
+ sweep_table.loc[1:, 'blocks'] = 1
+ sweep_table = pd.concat([sweep_table, *[sweep_table[:1]] * 900])
# sweep: a graph of one nonzero (G15)
= sweep-table sweep-numbers
- graph = "cora"
+ from scipy import sparse
+ graph = accelviz.load_graph(sparse.csr_array([[1.0]]), name='cora')
# sweep: one right row as texts that are other settings
= sweep-table sweep-numbers
+ ...
+ row = sweep_table[:1].assign(strategy="accel_gcn").astype(object)
+ rows = [row.assign(max_block_warps=f"{zeros}1", max_warp_nzs=f"{more}8")
+         for zeros in ("", "0", "00", " ", "+", "000") for more in ("", "0", "00")]
+ sweep_table = __import__("pandas").concat(rows)
# sweep: settings that are almost equal
= sweep-table sweep-numbers
+ ...
+ sweep_table = sweep_table[sweep_table.max_warp_nzs.isin([8, 16, 32])]
+ sweep_table = sweep_table.assign(max_block_warps=1 + sweep_table.max_block_warps * 1e-12)
# sweep: a table that says it is large enough
= sweep-table sweep-numbers
+ ...
+ class Sly(type(sweep_table)):
+     nunique = lambda *_, **__: 99
+     isna = lambda self: self != self
+ sweep_table = Sly(sweep_table[:1])
""",
)
