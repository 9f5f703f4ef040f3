// Asynchronous copies of bit planes to shared memory by Hopper's Tensor Memory Accelerator (TMA).
// One thread starts the copy of a whole box; an `Arrival`, a barrier in shared memory, counts the
// bytes that have arrived. In the emulator all threads copy synchronously.
#pragma once

#include "bits/lines.cuh"
#include "bits/planes.cuh"

// TMA's descriptor of the planes. Its dimensions: words, eight lines, planes, groups of eight lines
// (accelviz/devices/cuda/tensor_maps.py).
struct TensorMap {
    alignas(64) unsigned long long words[16];
};

#ifdef EMULATOR
#include "instructions/tensor_copy.h"
#else

typedef unsigned long long Arrival;

DEVICE_INLINE bool asks_engine() {
    return threadIdx.x == 0;
}

// Initializes the arrivals. Called by the thread that starts copies; a barrier must follow.
DEVICE_INLINE void prepare(Arrival *arrivals, int count) {
    for (int i = 0; i < count; ++i) {
        const unsigned at = unsigned(__cvta_generic_to_shared(&arrivals[i]));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Announces how many bytes of boxes the arrival will count.
DEVICE_INLINE void expect(Arrival *arrival, int bytes) {
    const unsigned at = unsigned(__cvta_generic_to_shared(arrival));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

// Waits until all bytes have arrived. `round` (0, 1, ...) is how often the arrival was used before.
DEVICE_INLINE void await_arrival(Arrival *arrival, int round) {
    const unsigned at = unsigned(__cvta_generic_to_shared(arrival));
    unsigned come = 0;
    while (!come) {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(come)
            : "r"(at), "r"(round % 2)
            : "memory");
    }
}

// Copies a box: LINE_QUADS quads (16 bytes) of each line, EIGHTS groups of eight lines, PLANES
// planes, starting at `quad`, `plane` and `group`. The order in shared memory is: eight lines of a
// plane, the same lines of the next plane, then the next group; `swizzled` is the position of a
// quad in its line. Positions outside the matrix are filled with zeros and counted as bytes.
template <int PLANES, int EIGHTS>
DEVICE_INLINE void copy_box(uint4 *to, const TensorMap &map, const uint4 *, const Planes &,
                            int quad, int plane, int group, Arrival *arrival) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, 0, %3, %4}], [%5];" ::"r"(unsigned(__cvta_generic_to_shared(to))),
        "l"(&map), "r"(quad * 4), "r"(plane), "r"(group),
        "r"(unsigned(__cvta_generic_to_shared(arrival)))
        : "memory");
}

#endif
