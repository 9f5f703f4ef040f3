"""Answers to the eight rungs of the learner's kernel: wrong ones, and unusual right ones.

A dict maps pieces of the right version to replacements. Each wrong answer stands beside words of
the message.
"""

GUARD = "    if (row >= n_rows) return;"
ADDS = "atomicAdd(y, sum.x), atomicAdd(y + 1, sum.y);"
FROM = "const int from = __shfl_sync(0xffffffff, my_column, i);"
VALUE = "const float value = __shfl_sync(0xffffffff, my_value, i);"
STORE = "if (column < n_cols) *(float4 *)&Y[row * n_cols + column] = sum;"
END = "const int end = cut ? min(first + 16, record.z + record.x) : first + record.x;"
CUT = "cut ? min(first + 16, record.z + record.x)"
MASK = "(lanes == 32 ? 0xffffffff : (1u << lanes) - 1) << first_lane"
GROUP = "const int group = threadIdx.x / lanes, lane = threadIdx.x % lanes;"
ROW_1 = "const int row = blockIdx.x * blockDim.x + threadIdx.x;"
ROW_2 = "const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;"
ROW_3 = "const int sorted_row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;"
ROW_4 = "const int row = output_rows[record.y + warp];"
FIRST_4 = "const int first = record.z + warp * record.x, end = first + record.x;"
SUM_4 = """sum.x += value * x.x, sum.y += value * x.y;
                sum.z += value * x.z, sum.w += value * x.w;"""
LOOP_5 = "for (int i = 0; i < min(32, end - k); ++i) {"
PRODUCT_1 = "sum += values[k] * X[columns[k] * n_cols + column]"

WRONG = {
    1: [
        ({GUARD: ""}, "row_pointers"),
        ({"values[k] * X": "X"}, "WRONG"),
        ({"* n_cols + column];": "+ column];"}, "WRONG"),
        ({"sum +=": "sum ="}, "WRONG"),
        ({"row >= n_rows": "row > n_rows"}, ""),
        ({"columns[k] * n_cols": "columns[k] * n_rows"}, ""),
        ({"k < row_pointers[row + 1]": "k <= row_pointers[row + 1]"}, ""),
    ],
    2: [
        ({"blockIdx.x * blockDim.x + ": ""}, "Y["),
        ({"column += 32": "column += 64"}, "Y["),
        ({"= threadIdx.x % 32": "= threadIdx.x"}, ""),
        ({" / 32;": ";"}, ""),
        ({"column = lane;": "column = 0;"}, ""),
        ({"blockIdx.x * blockDim.x + threadIdx.x) / 32": "blockIdx.x)"}, ""),
        # right, but every lane goes through all columns
        (
            {
                "row >= n_rows": "row >= n_rows || lane",
                "column = lane; column < n_cols; column += 32": (
                    "column = 0; column < n_cols; ++column"
                ),
            },
            "the result is right, but the kernel makes",
        ),
        (
            {"values[k] * X": "__ldcv(values + k) * X"},
            "Store row_pointers[... + 1] in a variable before the loop.",
        ),
        # right, but neighboring lanes read every second column
        (
            {
                "column = lane; column < n_cols; column += 32": (
                    "column = 2 * lane; column < n_cols; column += column % 2 ? 63 : 1"
                )
            },
            "Most of the others are of X: ",
        ),
    ],
    3: [
        ({"Y[row *": "Y[sorted_row *"}, "WRONG"),
        (
            {"row_pointers[sorted_row]": "row_pointers[row]", "sorted_row + 1": "row + 1"},
            "WRONG",
        ),
        ({"= output_rows[sorted_row]": "= sorted_row"}, "WRONG"),
        ({"= output_rows[sorted_row]": "= output_rows[output_rows[sorted_row]]"}, "WRONG"),
        ({"row_pointers[sorted_row + 1]": "row_pointers[row + 1]"}, ""),
        ({"    if (sorted_row >= n_rows) return;": ""}, ""),
    ],
    4: [
        ({"record.z + warp * record.x,": "record.z,"}, "WRONG"),
        ({"    if (warp >= record.w) return;": ""}, ""),
        ({"output_rows[record.y + warp]": "output_rows[record.y]"}, ""),
        ({"output_rows[record.y + warp]": "record.y + warp"}, "WRONG"),
        ({"end = first + record.x": "end = first + record.w"}, ""),
        ({"warp * record.x": "warp * record.w"}, "WRONG"),
    ],
    5: [
        ({"my_value, i)": "my_value, 0)"}, "WRONG"),
        ({"k + lane < end ? columns[k + lane] : 0": "columns[k + lane]"}, ""),
        ({"my_column, i)": "my_column, lane)"}, "WRONG"),
        ({FROM: "const int from = my_column;"}, "WRONG"),
        ({"k += 32": "k += 1"}, ""),
        # every loop of 32: column 0 is loaded for nonzeros that are not there
        ({LOOP_5: "for (int i = 0; i < 32; ++i) {"}, "the result is right, but the kernel makes"),
        # right, but every lane loads for itself as before
        (
            {FROM: "const int from = columns[k + i];", VALUE: "const float value = values[k + i];"},
            "the result is right, but the kernel makes",
        ),
    ],
    6: [
        ({"sum.w += value * x.w": "sum.w += value * x.z"}, "WRONG"),
        ({"begin + 4 * lane": "begin + lane"}, ""),
        ({"begin += 128": "begin += 32"}, ""),
        ({"                if (column >= n_cols) continue;": ""}, ""),
        ({STORE: "if (column < n_cols) Y[row * n_cols + column] = sum.x;"}, ""),
        ({"begin += 128": "begin += 256"}, ""),
    ],
    7: [
        ({ADDS: "*y += sum.x, atomicAdd(y + 1, sum.y);"}, "race"),
        ({"min(first + 16, record.z + record.x)": "first + 16"}, ""),
        ({"atomicAdd(y + 2, sum.z), ": ""}, "WRONG"),
        ({"record.y + (cut ? 0 : warp)": "record.y + warp"}, ""),
        ({"warp * (cut ? 16 : record.x)": "warp * record.x"}, ""),
        ({"if (cut) {": "if (!cut) {"}, ""),
        ({"if (cut) {": "if (false) {"}, ""),
        # right, but the first warp does a cut part alone, or two warps do
        ({CUT: "cut ? (warp ? first : record.z + record.x)"}, "the busiest warp makes"),
        (
            {
                "warp * (cut ? 16 : record.x)": (
                    "(cut ? min(32 * warp, record.x) : warp * record.x)"
                ),
                CUT: "cut ? min(first + 32, record.z + record.x)",
            },
            "the busiest warp makes",
        ),
    ],
    8: [
        ({"my_column, i, lanes)": "my_column, i)"}, ""),
        ({"threadIdx.x / lanes": "threadIdx.x / 32"}, ""),
        ({"threadIdx.x % lanes;": "threadIdx.x % 32;"}, ""),
        ({"__shfl_sync(mask, my_value": "__shfl_sync(0xffffffff, my_value"}, ""),
        ({"begin + 4 * lane;": "begin + lane;"}, ""),
        # right for whole warps only
        ({"min(first + 16,": "min(first + 512 / lanes,"}, "WRONG"),
        ({"my_value, i, lanes)": "my_value, 0, lanes)"}, "WRONG"),
        (
            {f"(mask, {name}": f"(0xffffffff, {name}" for name in ("my_column", "my_value")},
            "__shfl_sync",
        ),
        ({MASK: "__activemask()"}, "__activemask() gives the lanes"),
        # right, but the first subwarp does a cut part alone, or half of them do
        (
            {CUT: "cut ? (group ? first : record.z + record.x)"},
            "the result is right, but the kernel makes",
        ),
        (
            {
                "group * (cut ? 16 : record.x)": (
                    "(cut ? min(32 * group, record.x) : group * record.x)"
                ),
                CUT: "cut ? min(first + 32, record.z + record.x)",
            },
            "the result is right, but ",
        ),
    ],
}

