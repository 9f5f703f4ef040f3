// The emulator's runtime: runs the threads of a block as fibers, checks and traces their accesses.
//
// Threads switch only where CUDA lets one wait for another: at barriers and warp-wide exchanges. A
// traced block switches at each access too, so that the lanes of a warp go through the kernel side
// by side. They also stop at each basic block, and among lanes that stand at different places the one
// with the lowest address goes first; lanes that leave a loop or skip a branch thus wait for the
// others where the paths meet again, as they do on a GPU.
#include "runtime.h"

#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "cuda_on_host.h"
#include "fibers.h"
#include "memory.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" void emulator_entry(void **arguments);

extern "C" {
#ifdef __APPLE__
extern char __start_emulator_shared __asm("section$start$__DATA$emulator_shared");
extern char __stop_emulator_shared __asm("section$end$__DATA$emulator_shared");
#else
extern char __start_emulator_shared __attribute__((weak, visibility("hidden")));
extern char __stop_emulator_shared __attribute__((weak, visibility("hidden")));
#endif
}

namespace emulator {
namespace {

// Only noted at first: Python knows whether the barriers stand on one line.
constexpr char BARRIERS_DIFFER[] = "barriers differ";

enum class State { UNSTARTED, READY, AT_ACCESS, AT_BARRIER, AT_EXCHANGE, DONE };

struct Thread {
    State state = State::UNSTARTED;
    std::uint32_t index = 0;  // in the block
    std::unique_ptr<Fiber> fiber;
    std::uint64_t code = 0;  // where it waits
    bool records = false;    // at an access, and not at the beginning of a basic block
    EmulatorRecord record{};
    unsigned mask = 0;
    std::uint64_t value = 0;
    int source = 0;
    bool vote = false;
    unsigned votes = 0;
};

constexpr unsigned lanes = 32;
constexpr std::size_t max_shared_bytes = 256 * 1024;  // of any GPU

std::vector<EmulatorRecord> trace;

struct Access {
    const char *address;
    unsigned bytes;
    Kind kind;
    Scope scope;
    std::uint64_t code;
};

std::uint64_t address_of(const void *code) { return reinterpret_cast<std::uint64_t>(code); }

dim3 place(unsigned number, const dim3 &size) {
    return dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
}

std::vector<std::uint32_t> numbers(std::uint32_t first, std::uint32_t count) {
    std::vector<std::uint32_t> found(count);
    std::iota(found.begin(), found.end(), first);
    return found;
}

class Machine {
   public:
    Machine(const EmulatorLaunch &launch, EmulatorError &error)
        : launch_(launch), error_(error), memory_(launch), random_(launch.seed) {
        blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
        gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
        threads_.resize(blockDim.x * blockDim.y * blockDim.z);
        for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i].index = i;
        warp_epochs_.resize((threads_.size() + lanes - 1) / lanes);
        Dl_info info;
        dladdr(reinterpret_cast<void *>(&emulator_run), &info);
        base_ = reinterpret_cast<std::uint64_t>(info.dli_fbase);
    }

    void run() {
        std::vector<std::uint32_t> blocks = numbers(launch_.first_block, launch_.n_blocks);
        if (launch_.seed) shuffle(blocks);
        for (std::uint32_t block : blocks) {
            run_block(block);
            if (failed()) return;
        }
    }

    void run_current() {
        emulator_entry(launch_.arguments);
        current_->state = State::DONE;
        current_->fiber->leave();
    }

    void access(const Access &access) {
        if (!launch_.checked) return;
        const int found = memory_.find(access.address);
        if (found < 0) {
            if (current_->fiber->owns(access.address)) return;
            if (access.kind == LOAD && in_library(access.address)) return;
            fail_at("out of bounds", memory_.nearest(access.address), access);
        }
        const EmulatorArray &known = memory_.array(found);
        const std::uint64_t offset = access.address - known.data, end = offset + access.bytes;
        if (end > known.bytes) fail_at("out of bounds", found, access);
        if (address_of(access.address) % access.bytes) fail_at("misaligned", found, access);
        if (!known.writable && access.kind != LOAD) fail_at("read only", found, access);
        for (std::uint64_t at = offset / 4 * 4; known.writable && at < end; at += 4) {
            check_word(found, at, offset, access);
        }
        if (launch_.traced) {
            const std::uint16_t warp = current_->index / lanes, bytes = access.bytes;
            const std::uint8_t lane = current_->index % lanes, kind = access.kind;
            const std::int16_t array = found;
            const std::uint64_t code = access.code - base_;
            current_->record = {block_, warp, lane, kind, 0, array, bytes, code, offset};
            current_->records = true;
            wait(State::AT_ACCESS, access.code);
        }
    }

