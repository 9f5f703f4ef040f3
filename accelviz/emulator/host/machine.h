// The scheduler: runs the threads of a block as fibers, and checks and traces their accesses.
//
// Threads switch at barriers and warp-wide exchanges, and before some atomic and volatile accesses
// (see `interleave`). In a traced block they also switch at each access and basic block, so that
// the lanes of a warp run in lockstep. Of lanes at different addresses, those at the lowest
// continue: as on a GPU, lanes that leave a loop or skip a branch wait where the paths join.
#pragma once

#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "plain.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

inline std::vector<std::uint32_t> range(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

static void **arguments;
static void (*kernel_entry)(void **);
static std::mt19937_64 random_bits;
static std::deque<std::uint32_t> polling;  // threads that may be waiting in a loop

inline bool can_run(const Thread &thread) {
    return thread.state == State::UNSTARTED || thread.state == State::READY;
}

// Fibers of threads that have ended: threads that never wait share one, and its stack.
static std::vector<std::unique_ptr<Fiber>> free_fibers;

// Makes a thread the current one.
inline void choose(Thread &thread) {
    if (thread.state == State::UNSTARTED) {
        if (free_fibers.empty()) free_fibers.push_back(std::make_unique<Fiber>());
        thread.fiber = std::move(free_fibers.back());
        free_fibers.pop_back();
        thread.fiber->reset();
    }
    thread.state = State::READY;
    current = &thread;
    plain = may_be_plain(thread) ? current : nullptr;
    threadIdx = thread.position;
}

// Runs a thread, and those to which it switches, until one leaves the kernel or none can run.
inline void resume(Thread &thread) {
    choose(thread);
    thread.fiber->enter();
    if (current->state == State::DONE) free_fibers.push_back(std::move(current->fiber));
}

inline std::uint32_t pop(std::deque<std::uint32_t> &queue) {
    const auto next = queue.begin() + (launch->seed ? random_bits() % queue.size() : 0);
    const std::uint32_t index = *next;
    queue.erase(next);
    return index;
}

// The order of the threads with a seed.
inline std::vector<std::uint32_t> thread_order() {
    std::vector<std::uint32_t> warps = range(0, (threads.size() + lanes - 1) / lanes), order;
    std::ranges::shuffle(warps, random_bits);
    for (std::uint32_t warp : warps) {
        const std::uint32_t first = warp * lanes, remaining = threads.size() - first;
        std::vector<std::uint32_t> members = range(first, std::min(lanes, remaining));
        std::ranges::shuffle(members, random_bits);
        order.insert(order.end(), members.begin(), members.end());
    }
    return order;
}

static std::vector<std::uint32_t> order;  // of the threads until the next barrier, with a seed
static std::size_t next_in_order = 0;

// Returns a thread that can run, or null.
inline Thread *next_thread() {
    for (;;) {
        Thread *thread;
        if (!ready.empty()) {
            thread = &threads[pop(ready)];
        } else if (next_in_order < threads.size()) {
            thread = &threads[launch->seed ? order[next_in_order] : next_in_order];
            ++next_in_order;
        } else if (!polling.empty()) {
            thread = &threads[pop(polling)];
        } else {
            return nullptr;
        }
        if (can_run(*thread)) return thread;
    }
}

void switch_threads() {
    Thread &self = *current;
    Thread *const next = launch->traced ? nullptr : next_thread();
    if (!next) return self.fiber->leave();
    choose(*next);
    if (next != &self) self.fiber->switch_to(*next->fiber);
}

// Runs threads until each has left the kernel or waits at a barrier or exchange.
inline void run_untraced() {
    next_in_order = 0;
    if (launch->seed) order = thread_order();
    while (Thread *thread = next_thread()) {
        resume(*thread);
        if (failed()) return;
    }
}

// Runs all lanes of a warp to their next access or basic block, then releases those at the lowest.
inline bool step_warp(std::span<Thread> warp) {
    for (bool any_ran = true; any_ran;) {
        any_ran = false;
        for (Thread &thread : warp) {
            if (!can_run(thread)) continue;
            resume(thread);
            if (failed()) return false;
            any_ran = true;
        }
    }
    std::uint64_t lowest = ~0ull;
    for (const Thread &thread : warp) {
        if (thread.state == State::AT_ACCESS) lowest = std::min(lowest, thread.code);
    }
    const std::size_t before = trace.size();
    for (Thread &thread : warp) {
        if (thread.state != State::AT_ACCESS || thread.code != lowest) continue;
        thread.state = State::READY;
        thread.record.step = steps;
        if (thread.records) trace.push_back(thread.record);
    }
    steps += trace.size() > before;
    return lowest != ~0ull;
}

// Runs one step of each warp in turn, until each thread has left the kernel or waits.
inline void run_traced() {
    for (bool any_stepped = true; any_stepped;) {
        any_stepped = false;
        for (std::size_t first = 0; first < threads.size(); first += lanes) {
            any_stepped |= step_warp(warp_at(first));
            if (failed()) return;
        }
    }
    ready.clear();
}

// Runs the threads of the current block until all have left the kernel, or wait at a barrier of the
// grid or the cluster. Returns whether they wait.
inline bool continue_block() {
    for (;;) {
        launch->traced ? run_traced() : run_untraced();
        if (failed()) return false;
        if (release_active_lanes()) continue;
        const Passed passed = pass_barrier();
        if (passed == Passed::NO && !failed()) end_copies();
        if (passed != Passed::YES) return passed == Passed::OUTER;
    }
}

inline void choose_block(std::uint32_t number) {
    block = number;
    blockIdx = index_of(number, gridDim);
}

// Runs a block from its beginning; see `continue_block`.
inline bool run_block(std::uint32_t number) {
    choose_block(number);
    steps = 0;
    suspects.clear();
    begin_block();
    for (Thread &thread : threads) {
        thread.state = State::UNSTARTED;
        if (!thread.known[lane_of(thread)] || thread.synced) {
            std::ranges::fill(thread.known, 0);
            thread.known[lane_of(thread)] = 1;
            thread.synced = false;
        }
        thread.order = nullptr;
        thread.copies.clear();
        thread.group = 0;
        thread.doubt.array = -1;
        thread.flag.address = thread.compared = nullptr;
        thread.last = thread.before_last = thread.yields = 0;
        thread.judged = false;
    }
    begin_phase(0);
    return continue_block();
}

inline std::vector<Thread> new_threads() {
    std::vector<Thread> created(blockDim.x * blockDim.y * blockDim.z);
    for (std::size_t i = 0; i < created.size(); ++i) {
        Thread &thread = created[i];
        thread.index = i;
        thread.position = index_of(i, blockDim);
        thread.warp = i / lanes;
        thread.lane_bit = 1u << i % lanes;
        thread.loads = shared.loads + thread.warp * shared.count;
        thread.first_loads = shared.first_loads + thread.warp * shared.count;
    }
    return created;
}

// The state of a block that waits at a barrier of the grid or cluster while another one runs.
struct WaitingBlock {
    explicit WaitingBlock(std::uint32_t number) : number(number) {
        waiting_threads.push_back(&threads);
    }
    ~WaitingBlock() { std::erase(waiting_threads, &threads); }
    WaitingBlock(const WaitingBlock &) = delete;
    WaitingBlock &operator=(const WaitingBlock &) = delete;

    std::uint32_t number;
    std::vector<Thread> threads = new_threads();
    std::vector<Warp> warps;
    decltype(emulator::groups) groups;
    std::uint32_t epoch = 0, steps = 0;
    unsigned barrier_votes = 0;
    Suspects suspects;
    SharedMemory shared;

    // Exchanges the state with that of the block that runs.
    void swap() {
        std::swap(threads, emulator::threads);
        std::swap(warps, emulator::warps);
        std::swap(groups, emulator::groups);
        std::swap(epoch, emulator::epoch);
        std::swap(steps, emulator::steps);
        std::swap(barrier_votes, emulator::barrier_votes);
        std::swap(suspects, emulator::suspects);
        memory->swap_shared(shared);
    }
};

// Reports that a block waits at a barrier of the grid for one that has ended.
inline void report_ended_block(WaitingBlock &waiting, std::uint32_t ended) {
    waiting.swap();
    choose_block(waiting.number);
    const auto thread = std::ranges::find(threads, State::AT_GRID_BARRIER, &Thread::state);
    set_problem("grid barrier missed", thread->index, thread->code, -1);
    name_thread(ended, 0, answer->other_block, answer->other_thread);
}

// Continues a block after a barrier of the grid or cluster, in the epoch that begins there; returns
// whether it waits at the next one.
inline bool resume_block(WaitingBlock &waiting, std::uint32_t new_epoch) {
    waiting.swap();
    choose_block(waiting.number);
    begin_phase(new_epoch);
    for (Thread &thread : threads) {
        if (waits_outside(thread)) thread.state = State::READY;
    }
    const bool waits = continue_block();
    if (!failed()) waiting.swap();
    return waits;
}

// Runs blocks one after another. Those that wait at a barrier of the grid continue when all do.
inline void run_blocks(std::span<const std::uint32_t> numbers) {
    std::vector<std::unique_ptr<WaitingBlock>> waiting, still;
    std::optional<std::uint32_t> ended;  // number of a block that has left the kernel
    std::uint32_t *const n_done = &answer->n_done;
    const auto run_one = [&](std::uint32_t number) {
        const bool waits = run_block(number);
        __atomic_fetch_add(n_done, 1, __ATOMIC_RELAXED);
        return !waits;
    };
    bool may_split = launch->checked && !launch->traced && !launch->seed && mode == Mode::LAUNCH;
    const double start = processor_seconds();
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
        const double seconds = may_split && i ? processor_seconds() - start : 0;
        // Starting processes takes milliseconds.
        if (seconds > 0.005 && seconds / i * double(numbers.size() - i) > 0.1 && waiting.empty()) {
            if (Workers::run(numbers.subspan(i), run_one)) return;
            *n_done = i;
            may_split = false;
        }
        if (run_one(numbers[i])) {
            ended = numbers[i];
        } else {
            waiting.push_back(std::make_unique<WaitingBlock>(numbers[i]));
            waiting.back()->swap();
        }
        if (failed()) return;
    }
    for (; !waiting.empty(); waiting.swap(still)) {
        if (ended) return report_ended_block(*waiting.front(), *ended);
        for (const auto &one : waiting) grid_epoch = std::max(grid_epoch, one->epoch + 1);
        if (launch->seed) std::ranges::shuffle(waiting, random_bits);
        still.clear();
        for (auto &one : waiting) {
            const std::uint32_t number = one->number;
            const bool waits = resume_block(*one, grid_epoch);
            if (failed()) return;
            if (waits) still.push_back(std::move(one));
            else ended = number;
        }
    }
}

