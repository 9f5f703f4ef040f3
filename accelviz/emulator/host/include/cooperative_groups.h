// Cooperative groups: thread_block, grid_group, tiles of a block and coalesced lanes of a warp.
#pragma once

#include <cstddef>

#include "../cuda_on_host.h"

namespace cooperative_groups {

// A block, or some lanes of a warp, whose ranks are in the order of the lanes.
class thread_group {
   public:
    EMULATOR_BARRIER void sync() const { sync_at(EMULATOR_HERE); }
    EMULATOR_BARRIER void sync_at(void *code) const {
        lanes_ ? emulator::sync_warp(lanes_, code) : emulator::sync_threads(code);
    }
    EMULATOR_BARRIER unsigned long long num_threads() const {
        return lanes_ ? __popc(lanes_) : blockDim.x * blockDim.y * blockDim.z;
    }
    EMULATOR_BARRIER unsigned long long size() const { return num_threads(); }
    EMULATOR_BARRIER unsigned long long thread_rank() const {
        return lanes_ ? __popc(lanes_ & ((1u << emulator::lane()) - 1))
                      : threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }

   protected:
    EMULATOR_BARRIER explicit thread_group(unsigned lanes) : lanes_(lanes) {}
    // The lane of the member with a rank; -1 if there is none.
    EMULATOR_BARRIER int lane_of(long long rank) const {
        const unsigned lanes = lanes_;
        for (int lane = 0; lane < 32; ++lane) {
            if (lanes >> lane & 1u && rank-- == 0) return lane;
        }
        return -1;
    }
    // Converts a mask of lanes to a mask of ranks.
    EMULATOR_BARRIER unsigned by_rank(unsigned votes) const {
        unsigned bits = 0, rank = 0;
        const unsigned lanes = lanes_;
        for (int lane = 0; lane < 32; ++lane) {
            if (lanes >> lane & 1u) bits |= (votes >> lane & 1u) << rank++;
        }
        return bits;
    }

    unsigned lanes_;  // 0: the whole block

    friend thread_group tiled_partition(const thread_group &group, unsigned size);
};

class thread_block : public thread_group {
   public:
    static unsigned thread_rank() { return unsigned(thread_block().thread_group::thread_rank()); }
    static unsigned num_threads() { return unsigned(thread_block().thread_group::num_threads()); }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }

   private:
    EMULATOR_BARRIER thread_block() : thread_group(0) {}
    friend thread_block this_thread_block();
};
inline thread_block this_thread_block() { return {}; }
// Memory that tiles of several warps need on GPUs before compute capability 8.0.
template <unsigned MOST_THREADS>
struct block_tile_memory {
    char bytes[MOST_THREADS > 32 ? MOST_THREADS : 1];
};
template <unsigned MOST_THREADS>
thread_block this_thread_block(block_tile_memory<MOST_THREADS> &) {
    return this_thread_block();
}

// The grid of a cooperative launch.
class grid_group {
   public:
    EMULATOR_BARRIER void sync() const { sync_at(EMULATOR_HERE); }
    static void sync_at(void *code) { emulator::sync_grid(code); }
    static bool is_valid() { return true; }
    static unsigned long long block_rank() {
        return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
    }
    static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
};
inline grid_group this_grid() { return {}; }

