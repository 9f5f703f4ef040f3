// CUB's collectives of a warp and of a block, with checks of their temporary storage: the threads
// store to it, and thread 0 computes the results in the order of the threads.
#pragma once

#include <cooperative_groups.h>

#include "../cuda/functional"

namespace cub {

struct NullType {};
struct Sum {
    template <typename T>
    EMULATOR_PURE T operator()(const T &a, const T &b) const {
        return a + b;
    }
};
struct Max : ::cuda::maximum<> {};
struct Min : ::cuda::minimum<> {};

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE
};

namespace emulated {

// Storage for elements of type T that is trivial, as a shared variable and a union need.
template <typename T, int COUNT>
struct alignas(16) Storage {
    unsigned char bytes[sizeof(T) * COUNT];

    EMULATOR_PURE T *at(int i) {
        return reinterpret_cast<T *>(bytes) + i;
    }
};

template <typename T>
EMULATOR_PURE void copy(T *to, const T *from, void *code) {
    emulator::copy_memory(static_cast<void *>(to), from, sizeof(T), code);
}

// Gives `result` undefined bits: it is valid in other threads only.
template <typename T>
EMULATOR_PURE T invalid(const char *name) {
    T result{};
#ifdef EMULATOR_TRACKS_UNDEFINED
    emulator::undefine(result, name);
#endif
    return result;
}

// The threads of a block, and the temporary storage of a collective.
template <typename T, int X, int Y, int Z, int ITEMS>
class Block {
   public:
    static constexpr int threads = X * Y * Z;
    using TempStorage = Storage<T, threads * ITEMS>;

    EMULATOR_PURE Block(TempStorage &storage, void *code) : storage_(&storage) {
        if (blockDim.x != X || blockDim.y != Y || blockDim.z != Z)
            emulator::stop("block size: a block of the threads that the template's arguments say",
                           code);
    }
    EMULATOR_PURE static int rank() {
        return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    }
    EMULATOR_PURE T *element(int i) const {
        return storage_->at(i);
    }

    // Stores the items of this thread, and waits for those of the others.
    template <int N>
    EMULATOR_PURE void give(const T (&items)[N], void *code) const {
        for (int i = 0; i < N; ++i) copy(element(rank() * N + i), &items[i], code);
        emulator::sync_threads(code);
    }
    // Waits for the results of thread 0, and loads those of this thread.
    template <int N>
    EMULATOR_PURE void take(T (&items)[N], void *code) const {
        emulator::sync_threads(code);
        T other;  // makes a use of the storage without a barrier a race
        copy(&other, element((rank() + 1) % threads * N), code);
        for (int i = 0; i < N; ++i) copy(&items[i], element(rank() * N + i), code);
    }

   private:
    TempStorage *storage_;
};

// Replaces `count` elements by their scan, from `total` on; returns the sum of all.
template <typename T, typename Operation>
EMULATOR_PURE T scan(T *elements, int count, T total, bool has_total, bool inclusive,
                     Operation op) {
    for (int i = 0; i < count; ++i) {
        const T sum = has_total ? op(total, elements[i]) : elements[i];
        elements[i] = inclusive ? sum : total;
        total = sum;
        has_total = true;
    }
    return total;
}

}  // namespace emulated

template <typename T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1,
          int Z = 1, int = 0>
class BlockReduce {
    using Block = emulated::Block<T, X, Y, Z, 1>;

   public:
    using TempStorage = typename Block::TempStorage;

    explicit BlockReduce(TempStorage &storage) : storage_(storage) {
    }

