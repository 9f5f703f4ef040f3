// Copies by all threads instead of Hopper's copy engine: kernels/tensor_copy.cuh in the emulator.
#pragma once

typedef int Arrival;

inline bool asks_engine() { return true; }
inline void prepare(Arrival *, int) {}
inline void expect(Arrival *, int) {}
inline void await_arrival(Arrival *, int) { __syncthreads(); }

template <int PLANES, int EIGHTS>
inline void copy_box(uint4 *to, const TensorMap &, const uint4 *from, const Planes &of, int quad,
                     int plane, int group, Arrival *) {
    for (int i = int(threadIdx.x); i < EIGHTS * PLANES * 8 * LINE_QUADS; i += int(blockDim.x)) {
        const int line = i / LINE_QUADS, at = quad + i % LINE_QUADS;
        const int from_plane = plane + line / 8 % PLANES;
        const int from_line = (group + line / 8 / PLANES) * 8 + line % 8;
        const bool inside = from_plane < of.bits && from_line < of.lines && at < of.words / 4;
        to[swizzled(line, i % LINE_QUADS)] =
            inside ? from[of.at(from_plane, from_line, 0) / 4 + at] : make_uint4(0, 0, 0, 0);
    }
}
