// Comparison of runs in which undefined values have different bits.
//
// Undefined are unwritten local variables, and what shuffles read from lanes outside their mask.
// They are zero in a launch. If it has any, the launch is repeated from the same memory, unchecked,
// in child processes, with zeros and with other bits. Each run is a sequence of events: accesses to
// memory other than local, with addresses and stored values, and waits. As the order of threads is
// the same, the first event that differs shows where an undefined value matters. A hash of each
// segment of the sequence finds the segment; two more runs compare the events of that one.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

#include "threads.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

// Kinds of events besides those of `Kind`: the value of a store, a wait, the end of a thread.
enum : std::int32_t { STORED = COMPARE + 1, WAIT, FINISH };

struct Event {
    std::uint64_t code, address, value;
    std::uint32_t block, thread, bytes;
    std::int32_t kind;

    bool operator==(const Event &) const = default;
};

// Where undefined values come from: a local variable by the address of its name, or a shuffle by
// the address of its call.
struct Source {
    std::uint64_t key;
    bool is_local;
};

constexpr std::uint64_t segment = 4096, max_segments = 1 << 22;
constexpr unsigned max_sources = 512;

// Memory that the processes of a comparison share.
struct Runs {
    std::uint64_t count, hash;  // events of the run with zeros: whole segments if `late`
    bool completed, late;       // whether that run ended without a problem, or by the time limit
    std::uint64_t reached;      // all its events
    std::uint64_t progress;     // events of the latest other run
    bool differs;               // whether it differs
    std::uint64_t window;       // number of events before those in `events`
    std::uint64_t n_events;
    bool cut_off;               // whether the time limit ended the recording of `events`
    Event events[segment];
    unsigned n_sources;
    Source sources[max_sources];
    std::uint64_t hashes[max_segments];  // of all events up to the end of each segment
};

// RECORD: with zeros, recording hashes. COMPARE_HASHES: with other bits. The others: with events.
enum class Mode { LAUNCH, RECORD, COMPARE_HASHES, RECORD_EVENTS, COMPARE_EVENTS };

static Mode mode = Mode::LAUNCH;
static Runs *runs = nullptr;
static EmulatorAnswer *report = nullptr;  // the answer of the launch; `answer` is a child's own
static bool negative = false;             // whether undefined values are large negative numbers
static unsigned n_filled = 0;  // number of sources with large undefined values; zero from others
static std::uint64_t n_noted = 0, noted_hash = 1, next_check = 0;  // the hash is never 0
static Event unfinished;  // a store that may not have been executed yet
static bool is_unfinished = false;
// The calls that have led to it, whose functions may have returned before it is noted.
static std::vector<std::uint64_t> store_callers;

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

// Bits for an undefined value from a source.
inline std::uint64_t undefined(Source source) {
    answer->undefined = 1;
    if (mode == Mode::LAUNCH) return 0;
    const std::span sources(runs->sources, runs->n_sources);
    const auto same = [&](const Source &other) { return other.key == source.key; };
    const unsigned index = std::ranges::find_if(sources, same) - sources.begin();
    if (index == runs->n_sources && index < max_sources && mode == Mode::RECORD)
        runs->sources[runs->n_sources++] = source;
    if (index >= n_filled) return 0;
    // Each bit is one in one of the two fills, and differs from zero's. Their upper bytes make
    // numbers of each type large; the lower ones differ, lest differences of two cancel.
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < 4; ++i) {
        bits = bits << 16 | 0x7b40 | ((37 * index + 11 * i) & 0x3f);
    }
    return negative ? bits ^ 0x8cff8cff8cff8cff : bits;
}