    template <typename Operation>
    EMULATOR_INSTRUCTION T Reduce(T value, Operation op) {
        return reduced(value, op, Block::threads, EMULATOR_HERE);
    }
    template <typename Operation>
    EMULATOR_INSTRUCTION T Reduce(T value, Operation op, int valid) {
        return reduced(value, op, valid, EMULATOR_HERE);
    }
    template <int N, typename Operation>
    EMULATOR_INSTRUCTION T Reduce(T (&items)[N], Operation op) {
        return reduced(of_thread(items, op), op, Block::threads, EMULATOR_HERE);
    }
    EMULATOR_INSTRUCTION T Sum(T value) {
        return reduced(value, cub::Sum(), Block::threads, EMULATOR_HERE);
    }
    EMULATOR_INSTRUCTION T Sum(T value, int valid) {
        return reduced(value, cub::Sum(), valid, EMULATOR_HERE);
    }
    template <int N>
    EMULATOR_INSTRUCTION T Sum(T (&items)[N]) {
        return reduced(of_thread(items, cub::Sum()), cub::Sum(), Block::threads, EMULATOR_HERE);
    }

   private:
    template <int N, typename Operation>
    EMULATOR_PURE static T of_thread(T (&items)[N], Operation op) {
        T sum = items[0];
        for (int i = 1; i < N; ++i) sum = op(sum, items[i]);
        return sum;
    }
    template <typename Operation>
    EMULATOR_PURE T reduced(const T &value, Operation op, int valid, void *code) {
        const Block block(storage_, code);
        const T items[] = {value};
        block.give(items, code);
        if (block.rank())
            return emulated::invalid<T>("the result of BlockReduce, for thread 0 alone");
        T sum = value;
        for (int i = 0; i < Block::threads; ++i) {
            T other;
            emulated::copy(&other, block.element(i), code);
            if (i && i < valid) sum = op(sum, other);
        }
        return sum;
    }

    TempStorage &storage_;
};

// The scans of blocks and of warps, by a macro that declares one.
#define EMULATOR_COMMA ,
#define EMULATOR_ALL_SCANS(DECLARE)                                                               \
    DECLARE(InclusiveSum, , T(), false, cub::Sum(), true, typename = void)                        \
    DECLARE(ExclusiveSum, , T(), true, cub::Sum(), false, typename = void)                        \
    DECLARE(InclusiveScan, EMULATOR_COMMA Operation op, T(), false, op, true, typename Operation) \
    DECLARE(ExclusiveScan, EMULATOR_COMMA T initial EMULATOR_COMMA Operation op, initial, true,   \
            op, false, typename Operation)

template <typename T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
    using Block = emulated::Block<T, X, Y, Z, 1>;

   public:
    // One more element for the sum of all.
    using TempStorage = emulated::Storage<T, Block::threads + 1>;

    explicit BlockScan(TempStorage &storage) : storage_(storage) {
    }

// Each method with a number or an array of items, and with the sum of all or without. HEAD and
// ARGUMENTS are those of the method before them.
#define EMULATOR_SCANS(NAME, HEAD, INITIAL, HAS_INITIAL, OPERATION, INCLUSIVE, ...)    \
    template <__VA_ARGS__>                                                             \
    EMULATOR_INSTRUCTION void NAME(T input, T &output HEAD) {                          \
        T items[1] = {input};                                                          \
        scan(items, INITIAL, HAS_INITIAL, INCLUSIVE, OPERATION, EMULATOR_HERE);        \
        output = items[0];                                                             \
    }                                                                                  \
    template <__VA_ARGS__>                                                             \
    EMULATOR_INSTRUCTION void NAME(T input, T &output HEAD, T &sum) {                  \
        T items[1] = {input};                                                          \
        sum = scan(items, INITIAL, HAS_INITIAL, INCLUSIVE, OPERATION, EMULATOR_HERE);  \
        output = items[0];                                                             \
    }                                                                                  \
    template <__VA_ARGS__, int N>                                                      \
    EMULATOR_INSTRUCTION void NAME(T(&input)[N], T(&output)[N] HEAD) {                 \
        for (int i = 0; i < N; ++i) output[i] = input[i];                              \
        scan(output, INITIAL, HAS_INITIAL, INCLUSIVE, OPERATION, EMULATOR_HERE);       \
    }                                                                                  \
    template <__VA_ARGS__, int N>                                                      \
    EMULATOR_INSTRUCTION void NAME(T(&input)[N], T(&output)[N] HEAD, T &sum) {         \
        for (int i = 0; i < N; ++i) output[i] = input[i];                              \
        sum = scan(output, INITIAL, HAS_INITIAL, INCLUSIVE, OPERATION, EMULATOR_HERE); \
    }
    EMULATOR_ALL_SCANS(EMULATOR_SCANS)
