// CUDA's vector types char1 to double4, with CUDA's alignment and make_ functions.
//
// Included by cuda_on_host.h.
#pragma once

#include <initializer_list>

namespace emulator {

// Copies `bytes` bytes, reported as accesses of `wide` bytes each.
EMULATOR_INSTRUCTION inline void move(const void *from, void *to, unsigned bytes, unsigned wide,
                                      void *code) {
    for (unsigned at = 0; at < bytes; at += wide) {
        const char *part = static_cast<const char *>(from) + at;
        access(part, wide, LOAD, DEVICE, code);
        access(static_cast<char *>(to) + at, wide, STORE, DEVICE, code);
        std::memcpy(static_cast<char *>(to) + at, part, wide);
    }
}
// Bytes of an access, and alignment, of a vector with n components: the whole vector, at most 16
// bytes, for n = 1, 2 and 4; one component for n = 3.
constexpr unsigned access_bytes(unsigned bytes, unsigned n) {
    return n == 3 ? bytes : n * bytes < 16 ? n * bytes : 16;
}

template <typename T>
constexpr bool is_vector = false;

// Item `i` of a braced list, or zero if the list is shorter.
template <typename T>
constexpr T item(std::initializer_list<T> items, unsigned i) {
    return i < items.size() ? items.begin()[i] : T();
}

}  // namespace emulator

#define EMULATOR_VECTOR_COPIES(NAME, T, N)                                                       \
    EMULATOR_INSTRUCTION NAME(const NAME &from) {                                                \
        emulator::move(&from, this, sizeof(NAME), emulator::access_bytes(sizeof(T), N),          \
                       EMULATOR_HERE);                                                           \
    }                                                                                            \
    EMULATOR_INSTRUCTION NAME &operator=(const NAME &from) {                                     \
        emulator::move(&from, this, sizeof(NAME), emulator::access_bytes(sizeof(T), N),          \
                       EMULATOR_HERE);                                                           \
        return *this;                                                                            \
    }
// The default constructor is trivial, so that g++ initialises shared arrays statically. A dynamic
// initialisation has a guard, on which the fibers of a block would deadlock.
#define EMULATOR_VECTOR(NAME, T, N, MEMBERS, ...)                       \
    struct alignas(emulator::access_bytes(sizeof(T), N)) NAME {         \
        T EMULATOR_ALL MEMBERS;                                         \
        NAME() = default;                                               \
        constexpr NAME(std::initializer_list<T> items) : __VA_ARGS__ {} \
        EMULATOR_VECTOR_COPIES(NAME, T, N)                              \
    };                                                                  \
    template <>                                                         \
    constexpr bool emulator::is_vector<NAME> = true;
#define EMULATOR_ALL(...) __VA_ARGS__
#define EMULATOR_ITEM(MEMBER, I) MEMBER(emulator::item(items, I))
#define EMULATOR_X EMULATOR_ITEM(x, 0)
#define EMULATOR_XY EMULATOR_X, EMULATOR_ITEM(y, 1)
#define EMULATOR_XYZ EMULATOR_XY, EMULATOR_ITEM(z, 2)
#define EMULATOR_VECTORS(T, PREFIX)                                                             \
    EMULATOR_VECTOR(PREFIX##1, T, 1, (x), EMULATOR_X)                                         \
    EMULATOR_VECTOR(PREFIX##2, T, 2, (x, y), EMULATOR_XY)                                   \
    EMULATOR_VECTOR(PREFIX##3, T, 3, (x, y, z), EMULATOR_XYZ)                             \
    EMULATOR_VECTOR(PREFIX##4, T, 4, (x, y, z, w), EMULATOR_XYZ, EMULATOR_ITEM(w, 3))   \
    inline PREFIX##1 make_##PREFIX##1(T x) { return {x}; }                                      \
    inline PREFIX##2 make_##PREFIX##2(T x, T y) { return {x, y}; }                              \
    inline PREFIX##3 make_##PREFIX##3(T x, T y, T z) { return {x, y, z}; }                      \
    inline PREFIX##4 make_##PREFIX##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMULATOR_VECTORS(signed char, char) EMULATOR_VECTORS(unsigned char, uchar)
EMULATOR_VECTORS(short, short) EMULATOR_VECTORS(unsigned short, ushort)
EMULATOR_VECTORS(int, int) EMULATOR_VECTORS(unsigned, uint)
EMULATOR_VECTORS(long, long) EMULATOR_VECTORS(unsigned long, ulong)
EMULATOR_VECTORS(long long, longlong) EMULATOR_VECTORS(unsigned long long, ulonglong)
EMULATOR_VECTORS(float, float) EMULATOR_VECTORS(double, double)