// Reports the first difference: `zero` is the event with zeros, if any, `event` that of this run.
[[noreturn]] inline void report_difference(const Event *zero, const Event &event) {
    const auto is_access = [](const Event &e) { return e.kind < WAIT; };
    const Event *shown = zero ? zero : &event;
    const char *problem = "undefined branch";
    if (zero && zero->code == event.code && zero->kind == event.kind && is_access(event)) {
        problem = zero->address == event.address ? "undefined value" : "undefined address";
    } else if (!is_access(*shown) || (is_access(event) && event.kind != LOAD)) {
        shown = &event;
    }
    answer = report;
    block = shown->block;
    const int number = memory->find(shown->address);
    const Kind kind = shown->kind == STORED ? STORE : Kind(std::min<int>(shown->kind, COMPARE));
    answer->kind = base_kind(kind);
    answer->bytes = shown->bytes;
    answer->waiting = !is_access(*shown);
    answer->offset = shown->address - (number < 0 ? 0 : memory->array(number).address);
    set_problem(problem, shown->thread, shown->code, number);
    if (shown->kind == STORED) {
        answer->n_callers = std::uint32_t(store_callers.size());
        std::ranges::copy(store_callers, answer->callers);
    }
    _exit(0);
}

// Ends a child process. A problem that only other bits cause depends on an undefined value.
[[noreturn]] inline void end_child() {
    if (mode == Mode::COMPARE_EVENTS && failed()) {
        *report = *answer;
        copy_text(report->problem, "undefined use");
    }
    const bool late = !std::strcmp(answer->problem, "too long");
    if (mode == Mode::RECORD) {
        // A time limit can come between a count and its hash: those of whole segments agree.
        const std::uint64_t n_segments = std::min(next_check / segment - 1, max_segments);
        runs->reached = n_noted;
        runs->count = late ? n_segments * segment : n_noted;
        runs->hash = !late ? noted_hash : n_segments ? runs->hashes[n_segments - 1] : 1;
        runs->late = late;
    }
    // A recording that was slower than the first run says nothing about what comes behind it.
    if (mode == Mode::RECORD_EVENTS)
        runs->cut_off = late && runs->window + runs->n_events < runs->reached;
    if (mode == Mode::COMPARE_HASHES) {
        runs->progress = n_noted;
        const bool ends_elsewhere = n_noted < runs->count || failed() == runs->completed;
        runs->differs |= ends_elsewhere && !(late && runs->late);
    }
    _exit(failed());
}

// Called for the event number `next_check`, counted from 1.
inline void check_events(const Event &event) {
    const std::uint64_t index = n_noted - 1 - runs->window;
    const bool ends_segment = n_noted % segment == 0 && n_noted / segment <= max_segments;
    std::uint64_t &segment_hash = runs->hashes[ends_segment ? n_noted / segment - 1 : 0];
    switch (mode) {
        case Mode::RECORD:
            if (ends_segment) segment_hash = noted_hash;
            std::atomic_signal_fence(std::memory_order_seq_cst);
            next_check += segment;
            break;
        case Mode::COMPARE_HASHES:
            runs->differs = n_noted > runs->count ||
                            (n_noted == runs->count && noted_hash != runs->hash) ||
                            (ends_segment && noted_hash != segment_hash);
            if (runs->differs) end_child();
            next_check = n_noted / segment * segment + segment;
            if (n_noted == runs->count) next_check = runs->late ? ~0ull : n_noted + 1;
            else next_check = std::min(next_check, runs->count);
            break;
        case Mode::RECORD_EVENTS:
            runs->events[runs->n_events] = event;
            std::atomic_signal_fence(std::memory_order_seq_cst);
            ++runs->n_events;
            if (runs->n_events == segment) end_child();
            ++next_check;
            break;
        default:
            if (index == segment || (index == runs->n_events && runs->cut_off)) end_child();
            if (index == runs->n_events) report_difference(nullptr, event);
            if (!(runs->events[index] == event)) report_difference(&runs->events[index], event);
            ++next_check;
    }
}

inline void note(const Event &event) {
    const std::uint64_t act = event.code << 16 ^ std::uint64_t(event.kind) << 8 ^ event.bytes;
    noted_hash = mixed(noted_hash, act * 0x9e3779b97f4a7c15 ^ event.address ^ event.value);
    if (++n_noted == next_check) check_events(event);
}

