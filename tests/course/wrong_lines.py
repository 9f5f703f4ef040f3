"""Plausible wrong answers to the puzzles: the lines that a learner writes between the marks.

A dict maps pieces of the solution to replacements; a text replaces the whole solution.
"""

_IF_N = "if (i < n) { const float sum = warp_sum(X[i]);"
#: Changes that add to rows which were not cleared.
_ADDS = {"if (split) ": "", "else *y = sum;": ""}

WRONG = {
    "one_each": [
        "Y[0] = 2 * X[0];",
        "for (int i = 0; i < 32; ++i) Y[i] = 2 * X[i];",
        {"2 * X[i]": "X[i] + 2"},
        {"= threadIdx.x": "= threadIdx.x + 1"},
    ],
    "blocks": [
        {"blockIdx.x * blockDim.x + ": ""},
        {"blockDim.x": "32"},
        {
            "blockIdx.x * blockDim.x + threadIdx.x": "blockIdx.x + threadIdx.x * gridDim.x",
            "Z[i]": "Z[threadIdx.x]",
        },
        {"blockDim.x": "gridDim.x"},
    ],
    "guard": [
        {"if (i < n) ": ""},
        {"i < n": "i <= n"},
        {"i < n": "i < n - 1"},
        {" + Y[i]": ""},
        # right, but loads before the guard
        {"if (i < n) Y[i] = a * X[i] + Y[i]": "const float x = X[i]; if (i < n) Y[i] += a * x"},
    ],
    "stride": [
        # right, but neighbors do not read neighbors
        """const int threads = gridDim.x * blockDim.x, each = (n + threads - 1) / threads;
        const int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
        for (int i = first; i < min(n, first + each); ++i) Y[i] = -X[i];""",
        {"for (": "", "; i < n; i += threads)": "; if (i < n)"},
        {"i += threads": "i += blockDim.x"},
        {"i < n": "i <= n"},
    ],
    "wide": [
        # right, but a float at a time
        """if (i < n4) {
            Y[i].x = 2 * X[i].x; Y[i].y = 2 * X[i].y; Y[i].z = 2 * X[i].z; Y[i].w = 2 * X[i].w;
        }""",
        {"if (i < n4) ": ""},
        {"four.y *= 2;": "", "four.z *= 2;": "", "four.w *= 2;": ""},
        "if (i < n4) Y[i] = 2 * X[i];",
    ],
    "mirror": [
        {"__syncthreads();": ""},
        "if (t < n) piece[t] = piece[n - 1 - t];",
        "tile[t] = piece[t]; __syncthreads(); piece[t] = tile[63 - t];",
        {"n - 1 - t": "63 - t"},
        {"__syncthreads();": "__syncwarp();"},
    ],
    "neighbors": [
        # right, but from global memory
        """if (i < n) Y[i] = (i > 0 ? X[i - 1] : 0) + X[i] + (i + 1 < n ? X[i + 1] : 0);""",
        {
            "if (t == 0) tile[0] = i > 0 ? X[i - 1] : 0.0f;": "",
            "if (t == 63) tile[65] = i + 1 < n ? X[i + 1] : 0.0f;": "",
        },
        {"i > 0 ? X[i - 1] : 0.0f": "0", "i + 1 < n ? X[i + 1] : 0.0f": "0"},
        {"__syncthreads();": ""},
        {"i < n ? X[i] : 0.0f": "X[i]"},
    ],
    "transpose": [
        # right, but without the tile
        """if (first + t < n_cols) for (int r = 0; r < 32; ++r)
            Y[(first + t) * 32 + r] = X[r * n_cols + first + t];""",
        {"__syncthreads();": ""},
        {"if (first + t < n_cols)": "", " && first + c < n_cols": ""},
        {"= tile[t][c]": "= tile[c][t]"},
        {"X[r * n_cols": "X[r * 32"},
        # right, but loads before the guard
        {
            "if (first + t < n_cols) {": "{",
            "tile[r][t] = X[r * n_cols + first + t]": "{ "
            "const float x = X[r * n_cols + first + t]; if (first + t < n_cols) tile[r][t] = x; }",
        },
    ],
    "banks": [
        None,  # what is given: right, but slow
        {"[32][33]": "[32][34]"},
        {"[32][33]": "[32][32]", "+= tile[t][k]": "+= tile[k][t]"},
        {"__syncthreads();": ""},
        # no shared memory, and no neighbors either
        """const int t = threadIdx.x, row = blockIdx.x * 32;
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += X[(row + t) * 32 + k];
        sums[row + t] = sum;""",
    ],
    "shuffle": [
        {"i < n ? X[i] : 0.0f": "X[i]"},
        {
            "float sum = i < n ? X[i] : 0.0f;": "if (i < n) { float sum = X[i];",
            "= sum;": "= sum; }",
        },
        {"d > 0": "d > 1"},
        {"if (lane == 0) ": ""},
    ],
    "block_sum": [
        "const float sum = warp_sum(i < n ? X[i] : 0.0f); if (lane == 0) sums[blockIdx.x] = sum;",
        {"__syncthreads();": ""},
        {"lane < blockDim.x / 32 ? part[lane] : 0.0f": "part[lane]"},
        {"lane < blockDim.x / 32": "lane < 4"},
        {"const float sum = warp_sum(i < n ? X[i] : 0.0f);": _IF_N, "= sum;": "= sum; }"},
    ],
    "row_thread": [
        {"if (row < n_rows) ": ""},
        {"x[columns[k]]": "x[k]"},
        {"float sum = 0.0f": "float sum"},
        {"row < n_rows": "row < n_rows && row_pointers[row] < row_pointers[row + 1]"},
    ],
    "row_warp": [
        {"for (int j = lane; j < n_cols; j += 32)": "int j = lane; if (j < n_cols)"},
        {
            "for (int j = lane; j < n_cols; j += 32) {\n    float sum = 0.0f;": "float sum = 0.0f; "
            "for (int j = lane; j < n_cols; j += 32) {"
        },
        {"columns[k] * n_cols + j": "columns[k] + j"},
        # right, but lane 0 does all
        {
            "for (int j = lane; j": "if (lane == 0) for (int j = 0; j",
            "j += 32": "++j",
        },
    ],
    "edges": [
        "if (k < nnz) y[rows[k]] += values[k] * x[columns[k]];",
        {"if (k < nnz) ": ""},
        {"y[rows[k]]": "y[columns[k]]", "x[columns[k]]": "x[rows[k]]"},
        {"atomicAdd": "atomicExch"},
    ],
    "segments": [
        "if (row >= 0) atomicAdd(&y[row], sum);",  # right, but an atomic for each nonzero
        {"lane + d < 32 && ": ""},
        {" && its_row == row": ""},
        {"(lane == 0 || before != row)": "before != row"},
        {"atomicAdd(&y[row], sum)": "y[row] = sum"},
    ],
    "equal_rows": [
        {"first_nz + ": ""},
        {"row < n_rows && ": ""},
        {" && lane < n_cols": ""},
        {"columns[k] * n_cols": "columns[k] * 32", "row * n_cols": "row * 32"},
    ],
    "combined": [
        {"thread / width": "thread / 32", "thread % width": "thread % 32"},
        {"thread / width": "threadIdx.x / width", "thread % width": "threadIdx.x % width"},
        {" && column < n_cols": ""},
        {"row < n_rows && ": ""},
    ],
    "accel_block": [
        # each warp stores its part of the row
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        if (works) Y[output_rows[block.y + row] * n_cols + lane] = sum;""",
        {"__syncthreads();": "", **_ADDS},
        # split rows are overwritten
        {"if (split) atomicAdd(y, sum);": "", "else ": ""},
        _ADDS,
        # the sorted row's place, not the caller's
        {"output_rows[block.y + row]": "(block.y + row)", **_ADDS},
        # as if all warps of the block had the same row
        {"part == 0": "warp == 0", "p < warps_per_row": "p < 4", "[warp + p]": "[p]", **_ADDS},
    ],
    "fragment": [
        # rows and columns of the registers exchanged
        {"r % 2": "r / 2", "r / 2": "r % 2"},
        # B transposed
        {"(lane % 4 + 4 * r) * 8 + lane / 4": "lane / 4 * 8 + lane % 4 + 4 * r"},
        # numbers in place of their bits
        {"to_tf32(A[row * 8 + column])": "A[row * 8 + column]", "to_tf32(B": "(B"},
        # bits of B, and of A, that are not rounded to TF32
        {"to_tf32(B": "__float_as_uint(B"},
        {"to_tf32(A": "__float_as_uint(A"},
        # neighboring elements, as C has them
        {"r % 2": "r / 2", "lane % 4 + 4 * (r / 2)": "2 * (lane % 4) + r % 2"},
    ],
    "edge_gradient": [
        # only the first 32 columns
        {"for (int j = lane; j < n_cols; j += 32)": "int j = lane; if (j < n_cols)"},
        # nonzeros beyond the last one
        {"if (k < nnz) ": "", " && k < nnz": ""},
        # lanes are not added up
        {"for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);": ""},
        # right, but one lane does all of it
        {"j = lane; j < n_cols; j += 32": "j = 0; lane == 0 && j < n_cols; ++j"},
    ],
    "largest": [
        # the first loop walks as if the block had one row
        {"k += 32) top": "k += blockDim.x) top"},
        # some scores are smaller
        {"-3e38f": "-999.0f"},
        # 0 is larger than every score
        {"-3e38f": "0.0f"},
        # only lane 0 has the largest
        {"__shfl_xor_sync": "__shfl_down_sync"},
        # rows longer than a warp
        """const int k = begin + lane;
        float top = k < end ? scores[k] : -3e38f;
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        if (k < end) shifted[k] = scores[k] - top;""",
        # right, but each lane reads the whole row
        {
            "k = begin + lane; k < end; k += 32) top": "k = begin; k < end; ++k) top",
            "for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));": "",
        },
    ],
    "popc": [
        # a one of every plane is worth one
        {" << p": ""},
        # ones of either
        {"a & X": "a | X"},
        # shifted before they are counted
        {"+ lane]) << p": "+ lane] << p)"},
        # the words of a column behind each other
        {"(p * words + w) * 32 + lane": "(p * 32 + lane) * words + w"},
        # every block has row 0
        {"A[row * words + w]": "A[w]"},
    ],
}


def with_pieces_replaced(solution, wrong):
    """Return the lines of a wrong answer; None for the lines of the stub."""
    if not isinstance(wrong, dict):
        return wrong
    marked = solution
    for number, old in enumerate(wrong):
        assert solution.count(old) >= 1, f"{old!r} is not in the solution"
        marked = marked.replace(old, f"\0{number}\0")
    for number, new in enumerate(wrong.values()):
        marked = marked.replace(f"\0{number}\0", new)
    return marked