#undef EMULATOR_SCANS

   private:
    // Replaces the items by their scan over the block; returns the sum without `initial`.
    template <int N, typename Operation>
    EMULATOR_PURE T scan(T (&items)[N], T initial, bool has_initial, bool inclusive, Operation op,
                         void *code) {
        T sum = items[0];
        for (int i = 1; i < N; ++i) sum = op(sum, items[i]);
        auto &storage = reinterpret_cast<typename Block::TempStorage &>(storage_);
        const Block block(storage, code);
        T before[] = {sum};
        block.give(before, code);
        T *all = storage_.at(Block::threads);
        if (block.rank() == 0) {
            for (int i = 0; i < Block::threads; ++i) {
                T next, result = i ? sum : initial;
                emulated::copy(&next, block.element(i), code);
                sum = i ? op(sum, next) : next;
                result = i && has_initial ? op(initial, result) : result;
                emulated::copy(block.element(i), &result, code);
            }
            emulated::copy(all, &sum, code);
        }
        block.take(before, code);
        emulated::copy(&sum, all, code);
        emulated::scan(items, N, before[0], has_initial || block.rank(), inclusive, op);
        return sum;
    }

    TempStorage &storage_;
};

template <typename Key, int X, int ITEMS, typename Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1>
class BlockRadixSort {
    struct Record {
        Key key;
        Value value;
    };
    using Block = emulated::Block<Record, X, Y, Z, ITEMS>;
    using Bits = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;
    static constexpr int key_bits = 8 * sizeof(Key);

   public:
    using TempStorage = typename Block::TempStorage;

    explicit BlockRadixSort(TempStorage &storage) : storage_(storage) {
    }

#define EMULATOR_SORT(NAME, DESCENDS, STRIPED)                                              \
    EMULATOR_INSTRUCTION void NAME(Key(&keys)[ITEMS], int begin = 0, int end = key_bits) {  \
        Value none[ITEMS];                                                                  \
        sort(keys, none, begin, end, DESCENDS, STRIPED, EMULATOR_HERE);                     \
    }                                                                                       \
    EMULATOR_INSTRUCTION void NAME(Key(&keys)[ITEMS], Value(&values)[ITEMS], int begin = 0, \
                                   int end = key_bits) {                                    \
        sort(keys, values, begin, end, DESCENDS, STRIPED, EMULATOR_HERE);                   \
    }
    EMULATOR_SORT(Sort, false, false)
    EMULATOR_SORT(SortDescending, true, false)
    EMULATOR_SORT(SortBlockedToStriped, false, true)
    EMULATOR_SORT(SortDescendingBlockedToStriped, true, true)
#undef EMULATOR_SORT

   private:
    // Bits whose order as unsigned numbers is that of the keys.
    EMULATOR_PURE static Bits ordered(const Key &key) {
        Bits bits = 0;
        __builtin_memcpy(&bits, &key, sizeof(Key));
        constexpr Bits sign = Bits(1) << (key_bits - 1);
        if constexpr (std::is_integral_v<Key>) return std::is_signed_v<Key> ? bits ^ sign : bits;
        if (bits == sign) bits = 0;  // -0 is 0
        return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
    }
    EMULATOR_PURE void sort(Key (&keys)[ITEMS], Value (&values)[ITEMS], int begin, int end,
                            bool descends, bool striped, void *code) {
        const Block block(storage_, code);
        Record records[ITEMS];
        for (int i = 0; i < ITEMS; ++i) records[i] = {keys[i], values[i]};
        block.give(records, code);
        if (block.rank() == 0) sort_all(block, begin, end, descends, code);
        block.take(records, code);
        for (int i = 0; i < ITEMS; ++i) {
            if (striped)
                emulated::copy(&records[i], block.element(block.rank() + i * Block::threads), code);
            keys[i] = records[i].key;
            values[i] = records[i].value;
        }
    }
    // Sorts all records by their bits from `begin` to `end`, stably.
    EMULATOR_PURE static void sort_all(const Block &block, int begin, int end, bool descends,
                                       void *code) {
        constexpr int count = Block::threads * ITEMS;
        Record from[count], to[count];
        for (int i = 0; i < count; ++i) emulated::copy(&from[i], block.element(i), code);
        for (int bit = begin; bit < end; ++bit) {
            int next = 0;
            for (const bool chosen : {descends, !descends}) {
                for (const Record &record : from) {
                    if (bool(ordered(record.key) >> bit & 1) == chosen)
                        __builtin_memcpy(&to[next++], &record, sizeof(Record));
                }
            }
            __builtin_memcpy(from, to, sizeof(from));
        }
        for (int i = 0; i < count; ++i) emulated::copy(block.element(i), &from[i], code);
    }

