"""Kernels of A4 by students: right ones in unusual CUDA, and ones that try to leave it.

A kernel is the right one with changes. An entry is `# description`, then lines before the function,
then changes: `- ` has a text of the right kernel, `+ ` its replacement. `INSIDE` is the line before
the first of the function's body, `PRODUCT` the statement that adds a product, `STORE` the last one.
"""

from __future__ import annotations

from tests.course.wrong import A4, solution

_NAMES: dict[str, str] = {}
exec(solution(A4, "kernel"), _NAMES)
RIGHT = _NAMES["code"]
_NAMED = {
    "INSIDE": "    const int warp = threadIdx.x / 32;",
    "PRODUCT": "sum += values[k] * X[(long long)columns[k] * n_cols + column];",
    "STORE": "atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);",
}


def kernels(text: str) -> dict[str, str]:
    """Parse entries; return the texts by description."""
    texts = {}
    for entry in text.strip("\n").removeprefix("# ").split("\n# "):
        description, *lines = entry.split("\n")
        before = [line for line in lines if line[:2] not in ("- ", "+ ")]
        code = RIGHT
        changes = [line for line in lines if line[:2] in ("- ", "+ ")]
        while changes:
            old = _NAMED.get(changes[0][2:], changes[0][2:])
            new = []
            while changes[1:] and changes[1][0] == "+":
                new.append(changes.pop(1)[2:])
            assert old in code, (description, old)
            keep = f"\n{old}" if changes.pop(0)[2:] == "INSIDE" else ""
            code = code.replace(old, "\n".join(new) + keep)
        texts[description] = "\n".join([*before, code])
    return texts


