// Complex numbers as pairs of floats or doubles.
#pragma once

#include "../cuda_on_host.h"

#define EMULATOR_COMPLEX(T, PAIR, TYPE, F)                                                    \
    using TYPE = PAIR;                                                                        \
    inline TYPE make_##TYPE(T real, T imaginary) { return {real, imaginary}; }                \
    inline T cuCreal##F(TYPE a) { return a.x; }                                               \
    inline T cuCimag##F(TYPE a) { return a.y; }                                               \
    inline TYPE cuConj##F(TYPE a) { return {a.x, -a.y}; }                                     \
    inline TYPE cuCadd##F(TYPE a, TYPE b) { return {a.x + b.x, a.y + b.y}; }                  \
    inline TYPE cuCsub##F(TYPE a, TYPE b) { return {a.x - b.x, a.y - b.y}; }                  \
    inline TYPE cuCmul##F(TYPE a, TYPE b) {                                                   \
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                \
    }                                                                                         \
    inline TYPE cuCdiv##F(TYPE a, TYPE b) { /* scaled, against overflow */                    \
        const T scale = 1 / (std::fabs(b.x) + std::fabs(b.y));                                \
        const T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;       \
        const T inverse = 1 / (bx * bx + by * by);                                            \
        return {(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};                \
    }                                                                                         \
    inline T cuCabs##F(TYPE a) { return std::hypot(a.x, a.y); }                               \
    inline TYPE cuCfma##F(TYPE a, TYPE b, TYPE c) {                                           \
        return {a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x};                    \
    }
EMULATOR_COMPLEX(float, float2, cuFloatComplex, f)
EMULATOR_COMPLEX(double, double2, cuDoubleComplex, )

using cuComplex = cuFloatComplex;
inline cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) { return {float(a.x), float(a.y)}; }
