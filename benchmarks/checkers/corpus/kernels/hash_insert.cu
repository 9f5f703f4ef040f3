#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// A hash table: a slot is taken by compare and swap, the next is tried if it has an owner.
__global__ void hash_insert(const unsigned int *keys, unsigned int *slots, int *probes, int n,
                            int size) {
    const int i = cg::this_grid().thread_rank();
    if (i >= n) return;
    int at = keys[i] * 2654435761u % size;
    for (int probe = 0; probe < size; ++probe) {
        const unsigned int found = atomicCAS(&slots[at], 0u, keys[i]);
        if (found == 0u || found == keys[i]) return;
        atomicAdd(probes, 1);
        at = (at + 1) % size;
    }
}
