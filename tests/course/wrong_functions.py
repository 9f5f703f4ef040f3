"""Wrong submissions of A1, A2 and A5."""

from __future__ import annotations

from tests.course.wrong import A1, A2, A5, Wrong, changed, every, solution

_SORT = ("sort-form", "sort-ascending", "sort-stable", "sort-linear")

COUNTING = [
    Wrong(
        "the sort is not stable",
        A1,
        changed(
            A1,
            "sort",
            ("for row, degree in enumerate(degrees):", "for row in range(len(degrees))[::-1]:"),
            ("        order[places", "        degree = degrees[row]\n        order[places"),
        ),
        16,
        every(0, "sort-form", "sort-stable"),
    ),
    Wrong(
        "NumPy sorts",
        A1,
        {
            "sort": "def counting_sort(degrees):\n"
            "    return np.argsort(degrees, kind='stable').astype(np.int32)"
        },
        18,
        every(0, "sort-linear"),
    ),
    Wrong(
        "NumPy sorts under another name",
        A1,
        {
            "sort": "from numpy import argsort as places_of\n\n"
            "def counting_sort(degrees):\n"
            "    return places_of(degrees, kind='stable').astype(np.int32)"
        },
        18,
        every(0, "sort-linear"),
    ),
    Wrong(
        "all rows are looked at for each degree",
        A1,
        {
            "sort": "def counting_sort(degrees):\n"
            "    found = [np.flatnonzero(np.asarray(degrees) == d)\n"
            "             for d in range(len(degree_histogram(degrees)))]\n"
            "    return np.concatenate(found).astype(np.int32)"
        },
        18,
        every(0, "sort-linear"),
    ),
    Wrong(
        "works for rows that are sorted already",
        A1,
        {"sort": "def counting_sort(degrees):\n    return np.arange(len(degrees), dtype=np.int32)"},
        11,
        every(0, *_SORT),
    ),
    Wrong(
        "rows of degree 0 are lost",
        A1,
        changed(
            A1,
            "sort",
            ("    return order", "    return order[np.count_nonzero(np.array(degrees) == 0) :]"),
        ),
        11,
        every(0, *_SORT),
    ),
    Wrong(
        "works for square matrices, as it expects no degree above the number of rows",
        A1,
        changed(
            A1,
            "histogram",
            ("np.zeros(max(degrees, default=0) + 1, dtype", "np.zeros(len(degrees) + 1, dtype"),
            ("    return counts", "    return counts[: max(degrees, default=0) + 1]"),
        ),
        12,
        every(0, "histogram-hidden", "sort-ascending", "sort-stable"),
    ),
    Wrong(
        "the prefix sum holds the element itself",
        A1,
        {"places": "def first_places(counts):\n    return np.cumsum(counts)"},
        8,
        every(0, "places-form", "places-hidden", *_SORT),
    ),
    Wrong(
        "the inverse is the permutation itself",
        A1,
        {"inverse": "def inverse_permutation(order):\n    return order.copy()"},
        15,
        every(0, "inverse-form", "inverse-hidden", "inverse-linear"),
    ),
    Wrong(
        "right, but it prints and warns",
        A1,
        changed(
            A1,
            "histogram",
            ("    counts = np", "    import warnings\n    warnings.warn('slow')\n    counts = np"),
            ("    return counts", "    print(counts)\n    return counts"),
        ),
        20,
        {},
    ),
]