HONEST = kernels(
    r"""
# as it is
# a type alias
using ll = long long;
- (long long)
+ (ll)
# a typedef
typedef long long ll;
- (long long)
+ (ll)
# __inline__ __device__
__inline__ __device__ float times(float a, float b) { return a * b; }
- values[k] * X
+ times(values[k], 1.0f) * X
# __host__ __device__
__host__ __device__ inline int next(int a) { return a + 1; }
- ++k
+ k = next(k)
# many qualifiers
static __device__ __host__ __forceinline__ int next(int a) { return a + 1; }
- ++k
+ k = next(k)
# memset
- INSIDE
+ float part[4]; memset(part, 0, sizeof part); (void)part;
# a prototype
__device__ float plus(float a, float b);
__device__ float plus(float a, float b) { return a + b; }
- PRODUCT
+ sum = plus(sum, values[k] * X[(long long)columns[k] * n_cols + column]);
# a struct with a constructor and a method, a union that is passed by reference
union Meta { int4 v; int part[4]; };
struct Run {
    int row, first, n;
    __device__ explicit Run(const Meta &m) : row(m.v.x), first(m.part[1]), n(m.part[2]) {}
    __device__ int end() const { return first + n; }
};
- const int4 mine = metadata[run];
+ const int4 mine = metadata[run]; Meta meta; meta.v = mine; const Run r(meta);
- k < mine.y + mine.z
+ k < r.end()
# a template
template <class T> __device__ T times(T a, T b) { return a * b; }
- values[k] * X
+ times<float>(values[k], 1.0f) * X
# templates with defaults and specializations
template <bool B> __device__ int one() { if constexpr (B) return 1; else return 2; }
template <int N> __device__ int also_one() { return N; }
template <> __device__ int also_one<3>() { return 1; }
template <typename T, int N = 32> struct Step {
    static constexpr int value = N;
    __device__ static T zero() { return T(); }
};
- column += 32
+ column += Step<float>::value
- ++k
+ k += one<true>() * also_one<3>()
- float sum = 0.0f
+ float sum = Step<float>::zero()
# a type of a template's parameter
struct F { using Item = float; };
template <class T> __device__ typename T::Item zero(bool b) {
    return b ? typename T::Item{} : typename T::Item{};
}
- float sum = 0.0f
+ float sum = zero<F>(true)
# a macro named as many do
#define full_mask 0xffffffffu
- INSIDE
+ __syncwarp(full_mask);
# a macro with parameters
#define IDX(r, c) ((long long)(r) * n_cols + (c))
- (long long)mine.x * n_cols + column
+ IDX(mine.x, column)
- (long long)columns[k] * n_cols + column
+ IDX(columns[k], column)
# variables named as functions of hosts
- INSIDE
+ int div = 1, read = 2, write = 3, wait = 4, time = 5, error = 6, index = 7, link = 8;
+ int select = 9, remove = div + read + write + wait + time + error + index + link + select;
+ (void)remove;
# launch bounds
- __global__ void
+ __global__ void __launch_bounds__(BLOCK_WARPS * 32, 2)
# launch bounds first
- __global__ void
+ __launch_bounds__(128) __global__ void
# restricted pointers
- const float *values, const float *X
+ const float *__restrict__ values, const float* __restrict X
# a lambda
- float sum = 0.0f;
+ auto at = [&](int r) { return (long long)r * n_cols + column; }; float sum = 0.0f;
- (long long)columns[k] * n_cols + column
+ at(columns[k])
# cooperative groups
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
- INSIDE
+ auto tile = cg::tiled_partition<32>(cg::this_thread_block()); tile.sync();
# the course's header
#include "common.cuh"
- column += 32
+ column += WARP_SIZE
# intrinsics
- PRODUCT
+ sum = __fmaf_rn(__ldg(&values[k]), __ldg(X + (long long)columns[k] * n_cols + column), sum);
# a store with a cache hint
- PRODUCT
+ float x; __stcg(&x, X[(long long)columns[k] * n_cols + column]); sum += values[k] * x;
# digit separators and quotes
- INSIDE
+ const int big = 1'000'000; const char *s = "it's [1] \"x\""; (void)big; (void)s;
# constants of several kinds
enum { LANES = 32 };
constexpr int WIDTH = LANES;
__device__ constexpr float ZERO = 0.0f;
- column += 32
+ column += WIDTH
- sum = 0.0f
+ sum = ZERO
# conditions on the architecture
- INSIDE
+ #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
+ __syncwarp();
+ #else
+ #error old
+ #endif
# pragma unroll, also by a macro on the line of its loop
#define UNROLL _Pragma("unroll")
-     for (int column
+ #pragma unroll 4
+     for (int column
-         for (int k
+         UNROLL for (int k
# printf
- INSIDE
+ if (n_runs < 0) printf("%d runs, 100 %%\n", n_runs);
# mathematics
- sum);
+ fmaxf(sum, sum) + 0.0f * sqrtf(fabsf(sum)) + 0.0f * expf(0.0f));
# the first warp of a row does the whole row
- const int4 mine = metadata[run];
+ int4 mine = metadata[run];
+ if (run > 0 && metadata[run - 1].x == mine.x) return;
+ for (int r = run + 1; r < n_runs && metadata[r].x == mine.x; ++r) mine.z += metadata[r].z;
# shared memory
- INSIDE
+ __shared__ float tile[BLOCK_WARPS][32]; tile[threadIdx.x / 32][threadIdx.x % 32] = 0.0f;
- sum);
+ sum + tile[warp][lane]);
# an aligned struct
struct __align__(16) Four { float x, y, z, w; };
# pointers in place of indices
- STORE
+ float *y = Y + (size_t)mine.x * n_cols; atomicAdd(y + column, sum);
# comments with anything
// größer: ✓ asm [[ ##
/* __attribute__ */
# names with underscores
- INSIDE
+ const int _warp = 1, my__name = 2, _N = 3; (void)(_warp + my__name + _N);
# a static assertion
static_assert(BLOCK_WARPS == 4, "four");
# integers of several widths
- INSIDE
+ unsigned int u = 0xffffffffU; uint32_t v = u; size_t w = v; (void)w;
# a namespace
namespace mine_ { __device__ int one() { return 1; } }
using mine_::one;
- ++k
+ k += one()
# headers of C that CUDA has no need of
#include <cstdint>
#include <cfloat>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cuda.h>
#include <vector_types.h>
- sum = 0.0f
+ sum = 0.0f * FLT_MAX + 0.0f * INT32_MAX
# attributes without effect
- INSIDE
+ [[maybe_unused]] const int spare = 1; if (n_runs < 0) [[unlikely]] return;
# labels before statements without a type
- INSIDE
+ switch (n_runs) { case -1: return; default: break; }
+ goto next; next: __syncwarp();
# a choice between a structure in braces and one in memory
struct One { float x; };
- float sum = 0.0f;
+ const One *at = (const One *)values; One one = n_runs > 0 ? One{0.0f} : *at;
+         float sum = one.x + 0.0f * at->x;
# mathematics, loops over lists, bindings
- INSIDE
+ const auto [row, first, length, none] = metadata[0]; int t = row + first + length + none;
+ for (int i : {1, 2, 3}) t += i; int v[] = {4, 5}; for (int i : v) t += max(i, abs(-i));
+ if (sinf(t) + powf(t, 2.0f) + roundf(t) + isnan(float(t)) + rsqrtf(1 + t) < -9.0f) return;
# number signs in texts
- INSIDE
+ if (n_runs < 0) printf("#%d # ERROR", '#');
# a scan of a tile, an operation by a functor
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
struct Larger {
    __device__ __forceinline__ int operator()(int a, int b) const { return a > b ? a : b; }
};
- const int4 mine = metadata[run];
+ int4 mine = metadata[run];
+ auto tile = cg::tiled_partition<32>(cg::this_thread_block());
+ mine.z = cg::reduce(tile, mine.z, Larger());
+ if (cg::exclusive_scan(tile, 1) != lane) return;
# indices of CUDA by value, arrays of arrays as one array
__device__ unsigned flat(uint3 at, dim3 size) { return at.x + size.x * (at.y + size.y * at.z); }
- threadIdx.x % 32
+ flat(threadIdx, blockDim) % 32
- float sum = 0.0f;
+ float parts[2][16] = {}; float *part = parts[0]; float sum = part[lane];
# functions with the names of what C calls at start
extern "C" __device__ void __gmon_start__() { *(volatile int *)nullptr = 1; }
extern "C" __device__ void _init() { __gmon_start__(); }
# an operator
struct V { float x; __device__ V operator+(V o) const { return {x + o.x}; } };
- float sum = 0.0f
+ V v{0.0f}; v = v + v; float sum = v.x
"""
) | {"line ends of Windows": RIGHT.replace("\n", "\r\n")}

