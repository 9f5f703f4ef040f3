// Threads that leave the kernel while others wait for them at a barrier or a warp-wide exchange.
//
// As on GPUs since Volta, a thread that has left counts as arrived. It is an error if the thread has
// gone past the barrier: if it has run code that is behind the barrier, which the waiting threads
// run only after it. A race that such code has is reported as the barrier that was missed.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "clusters.h"
#include "compare.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

// A basic block that a thread has run, and that the threads at a barrier had not run before it.
struct Suspect {
    const char *problem;
    std::uint32_t departed, waiting;  // threads
    std::uint64_t code;               // of the barrier
    std::uint32_t n_waiting, n_left;
    std::vector<std::uint64_t> callers;  // calls that have led to the barrier
};
// By basic block and, in the upper half, 1 + the warp of an exchange; 0 for barriers of the block.
using Suspects = std::unordered_map<std::uint64_t, Suspect>;
static Suspects suspects;  // in the block

// A race or an unwritten read, until it is known whether a thread has missed a barrier before it.
struct Deferred {
    EmulatorAnswer answer;
    std::uint32_t threads[2];
    std::uint64_t codes[2];  // of their accesses; 0: none
    bool judged = false;
};
static std::optional<Deferred> deferred;

inline void visit(Thread &self, std::uint64_t code) {
    if (self.n_visited < std::size(self.visited))
        self.visited[self.n_visited++] = std::uint32_t(code);
}

inline bool is_full(const Thread &thread) { return thread.n_visited == std::size(thread.visited); }

// The first basic blocks that a thread has run since the last barrier.
inline std::span<const std::uint32_t> visited_blocks(const Thread &thread) {
    return std::span(thread.visited).first(thread.n_visited);
}

// What a thread that has left ran last but for the end of the kernel, where all threads leave.
inline std::uint32_t last_code(const Thread &thread) {
    return std::uint32_t(thread.last & basic_block ? thread.before_last : thread.last);
}

// Whether a thread that has left came to the exchange at which another one waits, perhaps in an
// earlier round of a loop, which the compiler may have unrolled.
inline bool has_passed(const Thread &departed, const Thread &waiting) {
    return departed.code == waiting.code || (departed.line && departed.line == waiting.line);
}

// Whether a thread that has left ran other code behind an exchange than the lanes that wait there,
// as in an `else`: a mask may name lanes that have left before it, not lanes that do something else.
inline bool went_past(const Thread &departed, const Thread &waiting) {
    const std::uint64_t last = base + std::uint32_t(last_code(departed) - std::uint32_t(base));
    return !has_passed(departed, waiting) && is_in_kernel(waiting.code) && is_in_kernel(last) &&
           last > waiting.code;
}

// The code that a thread that has left has run since the last barrier, as far as it is known,
// without its last basic blocks if these access nothing.
inline std::vector<std::uint32_t> run_code(const Thread &thread) {
    const auto blocks = visited_blocks(thread);
    std::vector<std::uint32_t> codes(blocks.begin(), blocks.end());
    if (is_full(thread)) codes.push_back(last_code(thread));
    else if (thread.last & basic_block)
        codes.resize(codes.size() - std::min<std::size_t>(
                                        codes.size(), 1 + !!(thread.before_last & basic_block)));
    return codes;
}

std::uint64_t code_in_kernel(const Thread &thread);  // see callers.h

// Registers what threads that have left since the last barrier have run behind the barrier at
// which `waiting` waits. `present` are the waiting threads, `all` those that they wait for.
template <typename IsPresent>
void suspect_departed(std::span<Thread> all, const Thread &waiting, IsPresent is_present,
                      const char *problem, std::uint64_t key, std::uint32_t n_waiting,
                      std::uint32_t n_left) {
    std::unordered_set<std::uint32_t> before;
    std::uint32_t latest = 0;  // of `before`, in the kernel
    bool is_complete = true, any = false;
    for (const Thread &thread : all) any |= thread.state == State::DONE && !thread.judged;
    if (!any) return;
    for (const Thread &thread : all) {
        if (!is_present(thread)) continue;
        const auto blocks = visited_blocks(thread);
        before.insert(blocks.begin(), blocks.end());
        for (const std::uint32_t visited : blocks) {
            const std::uint64_t code = base + std::uint32_t(visited - std::uint32_t(base));
            if (is_in_kernel(code)) latest = std::max(latest, visited);
        }
        is_complete &= !is_full(thread) && !thread.forgot;
    }
    const std::uint64_t barrier = code_in_kernel(waiting);
    const auto add = [&](const Thread &departed, std::uint32_t visited, bool is_exact) {
        const std::uint64_t code = base + std::uint32_t(visited - std::uint32_t(base));
        if (before.contains(visited) || !is_in_kernel(code)) return;
        if (is_in_kernel(barrier) ? code <= barrier : !is_exact) return;
        suspects.try_emplace(key << 32 | visited,
                             Suspect{problem, departed.index, waiting.index, waiting.code,
                                     n_waiting, n_left,
                                     callers_of(waiting.index, waiting.code)});
    };
    const std::size_t known = suspects.size();
    for (Thread &thread : all) {
        if (thread.state != State::DONE || thread.judged) continue;
        thread.judged = true;
        const bool is_exact = is_complete && !is_full(thread);
        // In a loop, a lane that has passed this exchange before may leave behind it: in the loop,
        // whose later code the waiting lanes have run in the round before.
        const bool in_loop = key && has_passed(thread, waiting);
        if (in_loop && !is_exact) continue;
        for (const std::uint32_t visited : run_code(thread)) {
            if (!in_loop || visited > latest) add(thread, visited, is_exact);
        }
    }
    if (suspects.size() == known || !key) return;
    for (Thread &thread : all) {  // at a barrier of the block, a phase begins
        thread.forgot |= is_present(thread);
        if (is_present(thread)) thread.n_visited = 0;
    }
}

