// cuRAND's device functions: the generators XORWOW and Philox4x32-10 with uniform and normal numbers.
#pragma once

#include "../cuda_on_host.h"

namespace emulator {

// The states have cuRAND's members, so that their sizes are equal. The last ones are the second
// number of a pair of normal numbers, which the next `curand_normal` returns.
struct Xorwow {
    std::uint32_t d, v[5];
    int has_normal, has_normal_double;
    float next_normal;
    double next_normal_double;

    EMULATOR_PURE void begin(std::uint64_t seed) {
        const std::uint32_t low = std::uint32_t(seed) ^ 0xaad26b49;
        const std::uint32_t high = std::uint32_t(seed >> 32) ^ 0xf7dcefdd;
        const std::uint32_t a = 1099087573u * low, b = 2591861531u * high;
        d = 6615241u + b + a;
        v[0] = 123456789u + a;
        v[1] = 362436069u ^ a;
        v[2] = 521288629u + b;
        v[3] = 88675123u ^ b;
        v[4] = 5783321u + a;
    }
    EMULATOR_PURE std::uint32_t next() {
        const std::uint32_t t = v[0] ^ v[0] >> 2;
        for (int i = 0; i < 4; ++i) v[i] = v[i + 1];
        v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
        d += 362437;
        return v[4] + d;
    }
    EMULATOR_PURE void skip(std::uint64_t n) {
        skip_xorwow(v, n, 0);
        d += 362437 * std::uint32_t(n);
    }
    // A sequence has 2^67 numbers, which add a multiple of 2^32 to `d`.
    EMULATOR_PURE void skip_sequences(std::uint64_t n) { skip_xorwow(v, n, 67); }
};

struct alignas(16) Philox {
    std::uint32_t counter[4], output[4], key[2], used;
    int has_normal, has_normal_double;
    float next_normal;
    double next_normal_double;

    EMULATOR_PURE void begin(std::uint64_t seed) {
        for (std::uint32_t &word : counter) word = 0;
        key[0] = std::uint32_t(seed);
        key[1] = std::uint32_t(seed >> 32);
        used = 0;
    }
    EMULATOR_PURE void add(std::uint64_t n, int first) {
        std::uint64_t low = counter[first] | std::uint64_t(counter[first + 1]) << 32;
        const bool carries = low + n < n;
        low += n;
        counter[first] = std::uint32_t(low);
        counter[first + 1] = std::uint32_t(low >> 32);
        if (carries && !first) add(1, 2);
    }
    EMULATOR_PURE void compute() {
        std::uint32_t x[4], k[2] = {key[0], key[1]};
        for (int i = 0; i < 4; ++i) x[i] = counter[i];
        for (int round = 0; round < 10; ++round) {
            const std::uint64_t a = std::uint64_t(0xd2511f53) * x[0];
            const std::uint64_t b = std::uint64_t(0xcd9e8d57) * x[2];
            x[0] = std::uint32_t(b >> 32) ^ x[1] ^ k[0];
            x[1] = std::uint32_t(b);
            x[2] = std::uint32_t(a >> 32) ^ x[3] ^ k[1];
            x[3] = std::uint32_t(a);
            k[0] += 0x9e3779b9;
            k[1] += 0xbb67ae85;
        }
        for (int i = 0; i < 4; ++i) output[i] = x[i];
    }
    EMULATOR_PURE std::uint32_t next() {
        const std::uint32_t number = output[used++];
        if (used == 4) skip(0);
        return number;
    }
    EMULATOR_PURE void skip(std::uint64_t n) {
        used += std::uint32_t(n & 3);
        n /= 4;
        if (used > 3) {
            ++n;
            used -= 4;
        }
        add(n, 0);
        compute();
    }
    EMULATOR_PURE void skip_sequences(std::uint64_t n) {
        add(n, 2);
        compute();
    }
};

// A copy of a state in memory, which is written back at its end.
template <typename State>
struct StateInUse : State {
    State *memory;
    void *code;