// The blocks of a cluster.
class cluster_group {
   public:
    using arrival_token = int;
    EMULATOR_BARRIER void sync() const { sync_at(EMULATOR_HERE); }
    static void sync_at(void *code) { emulator::sync_cluster(code); }
    // The wait is the barrier.
    static arrival_token barrier_arrive() { return 0; }
    EMULATOR_BARRIER void barrier_wait() const { sync_at(EMULATOR_HERE); }
    EMULATOR_BARRIER void barrier_wait(arrival_token &&) const { sync_at(EMULATOR_HERE); }
    EMULATOR_PURE static dim3 dim_blocks() {
        const std::uint32_t *size = emulator::cluster_size();
        return dim3(size[0], size[1], size[2]);
    }
    EMULATOR_PURE static dim3 block_index() {
        const dim3 size = dim_blocks();
        return dim3(blockIdx.x % size.x, blockIdx.y % size.y, blockIdx.z % size.z);
    }
    EMULATOR_PURE static unsigned block_rank() { return emulator::cluster_rank(); }
    EMULATOR_PURE static unsigned num_blocks() {
        const dim3 size = dim_blocks();
        return size.x * size.y * size.z;
    }
    EMULATOR_PURE static dim3 dim_threads() {
        const dim3 size = dim_blocks();
        return dim3(size.x * blockDim.x, size.y * blockDim.y, size.z * blockDim.z);
    }
    EMULATOR_PURE static dim3 thread_index() {
        const dim3 at = block_index();
        return dim3(at.x * blockDim.x + threadIdx.x, at.y * blockDim.y + threadIdx.y,
                    at.z * blockDim.z + threadIdx.z);
    }
    static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned size() { return num_threads(); }
    static unsigned thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    template <typename T>
    EMULATOR_BARRIER T *map_shared_rank(T *address, int rank) const {
        return static_cast<T *>(emulator::map_shared(address, unsigned(rank), EMULATOR_HERE));
    }
    EMULATOR_PURE static unsigned query_shared_rank(const void *address) {
        return emulator::cluster_rank(address);
    }
};
inline cluster_group this_cluster() { return {}; }

// Base of groups of lanes of one warp, with functions that exchange values.
class lane_group : public thread_group {
   public:
    EMULATOR_BARRIER explicit lane_group(unsigned lanes, unsigned rank = 0, unsigned count = 1)
        : thread_group(lanes), meta_rank_(rank), meta_size_(count) {}
    EMULATOR_BARRIER unsigned num_threads() const { return __popc(lanes_); }
    EMULATOR_BARRIER unsigned size() const { return num_threads(); }
    EMULATOR_BARRIER unsigned thread_rank() const { return unsigned(thread_group::thread_rank()); }
    EMULATOR_BARRIER unsigned meta_group_rank() const { return meta_rank_; }
    EMULATOR_BARRIER unsigned meta_group_size() const { return meta_size_; }

    template <typename T>
    EMULATOR_BARRIER T shfl(T value, int rank) const {
        return from(value, rank & 31, EMULATOR_HERE);
    }
    template <typename T>
    EMULATOR_BARRIER T shfl_down(T value, unsigned delta) const {
        return from(value, (long long)(thread_rank()) + delta, EMULATOR_HERE);
    }
    template <typename T>
    EMULATOR_BARRIER T shfl_up(T value, int delta) const {
        return from(value, (long long)(thread_rank()) - delta, EMULATOR_HERE);
    }
    EMULATOR_BARRIER int any(int predicate) const {
        return emulator::ballot(lanes_, predicate != 0, EMULATOR_HERE) != 0;
    }
    EMULATOR_BARRIER int all(int predicate) const {
        return emulator::ballot(lanes_, predicate == 0, EMULATOR_HERE) == 0;
    }
    EMULATOR_BARRIER unsigned ballot(int predicate) const {
        return by_rank(emulator::ballot(lanes_, predicate != 0, EMULATOR_HERE));
    }
    template <typename T>
    EMULATOR_BARRIER unsigned match_any(T value) const {
        return by_rank(emulator::lanes_with(lanes_, value, EMULATOR_HERE));
    }
    template <typename T>
    EMULATOR_BARRIER unsigned match_all(T value, int &all) const {
        all = emulator::lanes_with(lanes_, value, EMULATOR_HERE) == lanes_;
        return all ? by_rank(lanes_) : 0;
    }

    static constexpr unsigned most_threads = 32;
    // Writes the values of all members to `by_rank`.
    template <typename T>
    EMULATOR_BARRIER void gather(const T &value, T (&by_rank)[most_threads], void *code) const {
        for (unsigned rank = 0; rank < num_threads(); ++rank) {
            by_rank[rank] = from(value, rank, code);
        }
    }
    EMULATOR_BARRIER unsigned lanes() const { return lanes_; }

   protected:
    // Returns the value of the member with a rank, else the own value, in pieces of 8 bytes.
    template <typename T>
    EMULATOR_BARRIER T from(T value, long long rank, void *code) const {
        static_assert(sizeof(T) <= 32, "the lanes of a group exchange at most 32 bytes");
        const int lane = lane_of(rank);
        std::uint64_t pieces[(sizeof(T) + 7) / 8] = {};
        __builtin_memcpy(pieces, __builtin_addressof(value), sizeof(T));
        for (std::uint64_t &piece : pieces) {
            piece = emulator::exchange(lanes_, piece, lane, false, nullptr, code);
        }
        __builtin_memcpy(static_cast<void *>(__builtin_addressof(value)), pieces, sizeof(T));
        return value;
    }

