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
        "const int i = threadIdx.x; if (i < 32) Y[i] = 2 * X[i];",
        "const int i = threadIdx.x % 32; Y[i] = 2 * X[i];",
        {"2 * X[i]": "X[i] * X[i]"},
        "Y[threadIdx.x] += X[threadIdx.x];",
        # right, but changes its input
        "float *x = (float *)X + threadIdx.x; *x *= 2; Y[threadIdx.x] = *x;",
    ],
    "blocks": [
        {"blockIdx.x * blockDim.x + ": ""},
        {"blockDim.x": "32"},
        {
            "blockIdx.x * blockDim.x + threadIdx.x": "blockIdx.x + threadIdx.x * gridDim.x",
            "Z[i]": "Z[threadIdx.x]",
        },
        {"blockDim.x": "gridDim.x"},
        {"blockIdx.x *": "(blockIdx.x + 1) *"},
        {"Y[i] =": "if (i < 96) Y[i] ="},
        {"X[i] + Z[i]": "X[i] - Z[i]"},
        {"Y[i] = X[i] + Z[i]": "((float *)Z)[i] += X[i]; Y[i] = Z[i]"},
    ],
    "guard": [
        {"if (i < n) ": ""},
        {"i < n": "i <= n"},
        {"i < n": "i < n - 1"},
        {" + Y[i]": ""},
        # right, but loads before the guard
        {"if (i < n) Y[i] = a * X[i] + Y[i]": "const float x = X[i]; if (i < n) Y[i] += a * x"},
        # the load is not used, and yet out of bounds
        {"if (i < n) ": "const float y = Y[i]; (void)y; if (i < n) "},
        # the last element is read while its thread writes it
        "const int k = min(i, n - 1); const float y = a * X[k] + Y[k]; if (k == i) Y[i] = y;",
        {"i < n": "threadIdx.x < n"},
        {"i < n": "i < n / 32 * 32"},
        {"a * X": "int(a) * X"},
        {"a * X": "fabsf(a) * X"},
    ],
    "stride": [
        # right, but neighbors do not read neighbors
        """const int threads = gridDim.x * blockDim.x, each = (n + threads - 1) / threads;
        const int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
        for (int i = first; i < min(n, first + each); ++i) Y[i] = -X[i];""",
        {"for (": "", "; i < n; i += threads)": "; if (i < n)"},
        {"i += threads": "i += blockDim.x"},
        {"i < n": "i <= n"},
        "for (int i = threadIdx.x; i < n; i += blockDim.x) Y[i] = -X[i];",
        {"gridDim.x * blockDim.x": "64"},
        {"gridDim.x * blockDim.x": "gridDim.x * 32"},
        {"-X[i]": "X[i]"},
        # right, but every second lane has nothing to do
        {
            "for (": "if (threadIdx.x % 2 == 0) for (",
            "Y[i] = -X[i];": "Y[i] = -X[i]; if (i + 1 < n) Y[i + 1] = -X[i + 1];",
        },
        # right, but two neighbors a thread
        {
            "i = blockIdx.x * blockDim.x + threadIdx.x": "i = 2 * (blockIdx.x * blockDim.x + "
            "threadIdx.x)",
            "i += threads": "i += 2 * threads",
            "Y[i] = -X[i];": "Y[i] = -X[i]; if (i + 1 < n) Y[i + 1] = -X[i + 1];",
        },
    ],
    "wide": [
        # right, but a float at a time
        """if (i < n4) {
            Y[i].x = 2 * X[i].x; Y[i].y = 2 * X[i].y; Y[i].z = 2 * X[i].z; Y[i].w = 2 * X[i].w;
        }""",
        {"if (i < n4) ": ""},
        {"four.y *= 2;": "", "four.z *= 2;": "", "four.w *= 2;": ""},
        "if (i < n4) Y[i] = 2 * X[i];",
        {"i < n4": "i <= n4"},
        {"four.w *= 2;": ""},
        {"Y[i] = four": "Y[4 * i] = four"},
        # right, but stores a float at a time
        {"Y[i] = four": "Y[i].x = four.x; Y[i].y = four.y; Y[i].z = four.z; Y[i].w = four.w"},
        # right, but in halves
        """const float2 *x = (const float2 *)X; float2 *y = (float2 *)Y;
        if (i < n4) for (int k = 2 * i; k < 2 * i + 2; ++k)
            y[k] = make_float2(2 * x[k].x, 2 * x[k].y);""",
    ],
    "mirror": [
        {"__syncthreads();": ""},
        "if (t < n) piece[t] = piece[n - 1 - t];",
        "tile[t] = piece[t]; __syncthreads(); piece[t] = tile[63 - t];",
        {"n - 1 - t": "63 - t"},
        {"__syncthreads();": "__syncwarp();"},
        # a barrier that not all threads of the block reach
        "if (t < n) { tile[t] = piece[t]; __syncthreads(); piece[t] = tile[n - 1 - t]; }",
        {"if (t < n) tile": "if (t >= n) return; tile"},
        {"__syncthreads();": "__threadfence_block();"},
        {"n - 1 - t": "n - t"},
        {"piece[t] = tile": "Y[t] = tile"},
        """if (t < n) {
            const float a = piece[t], b = piece[n - 1 - t];
            piece[t] = b; piece[n - 1 - t] = a;
        }""",
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
        {"i + 1 < n ? X[i + 1] : 0.0f": "X[i + 1]"},
        {"i > 0 ? X[i - 1] : 0.0f": "X[i - 1]"},
        {"if (t == 0)": "if (i == 0)"},
        {"if (t == 63)": "if (i == n - 1)"},
        {"__syncthreads();": "if (i < n) __syncthreads();"},
        # neighbors within the warp only
        """const float x = i < n ? X[i] : 0.0f;
        const float before = __shfl_up_sync(~0u, x, 1), after = __shfl_down_sync(~0u, x, 1);
        if (i < n) Y[i] = (t % 32 ? before : 0) + x + (t % 32 < 31 ? after : 0);""",
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
        {"c < 32 && ": ""},
        {"r < 32": "r < min(32, n_cols)"},
        {"(first + c) * 32 + t]": "(first + c) * n_cols + t]"},
        {"n_cols + first + t": "n_cols + t"},
        # right, but loads columns
        """for (int r = 0; r < 32 && first + r < n_cols; ++r)
            tile[t][r] = X[t * n_cols + first + r];
        __syncthreads();
        for (int c = 0; c < 32 && first + c < n_cols; ++c) Y[(first + c) * 32 + t] = tile[t][c];""",
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
        {"[32][33]": "[32][40]"},
        {"[32][33]": "[33][32]"},
        {"k < 32": "k < 31"},
        {"+= tile[t][k]": "+= tile[k][t]"},
        {"row = blockIdx.x * 32": "row = 0"},
    ],
    "shuffle": [
        {"i < n ? X[i] : 0.0f": "X[i]"},
        {
            "float sum = i < n ? X[i] : 0.0f;": "if (i < n) { float sum = X[i];",
            "= sum;": "= sum; }",
        },
        {"d > 0": "d > 1"},
        {"if (lane == 0) ": ""},
        {"d = 16": "d = 8"},
        {"lane == 0": "lane == 31"},
        {"~0u": "1u"},
        {"sum, d)": "X[i], d)"},
        "if (i < n) atomicAdd(&sums[blockIdx.x], X[i]);",
        # right, but one lane does all
        """if (lane == 0) {
            float sum = 0.0f;
            for (int k = i; k < min(n, i + 32); ++k) sum += X[k];
            sums[blockIdx.x] = sum;
        }""",
    ],
    "block_sum": [
        "const float sum = warp_sum(i < n ? X[i] : 0.0f); if (lane == 0) sums[blockIdx.x] = sum;",
        {"__syncthreads();": ""},
        {"lane < blockDim.x / 32 ? part[lane] : 0.0f": "part[lane]"},
        {"lane < blockDim.x / 32": "lane < 4"},
        {"const float sum = warp_sum(i < n ? X[i] : 0.0f);": _IF_N, "= sum;": "= sum; }"},
        {
            "part[warp] = sum;\n__syncthreads();": "{ part[warp] = sum; __syncthreads(); }",
        },
        {"blockDim.x / 32": "32"},
        {"sums[blockIdx.x]": "sums[0]"},
        {"if (warp == 0) {": "{"},
        {"__syncthreads();": "__syncwarp();"},
        """const float sum = warp_sum(i < n ? X[i] : 0.0f);
        if (lane == 0) atomicAdd(&sums[blockIdx.x], sum);""",
    ],
    "row_thread": [
        {"if (row < n_rows) ": ""},
        {"x[columns[k]]": "x[k]"},
        {"float sum = 0.0f": "float sum"},
        {"row < n_rows": "row < n_rows && row_pointers[row] < row_pointers[row + 1]"},
        {"k < row_pointers": "k <= row_pointers"},
        {"values[k] * ": ""},
        {"y[row] = sum": "if (sum != 0.0f) y[row] = sum"},
        {"k = row_pointers[row]": "k = 0"},
        {"sum += values[k]": "sum = values[k]"},
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
        {"row * n_cols + j": "row * 32 + j"},
        {"j += 32": "j += 64"},
        {"Y[row": "if (begin < end) Y[row"},
        {"values[k] * ": ""},
        {"k < end": "k < end - 1"},
        # right, but the lanes have the nonzeros
        """for (int j = 0; j < n_cols; ++j) {
            float sum = 0.0f;
            for (int k = begin + lane; k < end; k += 32)
                sum += values[k] * X[columns[k] * n_cols + j];
            for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
            if (lane == 0) Y[row * n_cols + j] = sum;
        }""",
    ],
    "edges": [
        "if (k < nnz) y[rows[k]] += values[k] * x[columns[k]];",
        {"if (k < nnz) ": ""},
        {"y[rows[k]]": "y[columns[k]]", "x[columns[k]]": "x[rows[k]]"},
        {"atomicAdd": "atomicExch"},
        {"k < nnz": "k <= nnz"},
        {"k < nnz": "k < nnz - 1"},
        {"values[k] * ": ""},
        {"k < nnz": "k < nnz && rows[k] > 0"},
        "if (k < nnz) y[rows[k]] = values[k] * x[columns[k]];",
    ],
    "segments": [
        "if (row >= 0) atomicAdd(&y[row], sum);",  # right, but an atomic for each nonzero
        {"lane + d < 32 && ": ""},
        {" && its_row == row": ""},
        {"(lane == 0 || before != row)": "before != row"},
        {"atomicAdd(&y[row], sum)": "y[row] = sum"},
        {"d < 32": "d < 16"},
        {"row >= 0 && ": ""},
        {"(lane == 0 || before != row)": "lane == 0"},
        {"__shfl_up_sync(~0u, row, 1)": "__shfl_down_sync(~0u, row, 1)"},
        {"d *= 2": "d += 1"},
    ],
    "equal_rows": [
        {"first_nz + ": ""},
        {"row < n_rows && ": ""},
        {" && lane < n_cols": ""},
        {"columns[k] * n_cols": "columns[k] * 32", "row * n_cols": "row * 32"},
        {"row * degree": "row"},
        {"k < begin + degree": "k <= begin + degree"},
        {"first_nz + row * degree": "(first_nz + row) * degree"},
        {"Y[row *": "Y[(first_nz + row) *"},
        {"values[k] * ": ""},
    ],
    "combined": [
        {"thread / width": "thread / 32", "thread % width": "thread % 32"},
        {"thread / width": "threadIdx.x / width", "thread % width": "threadIdx.x % width"},
        {" && column < n_cols": ""},
        {"row < n_rows && ": ""},
        {"column < n_cols": "column <= n_cols"},
        {"Y[row * n_cols": "Y[row * width"},
        {"columns[k] * n_cols": "columns[k] * width"},
        {"thread / width": "blockIdx.x * 4 + threadIdx.x / width"},
        {"k < (row + 1) * degree": "k < row * degree + 3"},
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
        {"p = 1": "p = 0"},
        {"p < warps_per_row": "p <= warps_per_row"},
        {"works && part == 0": "part == 0"},
        {"works && k < end": "k < end"},
        {
            "partial[warp][lane] = sum;\n__syncthreads();": "partial[warp][lane] = sum;"
            "if (works) __syncthreads();"
        },
        {"if (split) atomicAdd(y, sum);": "atomicAdd(y, sum);", "else *y = sum;": ""},
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
        {"lane / 4 + 8": "lane / 4 + 4"},
        {"lane % 4 + 4 * r)": "lane % 4 + r)"},
        {"r < 4": "r < 2"},
        {"A[row * 8 + column]": "A[column * 16 + row]"},
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
        {"X[sender + j]": "X[receiver + j]"},
        {"sum += dY": "sum = dY"},
        {"d = 16": "d = 8"},
        {"lane == 0 && k < nnz": "k < nnz"},
        {"~0u": "1u"},
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
        {"-3e38f": "-10000.0f"},
        {"-3e38f": "-1e30f"},
        {"-3e38f": "-1e37f"},
        {"scores[k] - top": "top - scores[k]"},
        {"d = 16": "d = 8"},
        {"fmaxf(top, scores[k])": "fmaxf(top, fabsf(scores[k]))"},
        {"scores[k] - top": "scores[k] - scores[begin]"},
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
        {"w < words": "w < 2"},
        {"p < planes": "p < 3"},
        {"p < planes": "p <= planes"},
        {"Y[row * 32 + lane] = sum": "Y[row * 32 + lane] += sum"},
        {"<< p": "<< w"},
    ],
}

#: Changes that lose the fraction of an element or of a sum.
_WITHOUT_FRACTIONS = {
    "one_each": {"2 * X[i]": "2 * (int)X[i]"},
    "blocks": {"Y[i] = X[i] + Z[i]": "const int sum = X[i] + Z[i]; Y[i] = sum"},
    "wide": {"four.x *= 2": "four.x = 2 * int(four.x)"},
    "mirror": {"= tile[": "= (int)tile["},
    "neighbors": {"Y[i] = ": "Y[i] = (long long)"},
    "transpose": {"= tile[": "= (int)tile["},
    "segments": {"float more": "int more"},
    "block_sum": {"float all": "int all"},
    "edges": {"values[k] *": "(int)values[k] *"},
    "fragment": {"to_tf32(B[": "to_tf32((int)B["},
    "stride": {"= -X": "= -(int)X"},
}
_SUMS = ("banks", "shuffle", "row_thread", "row_warp", "equal_rows", "combined", "accel_block")
_WITHOUT_FRACTIONS |= {name: {"float sum": "int sum"} for name in (*_SUMS, "edge_gradient")}
for _name, _change in _WITHOUT_FRACTIONS.items():
    WRONG[_name].append(_change)


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