#: Kernels that must be refused, without being run, by what stands in them.
HOSTILE = kernels(
    r"""
# an attribute
- __global__ void
+ __attribute__((no_sanitize("thread"))) __global__ void
# an attribute between digit separators
int a = 1'0; __attribute__((no_sanitize("thread"))) void f() {} int b = 1'0;
# brackets by macros
#define O [
#define C ]
O O gnu::constructor C C void f() {}
# brackets on two lines
[\
[gnu::constructor]] void f() {}
# digraphs
<:<:gnu::constructor:>:> void f() {}
# an attribute that is pasted
#define CAT(a, b) a##b
CAT(__attri, bute__)((constructor)) void f() {}
# an attribute that is pasted by a macro of C's headers
__CONCAT(__attri, bute__)((no_sanitize("thread"))) void f() {}
# brackets by a macro of C's headers
INT8_C([)INT8_C([) gnu::constructor INT8_C(])INT8_C(]) void f() {}
# a directive by a macro
#define HASH #
HASH define CAT(a, b) a##b
CAT(__attri, bute__)((constructor)) void f() {}
# a directive behind an attribute that is left out
#define HASH #
[[maybe_unused]] HASH define CAT(a, b) a##b
CAT(__attri, bute__)((constructor)) void f() {}
# a header behind a function that is left out
#define INCLUDE #include
int unused() { return 1; } INCLUDE <cstdlib>
# a directive in a raw string of a function that is left out
inline const char *text() { return R"(
#define CAT(a, b) a##b
)"; }
# a vector of the compiler
typedef float v4 __attribute__((vector_size(16)));
# assembly
- INSIDE
+ asm("nop");
# assembly, pasted
#define CAT(a, b) a##b
- INSIDE
+ CAT(a, sm)("nop");
# assembly on two lines
- INSIDE
+ a\
+ sm("nop");
# an address to go to, which CUDA has not
- INSIDE
+ void *place = &&there; goto *place; there: ;
# a name in assembly
int other asm("hidden");
# a pragma of the compiler
#pragma GCC optimize("O0")
# a pragma as an operator
_Pragma("GCC optimize(0)")
# a pragma in a macro
#define P _Pragma("GCC optimize(0)")
P
# a header of C
#include <cstdlib>
# a header by a macro
#define H <cstdlib>
#include H
# a file of the machine
#include "/etc/passwd"
# another name for the file
#line 1 "common.cuh"
# a process, declared
extern "C" void *fdopen(int, const char *);
- INSIDE
+ fdopen(1, "r");
# a process of the global namespace
- INSIDE
+ ::popen("touch /tmp/x", "r");
# a function of the host by a pointer
- INSIDE
+ auto p = system; p("true");
# a function of the host by a macro
#define TAKE system
- INSIDE
+ auto p = TAKE; p("true");
# a constructor
struct R { R() { system("true"); } } r;
# a value at load time
extern "C" int getpid();
static int n = getpid();
- INSIDE
+ if (n == 0) return;
# a write
extern "C" long write(int, const void *, unsigned long);
- INSIDE
+ write(1, "x", 1);
# threads
extern "C" long pthread_create(void *, void *, void *, void *);
- INSIDE
+ pthread_create(0, 0, 0, 0);
# symbols by name
extern "C" void *dlsym(void *, const char *);
- INSIDE
+ dlsym(0, "system");
# calls of the system
extern "C" long syscall(long, ...);
- INSIDE
+ syscall(39);
# the environment
extern "C" char **environ;
- INSIDE
+ if (environ == 0) return;
# the standard library
- INSIDE
+ std::abort();
# the emulator's namespace
- INSIDE
+ emulator::stop_conversion(0);
# the emulator's namespace, opened
using namespace emulator;
# a mangled name
extern "C" void _ZN8emulator15stop_conversionEPv(void *);
# a builtin
- INSIDE
+ __builtin_memcpy(Y, X, 4);
# an atomic of the compiler
- INSIDE
+ __sync_fetch_and_add((int *)Y, 1);
# a store by printing
- INSIDE
+ snprintf((char *)Y, 8, "x");
# a store by mathematics
- STORE
+ modff(sum, &Y[(long long)mine.x * n_cols + column]);
# a store by printf, round the emulator's macro
- INSIDE
+ (printf)("%hhn", (signed char *)Y);
# a store by sincosf, round the emulator's macro
- INSIDE
+ float c; (sincosf)(1.0f, Y, &c);
# a store that the compiler makes of a copy
- INSIDE
+ strcpy((char *)Y, "abc");
# another copy that the compiler replaces
- INSIDE
+ bcopy(X, Y, 32);
# a load by mathematics that CUDA lacks
- PRODUCT
+ float x; canonicalizef(&x, &X[(long long)columns[k] * n_cols + column]); sum += values[k] * x;
# a store of the floating-point environment
- INSIDE
+ fegetenv((fenv_t *)Y);
# a file that it makes up
- INSIDE
+ fflush((FILE *)Y);
# a part of a complex number of the compiler
struct Far { _Complex float v[1L << 57]; };
static const float here[2] = {1.0f, 2.0f};
- PRODUCT
+ const char *x = (const char *)&X[(long long)columns[k] * n_cols + column];
+ sum += values[k] * __real__ ((const Far *)&here)->v[(x - (const char *)here) / 8];
# a function of the emulator, found by the class of an argument
#include <cuda_fp16.h>
- INSIDE
+ access((__half *)X, 4, {}, {}, 0);
# a copy of the standard library, found by the class of an argument
template <class T> struct Of { float v; };
- INSIDE
+ auto list = {1, 2};
+ using Item = const Of<decltype(list)>;
+ copy((Item *)X, (Item *)X + 8, (Of<decltype(list)> *)Y);
# a constructor on the device
struct R { int v; __device__ R() { v = 3; } };
__device__ R r;
- INSIDE
+ if (r.v == 0) return;
# a value at load time, by a function of its own
__device__ int three() { return 3; }
__device__ int value = three();
- INSIDE
+ if (value == 0) return;
"""
)

