// The emulator's runtime: what kernels call, and what the compiler calls for them.
#define EMULATOR_RUNTIME
#include "process.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

extern "C" void emulator_begin() {
    machine->run_current();
    std::abort();  // a fiber that has ended is never entered again
}

void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code) {
    if (!machine) return;  // the library is being loaded
    machine->access({static_cast<const char *>(address), bytes, kind, scope, address_of(code)});
}
void fence(Scope scope) { machine->fence(scope); }
void sync_threads(void *code) { machine->sync_threads(address_of(code)); }
void sync_warp(unsigned mask, void *code) {
    machine->exchange(mask, 0, -1, false, nullptr, true, address_of(code));
}
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code) {
    return machine->exchange(mask, value, source, vote, votes, false, address_of(code));
}
unsigned lane() { return machine->lane(); }
unsigned count_threads(bool vote, void *code) {
    return machine->count_threads(vote, address_of(code));
}
unsigned active_lanes(void *code) { return machine->active_lanes(address_of(code)); }
void stop(const char *problem, void *code) {
    const char *more = std::strstr(problem, ": ");
    const std::string key(problem, more ? more - problem : std::strlen(problem));
    if (more) machine->say(more + 2);
    machine->fail(key.c_str(), address_of(code));
}

void on_host(const char *name, void *code) {
    if (!machine) return;  // the library is being loaded
    machine->say(name);
    machine->fail("host function", address_of(code));
}

namespace {

// Words of a structure, as a GPU moves them.
void access_range(const void *address, std::size_t bytes, Kind kind, void *code) {
    const std::uint64_t unaligned = (address_of(address) | bytes) & 3;
    const unsigned word = unaligned & 1 ? 1 : unaligned ? 2 : 4;
    const auto *at = static_cast<const char *>(address);
    for (std::size_t i = 0; i < bytes; i += word) access(at + i, word, kind, DEVICE, code);
}

}  // namespace

void *moved(void *to, const void *from, std::size_t bytes, void *code) {
    access_range(from, bytes, LOAD, code);
    access_range(to, bytes, STORE, code);
    return std::memmove(to, from, bytes);
}
void *filled(void *to, int byte, std::size_t bytes, void *code) {
    access_range(to, bytes, STORE, code);
    return std::memset(to, byte, bytes);
}

}  // namespace emulator

extern "C" {

// What the compiler calls before each load and store of the kernel.
#define EMULATOR_HOOK(NAME, BYTES, KIND)                                                           \
    void __tsan_##NAME##BYTES(void *address) {                                                     \
        emulator::access(address, BYTES, emulator::KIND, emulator::DEVICE, EMULATOR_HERE);         \
    }
#define EMULATOR_HOOKS(BYTES)                                    \
    EMULATOR_HOOK(read, BYTES, LOAD)                             \
    EMULATOR_HOOK(write, BYTES, STORE)                           \
    EMULATOR_HOOK(unaligned_read, BYTES, LOAD)                   \
    EMULATOR_HOOK(unaligned_write, BYTES, STORE)                 \
    EMULATOR_HOOK(volatile_read, BYTES, VOLATILE_LOAD)           \
    EMULATOR_HOOK(volatile_write, BYTES, VOLATILE_STORE)         \
    EMULATOR_HOOK(unaligned_volatile_read, BYTES, VOLATILE_LOAD) \
    EMULATOR_HOOK(unaligned_volatile_write, BYTES, VOLATILE_STORE)

EMULATOR_HOOKS(1)
EMULATOR_HOOKS(2)
EMULATOR_HOOKS(4)
EMULATOR_HOOKS(8)
EMULATOR_HOOKS(16)
void __tsan_read_range(void *address, std::size_t bytes) {
    emulator::access_range(address, bytes, emulator::LOAD, EMULATOR_HERE);
}
void __tsan_write_range(void *address, std::size_t bytes) {
    emulator::access_range(address, bytes, emulator::STORE, EMULATOR_HERE);
}
void *__tsan_memcpy(void *to, const void *from, std::size_t bytes) {
    return emulator::moved(to, from, bytes, EMULATOR_HERE);
}
void *__tsan_memmove(void *to, const void *from, std::size_t bytes) {
    return emulator::moved(to, from, bytes, EMULATOR_HERE);
}
void *__tsan_memset(void *to, int byte, std::size_t bytes) {
    return emulator::filled(to, byte, bytes, EMULATOR_HERE);
}
void __sanitizer_cov_trace_pc() {
    if (emulator::machine) emulator::machine->begin_basic_block(emulator::address_of(EMULATOR_HERE));
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}

// Arrays whose length the compiler knows: the end of any dimension, and local ones.
struct EmulatorBounds {
    const char *file;
    std::uint32_t line, column;
    struct Type {
        std::uint16_t kind, info;
        char name[1];
    } const *array, *index;
};
void __ubsan_handle_out_of_bounds(const EmulatorBounds *bounds, std::uint64_t index) {
    const unsigned bits = 1u << (bounds->index->info >> 1);
    const bool is_signed = bounds->index->info & 1;
    const auto number = std::int64_t(index << (64 - bits)) >> (64 - bits);
    char said[256];
    std::snprintf(said, sizeof(said), is_signed ? "%lld of %s" : "%llu of %s",
                  static_cast<long long>(is_signed ? number : std::int64_t(index)), bounds->array->name);
    emulator::machine->say(said);
    emulator::machine->fail("index out of bounds", emulator::address_of(EMULATOR_HERE));
}
void __ubsan_handle_out_of_bounds_abort(const EmulatorBounds *bounds, std::uint64_t index) {
    __ubsan_handle_out_of_bounds(bounds, index);
}
void __ubsan_handle_shift_out_of_bounds(void *, std::uintptr_t, std::uintptr_t) {
    emulator::machine->fail("shifted", emulator::address_of(EMULATOR_HERE));
}
// Around a local static variable that is given its value when it is first come to. C++'s own may be
// in no library that this program has.
int __cxa_guard_acquire(std::uint64_t *guard) { return !*reinterpret_cast<char *>(guard); }
void __cxa_guard_release(std::uint64_t *guard) { *reinterpret_cast<char *>(guard) = 1; }
void __cxa_guard_abort(std::uint64_t *) {}
void __stack_chk_fail() {
    emulator::machine->fail("local array overrun", emulator::address_of(EMULATOR_HERE));
}
std::uintptr_t __stack_chk_guard = 0x00a5f00dc0ffee;
}
