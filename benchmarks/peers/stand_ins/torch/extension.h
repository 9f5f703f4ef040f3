// Stand-in for the parts of PyTorch, and of what it includes, that the peers' host functions name.
//
// The host functions are compiled with their files and never called: the entries in this folder
// launch the kernels, on memory of the caller.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>
#include <cuda/std/__algorithm_>
#include <cuda/std/cmath>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace c10 {
enum class ScalarType { Float, Double, Half, BFloat16, Int, Long, UInt32, UInt64 };
}  // namespace c10

namespace at {
using c10::ScalarType;
constexpr ScalarType kFloat = ScalarType::Float, kHalf = ScalarType::Half;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16, kInt = ScalarType::Int;
constexpr ScalarType kLong = ScalarType::Long;
using Half = __half;
using BFloat16 = __nv_bfloat16;

struct Device {
    int index() const {
        return 0;
    }
};

struct TensorOptions {
    TensorOptions dtype(ScalarType) const {
        return *this;
    }
    template <typename... Where>
    TensorOptions device(Where...) const {
        return *this;
    }
};

struct Tensor {
    int64_t size(int) const {
        return 0;
    }
    Device device() const {
        return {};
    }
    ScalarType scalar_type() const {
        return ScalarType::Float;
    }
    void *data_ptr() const {
        return nullptr;
    }
    template <typename T>
    T *data_ptr() const {
        return nullptr;
    }
};
}  // namespace at

namespace torch {
using at::Tensor;
using at::TensorOptions;
constexpr auto kFloat32 = c10::ScalarType::Float, kInt32 = c10::ScalarType::Int;
enum DeviceType { kCUDA };
inline Tensor empty(std::initializer_list<int64_t>, TensorOptions) {
    return {};
}
inline Tensor zeros(std::initializer_list<int64_t>, TensorOptions) {
    return {};
}
}  // namespace torch

#define CHECK(condition) \
    if (condition) {     \
    } else               \
        std::cerr