   private:
    unsigned meta_rank_, meta_size_;
};

template <unsigned SIZE, typename Parent = void, bool HAS_WARPS = (SIZE > 32)>
class thread_block_tile : public lane_group {
    static_assert(SIZE && !(SIZE & (SIZE - 1)), "a tile has a power of two of threads");

   public:
    EMULATOR_BARRIER thread_block_tile(unsigned rank, unsigned count)
        : lane_group((~0u >> (32 - SIZE)) << (emulator::lane() / SIZE * SIZE), rank, count) {}
    // Conversion to a tile without a parent type.
    template <typename Other>
    EMULATOR_BARRIER thread_block_tile(const thread_block_tile<SIZE, Other> &tile)
        : thread_block_tile(tile.meta_group_rank(), tile.meta_group_size()) {}

    static constexpr unsigned num_threads() { return SIZE; }
    static constexpr unsigned size() { return SIZE; }
    template <typename T>
    EMULATOR_BARRIER T shfl(T value, int rank) const {
        return this->from(value, rank & int(SIZE - 1), EMULATOR_HERE);
    }
    template <typename T>
    EMULATOR_BARRIER T shfl_xor(T value, int mask) const {
        return this->from(value, this->thread_rank() ^ unsigned(mask), EMULATOR_HERE);
    }
};

// A tile of several warps, whose functions are barriers of its threads.
template <unsigned SIZE, typename Parent>
class thread_block_tile<SIZE, Parent, true> {
    static_assert(SIZE <= 512 && !(SIZE & (SIZE - 1)), "a tile has at most 512 threads");

   public:
    EMULATOR_BARRIER thread_block_tile(unsigned rank, unsigned count)
        : meta_rank_(rank), meta_size_(count) {}
    template <typename Other>
    EMULATOR_BARRIER thread_block_tile(const thread_block_tile<SIZE, Other> &tile)
        : thread_block_tile(tile.meta_group_rank(), tile.meta_group_size()) {}

    static constexpr unsigned most_threads = SIZE;
    static constexpr unsigned num_threads() { return SIZE; }
    static constexpr unsigned size() { return SIZE; }
    static unsigned thread_rank() { return thread_block::thread_rank() % SIZE; }
    EMULATOR_BARRIER unsigned meta_group_rank() const { return meta_rank_; }
    EMULATOR_BARRIER unsigned meta_group_size() const { return meta_size_; }
    EMULATOR_BARRIER void sync() const { sync_at(EMULATOR_HERE); }
    EMULATOR_PURE static void sync_at(void *code) {
        emulator::sync_tile(thread_block::thread_rank() / SIZE * SIZE, SIZE, code);
    }
    EMULATOR_BARRIER int any(int predicate) const {
        return count(predicate != 0, EMULATOR_HERE) != 0;
    }
    EMULATOR_BARRIER int all(int predicate) const {
        return count(predicate != 0, EMULATOR_HERE) == SIZE;
    }
    template <typename T>
    EMULATOR_BARRIER T shfl(T value, int rank) const {
        T values[SIZE];
        gather(value, values, EMULATOR_HERE);
        return values[unsigned(rank) % SIZE];
    }
    template <typename T>
    EMULATOR_BARRIER void gather(const T &value, T (&by_rank)[SIZE], void *code) const {
        static_assert(sizeof(T) <= 32, "the threads of a tile exchange at most 32 bytes");
        const unsigned first = thread_block::thread_rank() / SIZE * SIZE;
        give(first + thread_rank(), value);
        sync_at(code);
        for (unsigned rank = 0; rank < SIZE; ++rank) by_rank[rank] = taken<T>(first + rank);
        sync_at(code);
    }

