"""Wrong submissions of A3 and A4."""

from __future__ import annotations

from tests.course.wrong import A3, A4, Wrong, changed, every

_COVER = ("cover-ragged", "cover-hub", "cover-bounds", "cover-tall")
_SCHEME = ("form", *_COVER, "corners", "slices", "product", "product-corners")
_METRICS = ("waiting", "busiest", "metadata", "cuts")
_KERNEL = ("form", "columns", "rows", "cut", "shapes", "coalescing", "registers")

_ROWS_BY_DEGREE = """
class MyScheme(Strategy):
    operation = SPMM
    name = "sorted rows"
    summary = "a warp a row, rows by degree"

    def build(self, graph, widths, settings):
        permutation = accelviz.degree_sort(graph)
        walked, nonzero_order = permutation.apply_to_pattern(graph.pattern)

        def slice_workload(start, stop):
            rows = np.arange(start * 4, min(stop * 4, graph.n_rows))
            counts = walked.degrees[rows]
            return Workload(rows // 4, rows % 4, rows, walked.row_pointers[rows], counts)

        return Plan(
            Layout(graph.pattern, slice_workload, walked, permutation, nonzero_order),
            (Call(LaunchConfig((-(-graph.n_rows // 4), 1, 1), 4)),),
            Buffers(zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )
"""
_EQUAL_SHARES = """
class MyScheme(Strategy):
    operation = SPMM
    name = "equal shares"
    summary = "32 nonzeros a warp, wherever rows end"

    def build(self, graph, widths, settings):
        pointers, warps = graph.row_pointers, -(-graph.nnz // 32)

        def slice_workload(start, stop):
            lines = []
            for warp in range(start * 8, min(stop * 8, warps)):
                first, last = warp * 32, min((warp + 1) * 32, graph.nnz)
                row = int(np.searchsorted(pointers, first, side="right")) - 1
                while first < last:
                    end = min(last, int(pointers[row + 1]))
                    if end > first:
                        lines.append((warp // 8, warp % 8, row, first, end - first))
                    first, row = end, row + 1
            return Workload(*np.array(lines, dtype=np.int64).reshape(-1, 5).T)

        return Plan(
            Layout(graph.pattern, slice_workload),
            (Call(LaunchConfig((-(-warps // 8), 1, 1), 8)),),
            Buffers(zero_outputs=("Y",)),
            Provenance(self, graph.values, widths, settings),
        )
"""

SCHEMES = [
    Wrong(
        "the example under another name",
        A3,
        {"scheme": "class MyScheme(RowSplit):\n    name = 'mine'"},
        18.13,
        {"waiting": 0, "busiest": 3.13, "metadata": 0, "cuts": 0},
    ),
    Wrong(
        "a warp a row, rows by degree",
        A3,
        {"scheme": _ROWS_BY_DEGREE},
        32.88,
        {"waiting": 6.21, "busiest": 3.13, "metadata": 3.88, "cuts": 4.66},
    ),
    Wrong(
        "equal shares, wherever rows end",
        A3,
        {"scheme": _EQUAL_SHARES},
        36.07,
        {"waiting": 7.96, "metadata": 4.98, "cuts": 2.13},
    ),
    Wrong(
        "rows without nonzeros are never written",
        A3,
        changed(A3, "scheme", ('zero_outputs=("Y",)', "zero_outputs=()")),
        35,
        every(0, "product", "product-corners"),
    ),
    Wrong(
        "the last block is lost",
        A3,
        changed(A3, "scheme", ("len(metadata), 1, 1", "max(0, len(metadata) - 1), 1, 1")),
        0,
        every(0, *_SCHEME, *_METRICS),
    ),
    Wrong(
        "the last nonzero of a long row is lost where it is alone in its block",
        A3,
        changed(
            A3, "scheme", ("range(0, int(degrees[row]), b", "range(0, int(degrees[row]) - 1, b")
        ),
        25,
        {
            **every(0, "cover-bounds", "corners", "slices", "product", "product-corners"),
            "waiting": 6.4,
            "busiest": 4.8,
            "metadata": 4,
            "cuts": 4.8,
        },
    ),
    Wrong(
        "works for square matrices",
        A3,
        changed(A3, "scheme", ("while row < graph.n_rows:", "while row < graph.shape[1]:")),
        7,
        {
            **every(0, *_COVER, "corners", "slices", "product", "product-corners"),
            "waiting": 1.6,
            "busiest": 1.2,
            "metadata": 1,
            "cuts": 1.2,
        },
    ),
    Wrong(
        "blocks are counted from the slice's first",
        A3,
        changed(A3, "scheme", ("lines.append((block, warp", "lines.append((block - start, warp")),
        38,
        every(0, "slices"),
    ),
    Wrong(
        "blocks of one warp",
        A3,
        changed(A3, "scheme", ("block_warps, warp_nzs = 12, 32", "block_warps, warp_nzs = 1, 32")),
        0,
        every(0, *_SCHEME, *_METRICS),
    ),
    Wrong(
        "Accel-GCN under another name",
        A3,
        {
            "scheme": "class MyScheme(Strategy):\n"
            "    operation = SPMM\n"
            "    name = 'mine'\n\n"
            "    def build(self, graph, widths, settings):\n"
            "        return accelviz.plan(graph, 'accel_gcn', **widths)"
        },
        0,
        every(0, *_SCHEME, *_METRICS),
    ),
    Wrong(
        "the whole workload is held, and called no metadata",
        A3,
        changed(
            A3,
            "scheme",
            ("def slice_workload(start, stop):", "def slowly(start, stop):"),
            (
                "        return Plan(",
                "        whole = slowly(0, len(metadata))\n\n"
                "        def slice_workload(start, stop):\n"
                "            first, last = np.searchsorted(whole.block, [start, stop])\n"
                "            names = ('block', 'warp', 'row', 'nz_start', 'nz_count')\n"
                "            return Workload(*(whole[name][first:last] for name in names))\n\n"
                "        return Plan(",
            ),
            ("                metadata=metadata,\n", ""),
        ),
        35,
        every(0, "metadata"),
    ),
]