    // Lanes that part meet again at the beginning of a basic block, also where nothing is accessed.
    void begin_basic_block(std::uint64_t code) {
        if (!launch_.traced) return;
        current_->records = false;
        wait(State::AT_ACCESS, code);
    }

    void sync_threads(std::uint64_t code) { wait(State::AT_BARRIER, code); }

    std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote,
                           unsigned *votes, bool orders, std::uint64_t code) {
        Thread &self = *current_;
        self.mask = mask;
        self.value = value;
        self.source = source < 0 ? int(self.index % lanes) : source;
        self.vote = vote;
        self.code = code;
        self.state = State::AT_EXCHANGE;
        if (!(mask >> (self.index % lanes) & 1)) fail("lane outside mask", code);
        if (complete_exchange(self)) {
            if (orders) ++warp_epochs_[self.index / lanes];
        } else {
            self.fiber->leave();
        }
        if (votes) *votes = self.votes;
        return self.value;
    }

    unsigned lane() const { return current_->index % lanes; }
    void *dynamic_shared() const { return launch_.dynamic_shared; }

    [[noreturn]] void fail(const char *problem, std::uint64_t code, int array = -1) {
        note(problem, current_->index, code, array);
        current_->fiber->leave();
        std::abort();  // a failed fiber is never entered again
    }

   private:
    [[noreturn]] void fail_at(const char *problem, int array, const Access &access) {
        error_.kind = access.kind;
        error_.bytes = access.bytes;
        error_.offset = array < 0 ? 0 : access.address - memory_.array(array).data;
        fail(problem, access.code, array);
    }

    void run_block(std::uint32_t block) {
        block_ = block;
        blockIdx = place(block, gridDim);
        block_epoch_ = 0;
        step_ = 0;
        std::fill(warp_epochs_.begin(), warp_epochs_.end(), 0);
        for (Thread &thread : threads_) thread.state = State::UNSTARTED;
        for (;;) {
            launch_.traced ? run_traced() : run_freely();
            if (failed() || !pass_barrier()) break;
        }
    }

    static bool runs(const Thread &thread) {
        return thread.state == State::UNSTARTED || thread.state == State::READY;
    }

    // Runs threads until each has left the kernel or waits for others.
    void run_freely() {
        const std::vector<std::uint32_t> order = thread_order();
        for (std::size_t next = 0; next < order.size() || !ready_.empty();) {
            const bool waited = !ready_.empty();
            const std::size_t at = waited && launch_.seed ? draw(ready_.size()) : 0;
            Thread &thread = threads_[waited ? ready_[at] : order[next++]];
            if (waited) ready_.erase(ready_.begin() + at);
            if (!runs(thread)) continue;  // it has had its turn
            resume(thread);
            if (failed()) return;
        }
    }