    EMULATOR_PURE StateInUse(State *from, void *here) : memory(from), code(here) {
        copy_memory(static_cast<State *>(this), memory, sizeof(State), code);
    }
    EMULATOR_PURE ~StateInUse() {
        copy_memory(memory, static_cast<State *>(this), sizeof(State), code);
    }
    EMULATOR_PURE float uniform() { return float(this->next()) * 0x1p-32f + 0x1p-33f; }
    EMULATOR_PURE std::uint64_t next_long() {
        const std::uint64_t low = this->next();
        return low ^ std::uint64_t(this->next()) << 21;
    }
    EMULATOR_PURE double fine_double() { return double(next_long()) * 0x1p-53 + 0x1p-54; }
    EMULATOR_PURE double uniform_double() {
        if constexpr (std::is_same_v<State, Xorwow>) return fine_double();
        else return double(this->next()) * 0x1p-32 + 0x1p-32;
    }
    // Two normal numbers by the transform of Box and Muller.
    EMULATOR_PURE float2 two_normals() {
        constexpr float circle = 0x1p-32f * 6.2831855f;
        const float u = uniform(), v = float(this->next()) * circle + circle / 2;
        const float radius = std::sqrt(-2.0f * std::log(u));
        return {radius * std::sin(v), radius * std::cos(v)};
    }
    EMULATOR_PURE double2 two_normals_double() {
        const double u = fine_double();
        const double v = (double(next_long()) * 0x1p-52 + 0x1p-53) * 3.141592653589793;
        const double radius = std::sqrt(-2.0 * std::log(u));
        return {radius * std::sin(v), radius * std::cos(v)};
    }
    EMULATOR_PURE float normal() {
        this->has_normal = !this->has_normal;
        if (!this->has_normal) return this->next_normal;
        const float2 normals = two_normals();
        this->next_normal = normals.y;
        return normals.x;
    }
    EMULATOR_PURE double normal_double() {
        this->has_normal_double = !this->has_normal_double;
        if (!this->has_normal_double) return this->next_normal_double;
        const double2 normals = two_normals_double();
        this->next_normal_double = normals.y;
        return normals.x;
    }
};

static_assert(sizeof(Xorwow) == 48 && alignof(Xorwow) == 8);
static_assert(sizeof(Philox) == 64 && alignof(Philox) == 16);

}  // namespace emulator

typedef emulator::Xorwow curandState, curandState_t, curandStateXORWOW, curandStateXORWOW_t;
typedef emulator::Philox curandStatePhilox4_32_10, curandStatePhilox4_32_10_t;

#define EMULATOR_STATE emulator::StateInUse<State> use(state, EMULATOR_HERE)
template <typename State>
EMULATOR_INSTRUCTION void curand_init(unsigned long long seed, unsigned long long sequence,
                                      unsigned long long offset, State *state) {
    State fresh{};
    fresh.begin(seed);
    fresh.skip_sequences(sequence);
    fresh.skip(offset);
    emulator::copy_memory(state, &fresh, sizeof fresh, EMULATOR_HERE);
}
template <typename State>
EMULATOR_INSTRUCTION void skipahead(unsigned long long n, State *state) {
    EMULATOR_STATE;
    use.skip(n);
}
template <typename State>
EMULATOR_INSTRUCTION void skipahead_sequence(unsigned long long n, State *state) {
    EMULATOR_STATE;
    use.skip_sequences(n);
}
#define EMULATOR_DRAWN(TYPE, NAME, EXPRESSION)       \
    template <typename State>                        \
    EMULATOR_INSTRUCTION TYPE NAME(State *state) {   \
        EMULATOR_STATE;                              \
        return EXPRESSION;                           \
    }
EMULATOR_DRAWN(unsigned, curand, use.next())
EMULATOR_DRAWN(float, curand_uniform, use.uniform())
EMULATOR_DRAWN(double, curand_uniform_double, use.uniform_double())
EMULATOR_DRAWN(float, curand_normal, use.normal())
EMULATOR_DRAWN(double, curand_normal_double, use.normal_double())
EMULATOR_DRAWN(float2, curand_normal2, use.two_normals())
EMULATOR_DRAWN(double2, curand_normal2_double, use.two_normals_double())
#undef EMULATOR_DRAWN
// Four numbers at once; the initialiser of a vector evaluates its items in order.
#define EMULATOR_DRAWN(TYPE, NAME, ...)                                \
    EMULATOR_INSTRUCTION inline TYPE NAME(emulator::Philox *state) {   \
        using State = emulator::Philox;                                \
        EMULATOR_STATE;                                                \
        return TYPE{__VA_ARGS__};                                      \
    }
EMULATOR_DRAWN(uint4, curand4, use.next(), use.next(), use.next(), use.next())
EMULATOR_DRAWN(float4, curand_uniform4, use.uniform(), use.uniform(), use.uniform(), use.uniform())
#undef EMULATOR_DRAWN
#undef EMULATOR_STATE
EMULATOR_INSTRUCTION inline float4 curand_normal4(emulator::Philox *state) {
    emulator::StateInUse<emulator::Philox> use(state, EMULATOR_HERE);
    const float2 a = use.two_normals(), b = use.two_normals();
    return float4{a.x, a.y, b.x, b.y};
}
template <typename State>
EMULATOR_INSTRUCTION float curand_log_normal(State *state, float mean, float deviation) {
    emulator::StateInUse<State> use(state, EMULATOR_HERE);
    return std::exp(mean + deviation * use.normal());
}
template <typename State>
EMULATOR_INSTRUCTION double curand_log_normal_double(State *state, double mean, double deviation) {
    emulator::StateInUse<State> use(state, EMULATOR_HERE);
    return std::exp(mean + deviation * use.normal_double());
}