   private:
    // By value, so that the caller's code loads and stores what the kernel may have in memory.
    template <typename T>
    EMULATOR_PURE static void give(unsigned rank, T value) {
        __builtin_memcpy(emulator::tile_values()[rank], __builtin_addressof(value), sizeof(T));
    }
    template <typename T>
    EMULATOR_PURE static T taken(unsigned rank) {
        T value;
        void *const to = __builtin_addressof(value);
        __builtin_memcpy(to, emulator::tile_values()[rank], sizeof(T));
        return value;
    }
    EMULATOR_BARRIER unsigned count(bool vote, void *code) const {
        bool votes[SIZE];
        gather(vote, votes, code);
        unsigned count = 0;
        for (bool other : votes) count += other;
        return count;
    }

    unsigned meta_rank_, meta_size_;
};

template <unsigned SIZE, typename Parent>
EMULATOR_BARRIER thread_block_tile<SIZE, Parent> tiled_partition(const Parent &parent) {
    return {unsigned(parent.thread_rank()) / SIZE, (unsigned(parent.size()) + SIZE - 1) / SIZE};
}
EMULATOR_BARRIER inline thread_block_tile<1> this_thread() { return {0, 1}; }

class coalesced_group : public lane_group {
   public:
    using lane_group::lane_group;
};
EMULATOR_BARRIER inline coalesced_group coalesced_threads() {
    return coalesced_group(emulator::active_lanes(EMULATOR_HERE));
}
namespace details {
template <typename Group>
EMULATOR_BARRIER coalesced_group with_label(const Group &group, int label, void *code) {
    int labels[32];
    group.gather(label, labels, code);
    unsigned mine = 0, lower = 0, count = 0;
    for (unsigned rank = 0, left = group.lanes(); left; left &= left - 1, ++rank) {
        bool first = true;
        for (unsigned i = 0; i < rank; ++i) first &= labels[i] != labels[rank];
        count += first;
        lower += first && labels[rank] < label;
        if (labels[rank] == label) mine |= left & -left;
    }
    return coalesced_group(mine, lower, count);
}
}  // namespace details
// Returns the group of the members with the same label; groups are ranked by their labels.
template <typename Group>
EMULATOR_BARRIER coalesced_group labeled_partition(const Group &group, int label) {
    return details::with_label(group, label, EMULATOR_HERE);
}
template <typename Group>
EMULATOR_BARRIER coalesced_group binary_partition(const Group &group, bool label) {
    return details::with_label(group, int(label), EMULATOR_HERE);
}

// A partition whose size is not a compile-time constant.
EMULATOR_BARRIER inline thread_group tiled_partition(const thread_group &group, unsigned size) {
    const unsigned first = unsigned(group.thread_rank()) / size * size;
    unsigned lanes = 0;
    if (!group.lanes_) {
        lanes = (~0u >> (32 - size)) << (emulator::lane() / size * size);
    } else {
        for (unsigned rank = first; rank < first + size; ++rank) {
            const int lane = group.lane_of(rank);
            if (lane >= 0) lanes |= 1u << lane;
        }
    }
    return thread_group(lanes);
}

template <typename Group>
EMULATOR_BARRIER void sync(const Group &group) {
    group.sync_at(EMULATOR_HERE);
}

namespace details {
// Reduces the values of the members with ranks below `count`; returns T() for count = 0. All members
// call the operation equally often, so that lanes of a traced warp stay together.
template <typename Group, typename T, typename Operation>
EMULATOR_BARRIER T combined(const Group &group, T value, Operation operation, unsigned count,
                            void *code) {
    T values[Group::most_threads];
    group.gather(value, values, code);
    T result = count ? values[0] : T();
    for (unsigned rank = 1; rank < group.num_threads(); ++rank) {
        const T next = operation(result, values[rank]);
        if (rank < count) result = next;
    }
    return result;
}
}  // namespace details

#define EMULATOR_OPERATION(NAME, EXPRESSION)                  \
    template <typename T>                                     \
    struct NAME {                                             \
        T operator()(T a, T b) const { return EXPRESSION; }   \
    };
EMULATOR_OPERATION(plus, a + b)
EMULATOR_OPERATION(less, b < a ? b : a)
EMULATOR_OPERATION(greater, a < b ? b : a)
EMULATOR_OPERATION(bit_and, a & b)
EMULATOR_OPERATION(bit_or, a | b)
EMULATOR_OPERATION(bit_xor, a ^ b)

}  // namespace cooperative_groups
