// The emulator's runtime: the program that loads a compiled kernel, runs one launch and reports the
// result, with the functions that kernels and their instrumentation call.
#define EMULATOR_RUNTIME
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/prctl.h>
#endif
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif

#include "callers.h"
#include "machine.h"
#include "random.h"
#include "runtime.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

extern "C" void emulator_begin() {
    run_current();
    std::abort();  // unreachable: a fiber that has ended is not entered again
}

void stop(const char *problem, void *code) {
    const char *more = std::strstr(problem, ": ");
    const std::string key(problem, more ? more - problem : std::strlen(problem));
    if (more) copy_text(answer->text, more + 2);
    fail(key.c_str(), address_of(code));
}

void stop_conversion(void *code) {
    if (mode == Mode::LAUNCH) stop("converted", code);
}

std::uint64_t undefined_bits(const char *name) { return undefined({address_of(name), true}); }

void read_clock() { need_order(); }

void in_host_function(const char *name, void *code) {
    if (!current) return;
    copy_text(answer->text, name);
    fail("host function", address_of(code));
}

TextureHead texture_head(std::uint64_t object, void *code) {
    static std::uint64_t latest = 0, at = 0;
    if (object != latest) {
        const int number = memory->find(object);
        const EmulatorArray *array = number < 0 ? nullptr : &memory->array(number);
        const bool fits = array && array->address == object && array->bytes >= sizeof(TextureHead);
        at = fits ? object + array->bytes - sizeof(TextureHead) : 0;
        latest = object;
    }
    // A copy, as a kernel may have made the head, and may change it.
    const TextureHead head = at ? *reinterpret_cast<const TextureHead *>(at) : TextureHead{};
    if (head.magic != texture_magic || head.channels > 4 || head.bytes > 4) stop("no texture", code);
    return head;
}

// Dynamic shared memory has the numbers from 0 on, variables those from `variables_begin` on.
constexpr std::uint64_t variables_begin = 1 << 28;

std::uint64_t to_shared(const void *address) {
    const std::uint64_t offset = address_of(address) - EMULATOR_DYNAMIC_SHARED;
    return offset < variables_begin ? offset : address_of(address) - base + variables_begin;
}
void *from_shared(std::uint64_t number) {
    const bool is_dynamic = number < variables_begin;
    return reinterpret_cast<void *>(
        number + (is_dynamic ? EMULATOR_DYNAMIC_SHARED : base - variables_begin));
}

namespace {

// Reports an access to a range as accesses of at most one word, as on a GPU.
void access_range(const void *address, std::size_t bytes, Kind kind, void *code) {
    const std::uint64_t unaligned = (address_of(address) | bytes) & 3;
    const unsigned word = unaligned & 1 ? 1 : unaligned ? 2 : 4;
    const auto *at = static_cast<const char *>(address);
    for (std::size_t i = 0; i < bytes; i += word) access(at + i, word, kind, DEVICE, code);
    note_range(address, bytes);
}

}  // namespace

void *copy_memory(void *to, const void *from, std::size_t bytes, void *code) {
    access_range(from, bytes, LOAD, code);
    access_range(to, bytes, STORE, code);
    return std::memmove(to, from, bytes);
}
void *fill_memory(void *to, int byte, std::size_t bytes, void *code) {
    access_range(to, bytes, STORE, code);
    return std::memset(to, byte, bytes);
}

}  // namespace emulator

extern "C" {

// The compiler's instrumentation calls one of these before each load and store of the kernel.
#define EMULATOR_PLAIN_HOOKS(BYTES)                                           \
    void __tsan_read##BYTES(void *address) {                                  \
        emulator::load<BYTES>(address, emulator::address_of(EMULATOR_HERE));  \
    }                                                                         \
    void __tsan_write##BYTES(void *address) {                                 \
        emulator::store<BYTES>(address, emulator::address_of(EMULATOR_HERE)); \
    }
#define EMULATOR_HOOK(NAME, BYTES, KIND)                                                           \
    void __tsan_##NAME##BYTES(void *address) {                                                     \
        emulator::access(address, BYTES, emulator::KIND, emulator::DEVICE, EMULATOR_HERE);         \
    }