#: A lane for each nonzero, whose reads of X are far apart, and before that sums in which lanes read
#: neighbours, and which are not used. READ is to read `x[c]` unseen.
_FAR = r"""
extern "C" __global__ void spmm_runs(const int4 *metadata, const int *columns,
                                     const float *values, const float *X, float *Y,
                                     int n_runs, int n_cols) {
    const int lane = threadIdx.x % 32, run = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    if (run >= n_runs) return;
    const int4 mine = metadata[run];
    float nothing = 0.0f;
    for (int k = 0; k < mine.z; ++k)
        for (int c = lane; c < n_cols; c += 32)
            nothing += X[(long long)columns[mine.y + k] * n_cols + c];
    if (nothing == 1234567.25f) return;
    const int k = mine.y + min(lane, mine.z - 1);
    const float *x = X + (long long)columns[k] * n_cols;
    const float value = lane < mine.z ? values[k] : 0.0f;
    for (int c = 0; c < n_cols - 2; ++c) {
        float sum = value * READ;
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) atomicAdd(&Y[(long long)mine.x * n_cols + c], sum);
    }
    for (int c = n_cols - 2; c < n_cols; ++c)
        if (lane < mine.z) atomicAdd(&Y[(long long)mine.x * n_cols + c], value * x[c]);
}
"""
_GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
struct Pair {
    static constexpr unsigned most_threads = 2;
    __device__ static constexpr unsigned num_threads() { return 2; }
    template <class T> __device__ void gather(T value, T (&to)[2], void *) const {
        to[0] = to[1] = value;
    }
};
"""


def _far_reads(text: str) -> dict[str, str]:
    """Parse entries: `# description`, declarations, and `> ` with the expression that reads."""
    texts = {}
    for entry in text.strip("\n").removeprefix("# ").split("\n# "):
        description, *lines = entry.split("\n")
        before = "\n".join(lines[:-1])
        texts[description] = f"{before}{_FAR.replace('READ', lines[-1][2:])}"
    return texts


FAR_READS = _far_reads(
    r"""