    // Runs warps in turn, a step each, until each has left the kernel or waits for others.
    void run_traced() {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t first = 0; first < threads_.size(); first += lanes) {
                moved |= step_warp(first, std::min(first + lanes, threads_.size()));
                if (failed()) return;
            }
        }
        ready_.clear();
    }

    // Brings all lanes of a warp to their next access, then lets those at the first one have it.
    bool step_warp(std::size_t first, std::size_t last) {
        for (bool again = true; again;) {
            again = false;
            for (std::size_t i = first; i < last; ++i) {
                if (!runs(threads_[i])) continue;
                resume(threads_[i]);
                if (failed()) return false;
                again = true;
            }
        }
        std::uint64_t lowest = ~0ull;
        for (std::size_t i = first; i < last; ++i) {
            if (threads_[i].state == State::AT_ACCESS) lowest = std::min(lowest, threads_[i].code);
        }
        if (lowest == ~0ull) return false;
        const std::size_t before = trace.size();
        for (std::size_t i = first; i < last; ++i) {
            Thread &thread = threads_[i];
            if (thread.state != State::AT_ACCESS || thread.code != lowest) continue;
            thread.state = State::READY;
            thread.record.step = step_;
            if (thread.records) trace.push_back(thread.record);
        }
        step_ += trace.size() > before;
        return true;
    }

    // Lets the threads go on from a barrier that all have reached; false if the block has ended.
    bool pass_barrier() {
        std::uint32_t waiting = 0, left = 0;
        const Thread *stuck = nullptr, *at_barrier = nullptr, *gone = nullptr;
        for (const Thread &thread : threads_) {
            const bool waits = thread.state == State::AT_BARRIER;
            const bool done = thread.state == State::DONE;
            waiting += waits;
            left += done;
            if (done) gone = &thread;
            if (waits && !at_barrier) at_barrier = &thread;
            if (!waits && !done && !stuck) stuck = &thread;
        }
        if (left == threads_.size()) return false;
        if (waiting == threads_.size()) {
            for (Thread &thread : threads_) {
                if (thread.code != at_barrier->code && !error_.problem) {
                    report(BARRIERS_DIFFER, *at_barrier, &thread, waiting, left);
                }
                thread.state = State::READY;
            }
            ++block_epoch_;
            return true;
        }
        if (stuck) {
            report("lanes missing", *stuck, at_barrier ? at_barrier : gone, waiting, left);
        } else {
            report("barrier missed", *at_barrier, gone, waiting, left);
        }
        return false;
    }

    bool failed() const { return error_.problem && error_.problem != BARRIERS_DIFFER; }

    void note(const char *problem, std::uint32_t thread, std::uint64_t code, int array) {
        error_.problem = problem;
        error_.code = code - base_;
        error_.array = array;
        name_thread(block_, thread, error_.block, error_.thread);
    }

    void report(const char *problem, const Thread &thread, const Thread *other,
                std::uint32_t waiting, std::uint32_t left) {
        note(problem, thread.index, thread.code, -1);
        error_.waiting = waiting;
        error_.left = left;
        if (other) {
            error_.other_code = other->state == State::DONE ? 0 : other->code - base_;
            name_thread(block_, other->index, error_.other_block, error_.other_thread);
        }
    }

    // Gives every lane of the mask its value once all are there.
    bool complete_exchange(const Thread &self) {
        Thread *first = &threads_[self.index / lanes * lanes];
        const unsigned count = std::min(lanes, unsigned(threads_.data() + threads_.size() - first));
        std::uint64_t values[lanes] = {};
        unsigned votes = 0;
        for (unsigned lane = 0; lane < count; ++lane) {
            const Thread &thread = first[lane];
            values[lane] = thread.value;
            if (!(self.mask >> lane & 1)) continue;
            if (thread.state != State::AT_EXCHANGE || thread.mask != self.mask) return false;
            votes |= unsigned(thread.vote) << lane;
        }
        for (unsigned lane = 0; lane < count; ++lane) {
            Thread &thread = first[lane];
            if (!(self.mask >> lane & 1)) continue;
            if (!(self.mask >> thread.source & 1)) fail("lane outside mask", thread.code);
            thread.value = values[thread.source];
            thread.votes = votes;
            thread.state = State::READY;
            if (&thread != &self && !launch_.traced) ready_.push_back(thread.index);
        }
        return true;
    }

    void check_word(int array, std::uint64_t at, std::uint64_t offset, const Access &access) {
        Word &word = memory_.word(array, at);
        const EmulatorArray &known = memory_.array(array);
        if (known.shared && word.block != block_) {
            word = Word{};
            word.block = block_;
        }
        unsigned touched = 0;
        for (unsigned byte = 0; byte < 4; ++byte) {
            if (at + byte >= offset && at + byte < offset + access.bytes) touched |= 1u << byte;
        }
        if (access.kind != STORE && !known.initialised && (word.written & touched) != touched) {
            fail_at("unwritten", array, access);
        }
        const Moment now{block_ * std::uint32_t(threads_.size()) + current_->index + 1,
                         block_epoch_, warp_epochs_[current_->index / lanes],
                         std::uint32_t(access.code - base_)};
        const bool atomic = access.kind == ATOMIC;
        const bool elsewhere = word.write.thread && block_of(word.write) != block_of(now);
        const bool narrow = elsewhere && (access.scope == BLOCK || word.block_scope);
        const bool clash = !atomic || word.atomic == 0 || narrow;
        if (clash && !ordered(word.write, now, word.atomic == 2)) race(array, access, word.write);
        if (access.kind == LOAD) {
            const bool first = word.reads[0].thread == 0 || same_warp(word.reads[0], now) ||
                               ordered(word.reads[0], now, false);
            word.reads[first ? 0 : 1] = now;
            return;
        }
        for (const Moment &read : word.reads) {
            if (!ordered(read, now, false)) race(array, access, read);
        }
        const bool others = atomic && word.atomic && word.write.thread != now.thread &&
                            !ordered(word.write, now, false);
        word.atomic = !atomic ? 0 : others || word.atomic == 2 ? 2 : 1;
        word.block_scope = atomic && access.scope == BLOCK;
        word.write = now;
        word.written |= touched;
    }

    // Whether an earlier access is certain to come first on any GPU. `several` threads made it.
    bool ordered(const Moment &before, const Moment &now, bool several) const {
        if (before.thread == 0) return true;
        if (before.thread == now.thread && !several) return true;
        if (block_of(before) != block_of(now)) return false;
        if (before.block_epoch < now.block_epoch) return true;
        return !several && same_warp(before, now) && before.warp_epoch < now.warp_epoch;
    }

    bool same_warp(const Moment &a, const Moment &b) const {
        return block_of(a) == block_of(b) && index_of(a) / lanes == index_of(b) / lanes;
    }

    std::uint32_t block_of(const Moment &at) const { return (at.thread - 1) / threads_.size(); }
    std::uint32_t index_of(const Moment &at) const { return (at.thread - 1) % threads_.size(); }

    [[noreturn]] void race(int array, const Access &access, const Moment &other) {
        error_.other_code = other.code;
        name_thread(block_of(other), index_of(other), error_.other_block, error_.other_thread);
        fail_at("race", array, access);
    }

    void resume(Thread &thread) {
        if (thread.state == State::UNSTARTED) {
            if (!thread.fiber) thread.fiber = std::make_unique<Fiber>();
            thread.fiber->reset();
        }
        thread.state = State::READY;
        current_ = &thread;
        threadIdx = place(thread.index, blockDim);
        thread.fiber->enter();
    }

    void wait(State state, std::uint64_t code) {
        current_->state = state;
        current_->code = code;
        current_->fiber->leave();
    }

    void name_thread(std::uint32_t block, std::uint32_t thread, std::uint32_t *block_index,
                     std::uint32_t *thread_index) const {
        const dim3 in_grid = place(block, gridDim), in_block = place(thread, blockDim);
        std::memcpy(block_index, &in_grid, sizeof(dim3));
        std::memcpy(thread_index, &in_block, sizeof(dim3));
    }

    // Constants, and the indices of threads and blocks, which live in registers on a GPU.
    bool in_library(const char *address) const {
        for (const dim3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
            if (address_of(address) - address_of(index) < sizeof(dim3)) return true;
        }
        const char *begin = &__start_emulator_shared, *end = &__stop_emulator_shared;
        if (address >= begin && address < end + max_shared_bytes) return false;
        Dl_info info;
        return dladdr(address, &info) && reinterpret_cast<std::uint64_t>(info.dli_fbase) == base_;
    }

    std::vector<std::uint32_t> thread_order() {
        if (!launch_.seed) return numbers(0, threads_.size());
        std::vector<std::uint32_t> warps = numbers(0, warp_epochs_.size()), mixed;
        shuffle(warps);
        for (std::uint32_t warp : warps) {
            const std::uint32_t first = warp * lanes, left = threads_.size() - first;
            std::vector<std::uint32_t> inside = numbers(first, std::min(lanes, left));
            shuffle(inside);
            mixed.insert(mixed.end(), inside.begin(), inside.end());
        }
        return mixed;
    }

    std::uint64_t draw(std::uint64_t bound) {  // SplitMix64
        std::uint64_t x = random_ += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return (x ^ (x >> 31)) % bound;
    }

    void shuffle(std::vector<std::uint32_t> &items) {
        for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[draw(i)]);
    }

    const EmulatorLaunch &launch_;
    EmulatorError &error_;
    Memory memory_;
    std::vector<Thread> threads_;
    std::vector<std::uint32_t> warp_epochs_;
    std::deque<std::uint32_t> ready_;
    Thread *current_ = nullptr;
    std::uint64_t base_ = 0, random_;
    std::uint32_t block_ = 0, block_epoch_ = 0, step_ = 0;
};

