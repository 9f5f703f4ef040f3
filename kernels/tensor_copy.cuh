// Copies by Hopper's copy engine from planes of bits to shared memory, which go on while threads
// do something else. One thread asks for a whole box; an `Arrival` in shared memory counts the
// bytes that have come. In the emulator all threads copy, at once.
#pragma once

#include "bits/lines.cuh"
#include "bits/planes.cuh"

// Where planes lie, as the engine wants it: by words, eight lines, planes and groups of eight lines
// (accelviz/bits/devices.py).
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

// By the thread that starts copies; a barrier follows.
DEVICE_INLINE void prepare(Arrival *arrivals, int count) {
    for (int i = 0; i < count; ++i) {
        const unsigned at = unsigned(__cvta_generic_to_shared(&arrivals[i]));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Says how many bytes of boxes will come.
DEVICE_INLINE void expect(Arrival *arrival, int bytes) {
    const unsigned at = unsigned(__cvta_generic_to_shared(arrival));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

// Waits until all bytes have come, of the round (0, 1 ...) in which the arrival is used again.
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

// Copies LINE_QUADS quads of each line of a box, EIGHTS groups of eight lines in PLANES planes,
// from a quad, a plane and a group on. The eight lines of a plane follow each other, then those of
// the next plane, then the next group; quads lie where `swizzled` says. What there is not comes as
// zeros, and counts.
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
