"""Answers to the exercises that ask for a value, a kernel or a class: wrong ones and right ones.

Each exercise has its notebook, the name that its check reads, and a pattern in which an answer
stands for `{}`. The notebooks have run to their end before an answer is tried.
"""

from typing import NamedTuple


class Exercise(NamedTuple):
    """An exercise with a check of its own."""

    notebook: str
    name: str
    pattern: str
    refused: tuple[str, ...]
    accepted: tuple[str, ...]


GATHER = """
__global__ void gather(const int *columns, const float *X, float *Y) {
    float sum = 0.0f;
    %s
    Y[threadIdx.x] = sum;
}
"""
FOURS = """for (int k = 0; k < 8; k += 4) {
        int c[4];
        float x[4];
        %s
    }"""


def gather(body: str) -> str:
    """Return the expression of a kernel that gathers eight rows."""
    return repr(GATHER % body)


def fours(body: str) -> str:
    """Return the expression of a kernel that walks four columns at a time."""
    return gather(FOURS % body)


ORDER = """class LongestFirst(SortedRows):
    name = "longest_first"
    @staticmethod
    def order(graph):
        {}
"""
PERMUTED = "return accelviz.ordering.Permutation("

EXERCISES = [
    Exercise(
        "05-why-a-warp-waits",
        "four_at_once",
        "four_at_once = {}",
        refused=(
            "one_by_one",
            "one_by_one.replace('k < 8', 'k < 9')",
            "one_by_one.replace(';', '')",
            "one_by_one.replace('for (int', '#pragma unroll 4\\n    for (int')",
            # the last four columns alone
            fours(
                "for (int j = 0; j < 4; ++j) c[j] = columns[k + j];\n"
                "for (int j = 0; j < 4; ++j) x[j] = X[32 * c[j] + threadIdx.x];\n"
                "sum = x[0] + x[1] + x[2] + x[3];"
            ),
            # one element twice
            fours(
                "for (int j = 0; j < 4; ++j) c[j] = columns[k + j];\n"
                "for (int j = 0; j < 4; ++j) x[j] = X[32 * c[j] + threadIdx.x];\n"
                "sum += x[0] + x[1] + x[2] + x[2];"
            ),
            # a column and its element in one loop
            fours(
                "for (int j = 0; j < 4; ++j) { c[j] = columns[k + j];\n"
                "x[j] = X[32 * c[j] + threadIdx.x]; }\n"
                "sum += x[0] + x[1] + x[2] + x[3];"
            ),
            # all eight at once
            gather(
                "int c[8]; float x[8];\n"
                "for (int j = 0; j < 8; ++j) c[j] = columns[j];\n"
                "for (int j = 0; j < 8; ++j) x[j] = X[32 * c[j] + threadIdx.x];\n"
                "for (int j = 0; j < 8; ++j) sum += x[j];"
            ),
            # the columns of the example, written into the kernel
            gather(
                "const int some[8] = {40, 3, 17, 58, 9, 31, 22, 6};\n"
                "for (int k = 0; k < 8; k += 4) { int c[4]; float x[4];\n"
                "for (int j = 0; j < 4; ++j) c[j] = columns[k + j];\n"
                "for (int j = 0; j < 4; ++j) x[j] = X[32 * some[k + j] + threadIdx.x];\n"
                "sum += x[0] + x[1] + x[2] + x[3] + 0 * c[0]; }"
            ),
        ),
        accepted=(
            gather(
                "for (int k = 0; k < 8; k += 4) { const int4 c = *(const int4 *)&columns[k];\n"
                "const float *x = X + threadIdx.x;\n"
                "sum += x[32 * c.x] + x[32 * c.y] + x[32 * c.z] + x[32 * c.w]; }"
            ),
            # the second half first
            gather(
                "for (int k = 4; k >= 0; k -= 4) { int c[4]; float x[4];\n"
                "for (int j = 3; j >= 0; --j) c[j] = columns[k + j];\n"
                "for (int j = 0; j < 4; ++j) x[j] = X[32 * c[j] + threadIdx.x];\n"
                "for (int j = 0; j < 4; ++j) sum += x[j]; }"
            ),
            fours(
                "c[0] = columns[k]; c[1] = columns[k + 1];\n"
                "c[2] = columns[k + 2]; c[3] = columns[k + 3];\n"
                "for (int j = 0; j < 4; ++j) x[j] = (X + threadIdx.x)[c[j] << 5];\n"
                "sum += (x[0] + x[1]) + (x[2] + x[3]);"
            ),
        ),
    ),
    Exercise(
        "08-measuring-honestly",
        "mine",
        "mine = {}",
        refused=(
            '[speedup(table, best, "merge_path") for table in orders.values()]',
            "[speedup(table, best, columns=[64]) for table in orders.values()]",
            '[speedup(table, "merge_path", best, [64]) for table in orders.values()]',
            '[speedup(table, best, "merge_path", [64]) for table in orders.values()][::-1]',
            '[speedup(table, rivals["default"], "merge_path", [64]) for table in orders.values()]',
            'speedup(orders["natural"], best, "merge_path", [64])',
            '[speedup(table, best, "merge_path", [32, 64, 128]) for table in orders.values()]',
            '[speedup(t, best, "merge_path", [64]) for t in (orders["natural"],) * 2]',
        ),
        accepted=(
            '[speedup(orders[name], best, "merge_path", [64]) for name in ("natural", "shuffled")]',
            '[1 / speedup(table, "merge_path", best, [64]) for table in orders.values()]',
            'pd.Series(orders).map(lambda t: speedup(t, best, "merge_path", 64))',
            'np.array([speedup(t, best, columns=(64,), ours="merge_path") for t in '
            "orders.values()]).round(3)",
        ),
    ),
    Exercise(
        "lanes-banks-and-counters",
        "padded",
        "padded = turned.replace({})",
        refused=(
            "'32', '33'",
            "'32][32]', '32][34]'",
            "'32][32]', '40][32]'",
            "'32][32]', '33][32]'",
            "'32][32]', '32][36]'",
            "'32][32]', '32][31]'",
            "'32][32]', '32][48]'",
            "'32][32]', '64][32]'",
        ),
        accepted=(
            "'32][32]', '32][35]'",
            "'tile[32][32]', 'tile[32][32 + 1]'",
            "'32][32]', '32][63]'",
        ),
    ),
    Exercise(
        "what-only-an-input-finds",
        "n_cols",
        'n_cols = {}\nwide = accelviz.plan(graph, "accel_gcn", n_cols=n_cols, **setting)\n'
        'wrong = changed(wide, ("const int column = first_column + lane;", '
        '"const int column = lane;"))',
        refused=("40", "1", "32", "512", "1023", "1024"),
        accepted=("1025", "1056", "2000"),
    ),
    Exercise(
        "every-setting",
        "w, n",
        "w, n = {}",
        refused=("12, 3", "1, 7", "12, 6", "7, 7", "12, 4", "14, 4"),
        accepted=("14, 1", "10, 7", "16, 99"),
    ),
    Exercise(
        "every-strategy",
        "LongestFirst",
        ORDER,
        refused=(
            "return accelviz.degree_sort(graph)",
            PERMUTED + "np.arange(graph.n_rows)[::-1].copy())",
            PERMUTED + "np.argsort(graph.degrees, kind='stable'))",
            PERMUTED + "np.argsort(-graph.T.degrees, kind='stable'))",
            # the longest three alone
            "three = np.argsort(-graph.degrees)[:3]\n"
            "        others = np.setdiff1d(np.arange(graph.n_rows), three)\n"
            "        " + PERMUTED + "np.append(three, others))",
            PERMUTED + "np.argsort(graph.column_indices[graph.row_pointers[:-1]], kind='stable'))",
            # the order of the first graph for all of its size
            PERMUTED + "np.argsort(-np.resize(accelviz.load_graph('ca-astroph').degrees, "
            "graph.n_rows), kind='stable'))",
        ),
        accepted=(
            PERMUTED + "np.argsort(-graph.degrees, kind='stable'))",
            PERMUTED + "np.array(sorted(range(graph.n_rows), key=lambda r: -graph.degrees[r])))",
            PERMUTED + "np.flip(np.argsort(graph.degrees)).copy())",
        ),
    ),
    Exercise(
        "the-ladder",
        "gains_of_tiles",
        "tiles_first, tiles_last = {}\ngains_of_tiles = tiles_first and [tiles_first, tiles_last]",
        refused=(
            "(modelled_mb(o, 128, 64) / modelled_mb(o, 128, 128) for o in ('degree', 'place'))",
            "(modelled_mb(o, 128, 128) / modelled_mb(o, 128, 64) for o in ('place', 'degree'))",
            "(modelled_mb(o, 128, 128) / modelled_mb(o, 128, 32) for o in ('degree', 'place'))",
            "(modelled_mb(o, 64, 64) / modelled_mb(o, 128, 64) for o in ('degree', 'place'))",
            "(1.0, 1.0)",
        ),
        accepted=(
            "(modelled_mb(o, 128, 128) / modelled_mb(o, 128, 64) for o in distances)",
            "(1 / (modelled_mb(o, 128, 64) / modelled_mb(o, 128, 128)) for o in "
            "('degree', 'place'))",
            "[modelled_mb(o, 256, 128) / modelled_mb(o, 256, 64) for o in ('degree', 'place')]",
        ),
    ),
    Exercise(
        "caches-and-orders",
        'tried["both"]',
        'tried["both"] = renumbered({})',
        refused=(
            'rabbit, "degree"',
            'rabbit, "windowed_degree", window=1024',
            'shuffled, "windowed_degree", window=4096',
            'collab, "windowed_degree", window=4096',
            'sorted_rows, "windowed_degree", window=4096',
        ),
        accepted=(
            'graph=rabbit, name="windowed_degree", window=4096',
            'renumbered(rabbit, "windowed_degree", window=2**12), "windowed_degree", window=4096',
            'renumbered(rabbit, "windowed_degree", window=512), "windowed_degree", window=4096',
        ),
    ),
    Exercise(
        "more-exercises",
        "smallest",
        "smallest = {}",
        refused=("'cora'", "'facebook'", "'mit8'", "'collab'", "'pubmed'", "0.01"),
        accepted=(
            "'luxembourg-osm'",
            "'-'.join(['luxembourg', 'osm'])",
            "min(bundled_graphs(), key=idle)",
        ),
    ),
]
