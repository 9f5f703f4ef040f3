"""Unusual right answers to the puzzles: other algorithms, other orders, other ways to write it.

A dict maps pieces of the solution to replacements; a text replaces the whole solution.
"""

RIGHT = {
    "one_each": [
        "Y[threadIdx.x] = X[threadIdx.x] + X[threadIdx.x];",
        "const int i = blockDim.x - 1 - threadIdx.x; Y[i] = 2 * X[i];",
        "for (int i = threadIdx.x; i < blockDim.x; i += blockDim.x) Y[i] = X[i] * 2.0f;",
    ],
    "blocks": [
        """const int first = blockIdx.x * blockDim.x;
        X += first, Y += first, Z += first;
        Y[threadIdx.x] = X[threadIdx.x] + Z[threadIdx.x];""",
        {"blockIdx.x *": "(gridDim.x - 1 - blockIdx.x) *"},
        {"blockIdx.x * blockDim.x + threadIdx.x": "threadIdx.x * gridDim.x + blockIdx.x"},
    ],
    "guard": [
        "if (i >= n) return; Y[i] = fmaf(a, X[i], Y[i]);",
        """const bool inside = i < n;
        const float x = inside ? X[i] : 0.0f, y = inside ? Y[i] : 0.0f;
        if (inside) Y[i] = a * x + y;""",
        "if (i < n) atomicAdd(&Y[i], a * X[i]);",
    ],
    "stride": [
        # a chunk a block, with lanes side by side
        """const int each = (n + gridDim.x - 1) / gridDim.x, first = blockIdx.x * each;
        for (int i = first + threadIdx.x; i < min(n, first + each); i += blockDim.x)
            Y[i] = -X[i];""",
        # from the end
        """const int threads = gridDim.x * blockDim.x;
        for (int i = n - 1 - (blockIdx.x * blockDim.x + threadIdx.x); i >= 0; i -= threads)
            Y[i] = -X[i];""",
        # two in flight
        """const int threads = gridDim.x * blockDim.x;
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        for (; i + threads < n; i += 2 * threads) {
            const float x = X[i], z = X[i + threads];
            Y[i] = -x; Y[i + threads] = -z;
        }
        if (i < n) Y[i] = -X[i];""",
        # four at once
        """const int threads = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x;
        for (int i = me; i < n / 4; i += threads) {
            const float4 x = ((const float4 *)X)[i];
            ((float4 *)Y)[i] = make_float4(-x.x, -x.y, -x.z, -x.w);
        }
        for (int i = n / 4 * 4 + me; i < n; i += threads) Y[i] = -X[i];""",
    ],
    "wide": [
        """if (i >= n4) return;
        const float4 x = X[i];
        Y[i] = make_float4(x.x + x.x, x.y + x.y, x.z + x.z, x.w + x.w);""",
        """if (i < n4) {
            float4 four = __ldg(X + i);
            float *one = &four.x;
            for (int k = 0; k < 4; ++k) one[k] *= 2;
            Y[i] = four;
        }""",
        {"if (i < n4)": "for (int k = i; k < n4; k += 1 << 30)"},
    ],
    "mirror": [
        # in a register
        """const float x = t < n ? piece[t] : 0.0f;
        __syncthreads();
        if (t < n) piece[n - 1 - t] = x;""",
        # turned when it is loaded
        """tile[t] = t < n ? piece[n - 1 - t] : 0.0f;
        __syncthreads();
        if (t < n) piece[t] = tile[t];""",
        # a pair a thread, which no other thread touches
        """if (t < n / 2) {
            const float a = piece[t], b = piece[n - 1 - t];
            piece[t] = b; piece[n - 1 - t] = a;
        }""",
    ],
    "neighbors": [
        # the textbook's loop over tile and halo
        """const int before = blockIdx.x * 64 - 1;
        for (int k = t; k < 66; k += 64)
            tile[k] = before + k >= 0 && before + k < n ? X[before + k] : 0.0f;
        __syncthreads();
        if (i < n) Y[i] = tile[t] + tile[t + 1] + tile[t + 2];""",
        # shuffles, and loads at the edges of the warp
        """const float x = i < n ? X[i] : 0.0f;
        float before = __shfl_up_sync(~0u, x, 1), after = __shfl_down_sync(~0u, x, 1);
        if (t % 32 == 0) before = i > 0 && i <= n ? X[i - 1] : 0.0f;
        if (t % 32 == 31) after = i + 1 < n ? X[i + 1] : 0.0f;
        if (i < n) Y[i] = before + x + after;""",
        # both ends by one line
        """const int end = t ? i - t + 64 : i - 1;
        tile[t + 1] = i < n ? X[i] : 0.0f;
        if (t < 2) tile[65 * t] = end >= 0 && end < n ? X[end] : 0.0f;
        __syncthreads();
        if (i < n) Y[i] = tile[t] + tile[t + 1] + tile[t + 2];""",
    ],
    "transpose": [
        {"tile[r][t] =": "tile[t][r] =", "= tile[t][c]": "= tile[c][t]"},
        {"__syncthreads();": "__syncwarp();"},  # a block is a warp
        """const int width = min(32, n_cols - first);
        for (int r = 0; r < 32; ++r) tile[r][t] = t < width ? X[r * n_cols + first + t] : 0.0f;
        __syncthreads();
        for (int c = width - 1; c >= 0; --c) Y[(first + c) * 32 + t] = tile[t][c];""",
    ],
    "banks": [
        {"[32][33]": "[32][32]", "tile[t][k]": "tile[t][(k + t) % 32]"},
        {"[32][33]": "[32][32]", "tile[r][t]": "tile[r][t ^ r]", "tile[t][k]": "tile[t][k ^ t]"},
        # without shared memory
        """const int t = threadIdx.x, row = blockIdx.x * 32;
        float mine = 0.0f;
        for (int r = 0; r < 32; ++r) {
            float x = X[(row + r) * 32 + t];
            for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
            if (t == r) mine = x;
        }
        sums[row + t] = mine;""",
    ],
    "shuffle": [
        {"__shfl_down_sync": "__shfl_xor_sync"},
        {"d = 16; d > 0; d /= 2": "d = 1; d < 32; d *= 2"},
        # a running sum, which the last lane completes
        """float sum = i < n ? X[i] : 0.0f;
        for (int d = 1; d < 32; d *= 2) {
            const float before = __shfl_up_sync(~0u, sum, d);
            if (lane >= d) sum += before;
        }
        if (lane == 31) sums[blockIdx.x] = sum;""",
    ],
    "block_sum": [
        # one thread adds the parts
        """const float sum = warp_sum(i < n ? X[i] : 0.0f);
        if (lane == 0) part[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            float all = 0.0f;
            for (int w = 0; w < blockDim.x / 32; ++w) all += part[w];
            sums[blockIdx.x] = all;
        }""",
        # atomics in shared memory
        """if (threadIdx.x == 0) part[0] = 0.0f;
        __syncthreads();
        const float sum = warp_sum(i < n ? X[i] : 0.0f);
        if (lane == 0) atomicAdd(part, sum);
        __syncthreads();
        if (threadIdx.x == 0) sums[blockIdx.x] = part[0];""",
        # each warp adds the parts, one stores
        {"if (warp == 0) {": "{", "if (lane == 0) sums": "if (threadIdx.x == 0) sums"},
    ],
    "row_thread": [
        """if (row >= n_rows) return;
        const int begin = row_pointers[row], end = row_pointers[row + 1];
        double sum = 0;
        for (int k = end - 1; k >= begin; --k) sum += double(values[k]) * x[columns[k]];
        y[row] = sum;""",
        """if (row < n_rows) {
            y[row] = 0.0f;
            for (int k = row_pointers[row]; k < row_pointers[row + 1]; ++k)
                y[row] += values[k] * x[columns[k]];
        }""",
        """for (int r = row; r < n_rows; r += gridDim.x * blockDim.x) {
            float sum = 0.0f;
            int k = row_pointers[r];
            while (k != row_pointers[r + 1]) sum = fmaf(values[k], x[columns[k]], sum), ++k;
            y[r] = sum;
        }""",
    ],
    "row_warp": [
        # lanes load nonzeros together and tell each other
        """for (int j = 0; j < n_cols; j += 32) {
            float sum = 0.0f;
            for (int k = begin; k < end; k += 32) {
                const int c = k + lane < end ? columns[k + lane] : 0;
                const float v = k + lane < end ? values[k + lane] : 0.0f;
                for (int m = 0; m < min(32, end - k); ++m) {
                    const int column = __shfl_sync(~0u, c, m);
                    const float value = __shfl_sync(~0u, v, m);
                    if (j + lane < n_cols) sum += value * X[column * n_cols + j + lane];
                }
            }
            if (j + lane < n_cols) Y[row * n_cols + j + lane] = sum;
        }""",
        {"k = begin; k < end; ++k": "k = end - 1; k >= begin; --k"},
        """X += lane, Y += row * n_cols + lane;
        for (int left = n_cols - lane; left > 0; left -= 32, X += 32, Y += 32) {
            float sum = 0.0f;
            for (int k = begin; k < end; ++k) sum += values[k] * X[columns[k] * n_cols];
            *Y = sum;
        }""",
    ],
    "edges": [
        """if (k >= nnz) return;
        const float part = x[columns[k]] * values[k];
        atomicAdd(y + rows[k], part);""",
        # compare and swap
        """if (k < nnz) {
            unsigned *at = (unsigned *)&y[rows[k]], old = atomicAdd(at, 0), seen;
            do {
                seen = old;
                old = atomicCAS(at, seen, __float_as_uint(
                    __uint_as_float(seen) + values[k] * x[columns[k]]));
            } while (old != seen);
        }""",
        # one atomic for each row of the warp
        """const int row = k < nnz ? rows[k] : -1, lane = threadIdx.x % 32;
        const float mine = k < nnz ? values[k] * x[columns[k]] : 0.0f;
        const unsigned peers = __match_any_sync(~0u, row);
        float sum = 0.0f;
        for (int l = 0; l < 32; ++l) {
            const float other = __shfl_sync(~0u, mine, l);
            if (peers >> l & 1) sum += other;
        }
        if (row >= 0 && lane == __ffs(peers) - 1) atomicAdd(&y[row], sum);""",
    ],
    "segments": [
        {"d = 1; d < 32; d *= 2": "d = 16; d > 0; d /= 2"},
        # the last lane of a row has its sum
        """for (int d = 1; d < 32; d *= 2) {
            const float more = __shfl_up_sync(~0u, sum, d);
            const int its_row = __shfl_up_sync(~0u, row, d);
            if (lane >= d && its_row == row) sum += more;
        }
        const int after = __shfl_down_sync(~0u, row, 1);
        if (row >= 0 && (lane == 31 || after != row)) atomicAdd(&y[row], sum);""",
        # lanes of equal rows by a vote
        """const unsigned peers = __match_any_sync(~0u, row);
        float all = 0.0f;
        for (int l = 0; l < 32; ++l) {
            const float other = __shfl_sync(~0u, sum, l);
            if (peers >> l & 1) all += other;
        }
        if (row >= 0 && (peers & ((1u << lane) - 1)) == 0) atomicAdd(&y[row], all);""",
    ],
    "equal_rows": [
        """if (row >= n_rows || lane >= n_cols) return;
        columns += first_nz + row * degree, values += first_nz + row * degree;
        float sum = 0.0f;
        for (int m = degree; m-- > 0;) sum += values[m] * X[columns[m] * n_cols + lane];
        Y[row * n_cols + lane] = sum;""",
        """if (row < n_rows) for (int j = lane; j < n_cols; j += 32) {
            float sum = 0.0f;
            for (int m = 0; m < degree; ++m) {
                const int k = first_nz + degree * row + m;
                sum = fmaf(values[k], X[columns[k] * n_cols + j], sum);
            }
            Y[row * n_cols + j] = sum;
        }""",
        # values and columns by one lane each, told to the others
        """if (row < n_rows) {
            float sum = 0.0f;
            for (int m = 0; m < degree; m += 32) {
                const int k = first_nz + row * degree + m + lane;
                const int c = m + lane < degree ? columns[k] : 0;
                const float v = m + lane < degree ? values[k] : 0.0f;
                for (int l = 0; l < min(32, degree - m); ++l) {
                    const int column = __shfl_sync(~0u, c, l);
                    const float value = __shfl_sync(~0u, v, l);
                    if (lane < n_cols) sum += value * X[column * n_cols + lane];
                }
            }
            if (lane < n_cols) Y[row * n_cols + lane] = sum;
        }""",
    ],
    "combined": [
        {
            "row = thread / width, column = thread % width": "row = blockIdx.x * (128 / width) + "
            "threadIdx.x / width, column = threadIdx.x % width"
        },
        """const int row = thread / width, column = thread - row * width;
        if (row >= n_rows || column >= n_cols) return;
        float sum = 0.0f;
        for (int m = degree - 1; m >= 0; --m)
            sum += values[row * degree + m] * X[columns[row * degree + m] * n_cols + column];
        Y[row * n_cols + column] = sum;""",
        {"row < n_rows && column < n_cols": "column < n_cols && row < n_rows", "++k": "k += 1"},
    ],
    "accel_block": [
        # the parts of a row in an order of its own
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k) sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        __syncthreads();
        if (part || !works) return;
        float all = 0.0f;
        for (int p = warps_per_row - 1; p >= 0; --p) all += partial[warp + p][lane];
        float *y = Y + output_rows[block.y + row] * n_cols + lane;
        if (!split) *y = all; else atomicAdd(y, all);""",
        # atomics in shared memory
        """partial[warp][lane] = 0.0f;
        __syncthreads();
        float sum = 0.0f;
        for (int k = begin; works && k < end; ++k) sum += values[k] * X[columns[k] * n_cols + lane];
        if (works) atomicAdd_block(&partial[row][lane], sum);
        __syncthreads();
        if (works && part == 0) {
            float *y = &Y[output_rows[block.y + row] * n_cols + lane];
            if (split) atomicAdd(y, partial[row][lane]);
            else *y = partial[row][lane];
        }""",
        # the last warp of a row writes
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k) sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        __syncthreads();
        if (works && part == warps_per_row - 1) {
            for (int p = 1; p < warps_per_row; ++p) sum += partial[warp - p][lane];
            float *y = &Y[output_rows[block.y + row] * n_cols + lane];
            if (split) atomicAdd(y, sum);
            else *y = sum;
        }""",
    ],
    "fragment": [
        """const int r = lane >> 2, q = lane & 3;
        a[0] = to_tf32(A[8 * r + q]), a[1] = to_tf32(A[8 * (r + 8) + q]);
        a[2] = to_tf32(A[8 * r + q + 4]), a[3] = to_tf32(A[8 * (r + 8) + q + 4]);
        b[0] = to_tf32(B[8 * q + r]), b[1] = to_tf32(B[8 * (q + 4) + r]);""",
        {"8 * (r % 2)": "(r & 1 ? 8 : 0)", "4 * (r / 2)": "(r < 2 ? 0 : 4)"},
        """A += lane / 4 * 8 + lane % 4, B += lane % 4 * 8 + lane / 4;
        for (int r = 3; r >= 0; --r) a[r] = to_tf32(A[r % 2 * 64 + r / 2 * 4]);
        for (int r = 1; r >= 0; --r) b[r] = to_tf32(B[r * 32]);""",
    ],
    "edge_gradient": [
        {"__shfl_down_sync": "__shfl_xor_sync"},
        """if (k >= nnz) return;
        float sum = 0.0f;
        dY += rows[k] * n_cols, X += columns[k] * n_cols;
        for (int j = lane; j < n_cols; j += 32) sum = fmaf(dY[j], X[j], sum);
        for (int d = 1; d < 32; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (lane == 31) d_values[k] = sum;""",
        # all lanes go round the loop together
        """float sum = 0.0f;
        const int receiver = k < nnz ? rows[k] : 0, sender = k < nnz ? columns[k] : 0;
        for (int j = 0; j < n_cols; j += 32) {
            if (k < nnz && j + lane < n_cols)
                sum += dY[receiver * n_cols + j + lane] * X[sender * n_cols + j + lane];
        }
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0 && k < nnz) d_values[k] = sum;""",
    ],
    "largest": [
        {"-3e38f": "-INFINITY"},
        # by comparing, and with each lane of the warp in turn
        """float own = -INFINITY, top;
        for (int k = begin + lane; k < end; k += 32) own = own > scores[k] ? own : scores[k];
        top = own;
        for (int from = 0; from < 32; ++from) top = fmaxf(top, __shfl_sync(~0u, own, from));
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
        # the least of the negated scores, in a ring
        """float least = INFINITY;
        for (int k = begin + lane; k < end; k += 32) least = fminf(least, -scores[k]);
        for (int d = 1; d < 32; d += d)
            least = fminf(least, __shfl_sync(~0u, least, (lane + d) % 32));
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] + least;""",
        # from the end of the row
        """float top = -FLT_MAX;
        for (int k = end - 1 - lane; k >= begin; k -= 32) top = max(top, scores[k]);
        for (int d = 16; d; d >>= 1) top = max(top, __shfl_xor_sync(0xffffffffu, top, d, 32));
        for (int k = end - 1 - lane; k >= begin; k -= 32) shifted[k] = scores[k] - top;""",
        # lane 0 has the largest and tells the others
        """float top = -3e38f;
        for (int k = begin + lane; k < end; k += 32) top = fmaxf(top, scores[k]);
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_down_sync(~0u, top, d));
        top = __shfl_sync(~0u, top, 0);
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
        # begins with a score of the row
        {
            "float top = -3e38f;": "float top = begin < end ? scores[begin] : 0.0f;",
        },
    ],
    "popc": [
        {"__popc(": "(1 << p) * __popc(", ") << p": ")"},
        # the highest plane first
        """int sum = 0;
        for (int p = planes - 1; p >= 0; --p) {
            sum *= 2;
            for (int w = 0; w < words; ++w)
                sum += __popc(A[row * words + w] & X[(p * words + w) * 32 + lane]);
        }
        Y[row * 32 + lane] = sum;""",
        # the words outside, Horner inside
        """int sum = 0;
        for (int w = 0; w < words; ++w) {
            const unsigned a = A[row * words + w];
            const unsigned *x = X + w * 32 + lane;
            int part = 0;
            for (int p = planes; p--;) part = 2 * part + __popc(a & x[p * words * 32]);
            sum += part;
        }
        Y[row * 32 + lane] = sum;""",
        # ones by clearing the lowest
        """unsigned sum = 0;
        for (int i = 0; i < words * planes; ++i) {
            const int w = i / planes, p = i % planes;
            unsigned both = A[row * words + w] & X[(p * words + w) * 32 + lane];
            for (; both; both &= both - 1) sum += 1u << p;
        }
        Y[row * 32 + lane] = sum;""",
        # columns without a plane's bit cancel
        """int sum = 0;
        for (int w = 0; w < words; ++w) {
            const unsigned a = A[row * words + w];
            for (int p = 0; p < planes; ++p)
                sum += (__popc(a) - __popc(a & ~X[(p * words + w) * 32 + lane])) * (1 << p);
        }
        Y[row * 32 + lane] = sum;""",
        # a bit at a time
        """int sum = 0;
        for (int w = words - 1; w >= 0; --w) {
            const unsigned a = A[row * words + w];
            for (int p = 0; p < planes; ++p) {
                const unsigned both = a & X[(p * words + w) * 32 + lane];
                for (int b = 0; b < 32; ++b) sum += int(both >> b & 1) << p;
            }
        }
        Y[row * 32 + lane] = sum;""",
    ],
}