BLOCKS = [
    Wrong(
        "nonzeros of a warp that are not rounded",
        A2,
        changed(A2, "pattern", ("-(-degree // factor)", "(degree + factor - 1) / factor")),
        22,
        every(0, "pattern-form", "pattern-hidden", "pattern-settings"),
    ),
    Wrong(
        "unpacks by a division that is not rounded",
        A2,
        changed(A2, "info", ("int(info) >> 16 & 0xFFFF,", "int(info) % (1 << 32) / 65536,")),
        20,
        every(0, "info-form", "info-hidden", "decode-form", "decode-hidden", "decode-long"),
    ),
    Wrong(
        "decodes to rows between rows",
        A2,
        changed(
            A2,
            "decode",
            ("first_row + row, begin", "first_row + row + warp % 2 / 2, begin"),
            ("dtype=np.int64", "dtype=float"),
        ),
        24,
        every(0, "decode-form", "decode-hidden", "decode-long"),
    ),
    Wrong(
        "a row of exactly deg_bound nonzeros is split",
        A2,
        changed(A2, "partition", ("degree > deg_bound", "degree >= deg_bound")),
        27,
        every(0, "partition-bound", "partition-settings"),
    ),
    Wrong(
        "an empty block where the rows of a degree fill their blocks, as the paper prints it",
        A2,
        changed(
            A2,
            "partition",
            (
                "nonzero + rows * degree",
                "nonzero + rows * degree\n"
                "            if rows == block_rows and degree not in degrees[row : row + 1]:\n"
                "                blocks.append((degree, row, nonzero, pack_info(warp_nzs, 0)))",
            ),
        ),
        24,
        every(0, "partition-form", "partition-bound", "partition-full", "partition-settings"),
    ),
    Wrong(
        "an empty block after a row of a multiple of deg_bound",
        A2,
        changed(
            A2, "partition", ("range(0, degree, deg_bound)", "range(0, degree + 1, deg_bound)")
        ),
        27,
        every(0, "partition-full", "partition-settings"),
    ),
    Wrong(
        "a last block that is not full is lost",
        A2,
        changed(
            A2,
            "partition",
            (
                "            blocks.append((degree, row, nonzero, pack_info(warp_nzs, rows)))",
                "            if rows == block_rows:\n"
                "                blocks.append((degree, row, nonzero, pack_info(warp_nzs, rows)))",
            ),
        ),
        19,
        every(
            0,
            *("partition-short", "partition-empty", "partition-bound", "partition-long"),
            *("partition-full", "partition-settings"),
        ),
    ),
    Wrong(
        "rows without nonzeros are not counted",
        A2,
        changed(
            A2,
            "partition",
            ("blocks, row, nonzero", "degrees = degrees[degrees > 0]\n    blocks, row, nonzero"),
        ),
        26,
        every(0, "partition-form", "partition-empty", "partition-settings"),
    ),
    Wrong(
        "any number of warps shares a row, not only divisors",
        A2,
        changed(A2, "pattern", ("max_block_warps % factor == 0 and ", "")),
        21,
        every(0, "pattern-hidden", "pattern-settings", "partition-short", "partition-settings"),
    ),
    Wrong(
        "info is not signed",
        A2,
        changed(A2, "info", ("info - (1 << 32) if info >= 1 << 31 else info", "info")),
        25,
        every(0, "info-form", "info-hidden", "partition-settings"),
    ),
    Wrong(
        "the last warp of a row runs over its end",
        A2,
        changed(A2, "decode", ("min(warp_nzs, row_nonzeros - start)", "warp_nzs")),
        24,
        every(0, "decode-form", "decode-hidden", "decode-long"),
    ),
    Wrong(
        "the first warps of a long row's block take all they can",
        A2,
        changed(A2, "decode", ("-(-info // max_block_warps), 1, info", "max_warp_nzs, 1, info")),
        28,
        every(0, "decode-long"),
    ),
    Wrong(
        "the library does the work",
        A2,
        {
            "partition": "from accelviz.ordering import DegreeHistogram\n"
            "from accelviz.partition.block_level import BlockSetting, block_partition\n\n"
            "def partition(degrees, max_block_warps=12, max_warp_nzs=32):\n"
            "    pointers = np.cumsum([0, *degrees], dtype=np.int64)\n"
            "    setting = BlockSetting(max_block_warps, max_warp_nzs)\n"
            "    return block_partition(DegreeHistogram.of(pointers), setting)\n"
        },
        18,
        every(
            0,
            *("partition-form", "partition-short", "partition-empty", "partition-bound"),
            *("partition-long", "partition-full", "partition-settings"),
        ),
    ),
]

_SWEEP = solution(A5, "sweep")
REPORTS = [
    Wrong(
        "the table is of another graph",
        A5,
        {"sweep": f"{_SWEEP}\ngraph = 'pubmed'"},
        3,
        every(0, "sweep-numbers"),
    ),
    Wrong(
        "a part of the numbers is made up",
        A5,
        {
            "sweep": f"{_SWEEP}\n"
            "sweep_table.loc[sweep_table.max_block_warps > 12, 'idle_share'] = 0.1"
        },
        6.33,
        {"sweep-numbers": 3.33},
    ),
    Wrong(
        "too small a sweep",
        A5,
        changed(A5, "sweep", ("[8, 16, 32, 64, 128]", "32")),
        0,
        every(0, "sweep-table", "sweep-numbers"),
    ),
    Wrong(
        "right, and rounded",
        A5,
        {"sweep": f"{_SWEEP}\nsweep_table = sweep_table.round(3)"},
        8,
        {},
    ),
]
