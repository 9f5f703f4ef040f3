// cuda::std has the names of the C++ headers that a kernel includes as <cuda/std/NAME>; standard_headers
// in source.py lists these for the compiler.
#pragma once

namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
}  // namespace cuda
