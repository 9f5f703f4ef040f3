// The functions that ptx.py puts in place of inline PTX.
//
// Included by cuda_on_host.h.
#pragma once

namespace emulator {

// The number by which PTX addresses shared memory, and the address for it.
std::uint64_t to_shared(const void *address);
void *from_shared(std::uint64_t number);

namespace ptx {

// The bits of an operand as another type; a number of the same kind is converted. By value, so that
// the caller's code loads the operand and is checked.
template <typename To, typename From>
EMULATOR_PURE To in(From from) {
    if constexpr (std::is_integral_v<To> && (std::is_integral_v<From> || std::is_enum_v<From>))
        return static_cast<To>(from);
    else if constexpr (sizeof(From) == 8 && sizeof(To) == 4 && std::is_same_v<To, float>)
        return static_cast<To>(from);  // a constant
    else
        return bits<To>(from);
}
template <typename To, typename From>
EMULATOR_PURE std::remove_reference_t<To> out(From from) {
    return in<std::remove_cv_t<std::remove_reference_t<To>>>(from);
}

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using s8 = signed char;
using s16 = short;
using s32 = int;
using s64 = long long;

EMULATOR_PURE unsigned thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

template <typename T>
EMULATOR_PURE char *pointer(T *address, long long offset) {
    return reinterpret_cast<char *>(const_cast<std::remove_cv_t<T> *>(address)) + offset;
}
// A number of 32 bits is an address of shared memory.
template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
EMULATOR_PURE char *pointer(T address, long long offset) {
    if (sizeof(T) == 4 || std::uint64_t(address) >> 32 == 0)
        return static_cast<char *>(from_shared(std::uint32_t(address))) + offset;
    return reinterpret_cast<char *>(std::uint64_t(address)) + offset;
}
template <typename T>
EMULATOR_PURE T *at(char *address) {
    return reinterpret_cast<T *>(address);
}
// A load that acquires: what it reads is ordered before later accesses of its thread.
template <typename T>
EMULATOR_INSTRUCTION T acquired(const T *address) {
    access(address, sizeof(T), VOLATILE_LOAD, DEVICE, EMULATOR_HERE);
    acquire();
    T value;
    std::memcpy(static_cast<void *>(&value), address, sizeof(T));
    return value;
}
// The result of an atomic that acquires.
template <typename T>
EMULATOR_INSTRUCTION T acquiring(T value) {
    acquire();
    return value;
}
EMULATOR_PURE unsigned long long to_shared(unsigned long long address) {
    return emulator::to_shared(reinterpret_cast<const void *>(address));
}

template <typename T>
EMULATOR_PURE T shifted_left(T x, unsigned count) {
    return count < 8 * sizeof(T) ? T(x << count) : T(0);
}
template <typename T>
EMULATOR_PURE T shifted_right(T x, unsigned count) {
    return T(x >> (count < 8 * sizeof(T) ? count : 8 * sizeof(T) - 1)) >>
           (std::is_unsigned_v<T> && count >= 8 * sizeof(T));
}
EMULATOR_PURE unsigned lop3(unsigned a, unsigned b, unsigned c, unsigned table) {
    unsigned result = 0;
    for (unsigned i = 0; i < 8; ++i) {
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
}
EMULATOR_PURE unsigned bfe(unsigned x, unsigned first, unsigned count) {
    first &= 255, count &= 255;
    const unsigned moved = first < 32 ? x >> first : 0;
    return count < 32 ? moved & ((1u << count) - 1) : moved;
}
EMULATOR_PURE int bfe(int x, unsigned first, unsigned count) {
    first &= 255, count &= 255;
    if (!count) return 0;
    const unsigned last = min(first + count - 1, 31u);
    const int moved = x >> min(first, 31u);
    const unsigned width = min(count, 32u - min(first, 31u)), sign = unsigned(x) >> last & 1;
    if (first > 31) return -int(sign);
    const unsigned mask = width < 32 ? (1u << width) - 1 : ~0u;
    return sign ? int(unsigned(moved) | ~mask) : int(unsigned(moved) & mask);
}
EMULATOR_PURE unsigned bfi(unsigned from, unsigned into, unsigned first, unsigned count) {
    first &= 255, count &= 255;
    if (first > 31 || !count) return into;
    const unsigned mask = (count < 32 ? (1u << count) - 1 : ~0u) << first;
    return (into & ~mask) | (from << first & mask);
}
#define EMULATOR_PTX_ATOMIC(NAME, FUNCTION)          \
    template <typename T>                            \
    __attribute__((always_inline)) inline T NAME(T *address, T value) { \
        return FUNCTION(address, value);             \
    }
EMULATOR_PTX_ATOMIC(add, atomicAdd) EMULATOR_PTX_ATOMIC(min, atomicMin)
EMULATOR_PTX_ATOMIC(max, atomicMax) EMULATOR_PTX_ATOMIC(and_, atomicAnd)
EMULATOR_PTX_ATOMIC(or_, atomicOr) EMULATOR_PTX_ATOMIC(xor_, atomicXor)
EMULATOR_PTX_ATOMIC(exch, atomicExch)
#undef EMULATOR_PTX_ATOMIC

// The last operand of shfl has the lanes of a segment in its upper bits.
EMULATOR_PURE int width(unsigned c) { return 32 - int(c >> 8 & 31); }
#define EMULATOR_PTX_SHUFFLE(NAME, FUNCTION)                                                    \
    __attribute__((always_inline)) inline unsigned NAME(unsigned mask, unsigned x, unsigned by, \
                                                        unsigned c) {                           \
        return FUNCTION(mask, x, by, width(c));                                                 \
    }
EMULATOR_PTX_SHUFFLE(shfl_up, __shfl_up_sync) EMULATOR_PTX_SHUFFLE(shfl_down, __shfl_down_sync)
EMULATOR_PTX_SHUFFLE(shfl_bfly, __shfl_xor_sync) EMULATOR_PTX_SHUFFLE(shfl_idx, __shfl_sync)
#undef EMULATOR_PTX_SHUFFLE

template <typename T, int N>
struct Vector {
    T x[N];
};
template <typename T, int N>
EMULATOR_INSTRUCTION void load(const char *from, Vector<T, N> &to, bool read_only) {
    access(from, sizeof(to), read_only ? READ_ONLY_LOAD : LOAD, DEVICE, EMULATOR_HERE);
    __builtin_memcpy(&to, from, sizeof(to));
}
template <typename T, int N>
EMULATOR_INSTRUCTION void store(char *to, const Vector<T, N> &from) {
    access(to, sizeof(from), STORE, DEVICE, EMULATOR_HERE);
    __builtin_memcpy(to, &from, sizeof(from));
}
EMULATOR_INSTRUCTION inline void copy_async(char *to, const char *from, unsigned bytes,
                                            int source_bytes) {
    const unsigned zeros = source_bytes < 0 ? 0 : bytes - unsigned(source_bytes);
    check_async_copy(to, bytes, zeros, EMULATOR_HERE);
    emulator::copy_async(to, from, bytes, zeros, EMULATOR_HERE);
}

}  // namespace ptx
}  // namespace emulator

EMULATOR_PURE std::size_t __cvta_generic_to_shared(const void *address) {
    return emulator::to_shared(address);
}
EMULATOR_PURE void *__cvta_shared_to_generic(std::size_t number) {
    return emulator::from_shared(number);
}
EMULATOR_PURE std::size_t __cvta_generic_to_global(const void *address) {
    return reinterpret_cast<std::size_t>(address);
}
