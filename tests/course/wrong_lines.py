"""Plausible wrong answers to the puzzles: what learners write between the marks."""

WRONG = {
    "one_each": [
        "Y[0] = 2 * X[0];",
        "for (int i = 0; i < 32; ++i) Y[i] = 2 * X[i];",
        "const int i = threadIdx.x; Y[i] = X[i] + 2;",
        "const int i = threadIdx.x + 1; Y[i] = 2 * X[i];",
    ],
    "blocks": [
        "const int i = threadIdx.x; Y[i] = X[i] + Z[i];",
        "const int i = blockIdx.x * 32 + threadIdx.x; Y[i] = X[i] + Z[i];",
        "const int i = blockIdx.x + threadIdx.x * gridDim.x; Y[i] = X[i] + Z[threadIdx.x];",
        "const int i = blockIdx.x * gridDim.x + threadIdx.x; Y[i] = X[i] + Z[i];",
    ],
    "guard": [
        "Y[i] = a * X[i] + Y[i];",
        "if (i <= n) Y[i] = a * X[i] + Y[i];",
        "if (i < n - 1) Y[i] = a * X[i] + Y[i];",
        "if (i < n) Y[i] = a * X[i];",
    ],
    "stride": [
        # right, but neighbors do not read neighbors
        """const int threads = gridDim.x * blockDim.x, each = (n + threads - 1) / threads;
        const int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
        for (int i = first; i < min(n, first + each); ++i) Y[i] = -X[i];""",
        "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) Y[i] = -X[i];",
        """for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x)
            Y[i] = -X[i];""",
        """const int threads = gridDim.x * blockDim.x;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i <= n; i += threads) Y[i] = -X[i];""",
    ],
    "wide": [
        # right, but a float at a time
        """if (i < n4) {
            Y[i].x = 2 * X[i].x; Y[i].y = 2 * X[i].y; Y[i].z = 2 * X[i].z; Y[i].w = 2 * X[i].w;
        }""",
        "float4 four = X[i]; four.x *= 2; four.y *= 2; four.z *= 2; four.w *= 2; Y[i] = four;",
        "if (i < n4) { float4 four = X[i]; four.x *= 2; Y[i] = four; }",
        "if (i < n4) Y[i] = 2 * X[i];",
    ],
    "mirror": [
        "if (t < n) tile[t] = piece[t]; if (t < n) piece[t] = tile[n - 1 - t];",
        "if (t < n) piece[t] = piece[n - 1 - t];",
        "tile[t] = piece[t]; __syncthreads(); piece[t] = tile[63 - t];",
        "if (t < n) tile[t] = piece[t]; __syncthreads(); if (t < n) piece[t] = tile[63 - t];",
        "if (t < n) tile[t] = piece[t]; __syncwarp(); if (t < n) piece[t] = tile[n - 1 - t];",
    ],
    "neighbors": [
        # right, but from global memory
        """if (i < n) Y[i] = (i > 0 ? X[i - 1] : 0) + X[i] + (i + 1 < n ? X[i + 1] : 0);""",
        """tile[t + 1] = i < n ? X[i] : 0.0f; __syncthreads();
        if (i < n) Y[i] = tile[t] + tile[t + 1] + tile[t + 2];""",
        """tile[t + 1] = i < n ? X[i] : 0.0f;
        if (t == 0) tile[0] = 0; if (t == 63) tile[65] = 0; __syncthreads();
        if (i < n) Y[i] = tile[t] + tile[t + 1] + tile[t + 2];""",
        """tile[t + 1] = i < n ? X[i] : 0.0f;
        if (t == 0) tile[0] = i > 0 ? X[i - 1] : 0.0f;
        if (t == 63) tile[65] = i + 1 < n ? X[i + 1] : 0.0f;
        if (i < n) Y[i] = tile[t] + tile[t + 1] + tile[t + 2];""",
        """tile[t + 1] = X[i];
        if (t == 0) tile[0] = i > 0 ? X[i - 1] : 0.0f;
        if (t == 63) tile[65] = i + 1 < n ? X[i + 1] : 0.0f;
        __syncthreads();
        if (i < n) Y[i] = tile[t] + tile[t + 1] + tile[t + 2];""",
    ],
    "transpose": [
        # right, but without the tile
        """if (first + t < n_cols) for (int r = 0; r < 32; ++r)
            Y[(first + t) * 32 + r] = X[r * n_cols + first + t];""",
        """if (first + t < n_cols)
            for (int r = 0; r < 32; ++r) tile[r][t] = X[r * n_cols + first + t];
        for (int c = 0; c < 32 && first + c < n_cols; ++c) Y[(first + c) * 32 + t] = tile[t][c];""",
        """for (int r = 0; r < 32; ++r) tile[r][t] = X[r * n_cols + first + t];
        __syncthreads();
        for (int c = 0; c < 32; ++c) Y[(first + c) * 32 + t] = tile[t][c];""",
        """if (first + t < n_cols)
            for (int r = 0; r < 32; ++r) tile[r][t] = X[r * n_cols + first + t];
        __syncthreads();
        for (int c = 0; c < 32 && first + c < n_cols; ++c) Y[(first + c) * 32 + t] = tile[c][t];""",
        """if (first + t < n_cols) {
            for (int r = 0; r < 32; ++r) tile[r][t] = X[r * 32 + first + t];
        }
        __syncthreads();
        for (int c = 0; c < 32 && first + c < n_cols; ++c) Y[(first + c) * 32 + t] = tile[t][c];""",
    ],
    "banks": [
        None,  # what is given: right, but slow
        """__shared__ float tile[32][34];
        const int t = threadIdx.x, row = blockIdx.x * 32;
        for (int r = 0; r < 32; ++r) tile[r][t] = X[(row + r) * 32 + t];
        __syncthreads();
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += tile[t][k];
        sums[row + t] = sum;""",
        """__shared__ float tile[32][32];
        const int t = threadIdx.x, row = blockIdx.x * 32;
        for (int r = 0; r < 32; ++r) tile[r][t] = X[(row + r) * 32 + t];
        __syncthreads();
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += tile[k][t];
        sums[row + t] = sum;""",
        """__shared__ float tile[32][33];
        const int t = threadIdx.x, row = blockIdx.x * 32;
        for (int r = 0; r < 32; ++r) tile[r][t] = X[(row + r) * 32 + t];
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += tile[t][k];
        sums[row + t] = sum;""",
        # no shared memory, and no neighbors either
        """const int t = threadIdx.x, row = blockIdx.x * 32;
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) sum += X[(row + t) * 32 + k];
        sums[row + t] = sum;""",
    ],
    "shuffle": [
        """float sum = X[i];
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0) sums[blockIdx.x] = sum;""",
        """if (i < n) {
            float sum = X[i];
            for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
            if (lane == 0) sums[blockIdx.x] = sum;
        }""",
        """float sum = i < n ? X[i] : 0.0f;
        for (int d = 16; d > 1; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0) sums[blockIdx.x] = sum;""",
        """float sum = i < n ? X[i] : 0.0f;
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        sums[blockIdx.x] = sum;""",
    ],
    "block_sum": [
        "const float sum = warp_sum(i < n ? X[i] : 0.0f); if (lane == 0) sums[blockIdx.x] = sum;",
        """const float sum = warp_sum(i < n ? X[i] : 0.0f);
        if (lane == 0) part[warp] = sum;
        if (warp == 0) { const float all = warp_sum(lane < blockDim.x / 32 ? part[lane] : 0.0f);
            if (lane == 0) sums[blockIdx.x] = all; }""",
        """const float sum = warp_sum(i < n ? X[i] : 0.0f);
        if (lane == 0) part[warp] = sum;
        __syncthreads();
        if (warp == 0) { const float all = warp_sum(part[lane]);
            if (lane == 0) sums[blockIdx.x] = all; }""",
        """const float sum = warp_sum(i < n ? X[i] : 0.0f);
        if (lane == 0) part[warp] = sum;
        __syncthreads();
        if (warp == 0) { const float all = warp_sum(lane < 4 ? part[lane] : 0.0f);
            if (lane == 0) sums[blockIdx.x] = all; }""",
        """if (i < n) {
            const float sum = warp_sum(X[i]);
            if (lane == 0) part[warp] = sum;
        }
        __syncthreads();
        if (warp == 0) { const float all = warp_sum(lane < blockDim.x / 32 ? part[lane] : 0.0f);
            if (lane == 0) sums[blockIdx.x] = all; }""",
    ],
    "row_thread": [
        """float sum = 0.0f;
        for (int k = row_pointers[row]; k < row_pointers[row + 1]; ++k)
            sum += values[k] * x[columns[k]];
        y[row] = sum;""",
        """if (row < n_rows) { float sum = 0.0f;
        for (int k = row_pointers[row]; k < row_pointers[row + 1]; ++k) sum += values[k] * x[k];
        y[row] = sum; }""",
        """if (row < n_rows) { float sum;
        for (int k = row_pointers[row]; k < row_pointers[row + 1]; ++k)
            sum += values[k] * x[columns[k]];
        y[row] = sum; }""",
        """if (row < n_rows && row_pointers[row] < row_pointers[row + 1]) { float sum = 0.0f;
        for (int k = row_pointers[row]; k < row_pointers[row + 1]; ++k)
            sum += values[k] * x[columns[k]];
        y[row] = sum; }""",
    ],
    "row_warp": [
        """if (lane < n_cols) { float sum = 0.0f;
        for (int k = begin; k < end; ++k) sum += values[k] * X[columns[k] * n_cols + lane];
        Y[row * n_cols + lane] = sum; }""",
        """float sum = 0.0f;
        for (int j = lane; j < n_cols; j += 32) {
            for (int k = begin; k < end; ++k) sum += values[k] * X[columns[k] * n_cols + j];
            Y[row * n_cols + j] = sum;
        }""",
        """for (int j = lane; j < n_cols; j += 32) { float sum = 0.0f;
            for (int k = begin; k < end; ++k) sum += values[k] * X[columns[k] + j];
            Y[row * n_cols + j] = sum; }""",
        # right, but lane 0 does all
        """if (lane == 0) for (int j = 0; j < n_cols; ++j) { float sum = 0.0f;
            for (int k = begin; k < end; ++k) sum += values[k] * X[columns[k] * n_cols + j];
            Y[row * n_cols + j] = sum; }""",
    ],
    "edges": [
        "if (k < nnz) y[rows[k]] += values[k] * x[columns[k]];",
        "atomicAdd(&y[rows[k]], values[k] * x[columns[k]]);",
        "if (k < nnz) atomicAdd(&y[columns[k]], values[k] * x[rows[k]]);",
        "if (k < nnz) atomicExch(&y[rows[k]], values[k] * x[columns[k]]);",
    ],
    "segments": [
        "if (row >= 0) atomicAdd(&y[row], sum);",  # right, but an atomic for each nonzero
        """for (int d = 1; d < 32; d *= 2) {
            const float more = __shfl_down_sync(~0u, sum, d);
            const int its_row = __shfl_down_sync(~0u, row, d);
            if (its_row == row) sum += more;
        }
        const int before = __shfl_up_sync(~0u, row, 1);
        if (row >= 0 && (lane == 0 || before != row)) atomicAdd(&y[row], sum);""",
        """for (int d = 1; d < 32; d *= 2) {
            const float more = __shfl_down_sync(~0u, sum, d);
            if (lane + d < 32) sum += more;
        }
        const int before = __shfl_up_sync(~0u, row, 1);
        if (row >= 0 && (lane == 0 || before != row)) atomicAdd(&y[row], sum);""",
        """for (int d = 1; d < 32; d *= 2) {
            const float more = __shfl_down_sync(~0u, sum, d);
            const int its_row = __shfl_down_sync(~0u, row, d);
            if (lane + d < 32 && its_row == row) sum += more;
        }
        const int before = __shfl_up_sync(~0u, row, 1);
        if (row >= 0 && before != row) atomicAdd(&y[row], sum);""",
        """for (int d = 1; d < 32; d *= 2) {
            const float more = __shfl_down_sync(~0u, sum, d);
            const int its_row = __shfl_down_sync(~0u, row, d);
            if (lane + d < 32 && its_row == row) sum += more;
        }
        const int before = __shfl_up_sync(~0u, row, 1);
        if (row >= 0 && (lane == 0 || before != row)) y[row] = sum;""",
    ],
    "equal_rows": [
        """if (row < n_rows && lane < n_cols) { const int begin = row * degree; float sum = 0.0f;
            for (int k = begin; k < begin + degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + lane];
            Y[row * n_cols + lane] = sum; }""",
        """if (lane < n_cols) { const int begin = first_nz + row * degree; float sum = 0.0f;
            for (int k = begin; k < begin + degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + lane];
            Y[row * n_cols + lane] = sum; }""",
        """if (row < n_rows) { const int begin = first_nz + row * degree; float sum = 0.0f;
            for (int k = begin; k < begin + degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + lane];
            Y[row * n_cols + lane] = sum; }""",
        """if (row < n_rows && lane < n_cols) { const int begin = first_nz + row * degree;
            float sum = 0.0f;
            for (int k = begin; k < begin + degree; ++k)
                sum += values[k] * X[columns[k] * 32 + lane];
            Y[row * 32 + lane] = sum; }""",
    ],
    "combined": [
        """const int row = thread / 32, column = thread % 32;
        if (row < n_rows && column < n_cols) { float sum = 0.0f;
            for (int k = row * degree; k < (row + 1) * degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + column];
            Y[row * n_cols + column] = sum; }""",
        """const int row = threadIdx.x / width, column = threadIdx.x % width;
        if (row < n_rows && column < n_cols) { float sum = 0.0f;
            for (int k = row * degree; k < (row + 1) * degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + column];
            Y[row * n_cols + column] = sum; }""",
        """const int row = thread / width, column = thread % width;
        if (row < n_rows) { float sum = 0.0f;
            for (int k = row * degree; k < (row + 1) * degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + column];
            Y[row * n_cols + column] = sum; }""",
        """const int row = thread / width, column = thread % width;
        if (column < n_cols) { float sum = 0.0f;
            for (int k = row * degree; k < (row + 1) * degree; ++k)
                sum += values[k] * X[columns[k] * n_cols + column];
            Y[row * n_cols + column] = sum; }""",
    ],
    "accel_block": [
        # each warp stores its part of the row
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        if (works) Y[output_rows[block.y + row] * n_cols + lane] = sum;""",
        # no barrier
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        if (works && part == 0) {
            for (int p = 1; p < warps_per_row; ++p) sum += partial[warp + p][lane];
            atomicAdd(&Y[output_rows[block.y + row] * n_cols + lane], sum);
        }""",
        # split rows are overwritten
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        __syncthreads();
        if (works && part == 0) {
            for (int p = 1; p < warps_per_row; ++p) sum += partial[warp + p][lane];
            Y[output_rows[block.y + row] * n_cols + lane] = sum;
        }""",
        # rows that nobody has cleared are added to
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        __syncthreads();
        if (works && part == 0) {
            for (int p = 1; p < warps_per_row; ++p) sum += partial[warp + p][lane];
            atomicAdd(&Y[output_rows[block.y + row] * n_cols + lane], sum);
        }""",
        # the sorted row's place, not the caller's
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        __syncthreads();
        if (works && part == 0) {
            for (int p = 1; p < warps_per_row; ++p) sum += partial[warp + p][lane];
            atomicAdd(&Y[(block.y + row) * n_cols + lane], sum);
        }""",
        # as if all warps of the block had the same row
        """float sum = 0.0f;
        for (int k = begin; works && k < end; ++k)
            sum += values[k] * X[columns[k] * n_cols + lane];
        partial[warp][lane] = sum;
        __syncthreads();
        if (works && warp == 0) {
            for (int p = 1; p < 4; ++p) sum += partial[p][lane];
            atomicAdd(&Y[output_rows[block.y + row] * n_cols + lane], sum);
        }""",
    ],
    "fragment": [
        # rows and columns of the registers exchanged
        """for (int r = 0; r < 4; ++r) {
            const int row = lane / 4 + 8 * (r / 2), column = lane % 4 + 4 * (r % 2);
            a[r] = to_tf32(A[row * 8 + column]);
        }
        for (int r = 0; r < 2; ++r) b[r] = to_tf32(B[(lane % 4 + 4 * r) * 8 + lane / 4]);""",
        # B transposed
        """for (int r = 0; r < 4; ++r) {
            const int row = lane / 4 + 8 * (r % 2), column = lane % 4 + 4 * (r / 2);
            a[r] = to_tf32(A[row * 8 + column]);
        }
        for (int r = 0; r < 2; ++r) b[r] = to_tf32(B[lane / 4 * 8 + lane % 4 + 4 * r]);""",
        # numbers in place of their bits
        """for (int r = 0; r < 4; ++r) {
            const int row = lane / 4 + 8 * (r % 2), column = lane % 4 + 4 * (r / 2);
            a[r] = A[row * 8 + column];
        }
        for (int r = 0; r < 2; ++r) b[r] = B[(lane % 4 + 4 * r) * 8 + lane / 4];""",
        # bits of B that are not rounded to TF32
        """for (int r = 0; r < 4; ++r) {
            const int row = lane / 4 + 8 * (r % 2), column = lane % 4 + 4 * (r / 2);
            a[r] = to_tf32(A[row * 8 + column]);
        }
        for (int r = 0; r < 2; ++r)
            b[r] = __float_as_uint(B[(lane % 4 + 4 * r) * 8 + lane / 4]);""",
        # nor those of A
        """for (int r = 0; r < 4; ++r) {
            const int row = lane / 4 + 8 * (r % 2), column = lane % 4 + 4 * (r / 2);
            a[r] = __float_as_uint(A[row * 8 + column]);
        }
        for (int r = 0; r < 2; ++r) b[r] = to_tf32(B[(lane % 4 + 4 * r) * 8 + lane / 4]);""",
        # neighboring elements, as C has them
        """for (int r = 0; r < 4; ++r) {
            const int row = lane / 4 + 8 * (r / 2), column = 2 * (lane % 4) + r % 2;
            a[r] = to_tf32(A[row * 8 + column]);
        }
        for (int r = 0; r < 2; ++r) b[r] = to_tf32(B[(lane % 4 + 4 * r) * 8 + lane / 4]);""",
    ],
    "edge_gradient": [
        # only the first 32 columns
        """float sum = 0.0f;
        if (k < nnz && lane < n_cols)
            sum = dY[rows[k] * n_cols + lane] * X[columns[k] * n_cols + lane];
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0 && k < nnz) d_values[k] = sum;""",
        # nonzeros beyond the last one
        """float sum = 0.0f;
        for (int j = lane; j < n_cols; j += 32)
            sum += dY[rows[k] * n_cols + j] * X[columns[k] * n_cols + j];
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0) d_values[k] = sum;""",
        # lanes are not added up
        """float sum = 0.0f;
        for (int j = lane; k < nnz && j < n_cols; j += 32)
            sum += dY[rows[k] * n_cols + j] * X[columns[k] * n_cols + j];
        if (lane == 0 && k < nnz) d_values[k] = sum;""",
        # right, but one lane does all of it
        """float sum = 0.0f;
        for (int j = 0; k < nnz && lane == 0 && j < n_cols; ++j)
            sum += dY[rows[k] * n_cols + j] * X[columns[k] * n_cols + j];
        if (lane == 0 && k < nnz) d_values[k] = sum;""",
    ],
    "largest": [
        # the first loop walks as if the block had one row
        """float top = -3e38f;
        for (int k = begin + lane; k < end; k += blockDim.x) top = fmaxf(top, scores[k]);
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
        # some scores are smaller
        """float top = -999.0f;
        for (int k = begin + lane; k < end; k += 32) top = fmaxf(top, scores[k]);
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
        # 0 is larger than every score
        """float top = 0.0f;
        for (int k = begin + lane; k < end; k += 32) top = fmaxf(top, scores[k]);
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
        # only lane 0 has the largest
        """float top = -3e38f;
        for (int k = begin + lane; k < end; k += 32) top = fmaxf(top, scores[k]);
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_down_sync(~0u, top, d));
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
        # rows longer than a warp
        """const int k = begin + lane;
        float top = k < end ? scores[k] : -3e38f;
        for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        if (k < end) shifted[k] = scores[k] - top;""",
        # right, but each lane reads the whole row
        """float top = -3e38f;
        for (int k = begin; k < end; ++k) top = fmaxf(top, scores[k]);
        for (int k = begin + lane; k < end; k += 32) shifted[k] = scores[k] - top;""",
    ],
    "popc": [
        # a one of every plane is worth one
        """int sum = 0;
        for (int p = 0; p < planes; ++p)
            for (int w = 0; w < words; ++w)
                sum += __popc(A[row * words + w] & X[(p * words + w) * 32 + lane]);
        Y[row * 32 + lane] = sum;""",
        # ones of either
        """int sum = 0;
        for (int p = 0; p < planes; ++p)
            for (int w = 0; w < words; ++w)
                sum += __popc(A[row * words + w] | X[(p * words + w) * 32 + lane]) << p;
        Y[row * 32 + lane] = sum;""",
        # shifted before they are counted
        """int sum = 0;
        for (int p = 0; p < planes; ++p)
            for (int w = 0; w < words; ++w)
                sum += __popc(A[row * words + w] & X[(p * words + w) * 32 + lane] << p);
        Y[row * 32 + lane] = sum;""",
        # the words of a column behind each other
        """int sum = 0;
        for (int p = 0; p < planes; ++p)
            for (int w = 0; w < words; ++w)
                sum += __popc(A[row * words + w] & X[(p * 32 + lane) * words + w]) << p;
        Y[row * 32 + lane] = sum;""",
        # every block has row 0
        """int sum = 0;
        for (int p = 0; p < planes; ++p)
            for (int w = 0; w < words; ++w)
                sum += __popc(A[w] & X[(p * words + w) * 32 + lane]) << p;
        Y[row * 32 + lane] = sum;""",
    ],
}