// Runs the blocks of one cluster, in turn from barrier to barrier.
inline void run_cluster(std::span<const std::uint32_t> numbers) {
    std::vector<std::unique_ptr<WaitingBlock>> waiting(members.size());  // by rank
    std::vector<unsigned> ranks;
    for (Member &member : members) {
        member.ended = false;
        member.latest.phase = 0;
    }
    cluster_phase = 1;
    cluster_epoch = 0;
    for (std::uint32_t number : numbers) {
        ranks.push_back(rank_in_cluster(number));
        members[ranks.back()].number = number;
    }
    for (bool first = true; !ranks.empty(); first = false) {
        if (!first) {
            ++cluster_phase;
            for (unsigned rank : ranks)
                cluster_epoch = std::max(cluster_epoch, waiting[rank]->epoch + 1);
            if (launch->seed) std::ranges::shuffle(ranks, random_bits);
        }
        std::vector<unsigned> still;
        for (unsigned rank : ranks) {
            rank_of_block = owner = rank;
            const std::uint32_t number = members[rank].number;
            const bool waits =
                first ? run_block(number) : resume_block(*waiting[rank], cluster_epoch);
            if (failed()) return;
            if (waits && first) {
                waiting[rank] = std::make_unique<WaitingBlock>(number);
                waiting[rank]->shared.window =
                    reinterpret_cast<char *>(windows_begin + rank * window_bytes);
                waiting[rank]->swap();
            }
            if (waits) still.push_back(rank);
            else end_member(rank);
            if (failed()) return;
            answer->n_done += !waits;
        }
        ranks.swap(still);
    }
}