    TempStorage &storage_;
};

namespace emulated {
// Index of an item in memory: blocked, or striped over the threads.
template <int THREADS, int ITEMS>
EMULATOR_PURE int item_index(int rank, int item, bool striped) {
    return striped ? rank + item * THREADS : rank * ITEMS + item;
}
}  // namespace emulated

template <typename T, int X, int ITEMS, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT, int Y = 1,
          int Z = 1, int = 0>
class BlockLoad {
    using Block = emulated::Block<T, X, Y, Z, 1>;

   public:
    using TempStorage = typename Block::TempStorage;

    BlockLoad() : storage_(nullptr) {
    }
    explicit BlockLoad(TempStorage &storage) : storage_(&storage) {
    }

    EMULATOR_INSTRUCTION void Load(const T *from, T (&items)[ITEMS]) {
        load(from, items, X * Y * Z * ITEMS, nullptr, EMULATOR_HERE);
    }
    EMULATOR_INSTRUCTION void Load(const T *from, T (&items)[ITEMS], int valid) {
        load(from, items, valid, nullptr, EMULATOR_HERE);
    }
    EMULATOR_INSTRUCTION void Load(const T *from, T (&items)[ITEMS], int valid, T other) {
        load(from, items, valid, &other, EMULATOR_HERE);
    }

   private:
    EMULATOR_PURE void load(const T *from, T (&items)[ITEMS], int valid, const T *other,
                            void *code) {
        if constexpr (ALGORITHM >= BLOCK_LOAD_TRANSPOSE) {
            T token[] = {T()};
            Block(*storage_, code).give(token, code);
            Block(*storage_, code).take(token, code);
        }
        for (int i = 0; i < ITEMS; ++i) {
            const int at = emulated::item_index<X * Y * Z, ITEMS>(Block::rank(), i,
                                                                  ALGORITHM == BLOCK_LOAD_STRIPED);
            if (at < valid)
                emulated::copy(&items[i], from + at, code);
            else if (other)
                emulated::copy(&items[i], other, code);
        }
    }

    TempStorage *storage_;
};

template <typename T, int X, int ITEMS, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT,
          int Y = 1, int Z = 1, int = 0>
class BlockStore {
    using Block = emulated::Block<T, X, Y, Z, 1>;

   public:
    using TempStorage = typename Block::TempStorage;

    BlockStore() : storage_(nullptr) {
    }
    explicit BlockStore(TempStorage &storage) : storage_(&storage) {
    }

    EMULATOR_INSTRUCTION void Store(T *to, T (&items)[ITEMS]) {
        store(to, items, X * Y * Z * ITEMS, EMULATOR_HERE);
    }
    EMULATOR_INSTRUCTION void Store(T *to, T (&items)[ITEMS], int valid) {
        store(to, items, valid, EMULATOR_HERE);
    }

