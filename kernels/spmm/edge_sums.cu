// Y += A X for an edge list in any order, without preparation: the products of edges are added to Y
// atomically. For graphs so small that launches take the host longer than the products take the
// GPU. accelviz.torch uses it for mini-batches; edge_blocks.cu is its way for large graphs.
//
// Items are the edges and then `n_loops` self loops, of nodes 0, 1, ... With loops, edges from a
// node to itself are ignored, and so are edges with a node that does not exist. A row is an item's
// target, or with `by_source` its source.
//
// grid = any number of blocks; block = block_threads

// Supplied at compile time:
//   block_threads  threads of a block, whole warps
//   vector         neighboring columns per load of a lane: 1, 2 or 4, a divisor of n_cols
//   lanes          lanes of a subwarp, which has an item's columns: 1 to 32
//   Index          type of the edge list's elements, long long or int

#include "vectors.cuh"

using Index = Config::Index;
using Vector = Floats<Config::vector>;

constexpr int AT_ONCE = Config::lanes < 4 ? Config::lanes : 4;  // loads of a lane in flight

struct EdgeList {
    const Index *sources, *targets;  // `stride` elements apart
    int stride, n_edges, n_loops, n_sources, n_targets;

    // Returns (source, target) of an item, (-1, -1) if it is ignored. `bad_node`, of the host, gets
    // 2 n + 1 for a node n that does not exist.
    DEVICE_INLINE int2 ends(int i, unsigned long long *bad_node) const {
        if (i >= n_edges) return make_int2(i - n_edges, i - n_edges);
        const Index source = sources[(long long)i * stride];
        const Index target = targets[(long long)i * stride];
        const bool no_source = (unsigned long long)source >= unsigned(n_sources);
        if (no_source || (unsigned long long)target >= unsigned(n_targets)) {
            const unsigned long long node = no_source ? source : target;
            *(volatile unsigned long long *)bad_node = node << 1 | 1;
            return make_int2(-1, -1);
        }
        const bool is_ignored = n_loops && source == target;
        return is_ignored ? make_int2(-1, -1) : make_int2(int(source), int(target));
    }
};

DEVICE_INLINE void add_atomically(Vector *to, const Vector &sum) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    atomicAdd(to, sum);
#else
#pragma unroll
    for (int i = 0; i < Config::vector; ++i) {
        atomicAdd(reinterpret_cast<float *>(to) + i, part(sum, i));
    }
#endif
}

// Counts the items of each target.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_degrees(unsigned long long *bad_node, const Index *sources, const Index *targets,
                 int edge_stride, int n_edges, int n_loops, int n_sources, int n_targets,
                 unsigned *degrees) {
    const EdgeList edges = {sources, targets, edge_stride, n_edges, n_loops, n_sources, n_targets};
    const int threads = int(gridDim.x) * Config::block_threads;
    int i = int(blockIdx.x) * Config::block_threads + threadIdx.x;
    for (; i < n_edges + n_loops; i += threads) {
        const int2 ends = edges.ends(i, bad_node);
        if (ends.y >= 0) atomicAdd(&degrees[ends.y], 1u);
    }
}

// 1 / sqrt(degree), 0 for a node without items.
DEVICE_INLINE float symmetric_scale(unsigned degree) {
    return degree ? rsqrtf(float(degree)) : 0.0f;
}

// The weight of an item is `values[i]`, 1 without values, times 1 / degree of its target, or with
// `symmetric` times 1 / sqrt(degree) of both ends, unless `degrees` is null.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    edge_sums(int n_cols, unsigned long long *bad_node, const Index *sources, const Index *targets,
              int edge_stride, int n_edges, int n_loops, int n_sources, int n_targets,
              const unsigned *__restrict__ degrees, int by_source, int symmetric,
              const float *__restrict__ values, const Vector *__restrict__ X,
              Vector *__restrict__ Y) {
    const EdgeList edges = {sources, targets, edge_stride, n_edges, n_loops, n_sources, n_targets};
    const int n_items = n_edges + n_loops, vectors = n_cols / Config::vector;
    const int lane = threadIdx.x % WARP_SIZE, lane_of_group = lane % Config::lanes;
    const int warps = int(gridDim.x) * (Config::block_threads / WARP_SIZE);
    int first = int(blockIdx.x) * Config::block_threads + int(threadIdx.x) - lane;
    for (; first < n_items; first += warps * WARP_SIZE) {
        // Each lane loads one item; then each subwarp handles those of its own lanes.
        int row = -1, column = 0;
        float weight = 0.0f;
        if (const int i = first + lane; i < n_items) {
            const int2 ends = edges.ends(i, bad_node);
            if (ends.x >= 0) {
                row = by_source ? ends.x : ends.y;
                column = by_source ? ends.y : ends.x;
                weight = values ? values[i] : 1.0f;
                if (degrees && symmetric) {
                    weight *= symmetric_scale(degrees[ends.x]) * symmetric_scale(degrees[ends.y]);
                } else if (degrees) {
                    weight /= float(degrees[ends.y]);
                }
            }
        }
        for (int tile = 0; tile < vectors; tile += Config::lanes) {
            const int vector = tile + lane_of_group;
            const bool is_busy = vector < vectors;
            int row_of_sum = -1;
            Vector sum = {};
            const auto add_sum = [&] {
                if (is_busy && row_of_sum >= 0) {
                    add_atomically(&Y[(long long)row_of_sum * vectors + vector], sum);
                }
            };
            for (int i = 0; i < Config::lanes; i += AT_ONCE) {
                int rows[AT_ONCE];
                float weights[AT_ONCE];
                Vector x[AT_ONCE];
#pragma unroll
                for (int j = 0; j < AT_ONCE; ++j) {
                    const int from = lane - lane_of_group + i + j;
                    rows[j] = __shfl_sync(ALL_LANES, row, from);
                    weights[j] = __shfl_sync(ALL_LANES, weight, from);
                    const int source = __shfl_sync(ALL_LANES, column, from);
                    const bool is_used = is_busy && rows[j] >= 0;
                    x[j] = is_used ? X[(long long)source * vectors + vector] : Vector{};
                }
#pragma unroll
                for (int j = 0; j < AT_ONCE; ++j) {
                    if (rows[j] != row_of_sum) {  // one addition for a run of items of one row
                        add_sum();
                        sum = {};
                        row_of_sum = rows[j];
                    }
                    add_product(sum, weights[j], x[j]);
                }
            }
            add_sum();
        }
    }
}
