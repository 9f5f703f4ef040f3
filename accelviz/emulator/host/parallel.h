// Blocks of a launch on several processor cores, each core with a process of its own.
//
// Blocks that use no memory of each other give the same results and findings in any process. Each
// process works on private copies of the arrays and records which bytes its blocks have accessed.
// If no byte that one has written was accessed by another, each stores what it has written. Else,
// and if a block has a mistake or does what depends on other blocks (atomics in global memory,
// device-wide fences, printf, clocks), nothing is stored, and the blocks run one after another.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <atomic>
#include <ctime>
#include <span>
#include <vector>

#include "threads.h"
// Last, because its macros redefine C functions.
#include "cuda_on_host.h"

namespace emulator {

static bool is_worker = false;
static char *common_memory = nullptr;  // the file of the launch, which all processes share

// Called before what depends on other blocks: a worker gives up.
inline void need_order() {
    if (is_worker) _exit(1);
}

inline double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

inline unsigned processor_cores() {
#ifdef __linux__
    cpu_set_t cores;
    if (!sched_getaffinity(0, sizeof cores, &cores)) return CPU_COUNT(&cores);
#endif
    return 1;  // elsewhere a process does not end with its parent
}

class Workers {
   public:
    // Runs blocks in processes by `run_one(number)`, which returns whether the block has ended.
    // Returns whether the results are stored; if not, nothing has changed.
    template <typename RunOne>
    static bool run(std::span<const std::uint32_t> blocks, RunOne run_one) {
        const std::size_t most = std::min<std::size_t>(processor_cores(), 32);
        const std::size_t count = std::min(most, blocks.size());
        std::size_t words = 0;
        for (int i : memory->outputs()) words += memory->words(i);
        if (count < 2 || words > most_words) return false;
        // A byte for each word and process: masks of written and of accessed bytes; the first are
        // those of this process, whose blocks have run.
        const std::size_t bytes = sizeof(Shared) + (count + 1) * words;
        void *shared = map_shared(bytes);
        if (shared == MAP_FAILED) return false;
        Workers workers(static_cast<Shared *>(shared), words);
        const bool stored = workers.start(count, blocks, run_one) && workers.finish();
        munmap(shared, bytes);
        return stored;
    }

   private:
    static constexpr std::size_t most_words = 1 << 26;
    struct Shared {
        std::atomic<std::uint32_t> next;
        EmulatorAnswer answers[32];
    };
    struct Worker {
        pid_t process;
        int done, go;  // ends of pipes: it has run its blocks; it may store its results
    };

    Workers(Shared *shared, std::size_t words) : shared_(shared), words_(words) {}
    Workers(const Workers &) = delete;
    Workers &operator=(const Workers &) = delete;
    // Ends all workers.
    ~Workers() {
        for (const Worker &worker : workers_) {
            kill(worker.process, SIGKILL);
            close(worker.done);
            close(worker.go);
            while (waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) {}
        }
    }

    std::uint8_t *masks(std::size_t process) const {
        return reinterpret_cast<std::uint8_t *>(shared_ + 1) + process * words_;
    }

    template <typename RunOne>
    bool start(std::size_t count, std::span<const std::uint32_t> blocks, RunOne run_one) {
        itimerval left{}, wall{};
        getitimer(ITIMER_PROF, &left);
        getitimer(ITIMER_REAL, &wall);
        std::fflush(stdout);
        for (std::size_t i = 0; i < count; ++i) {
            int done[2], go[2];
            if (pipe(done)) return false;
            if (pipe(go)) return close(done[0]), close(done[1]), false;
            const pid_t process = fork();
            if (process == 0) {
                close(done[0]);
                close(go[1]);
                setitimer(ITIMER_PROF, &left, nullptr);
                setitimer(ITIMER_REAL, &wall, nullptr);
                work(i, blocks, run_one, done[1], go[0]);
            }
            close(done[1]);
            close(go[0]);
            if (process < 0) return close(done[0]), close(go[1]), false;
            workers_.push_back({process, done[0], go[1]});
        }
        return true;
    }

    template <typename RunOne>
    [[noreturn]] void work(std::size_t number, std::span<const std::uint32_t> blocks,
                           RunOne run_one, int done, int go) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        is_worker = true;
        int printed[2];
        if (pipe(printed) || dup2(printed[1], STDOUT_FILENO) < 0) _exit(1);
        fcntl(printed[1], F_SETFL, O_NONBLOCK);
        close(printed[1]);
        shared_->answers[number] = EmulatorAnswer{};
        answer = &shared_->answers[number];
        for (int i : memory->outputs()) {
            const EmulatorArray &array = memory->array(i);
            if (!array.bytes) continue;
            const void *mapped = mmap(reinterpret_cast<void *>(array.address), array.bytes,
                                      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                                      STDIN_FILENO, off_t(array.content));
            if (mapped == MAP_FAILED) _exit(1);
        }
        memory->forget_accesses();
        for (std::uint32_t at; (at = shared_->next++) < blocks.size();) {
            if (!run_one(blocks[at]) || failed() || answer->n_notes) _exit(1);
        }
        std::fflush(stdout);
        int n_printed = 0;
        if (ioctl(printed[0], FIONREAD, &n_printed) || n_printed) _exit(1);
        if (memory->wrote_variables()) _exit(1);
        memory->list_accesses(masks(number + 1));
        char byte = 0;
        if (write(done, &byte, 1) != 1 || read(go, &byte, 1) != 1) _exit(1);
        memory->store(masks(number + 1), common_memory);
        _exit(0);
    }

    // Waits for all workers; lets them store their results if they have nothing in common.
    bool finish() {
        std::vector<pollfd> waits;
        for (const Worker &worker : workers_) waits.push_back({worker.done, POLLIN, 0});
        while (!waits.empty()) {
            if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return false;
            for (std::size_t i = waits.size(); i-- > 0;) {
                if (!waits[i].revents) continue;
                char byte;
                if (read(waits[i].fd, &byte, 1) != 1) return false;  // it has given up
                waits.erase(waits.begin() + std::ptrdiff_t(i));
            }
        }
        memory->list_accesses(masks(0));
        std::vector<std::uint8_t> all(masks(0), masks(0) + words_);
        unsigned common = 0;
        for (std::size_t i = 1; i <= workers_.size(); ++i) {
            const std::uint8_t *mine = masks(i);
            for (std::size_t word = 0; word < words_; ++word) {
                common |= (mine[word] >> 4 & all[word]) | (mine[word] & all[word] >> 4);
                all[word] |= mine[word];
            }
        }
        if (common & 15) return false;
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            const EmulatorAnswer &result = shared_->answers[i];
            answer->undefined |= result.undefined;
            if (result.n_same && (!answer->n_same || result.same_block < answer->same_block)) {
                answer->same_array = result.same_array;
                answer->same_code = result.same_code;
                answer->same_block = result.same_block;
            }
            answer->n_same += result.n_same;
        }
        const char byte = 0;
        for (const Worker &worker : workers_) {
            if (write(worker.go, &byte, 1) != 1) std::abort();
        }
        for (Worker &worker : workers_) {
            int status = 1;
            while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {}
            if (status) std::abort();  // some results are stored, and others are not
            close(worker.done);
            close(worker.go);
        }
        for (std::size_t i = 1; i <= workers_.size(); ++i) memory->mark_written(masks(i));
        workers_.clear();
        return true;
    }

    Shared *shared_;
    std::size_t words_;
    std::vector<Worker> workers_;
};

}  // namespace emulator