Machine *machine = nullptr;

}  // namespace

extern "C" void emulator_begin() {
    machine->run_current();
    std::abort();  // a fiber that has ended is never entered again
}

void access(const void *address, unsigned bytes, Kind kind, Scope scope, void *code) {
    machine->access({static_cast<const char *>(address), bytes, kind, scope, address_of(code)});
}
void sync_threads(void *code) { machine->sync_threads(address_of(code)); }
void sync_warp(unsigned mask, void *code) {
    machine->exchange(mask, 0, -1, false, nullptr, true, address_of(code));
}
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, bool vote, unsigned *votes,
                       void *code) {
    return machine->exchange(mask, value, source, vote, votes, false, address_of(code));
}
void *dynamic_shared() { return machine->dynamic_shared(); }
unsigned lane() { return machine->lane(); }
void trap(void *code) { machine->fail("trapped", address_of(code)); }

}  // namespace emulator

extern "C" {

// Processors that trap where an integer is divided by zero would end the whole process. A GPU goes
// on, with a result that means nothing.
static void on_division_by_zero(int number, siginfo_t *info, void *) {
    // Somebody else's happens again, as if nobody had looked.
    if (!emulator::machine) return void(signal(number, SIG_DFL));
    // Codes are those of the instruction after, as from calls.
    emulator::machine->fail("divided by zero", emulator::address_of(info->si_addr) + 1);
}

void emulator_run(const EmulatorLaunch *launch, EmulatorError *error) {
    emulator::trace.clear();
    *error = EmulatorError{};
    emulator::Machine machine(*launch, *error);
    struct sigaction division{}, before{};
    division.sa_sigaction = on_division_by_zero;
    division.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler leaves by a switch of fibers
    sigaction(SIGFPE, &division, &before);
    emulator::machine = &machine;
    machine.run();
    emulator::machine = nullptr;
    sigaction(SIGFPE, &before, nullptr);
}

std::uint64_t emulator_trace(const EmulatorRecord **records) {
    *records = emulator::trace.data();
    return emulator::trace.size();
}

void emulator_static_shared(char **begin, char **end) {
    *begin = &__start_emulator_shared;
    *end = &__stop_emulator_shared;
}

// What the compiler calls before each load and store of the kernel.
#define EMULATOR_HOOK(NAME, BYTES, KIND)                                                           \
    void __tsan_##NAME##BYTES(void *address) {                                                     \
        emulator::access(address, BYTES, emulator::KIND, emulator::DEVICE, EMULATOR_HERE);         \
    }
#define EMULATOR_HOOKS(BYTES)              \
    EMULATOR_HOOK(read, BYTES, LOAD)            \
    EMULATOR_HOOK(write, BYTES, STORE)          \
    EMULATOR_HOOK(unaligned_read, BYTES, LOAD)  \
    EMULATOR_HOOK(unaligned_write, BYTES, STORE)
#define EMULATOR_RANGE_HOOK(NAME, KIND)                                                            \
    void __tsan_##NAME##_range(char *address, std::size_t bytes) {                                 \
        for (char *at = address; at < address + bytes; ++at) {                                     \
            emulator::access(at, 1, emulator::KIND, emulator::DEVICE, EMULATOR_HERE);              \
        }                                                                                          \
    }

EMULATOR_HOOKS(1)
EMULATOR_HOOKS(2)
EMULATOR_HOOKS(4)
EMULATOR_HOOKS(8)
EMULATOR_HOOKS(16)
EMULATOR_RANGE_HOOK(read, LOAD)
EMULATOR_RANGE_HOOK(write, STORE)
void __sanitizer_cov_trace_pc() {
    if (emulator::machine) emulator::machine->begin_basic_block(emulator::address_of(EMULATOR_HERE));
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
}
