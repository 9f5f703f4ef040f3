// The happens-before order of CUDA's memory model, here that by fences and atomics: accesses before
// a fence and an atomic happen before those of a thread after it reads the atomic's result. Program
// order and barriers order accesses as well (checks.h, barriers.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "memory.h"

namespace emulator {

constexpr unsigned lanes = 32;

// Iterates over the lanes of a mask.
struct Lanes {
    unsigned mask;
    Lanes begin() const { return *this; }
    static Lanes end() { return {0}; }
    unsigned operator*() const { return std::countr_zero(mask); }
    void operator++() { mask &= mask - 1; }
    bool operator==(const Lanes &) const = default;
};

// The accesses that a fence releases: those of its block before the last barrier, and since then
// those of its warp's lanes up to `clocks`.
struct Release {
    std::uint32_t block, epoch;
    std::uint8_t warp;
    bool block_only;  // whether it is a __threadfence_block
    std::uint32_t clocks[lanes];

    auto moment() const { return std::tuple(block, epoch, warp, block_only); }
};

// Releases by atomics at one address, in order. A link adds the first `length` releases of another
// log, which the releasing thread had seen, from `position` of this log on.
struct Log {
    struct Link {
        std::size_t position;
        const Log *log;
        std::size_t length;
    };
    std::vector<const Release *> releases;
    std::vector<Link> links;
    // Number of releases at the end of each phase, if it is of a cuda::barrier.
    std::unordered_map<std::uint32_t, std::size_t> phases;
};

struct Seen {
    const Log *log;
    std::size_t length;  // number of releases in the log when a thread read the atomic
};

// The fences of a thread, the logs that it has seen, and those that its atomics have read without a
// fence or an acquire since. Immutable and never freed: few threads call fences, and the process
// ends with the launch.
struct Order {
    std::vector<const Release *> fenced;
    std::vector<Seen> seen, unacquired;
};

inline void add_seen(std::vector<Seen> &seen, const Seen &added) {
    const auto known = std::ranges::find(seen, added.log, &Seen::log);
    if (known == seen.end()) return seen.push_back(added);
    known->length = std::max(known->length, added.length);
}

// The union of two threads' orders, after a barrier. Fences of one moment are merged into one.
inline const Order *merged(const Order *one, const Order *other) {
    if (!one || one == other) return other;
    if (!other) return one;
    auto *both = new Order(*one);
    for (const Release *release : other->fenced) {
        if (std::ranges::find(both->fenced, release) != both->fenced.end()) continue;
        const auto same_moment = [&](const Release *mine) {
            return mine->moment() == release->moment();
        };
        const auto mine = std::ranges::find_if(both->fenced, same_moment);
        if (mine == both->fenced.end()) {
            both->fenced.push_back(release);
            continue;
        }
        auto *more = new Release(**mine);
        std::ranges::transform(more->clocks, release->clocks, more->clocks, std::ranges::max);
        *mine = more;
    }
    for (const Seen &seen : other->seen) add_seen(both->seen, seen);
    for (const Seen &seen : other->unacquired) add_seen(both->unacquired, seen);
    return both;
}

// A thread's order after an acquire.
inline const Order *acquired(const Order *order) {
    if (!order || order->unacquired.empty()) return order;
    auto *after = new Order(*order);
    for (const Seen &seen : order->unacquired) add_seen(after->seen, seen);
    after->unacquired.clear();
    return after;
}

inline const Order *after_fence(const Order *before, const Release &release) {
    auto *after = before ? new Order(*acquired(before)) : new Order;
    std::erase_if(after->fenced, [&](const Release *old) {
        return old->block == release.block && (old->block_only || !release.block_only) &&
               (old->epoch < release.epoch || old->warp == release.warp);
    });
    after->fenced.push_back(new Release(release));
    return after;
}

// Returns a thread's order after an atomic or a load at the address of `log`. An atomic that
// `releases` adds the thread's fences to the log. One that `acquires` needs no fence behind it.
inline const Order *after_atomic(const Order *order, Log &log, bool releases, bool acquires) {
    if (releases) {
        for (const Release *release : order->fenced) {
            const auto end = log.releases.end();
            const auto recent = end - std::min<std::size_t>(log.releases.size(), 64);
            if (std::find(recent, end, release) != end) continue;
            log.releases.push_back(release);
            for (const Seen &seen : order->seen) {
                if (seen.log != &log)
                    log.links.push_back({log.releases.size(), seen.log, seen.length});
            }
        }
    }
    if (log.releases.empty()) return order;
    const Seen now{&log, log.releases.size()};
    const auto read = acquires ? &Order::seen : &Order::unacquired;
    if (order) {
        for (const Seen &seen : order->*read) {
            if (seen.log == now.log && seen.length == now.length) return order;
        }
    }
    auto *after = order ? new Order(*order) : new Order;
    add_seen(after->*read, now);
    return after;
}

// Whether the releases of a seen log, including those of linked logs, include those of `other`.
inline bool includes(const Seen &seen, const Seen &other, std::vector<Seen> &visited) {
    if (seen.log == other.log && seen.length >= other.length) return true;
    for (const Seen &before : visited) {
        if (before.log == seen.log && before.length >= seen.length) return false;
    }
    add_seen(visited, seen);
    for (const Log::Link &link : seen.log->links) {
        if (link.position > seen.length) break;
        if (includes({link.log, link.length}, other, visited)) return true;
    }
    return false;
}

// Whether a release orders a lane's access in an entry before accesses of threads of `block`.
inline bool covers(const Release &release, const Entry &entry, unsigned lane, std::uint32_t block) {
    if (release.block != entry.block) return false;
    if (release.block_only && release.block != block) return false;
    if (entry.epoch < release.epoch) return true;
    return entry.epoch == release.epoch && entry.warp == release.warp &&
           entry.clock <= release.clocks[lane];
}

// The same for the releases of a seen log, including those of linked logs.
inline bool covers(const Seen &seen, const Entry &entry, unsigned lane, std::uint32_t block,
                   std::vector<Seen> &visited) {
    for (const Seen &before : visited) {
        if (before.log == seen.log && before.length >= seen.length) return false;
    }
    add_seen(visited, seen);
    for (std::size_t i = seen.length; i-- > 0;) {
        if (covers(*seen.log->releases[i], entry, lane, block)) return true;
    }
    for (const Log::Link &link : seen.log->links) {
        if (link.position > seen.length) break;
        if (covers({link.log, link.length}, entry, lane, block, visited)) return true;
    }
    return false;
}

}  // namespace emulator