RIGHT = {
    1: [
        # from the last nonzero to the first, by pointers
        {
            """for (long long k = row_pointers[row]; k < row_pointers[row + 1]; ++k) {
            sum += values[k] * X[columns[k] * n_cols + column];""": """
        const long long first = row_pointers[row];
        for (long long k = row_pointers[row + 1] - 1; k >= first; --k) {
            const float *x = X + columns[k] * n_cols;
            sum = fmaf(x[column], values[k], sum);""",
        },
        # the last row first, the last column first
        {
            ROW_1: ("const int row = n_rows - 1 - (blockIdx.x * blockDim.x + threadIdx.x);"),
            "row >= n_rows": "row < 0",
            "int column = 0; column < n_cols; ++column": "int column = n_cols; column-- > 0;",
        },
        {
            PRODUCT_1: "sum += __ldg(&values[k]) * __ldg(X + __ldg(columns + k) * n_cols + column)",
        },
        {
            PRODUCT_1: "sum = __fmaf_rn(values[k], X[columns[k] * n_cols + column], sum)",
        },
        # a loop over rows in place of the guard
        {
            f"    {ROW_1}": "",
            "    if (row >= n_rows) return;  // the last block has too many threads\n": (
                "    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_rows;\n"
                "         row += gridDim.x * blockDim.x)\n"
            ),
        },
    ],
    2: [
        {ROW_2: "const int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);"},
        {
            "for (int column = lane; column < n_cols; column += 32) {": """
    for (int begin = 0; begin < n_cols; begin += 32) {
        const int column = begin + 31 - lane;
        if (column >= n_cols) continue;""",
        },
        {
            "int column = lane; column < n_cols; column += 32": (
                "int column = (n_cols - 1) / 32 * 32 + lane; column >= 0; column -= 32"
            ),
            "float sum = 0.0f;": "if (column >= n_cols) continue;\n        float sum = 0.0f;",
        },
    ],
    3: [
        # the last rows first
        {
            ROW_3: (
                "const int sorted_row = n_rows - 1 - (blockIdx.x * blockDim.x + threadIdx.x) / 32;"
            ),
            "sorted_row >= n_rows": "sorted_row < 0",
        },
        {
            "k = row_pointers[sorted_row]; k < row_pointers[sorted_row + 1]": (
                "k = row_pointers[0]; k < row_pointers[1]"
            ),
            "    const int row = output_rows[sorted_row];": (
                "    const int row = output_rows[sorted_row];\n    row_pointers += sorted_row;"
            ),
        },
        # one lane reads the row's number
        {
            "    const int row = output_rows[sorted_row];": """    int row = 0;
    if (lane == 0) row = output_rows[sorted_row];
    row = __shfl_sync(0xffffffff, row, 0);""",
        },
    ],
    4: [
        # the last warp takes the first row
        {
            ROW_4: "const int mine = record.w - 1 - warp, row = output_rows[record.y + mine];",
            "warp * record.x": "mine * record.x",
        },
        {
            FIRST_4: "const int end = record.z + (warp + 1) * record.x, first = end - record.x;",
        },
        {
            ROW_4: "const int row = (output_rows + record.y)[warp];",
            "for (int k = first; k < end; ++k) {": (
                "for (int n = 0; n < record.x; ++n) {\n            const int k = first + n;"
            ),
        },
    ],
    5: [
        # through shared memory
        {
            LOOP_5: """__shared__ int some_columns[4][32];
            __shared__ float some_values[4][32];
            __syncwarp();
            some_columns[warp][lane] = my_column;
            some_values[warp][lane] = my_value;
            __syncwarp();
            for (int i = 0; i < min(32, end - k); ++i) {""",
            FROM: "const int from = some_columns[warp][i];",
            VALUE: "const float value = some_values[warp][i];",
        },
        # the last nonzero first
        {
            FROM: "const int from = __shfl_sync(0xffffffff, my_column, min(32, end - k) - 1 - i);",
            VALUE: "const float value = __shfl_sync(~0u, my_value, min(32, end - k) - 1 - i);",
        },
        {
            LOOP_5: "for (int i = 0; i < 32; ++i) {\n                if (k + i >= end) break;",
        },
    ],
    6: [
        {
            SUM_4: """const float parts[4] = {x.x, x.y, x.z, x.w};
                float *sums = &sum.x;
                for (int part = 0; part < 4; ++part) sums[part] += value * parts[part];""",
        },
        {
            "*(const float4 *)&X[from * n_cols + column]": (
                "__ldg((const float4 *)X + (from * n_cols + column) / 4)"
            ),
        },
        {
            SUM_4: """sum = make_float4(fmaf(value, x.x, sum.x), fmaf(value, x.y, sum.y),
                                  fmaf(value, x.z, sum.z), fmaf(value, x.w, sum.w));""",
        },
    ],
    7: [
        # the warps take every fourth nonzero of a part
        {
            "warp * (cut ? 16 : record.x)": "(cut ? warp : warp * record.x)",
            CUT: "cut ? record.z + record.x",
            "    for (int begin = 0": (
                "    const int step = cut ? 4 : 1;\n"
                "    const auto mine = [&](int k) { return k + step * lane; };\n"
                "    for (int begin = 0"
            ),
            "k += 32": "k += 32 * step",
            "k + lane < end ? columns[k + lane]": "mine(k) < end ? columns[mine(k)]",
            "k + lane < end ? values[k + lane]": "mine(k) < end ? values[mine(k)]",
            "min(32, end - k)": "min(32, (end - k + step - 1) / step)",
        },
        # warps share parts from the last
        {
            "warp * (cut ? 16 : record.x)": "(cut ? 3 - warp : warp) * (cut ? 16 : record.x)",
        },
        {
            END: "const int nonzeros = cut ? 16 : record.x;\n"
            "    const int end = min(first + nonzeros, record.z + (cut ? record.x : 1 << 28));",
        },
        {
            """atomicAdd(y, sum.x), atomicAdd(y + 1, sum.y);
            atomicAdd(y + 2, sum.z), atomicAdd(y + 3, sum.w);""": (
                "for (int part = 3; part >= 0; --part) atomicAdd(y + part, (&sum.x)[part]);"
            ),
        },
    ],
    8: [
        # the lane by its number in the warp, without a width
        {
            "__shfl_sync(mask, my_column, i, lanes)": (
                "__shfl_sync(mask, my_column, first_lane + i)"
            ),
            "__shfl_sync(mask, my_value, i, lanes)": "__shfl_sync(mask, my_value, first_lane + i)",
        },
        {GROUP: "const int group = threadIdx.x / lanes, lane = threadIdx.x & (lanes - 1);"},
        {
            MASK: "(0xffffffff >> (32 - lanes)) << first_lane",
        },
        # the mask bit by bit
        {
            f"const unsigned mask = {MASK};": (
                "unsigned mask = 0;\n"
                "    for (int i = 0; i < lanes; ++i) mask |= 1u << (first_lane + i);"
            ),
        },
    ],
}