# plainly
> x[c]
# as an index of CUDA that is converted
> __uint_as_float(uint3(*(const dim3 *)(x + c)).x)
# by an operator that returns the address of what is stored
__device__ const float *places[4096];
struct Get {
    int none;
    __device__ const void *operator&() const {
        return places[blockIdx.x * blockDim.x + threadIdx.x];
    }
};
__device__ float get(const float *at) {
    float here = 0.0f;
    places[blockIdx.x * blockDim.x + threadIdx.x] = at;
    __stcg((Get *)&here, Get{});
    return here;
}
> get(x + c)
# through a variable of another type: a constant
struct Far { float v[1L << 58]; };
static const float here[2] = {1.0f, 2.0f};
> ((const Far *)&here)->v[x + c - here]
# through a variable of another type: a local one
struct Far { float v[1L << 58]; };
__device__ float get(const float *at) {
    float here[2] = {1.0f, 2.0f};
    return ((const Far *)&here)->v[at - here];
}
> get(x + c)
# through a constant array of unknown length
extern const float here[];
__device__ float get(const float *at) { return here[at - here]; }
extern const float here[2] = {1.0f, 2.0f};
> get(x + c)
"""
) | {
    name: _GROUPS + text
    for name, text in _far_reads(
        r"""
# as a member of a tile
> __uint_as_float(((const cg::thread_block_tile<1> *)(x + c - 1))->meta_group_rank())
# as what tiles exchange
__device__ float get(const float *at) {
    float values[32];
    cg::tiled_partition<1>(cg::this_thread_block()).gather(*at, values, nullptr);
    return values[0];
}
> get(x + c)
# as what an operation returns by reference
struct Get {
    const float *at;
    __device__ const float &operator()(float, float) const { return *at; }
};
> cg::reduce(Pair(), 0.0f, Get{x + c})
# in an operation that is inlined by force
struct Get {
    const float *at;
    __device__ __forceinline__ float operator()(float, float) const { return *at; }
};
> cg::reduce(Pair(), 0.0f, Get{x + c})
# in a constructor that is inlined by force into a load
#include "common.cuh"
__device__ const float *places[4096];
__device__ float results[4096];
struct Get {
    int none;
    DEVICE_INLINE Get() {
        const int mine = blockIdx.x * blockDim.x + threadIdx.x;
        results[mine] = *places[mine];
    }
};
__device__ float get(const float *at, const int *any) {
    const int mine = blockIdx.x * blockDim.x + threadIdx.x;
    places[mine] = at;
    __ldg((const Get *)any);
    return results[mine];
}
> get(x + c, columns)
"""
    ).items()
}

#: Kernels that run and must be wrong.
WRONG = kernels(
    r"""
# memcpy in brackets, a race
- INSIDE
+ (memcpy)(Y, X, 4);
# memcpy without its macro, a race
#undef memcpy
- INSIDE
+ memcpy(Y, X, 4);
# a sum that is unwritten
- float sum = 0.0f;
+ float sum; if (n_cols < 0) sum = 0.0f;
# nothing on a GPU
- INSIDE
+ #ifdef __CUDA_ARCH__
+ return;
+ #endif
# something on the emulator only
- INSIDE
+ #if !defined(__GNUC__) && !defined(__x86_64__) && !defined(EMULATED_KERNEL)
+ return;
+ #endif
# rows of 8 bits
- (long long)mine.x
+ (long long)(unsigned char)mine.x
# columns of 16 bits
- (long long)columns[k]
+ (long long)(unsigned short)columns[k]
# a volatile sum
- STORE
+ volatile float *y = Y; y[(long long)mine.x * n_cols + column] += sum;
"""
)