// Notes the value of the latest store, which has been executed by now.
inline void finish_store() {
    is_unfinished = false;
    unfinished.kind = STORED;
    const auto *bytes = reinterpret_cast<const char *>(unfinished.address);
    for (std::uint32_t at = 0; at < unfinished.bytes; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes + at, std::min<std::uint32_t>(8, unfinished.bytes - at));
        unfinished.value = mixed(unfinished.value, word);
    }
    note(unfinished);
}

// Notes what the current thread is about to do.
inline void note(std::int32_t kind, std::uint64_t code, std::uint64_t address, unsigned bytes) {
    if (mode == Mode::LAUNCH) return;
    if (is_unfinished) finish_store();
    const Event event{code, address, 0, block, current->index, bytes, kind};
    note(event);
    if (kind >= WAIT || is_load(Kind(kind))) return;
    is_unfinished = true;
    unfinished = event;
    if (mode == Mode::COMPARE_EVENTS) store_callers = callers_of(current->index, code);
}

// The latest store is part of one to a longer range.
inline void note_range(const void *address, std::size_t bytes) {
    if (!is_unfinished || unfinished.address - address_of(address) >= bytes) return;
    unfinished.address = address_of(address);
    unfinished.bytes = bytes;
}

// Executes `run` in a child process; returns whether it ended without a problem.
template <typename Run>
bool run_in_child(Run run, Mode child_mode, bool is_negative, unsigned filled, double seconds) {
    runs->differs = false;
    runs->progress = 0;
    const pid_t child = fork();
    if (child > 0) {
        int status = 1;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        return status == 0;
    }
    if (child < 0) _exit(0);  // no comparison
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    limit_time(ITIMER_PROF, seconds);
    mode = child_mode;
    negative = is_negative;
    n_filled = filled;
    const bool with_events = mode == Mode::RECORD_EVENTS || mode == Mode::COMPARE_EVENTS;
    next_check = with_events ? runs->window + 1 : segment;
    if (mode == Mode::COMPARE_HASHES) next_check = std::min(next_check, runs->count);
    report = answer;
    answer = new EmulatorAnswer{};
    run();
    end_child();
}

// Compares runs, and describes the first difference in the answer.
template <typename Run>
void compare(Run run) {
    void *shared = map_shared(sizeof(Runs));
    if (shared == MAP_FAILED) {
        copy_text(answer->problem, "not loaded");
        return copy_text(answer->text, std::strerror(errno));
    }
    runs = static_cast<Runs *>(shared);
    runs->completed = run_in_child(run, Mode::RECORD, false, 0, launch->seconds[0]);
    if (!runs->hash) {
        copy_text(answer->problem, "not loaded");
        return copy_text(answer->text, "a process that looks for undefined values was killed");
    }
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    const double recorded = used.ru_utime.tv_sec + 1e-6 * used.ru_utime.tv_usec;
    const double seconds = runs->late ? launch->seconds[0] : 1 + 2 * recorded;
    for (const bool is_negative : {false, true}) {
        const auto differs = [&](unsigned filled) {
            run_in_child(run, Mode::COMPARE_HASHES, is_negative, filled, seconds);
            return runs->differs;
        };
        if (!differs(max_sources)) continue;
        unsigned same = 0, different = runs->n_sources;  // numbers of sources
        while (different - same > 1) {
            const unsigned middle = (same + different) / 2;
            (differs(middle) ? different : same) = middle;
        }
        if (!different || !differs(different)) return;
        const std::uint64_t first = std::min(runs->progress, runs->count + 1);
        runs->window = (first - !!first) / segment * segment;
        run_in_child(run, Mode::RECORD_EVENTS, false, 0, launch->seconds[0]);
        run_in_child(run, Mode::COMPARE_EVENTS, is_negative, different, seconds);
        const Source source = runs->sources[different - 1];
        if (source.is_local) copy_text(answer->text, reinterpret_cast<const char *>(source.key));
        else answer->other_code = source.key - base;
        return;
    }
}

}  // namespace emulator