_NONZERO_A_LANE = '''
code = r"""
extern "C" __global__ void spmm_runs(const int4 *metadata, const int *columns,
                                     const float *values, const float *X, float *Y,
                                     int n_runs, int n_cols) {
    const int run = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (run >= n_runs) return;
    const int4 mine = metadata[run];
    for (int column = 0; column < n_cols; ++column) {
        float product = 0.0f;
        if (lane < mine.z) {
            const int k = mine.y + lane;
            product = values[k] * X[(long long)columns[k] * n_cols + column];
        }
        for (int step = 16; step > 0; step /= 2) {
            product += __shfl_down_sync(0xffffffffu, product, step);
        }
        if (lane == 0) atomicAdd(&Y[(long long)mine.x * n_cols + column], product);
    }
}
"""
'''
_ADD = "atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);"
KERNELS = [
    Wrong(
        "wrong where the columns are no multiple of 32: lanes run past the row's end",
        A4,
        changed(
            A4,
            "kernel",
            (
                "for (int column = lane; column < n_cols; column += 32)",
                "for (int first = 0, column = lane; first < n_cols; first += 32, column += 32)",
            ),
        ),
        33,
        every(0, "columns"),
    ),
    Wrong(
        "wrong where the columns are no multiple of 32: the last ones are left out",
        A4,
        changed(A4, "kernel", ("column < n_cols;", "column < n_cols / 32 * 32;")),
        33,
        every(0, "columns"),
    ),
    Wrong(
        "a race on a row that several warps share",
        A4,
        changed(
            A4, "kernel", (_ADD, _ADD.replace("atomicAdd(&", "").replace("], sum)", "] += sum"))
        ),
        18,
        every(0, "form", "cut", "coalescing", "registers"),
    ),
    Wrong(
        "the last block's idle warps read past the metadata",
        A4,
        changed(A4, "kernel", ("    if (run >= n_runs) return;\n", "")),
        31,
        every(0, "form", "rows"),
    ),
    Wrong(
        "a last block that is not full is left out",
        A4,
        changed(A4, "kernel", ("(run >= n_runs)", "(run >= n_runs / BLOCK_WARPS * BLOCK_WARPS)")),
        31,
        every(0, "form", "rows"),
    ),
    Wrong(
        "each nonzero is added to Y on its own",
        A4,
        changed(
            A4,
            "kernel",
            ("            sum += ", "            const float sum = "),
            ("n_cols + column];\n        }", f"n_cols + column];\n            {_ADD}\n        }}"),
            (f"        }}\n        {_ADD}", "        }"),
            ("        float sum = 0.0f;\n", ""),
        ),
        36,
        every(0, "registers"),
    ),
    Wrong(
        "a lane for each nonzero: each reads another row of X",
        A4,
        {"kernel": _NONZERO_A_LANE},
        32,
        every(0, "coalescing"),
    ),
    Wrong(
        "a barrier is missing",
        A4,
        changed(
            A4,
            "kernel",
            (
                "    const int4 mine = metadata[run];",
                "    __shared__ int4 all[BLOCK_WARPS];\n"
                "    if (lane == 0) all[warp] = metadata[run];\n"
                "    const int4 mine = all[warp];",
            ),
        ),
        0,
        every(0, *_KERNEL),
    ),
    Wrong(
        "it does not compile",
        A4,
        changed(A4, "kernel", ("sum = 0.0f;", "sum = 0.0f")),
        0,
        every(0, *_KERNEL),
    ),
]