   private:
    EMULATOR_PURE void store(T *to, T (&items)[ITEMS], int valid, void *code) {
        if constexpr (ALGORITHM >= BLOCK_STORE_TRANSPOSE) {
            T token[] = {T()};
            Block(*storage_, code).give(token, code);
            Block(*storage_, code).take(token, code);
        }
        for (int i = 0; i < ITEMS; ++i) {
            const int at = emulated::item_index<X * Y * Z, ITEMS>(Block::rank(), i,
                                                                  ALGORITHM == BLOCK_STORE_STRIPED);
            if (at < valid) emulated::copy(to + at, &items[i], code);
        }
    }

    TempStorage *storage_;
};

namespace emulated {

// The lanes of a logical warp; `code` is that of the collective.
template <int LANES>
struct WarpLanes : cooperative_groups::lane_group {
    static_assert(LANES >= 1 && LANES <= 32 && !(LANES & (LANES - 1)),
                  "the emulator has logical warps of 1, 2, 4, 8, 16 and 32 threads");

    EMULATOR_PURE WarpLanes()
        : lane_group((~0u >> (32 - LANES)) << (emulator::lane() / LANES * LANES)) {
    }
};

}  // namespace emulated

template <typename T, int LANES = 32, int = 0>
class WarpReduce {
   public:
    struct TempStorage {};

    explicit WarpReduce(TempStorage &) {
    }

    template <typename Operation>
    EMULATOR_INSTRUCTION T Reduce(T value, Operation op, int valid = LANES) {
        return reduced(value, op, valid, EMULATOR_HERE);
    }
    EMULATOR_INSTRUCTION T Sum(T value, int valid = LANES) {
        return reduced(value, cub::Sum(), valid, EMULATOR_HERE);
    }

   private:
    template <typename Operation>
    EMULATOR_PURE T reduced(const T &value, Operation op, int valid, void *code) {
        T values[32];
        const emulated::WarpLanes<LANES> lanes;
        lanes.gather(value, values, code);
        if (lanes.thread_rank())
            return emulated::invalid<T>("the result of WarpReduce, for lane 0 alone");
        T sum = values[0];
        for (int i = 1; i < valid; ++i) sum = op(sum, values[i]);
        return sum;
    }
};

template <typename T, int LANES = 32, int = 0>
class WarpScan {
   public:
    struct TempStorage {};

    explicit WarpScan(TempStorage &) {
    }

#define EMULATOR_SCANS(NAME, HEAD, INITIAL, HAS_INITIAL, OPERATION, INCLUSIVE, ...)           \
    template <__VA_ARGS__>                                                                    \
    EMULATOR_INSTRUCTION void NAME(T input, T &output HEAD) {                                 \
        scan(input, output, INITIAL, HAS_INITIAL, INCLUSIVE, OPERATION, EMULATOR_HERE);       \
    }                                                                                         \
    template <__VA_ARGS__>                                                                    \
    EMULATOR_INSTRUCTION void NAME(T input, T &output HEAD, T &sum) {                         \
        sum = scan(input, output, INITIAL, HAS_INITIAL, INCLUSIVE, OPERATION, EMULATOR_HERE); \
    }
    EMULATOR_ALL_SCANS(EMULATOR_SCANS)
#undef EMULATOR_SCANS
    EMULATOR_INSTRUCTION T Broadcast(T value, unsigned lane) {
        T values[32];
        emulated::WarpLanes<LANES>().gather(value, values, EMULATOR_HERE);
        return values[lane];
    }

   private:
    template <typename Operation>
    EMULATOR_PURE T scan(const T &input, T &output, T initial, bool has_initial, bool inclusive,
                         Operation op, void *code) {
        T values[32], results[32];
        const emulated::WarpLanes<LANES> lanes;
        lanes.gather(input, values, code);
        for (int i = 0; i < LANES; ++i) results[i] = values[i];
        emulated::scan(results, LANES, initial, has_initial, inclusive, op);
        output = results[lanes.thread_rank()];
        return emulated::scan(values, LANES, T(), false, true, op);
    }
};

#undef EMULATOR_ALL_SCANS
#undef EMULATOR_COMMA

}  // namespace cub