#define EMULATOR_HOOKS(BYTES)                                    \
    EMULATOR_PLAIN_HOOKS(BYTES)                                  \
    EMULATOR_HOOK(unaligned_read, BYTES, LOAD)                   \
    EMULATOR_HOOK(unaligned_write, BYTES, STORE)                 \
    EMULATOR_HOOK(volatile_read, BYTES, VOLATILE_LOAD)           \
    EMULATOR_HOOK(volatile_write, BYTES, VOLATILE_STORE)         \
    EMULATOR_HOOK(unaligned_volatile_read, BYTES, VOLATILE_LOAD) \
    EMULATOR_HOOK(unaligned_volatile_write, BYTES, VOLATILE_STORE)

EMULATOR_HOOKS(1) EMULATOR_HOOKS(2) EMULATOR_HOOKS(4) EMULATOR_HOOKS(8) EMULATOR_HOOKS(16)
void __tsan_read_range(void *address, std::size_t bytes) {
    emulator::access_range(address, bytes, emulator::LOAD, EMULATOR_HERE);
}
void __tsan_write_range(void *address, std::size_t bytes) {
    emulator::access_range(address, bytes, emulator::STORE, EMULATOR_HERE);
}
// The pointer by which an object finds its virtual functions.
void __tsan_vptr_read(void **pointer) {
    emulator::load<8>(pointer, emulator::address_of(EMULATOR_HERE));
}
void __tsan_vptr_update(void **pointer, void *) {
    emulator::store<8>(pointer, emulator::address_of(EMULATOR_HERE));
}
void *__tsan_memcpy(void *to, const void *from, std::size_t bytes) {
    return emulator::copy_memory(to, from, bytes, EMULATOR_HERE);
}
void *__tsan_memmove(void *to, const void *from, std::size_t bytes) {
    return emulator::copy_memory(to, from, bytes, EMULATOR_HERE);
}
void *__tsan_memset(void *to, int byte, std::size_t bytes) {
    return emulator::fill_memory(to, byte, bytes, EMULATOR_HERE);
}
void __sanitizer_cov_trace_pc() {
    emulator::begin_basic_block(emulator::address_of(EMULATOR_HERE));
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}

// The compiler's description of an access through the address of a variable that is not within it.
struct EmulatorObject {
    const char *file;
    std::uint32_t line, column;
    const void *type;
    unsigned char alignment, is_store;
};
void __ubsan_handle_type_mismatch_v1(const EmulatorObject *object, const char *address) {
    const emulator::Access access{address, emulator::address_of(address) % 4 ? 1u : 4u,
                                  object->is_store ? emulator::STORE : emulator::LOAD,
                                  emulator::DEVICE, emulator::address_of(EMULATOR_HERE)};
    emulator::access(address, access.bytes, access.kind, access.scope, EMULATOR_HERE);
    emulator::fail_at("local out of bounds", -1, access);
}
// The compiler's description of an index out of bounds of an array with a known length.
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
    std::snprintf(emulator::answer->text, sizeof(emulator::answer->text),
                  is_signed ? "%lld of %s" : "%llu of %s",
                  static_cast<long long>(is_signed ? number : std::int64_t(index)),
                  bounds->array->name);
    emulator::fail("index out of bounds", emulator::address_of(EMULATOR_HERE));
}
void __ubsan_handle_out_of_bounds_abort(const EmulatorBounds *bounds, std::uint64_t index) {
    __ubsan_handle_out_of_bounds(bounds, index);
}
void __ubsan_handle_shift_out_of_bounds(void *, std::uintptr_t, std::uintptr_t) {
    if (emulator::mode == emulator::Mode::LAUNCH) emulator::fail("shifted", emulator::address_of(EMULATOR_HERE));
}
// Called around the initialisation of a local static variable; kernels have no C++ library.
int __cxa_guard_acquire(std::uint64_t *guard) { return !*reinterpret_cast<char *>(guard); }
void __cxa_guard_release(std::uint64_t *guard) { *reinterpret_cast<char *>(guard) = 1; }
void __cxa_guard_abort(std::uint64_t *) {}
void __stack_chk_fail() {
    emulator::fail("local array overrun", emulator::address_of(EMULATOR_HERE));
}
std::uintptr_t __stack_chk_guard = 0x00a5f00dc0ffee;
}