inline void run_clusters(std::vector<std::uint32_t> numbers) {
    for (std::size_t i = 0; i < numbers.size() && !failed();) {
        const std::uint32_t cluster = cluster_of(numbers[i]);
        const auto is_member = [&](std::uint32_t number) { return cluster_of(number) == cluster; };
        const auto rest = numbers.begin() + std::ptrdiff_t(i);
        const auto end = std::stable_partition(rest, numbers.end(), is_member);
        run_cluster({rest, end});
        i = std::size_t(end - numbers.begin());
    }
}

// Lists the outputs, unwritten before the launch, that have unwritten elements.
inline void list_gaps() {
    if (!launch->checked || failed()) return;
    for (int i : memory->outputs()) {
        if (memory->array(i).initialised || answer->n_gaps == std::size(answer->gaps)) continue;
        const EmulatorGap gap = memory->gap(i);
        if (gap.count) answer->gaps[answer->n_gaps++] = gap;
    }
}

// Runs the launch; `code` calls the kernel with `values`.
inline void run(void (*code)(void **), void **values, const EmulatorArray *arrays) {
    kernel_entry = code;
    arguments = values;
    random_bits.seed(launch->seed);
    has_short_paths = launch->checked && !launch->traced && !has_clusters();
    blockDim = dim3(launch->block[0], launch->block[1], launch->block[2]);
    gridDim = dim3(launch->grid[0], launch->grid[1], launch->grid[2]);
    const std::size_t n_warps = (blockDim.x * blockDim.y * blockDim.z + lanes - 1) / lanes;
    memory = new Memory(arrays, launch->n_arrays, base, launch->n_blocks < 32, n_warps);
    threads = new_threads();
    std::vector<std::uint32_t> blocks = range(launch->first_block, launch->n_blocks);
    if (launch->seed) std::ranges::shuffle(blocks, random_bits);
    answer->n_blocks = launch->n_blocks;
    begin_clusters();
    members.empty() ? run_blocks(blocks) : run_clusters(std::move(blocks));
    list_gaps();
}