inline void report_missed(const Suspect &suspect) {
    set_problem(suspect.problem, suspect.waiting, suspect.code, -1);
    answer->n_callers = std::uint32_t(suspect.callers.size());
    std::ranges::copy(suspect.callers, answer->callers);
    answer->waiting = suspect.n_waiting;
    answer->left = suspect.n_left;
    answer->bytes = 1;
    answer->other_code = 0;
    name_thread(block, suspect.departed, answer->other_block, answer->other_thread);
}

// Reports a thread that has gone past a barrier, if others have run the same code behind it now.
inline bool report_suspect() {
    if (suspects.empty()) return false;
    for (const Thread &thread : threads) {
        if (thread.judged) continue;
        const auto blocks = visited_blocks(thread);
        std::vector<std::uint32_t> codes(blocks.begin(), blocks.end());
        if (thread.state == State::DONE) codes.push_back(last_code(thread));
        for (const std::uint32_t visited : codes) {
            auto suspect = suspects.find(visited);
            if (suspect == suspects.end())
                suspect = suspects.find((1ull + thread.warp) << 32 | visited);
            if (suspect == suspects.end()) continue;
            report_missed(suspect->second);
            return true;
        }
    }
    return false;
}

// Writes a problem of the current thread to the answer. Returns whether the block goes on, so that
// barriers that threads have missed are found; then nothing else is checked.
inline bool defer(const char *problem, int array, const Access &access, std::uint64_t other_code,
                  std::uint32_t other) {
    if (deferred) return true;
    if (is_worker || launch->traced || has_clusters() || mode != Mode::LAUNCH || threads.size() == 1)
        return false;
    deferred.emplace();
    EmulatorAnswer *const of_launch = answer;
    deferred->answer = *of_launch;
    answer = &deferred->answer;
    answer->kind = base_kind(access.kind);
    answer->bytes = access.bytes;
    answer->offset = address_of(access.address) - memory->array(array).address;
    set_problem(problem, current->index, access.code, array);
    answer = of_launch;
    deferred->threads[0] = current->index;
    deferred->threads[1] = other;
    deferred->codes[0] = access.code;
    deferred->codes[1] = other_code;
    deferred_answer = &deferred->answer;
    limit_time(ITIMER_PROF, 2);
    return true;
}

// The basic block in which a thread has executed an access; 0 if it is not known.
inline std::uint32_t block_of(const Thread &thread, std::uint64_t code) {
    std::uint32_t latest = 0;
    for (const std::uint32_t visited : visited_blocks(thread)) {
        if (visited <= std::uint32_t(code) && visited > latest) latest = visited;
    }
    return latest;
}

// Called at the first barrier behind a deferred problem: registers the blocks of its accesses as
// suspects if their threads do not wait there. Returns whether the problem has another cause.
inline bool judge_deferred(State at, const char *problem, std::uint32_t n_waiting,
                           std::uint32_t n_left) {
    if (deferred->judged) return false;
    deferred->judged = true;
    bool any = false;
    for (unsigned i = 0; i < 2; ++i) {
        if (!deferred->codes[i]) continue;
        const Thread &thread = threads[deferred->threads[i]];
        const std::uint32_t visited = block_of(thread, deferred->codes[i]);
        const Thread *waiting = nullptr;
        bool has_run = !visited;
        for (const Thread &other : threads) {
            if (other.state != at || (thread.state == at && other.code == thread.code)) continue;
            if (!waiting) waiting = &other;
            const auto blocks = visited_blocks(other);
            has_run |= std::ranges::find(blocks, visited) != blocks.end();
        }
        if (!waiting || has_run) continue;
        suspects.insert_or_assign(visited, Suspect{problem, thread.index, waiting->index,
                                                   waiting->code, n_waiting, n_left,
                                                   callers_of(waiting->index, waiting->code)});
        any = true;
    }
    return !any;
}

}  // namespace emulator