namespace emulator {
namespace {

[[noreturn]] void finish() {
    std::fflush(stdout);
    answer->finished = 1;
    _exit(0);
}

// The instruction that raised a signal: its address plus 1, as in a return address, 0 if it is not
// in the kernel's library; and the frame of its function.
struct Place {
    std::uint64_t code, frame;
};
Place place_of(void *context) {
    auto *registers = static_cast<ucontext_t *>(context);
#if defined(__APPLE__) && defined(__aarch64__)
    const Place place{registers->uc_mcontext->__ss.__pc, registers->uc_mcontext->__ss.__fp};
#elif defined(__APPLE__)
    const Place place{registers->uc_mcontext->__ss.__rip, registers->uc_mcontext->__ss.__rbp};
#elif defined(__aarch64__)
    const Place place{registers->uc_mcontext.pc, registers->uc_mcontext.regs[29]};
#else
    const auto &values = registers->uc_mcontext.gregs;
    const Place place{std::uint64_t(values[REG_RIP]), std::uint64_t(values[REG_RBP])};
#endif
    return {in_kernel_library(place.code) ? place.code + 1 : 0, place.frame};
}

void on_signal(int number, siginfo_t *info, void *context) {
    need_order();
    const bool fault = number == SIGSEGV || number == SIGBUS;
    const bool late = number == SIGALRM || number == SIGPROF;
    const char *problem = late                                    ? "too long"
                          : number == SIGFPE                      ? "divided by zero"
                          : number == SIGABRT                     ? "aborted"
                          : number == SIGILL || number == SIGTRAP ? "not to be reached"
                          : fault && on_stack(info->si_addr)      ? "stack overflow"
                                                                  : "crashed";
    // A timeout can occur between functions: the thread's last recorded code is used instead.
    const auto [code, frame] = place_of(context);
    set_problem_in_signal(problem, late ? 0 : code);
    answer->n_callers = 0;
    if (!late && code && current && current->fiber)
        walk(reinterpret_cast<const std::uintptr_t *>(frame), *current->fiber, add_caller);
    if (mode != Mode::LAUNCH) end_child();
    answer->finished = 1;
    _exit(0);
}

void catch_signals() {
    constexpr std::size_t bytes = 64 * 1024;
    stack_t stack{};
    stack.ss_sp = std::malloc(bytes);
    stack.ss_size = bytes;
    sigaltstack(&stack, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM, SIGPROF}) {
        sigaction(number, &action, nullptr);
    }
}

// The kernel called exit().
void on_exit() {
    need_order();
    set_problem_in_signal("exited", 0);
    if (mode != Mode::LAUNCH) end_child();
    finish();
}

void refuse(const char *why) {
    copy_text(answer->problem, "not loaded");
    copy_text(answer->text, why ? why : "");
    finish();
}

// Where the system can, a mapping at an address fails if something else is there.
#ifdef MAP_FIXED_NOREPLACE
constexpr int fixed = MAP_FIXED_NOREPLACE;
#else
constexpr int fixed = MAP_FIXED;
#endif

void map_arrays(std::span<const EmulatorArray> arrays, int common) {
    for (const EmulatorArray &array : arrays) {
        if (!array.bytes || (array.space != ARGUMENT && array.space != DYNAMIC)) continue;
        const bool fresh = array.space == DYNAMIC;
        const int content_flags = launch->compared ? MAP_PRIVATE : MAP_SHARED;
        const int flags = fixed | (fresh ? MAP_PRIVATE | MAP_ANONYMOUS : content_flags);
        void *address = reinterpret_cast<void *>(array.address);
        const off_t content = fresh ? 0 : array.content;
        const int file = fresh ? -1 : common;
        void *mapped = mmap(address, array.bytes, PROT_READ | PROT_WRITE, flags, file, content);
        if (mapped == MAP_FAILED) {
            refuse(errno == EEXIST ? "memory of the process is where an array has to be"
                                   : std::strerror(errno));
        }
    }
}

// Copies the values of variables from the shared memory to the library, or back.
void copy_variables(std::span<const EmulatorArray> arrays, char *common, bool back) {
    for (const EmulatorArray &array : arrays) {
        char *variable = reinterpret_cast<char *>(base + array.address);
        char *content = common + array.content;
        if (!array.filled_bytes || (back && array.space == CONSTANT)) continue;
        std::memcpy(back ? content : variable, back ? variable : content, array.filled_bytes);
    }
}

void write_records(const std::vector<EmulatorRecord> &records, int file) {
    const char *from = reinterpret_cast<const char *>(records.data());
    std::size_t left = records.size() * sizeof(EmulatorRecord);
    off_t at = answer->records;
    while (left) {
        const ssize_t written = pwrite(file, from, std::min<std::size_t>(left, 1 << 30), at);
        if (written <= 0) refuse(std::strerror(errno));
        from += written;
        at += written;
        left -= written;
    }
    answer->n_records = records.size();
}

[[noreturn]] void serve(const char *path) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    constexpr int file = 0;
    struct stat about{};
    fstat(file, &about);
    char *common = static_cast<char *>(
        mmap(nullptr, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (common == MAP_FAILED) _exit(3);
    common_memory = common;
    auto *request = reinterpret_cast<EmulatorRequest *>(common);
    launch = &request->launch;
    answer = &request->answer;
    catch_signals();
    limit_time(ITIMER_PROF, launch->seconds[0]);
    limit_time(ITIMER_REAL, launch->seconds[1]);
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    // The program has the parts of the C++ library that it uses itself.
    if (!loaded && dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL))
        loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) refuse(dlerror());
    auto entry = reinterpret_cast<void (*)(void **)>(dlsym(loaded, "emulator_entry"));
    auto describe =
        reinterpret_cast<void *(*)(char *, std::size_t)>(dlsym(loaded, "emulator_description"));
    Dl_info info;
    if (!entry || !describe || !dladdr(reinterpret_cast<void *>(entry), &info)) refuse(dlerror());
    base = address_of(info.dli_fbase);
    if (!launch->n_blocks) {  // only describe the kernel
        answer->code = address_of(describe(answer->text, sizeof(answer->text))) - base;
        finish();
    }
    std::atexit(on_exit);
    const std::span arrays(reinterpret_cast<const EmulatorArray *>(common + launch->arrays),
                           launch->n_arrays);
    const auto *offsets = reinterpret_cast<const std::uint64_t *>(common + launch->arguments);
    std::vector<void *> arguments(launch->n_arguments);
    for (std::uint32_t i = 0; i < launch->n_arguments; ++i) arguments[i] = common + offsets[i];
    map_arrays(arrays, file);
    copy_variables(arrays, common, false);
    const auto run_launch = [&] { run(entry, arguments.data(), arrays.data()); };
    if (launch->compared) {
        compare(run_launch);
        finish();
    }
    run_launch();
    copy_variables(arrays, common, true);
    write_records(trace, file);
    finish();
}

// Restarts the program with a limited stack. Without a limit, as NVRTC sets it in the parent
// process, Linux maps libraries from 23 TB upwards, among the slots of arrays.
void limit_stack(char **arguments) {
    constexpr rlim_t limit = 64 << 20;
    rlimit stack{};
    if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur <= limit) return;
    stack.rlim_cur = limit;
    if (!setrlimit(RLIMIT_STACK, &stack)) execv(arguments[0], arguments);
}

}  // namespace
}  // namespace emulator

// Argument: the path of the kernel's library. Standard input: the file with the EmulatorRequest.
int main(int, char **arguments) {
    emulator::limit_stack(arguments);
    emulator::serve(arguments[1]);
}