// Runs the kernel as the current thread; the body of every fiber.
inline void run_current() {
    kernel_entry(arguments);
    report_doubt(*current);
    settle_rewrites();
    report_unfinished_copy(*current);
    note(FINISH, 0, 0, 0);
    current->state = State::DONE;
    Warp &warp = waiting_of(*current);
    warp.left |= 1u << lane();
    // An exchange that waited only for this lane is now complete.
    for (unsigned waiting : Lanes{warp.waiting}) {
        if (complete_exchange(warp_of(*current)[waiting])) break;
    }
    current->fiber->leave();
}

// Lets other threads run before an atomic or volatile access of the current one: before a
// compare-and-swap, so that they come between it and the load of its first guess, but not before
// the second one in a row at an address, so that a loop which takes the new value ends; and before
// every 32nd access, for loops that wait.
inline void interleave(const Access &access) {
    Thread &self = *current;
    bool yields = ++self.polls == 32;
    if (access.kind == COMPARE) {
        const bool is_retry = self.compared == access.address;
        self.compared = is_retry ? nullptr : access.address;
        yields |= !is_retry;
        if (launch->checked) expect_compare(access);
    }
    if (!yields) return;
    settle_rewrites();
    self.polls = 0;
    ++self.yields;
    self.state = State::READY;
    polling.push_back(self.index);
    switch_threads();
}

void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code) {
    if (!current) return;
    Thread &self = *current;
    const Access access{static_cast<const char *>(address), bytes, kind, scope, address_of(code)};
    // Before the check, so that what the check acquires is what the access then reads.
    if (kind >= ATOMIC && !launch->traced) interleave(access);
    if (mode != Mode::LAUNCH && !self.fiber->owns(address))
        note(kind, access.code, address_of(address), bytes);
    const int number = launch->checked ? check_access(access) : -1;
    if (number < 0 || !launch->traced) {
        renew_plain();
        return read_rewritten();
    }
    const std::uint16_t warp = self.index / lanes, record_bytes = access.bytes;
    const std::uint8_t lane = lane_of(self), record_kind = base_kind(access.kind);
    const std::uint64_t offset = address_of(access.address) - memory->array(number).address;
    self.record = {block,        warp, lane, record_kind, 0, std::int16_t(number),
                   record_bytes, access.code - base, offset};
    self.records = true;
    suspend(State::AT_ACCESS, access.code);
    read_rewritten();
}

[[gnu::noinline]] inline void begin_checked_block(std::uint64_t code) {
    Thread *const self = current;
    if (!self) return;
    settle_rewrites();
    self->before_last = self->last;
    self->last = code | basic_block;
    visit(*self, code);
    if (!launch->traced) return renew_plain();
    self->records = false;
    suspend(State::AT_ACCESS, code);
}

// Called at the beginning of each basic block, where lanes of a traced warp can reconverge. A
// checked load ends a basic block, so that this is called as often as the check of a load.
inline void begin_basic_block(std::uint64_t code) {
    Thread *const self = plain;
    if (!self) return begin_checked_block(code);
    self->before_last = self->last;
    self->last = code | basic_block;
    visit(*self, code);
}

unsigned lane() { return lane_of(*current); }

}  // namespace emulator
