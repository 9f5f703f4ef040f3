// Clusters of blocks: the blocks of a cluster run in turn, from one barrier of the cluster to the
// next. While a block does not run, its shared memory is in a window of its own, where the others
// read and write it.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <vector>

#include "parallel.h"

namespace emulator {

// Windows of the blocks of a cluster, by rank.
constexpr std::uint64_t windows_begin = 0x070000000000, window_bytes = 1 << 20;

// The latest access of another block to the shared memory of a block.
struct RemoteAccess {
    std::uint32_t phase = 0, block = 0, thread = 0;
    Access access{};
    int array = -1;
};

// A block of the cluster that runs.
struct Member {
    std::uint32_t number = 0;
    bool ended = false;
    RemoteAccess latest;
    std::vector<Cell> cells;
};

static std::vector<Member> members;       // by rank; empty in a launch without clusters
static unsigned rank_of_block = 0;        // of the block that runs
static unsigned owner = 0;                // rank of the block whose shared memory is checked
static std::uint32_t cluster_phase = 1;   // 1 + number of barriers that the cluster has passed
static std::uint32_t cluster_epoch = 0;   // epoch of its blocks after the latest one

inline dim3 cluster_dims() {
    return dim3(launch->cluster[0], launch->cluster[1], launch->cluster[2]);
}
// Number of the cluster of a block, and the block's rank in it.
inline std::uint32_t cluster_of(std::uint32_t number) {
    const dim3 at = index_of(number, gridDim), size = cluster_dims();
    return at.x / size.x + gridDim.x / size.x * (at.y / size.y + gridDim.y / size.y * (at.z / size.z));
}
inline unsigned rank_in_cluster(std::uint32_t number) {
    const dim3 at = index_of(number, gridDim), size = cluster_dims();
    return at.x % size.x + size.x * (at.y % size.y + size.y * (at.z % size.z));
}
inline bool is_mate(std::uint32_t number) { return cluster_of(number) == cluster_of(block); }

// Begins a launch with clusters: their shared memory is not swapped to and fro, but has windows.
inline void begin_clusters() {
    if (!has_clusters()) return;
    const unsigned count = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    members.resize(count);
    for (Member &member : members) member.cells.resize(memory->offset_of_shared(-1) / 4 + 1);
    void *const windows = reinterpret_cast<void *>(windows_begin);
    const void *mapped = mmap(windows, count * window_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
}

// The cell of a word: in shared memory that of the block `owner`.
inline Cell &cell_of(int number, std::uint64_t at) {
    if (members.empty() || !is_shared(memory->array(number))) return memory->cell(number, at);
    return members[owner].cells[(memory->offset_of_shared(number) + at) / 4];
}

// Whether a barrier of the cluster, or of the grid, orders an earlier access before all later ones.
inline bool is_past(const Entry &entry) {
    if (entry.epoch < grid_epoch) return true;
    return !members.empty() && entry.epoch < cluster_epoch && is_mate(entry.block);
}

// Returns the number of the array at an address in a window, and sets `access` to the address that
// its block itself has for it; -1 for any other address.
inline int find_remote(Access &access) {
    const std::uint64_t at = address_of(access.address) - windows_begin;
    if (members.empty() || at >= members.size() * window_bytes) return -1;
    owner = unsigned(at / window_bytes);
    const int number = memory->find_shared(at % window_bytes);
    if (number < 0) return -1;
    const std::uint64_t offset = at % window_bytes - memory->offset_of_shared(number);
    access.address = reinterpret_cast<const char *>(memory->array(number).address + offset);
    return number;
}

// Names the block to whose memory the answer's access is.
inline void name_owner() {
    const dim3 index = index_of(members[owner].number, gridDim);
    std::memcpy(answer->owner, &index, sizeof(dim3));
    answer->has_owner = 1;
}

// Checks that the block `owner` has begun and not left, and remembers the access for its end.
inline void check_remote(int number, const Access &access) {
    Member &member = members[owner];
    name_owner();
    if (member.ended) fail_at("cluster block left", number, access);
    if (cluster_phase == 1) fail_at("cluster block not begun", number, access);
    member.latest = {cluster_phase, block, current->index, access, number};
}

// Reports a block that has left the kernel after the latest barrier of the cluster, behind which
// another block uses its shared memory.
inline void end_member(unsigned rank) {
    Member &member = members[rank];
    member.ended = true;
    const RemoteAccess &latest = member.latest;
    if (failed() || latest.phase != cluster_phase) return;
    owner = rank;
    name_owner();
    block = latest.block;
    answer->kind = base_kind(latest.access.kind);
    answer->bytes = latest.access.bytes;
    answer->offset = address_of(latest.access.address) - memory->array(latest.array).address;
    set_problem("cluster block left", latest.thread, latest.access.code, latest.array);
}

// The address of a variable in the shared memory of another block.
void *map_shared(const void *address, unsigned rank, void *code) {
    const std::size_t size = std::max<std::size_t>(members.size(), 1);
    if (rank >= size) {
        std::snprintf(answer->text, sizeof(answer->text), "%u of %zu", rank, size);
        fail("cluster rank", address_of(code));
    }
    std::uint64_t at = address_of(address) - windows_begin;
    if (members.empty() || at >= members.size() * window_bytes) {
        const int number = memory->find(address_of(address));
        if (number < 0 || !is_shared(memory->array(number))) fail("not its shared memory", address_of(code));
        if (rank == rank_of_block) return const_cast<void *>(address);
        at = memory->offset_of_shared(number) + address_of(address) - memory->array(number).address;
    }
    const std::uint64_t window = windows_begin + rank * window_bytes;
    return reinterpret_cast<void *>(window + at % window_bytes);
}
unsigned cluster_rank() { return members.empty() ? 0 : rank_of_block; }
unsigned cluster_rank(const void *address) {
    const std::uint64_t at = address_of(address) - windows_begin;
    return at < members.size() * window_bytes ? unsigned(at / window_bytes) : cluster_rank();
}
const std::uint32_t *cluster_size() { return launch->cluster; }

}  // namespace emulator
