// The process that runs kernels: it forks for each launch, so that no kernel outlives or breaks
// another's, and tells by which way a launch ended.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
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

#include "machine.h"
#include "runtime.h"

namespace emulator {

Machine *machine = nullptr;
EmulatorRequest *request = nullptr;
void *library = nullptr;  // where the kernel's begins

[[noreturn]] inline void finish() {
    std::fflush(stdout);
    request->answer.finished = 1;
    _exit(0);
}

// Where a signal came from, if that is in the kernel; as of a call, one past the instruction.
inline std::uint64_t code_of(void *context) {
    auto *at = static_cast<ucontext_t *>(context);
#if defined(__APPLE__) && defined(__aarch64__)
    const std::uint64_t code = at->uc_mcontext->__ss.__pc;
#elif defined(__APPLE__)
    const std::uint64_t code = at->uc_mcontext->__ss.__rip;
#elif defined(__aarch64__)
    const std::uint64_t code = at->uc_mcontext.pc;
#else
    const std::uint64_t code = at->uc_mcontext.gregs[REG_RIP];
#endif
    Dl_info info;
    const bool inside = dladdr(reinterpret_cast<void *>(code), &info) && info.dli_fbase == library;
    return inside ? code + 1 : 0;
}

inline void limit_time(int timer, double seconds) {
    const double whole = std::floor(seconds);
    const itimerval limit{{0, 0}, {time_t(whole), suseconds_t((seconds - whole) * 1e6)}};
    setitimer(timer, &limit, nullptr);
}

inline void on_signal(int number, siginfo_t *info, void *context) {
    const bool fault = number == SIGSEGV || number == SIGBUS;
    const bool late = number == SIGALRM || number == SIGPROF;
    const char *problem = late                                          ? "too long"
                          : number == SIGFPE                            ? "divided by zero"
                          : number == SIGABRT                           ? "aborted"
                          : number == SIGILL || number == SIGTRAP       ? "not to be reached"
                          : fault && machine && machine->on_stack(info->si_addr) ? "stack overflow"
                                                                        : "crashed";
    if (machine) {
        // What is out of time may be anywhere, between two functions too.
        machine->note_here(problem, late ? 0 : code_of(context));
    } else {
        std::strncpy(request->answer.problem, problem, sizeof(request->answer.problem) - 1);
    }
    request->answer.finished = 1;
    _exit(0);
}

inline void catch_signals() {
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

// The kernel called exit(), which a GPU has not.
inline void on_exit() {
    if (machine) machine->note_here("exited", 0);
    std::fflush(stdout);
    request->answer.finished = 1;
    _exit(0);
}

inline void refuse(const char *why) {
    std::strcpy(request->answer.problem, "not loaded");
    std::strncpy(request->answer.text, why ? why : "", sizeof(request->answer.text) - 1);
    finish();
}

inline void map_arrays(const EmulatorArray *arrays, int memory) {
    for (std::uint32_t i = 0; i < request->launch.n_arrays; ++i) {
        const EmulatorArray &array = arrays[i];
        if (!array.bytes || (array.space != ARGUMENT && array.space != DYNAMIC)) continue;
        const bool own = array.space == DYNAMIC;
        const int how = own ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
        void *place = reinterpret_cast<void *>(array.address);
        if (mmap(place, array.bytes, PROT_READ | PROT_WRITE, how | MAP_FIXED, own ? -1 : memory,
                 own ? 0 : array.place) == MAP_FAILED) {
            refuse(std::strerror(errno));
        }
    }
}

// Variables of the library begin as what lies at their places, or leave there what they have become.
inline void copy_variables(const EmulatorArray *arrays, char *common, bool back) {
    for (std::uint32_t i = 0; i < request->launch.n_arrays; ++i) {
        const EmulatorArray &array = arrays[i];
        char *variable = static_cast<char *>(library) + array.address, *content = common + array.place;
        if (!array.filling || (back && array.space == CONSTANT)) continue;
        std::memcpy(back ? content : variable, back ? variable : content, array.filling);
    }
}

inline void write_records(const std::vector<EmulatorRecord> &records, int memory) {
    const char *from = reinterpret_cast<const char *>(records.data());
    std::size_t left = records.size() * sizeof(EmulatorRecord);
    off_t at = request->answer.records;
    while (left) {
        const ssize_t written = pwrite(memory, from, std::min<std::size_t>(left, 1 << 30), at);
        if (written <= 0) refuse(std::strerror(errno));
        from += written;
        at += written;
        left -= written;
    }
    request->answer.n_records = records.size();
}

[[noreturn]] inline void serve(const char *path, int memory, int output) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(output, 1);
    dup2(output, 2);
    struct stat about{};
    fstat(memory, &about);
    char *common = static_cast<char *>(
        mmap(nullptr, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    if (common == MAP_FAILED) _exit(3);
    request = reinterpret_cast<EmulatorRequest *>(common);
    const EmulatorLaunch &launch = request->launch;
    catch_signals();
    limit_time(ITIMER_PROF, launch.seconds[0]);
    limit_time(ITIMER_REAL, launch.seconds[1]);
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) refuse(dlerror());
    auto entry = reinterpret_cast<void (*)(void **)>(dlsym(loaded, "emulator_entry"));
    auto sign = reinterpret_cast<void *(*)(char *, std::size_t)>(dlsym(loaded, "emulator_signature"));
    auto tell = reinterpret_cast<void (*)(char *, std::size_t)>(dlsym(loaded, "emulator_symbols"));
    Dl_info info;
    if (!entry || !sign || !tell || !dladdr(reinterpret_cast<void *>(entry), &info)) refuse(dlerror());
    library = info.dli_fbase;
    if (!launch.n_blocks) {  // only asked for its parameters
        char *text = request->answer.text;
        const std::size_t room = sizeof(request->answer.text);
        void *kernel = sign(text, room);
        std::strncat(text, "symbols\n", room - 1 - std::strlen(text));
        tell(text, room);
        request->answer.code = address_of(kernel) - address_of(library);
        finish();
    }
    std::atexit(on_exit);
    const auto *arrays = reinterpret_cast<const EmulatorArray *>(common + launch.arrays);
    const auto *places = reinterpret_cast<const std::uint64_t *>(common + launch.arguments);
    std::vector<void *> arguments(launch.n_arguments);
    for (std::uint32_t i = 0; i < launch.n_arguments; ++i) arguments[i] = common + places[i];
    map_arrays(arrays, memory);
    copy_variables(arrays, common, false);
    machine = new Machine(launch, request->answer, arrays, arguments.data(), entry, address_of(library));
    machine->run();
    copy_variables(arrays, common, true);
    write_records(machine->trace, memory);
    finish();
}

// Reads the path of a library and the two files that come with it; false at the end.
inline bool receive(int from, char *path, std::size_t room, int files[2]) {
    iovec text{path, room - 1};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t got;
    do got = recvmsg(from, &message, 0);
    while (got < 0 && errno == EINTR);
    const cmsghdr *first = CMSG_FIRSTHDR(&message);
    if (got <= 0 || !first || first->cmsg_len < CMSG_LEN(2 * sizeof(int))) return false;
    std::memcpy(files, CMSG_DATA(first), 2 * sizeof(int));
    path[got] = 0;
    return true;
}

}  // namespace emulator

int main() {
    const int caller = fcntl(0, F_DUPFD_CLOEXEC, 3);
    const int nothing = open("/dev/null", O_RDWR);
    for (int standard : {0, 1, 2}) dup2(nothing, standard);
    char path[4096];
    for (int files[2]; emulator::receive(caller, path, sizeof(path), files);) {
        const pid_t child = fork();
        if (child == 0) {
            close(caller);
            emulator::serve(path, files[0], files[1]);
        }
        close(files[0]);
        close(files[1]);
        int status = -1;
        if (child > 0) waitpid(child, &status, 0);
        if (send(caller, &status, sizeof(status), 0) != sizeof(status)) break;
    }
    return 0;
}
