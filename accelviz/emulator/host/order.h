// What happens before what, as CUDA promises it: within a thread; at barriers of the block and, for
// the lanes of their mask, of the warp; and from a fence on one side of an atomic, through whoever
// finds the atomic's result, to what that thread does next.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <vector>

#include "memory.h"

namespace emulator {

constexpr unsigned lanes = 32;

// The lanes of a mask, to loop over.
struct Lanes {
    unsigned mask;
    Lanes begin() const { return *this; }
    static Lanes end() { return {0}; }
    unsigned operator*() const { return std::countr_zero(mask); }
    void operator++() { mask &= mask - 1; }
    bool operator==(const Lanes &) const = default;
};

// What a thread knew to have happened when it called a fence: all of its block before the last
// barrier, and since then its warp up to these clocks.
struct Release {
    std::uint32_t block, epoch;
    std::uint8_t warp;
    bool narrow;  // a fence for its own block only
    std::uint32_t clocks[lanes];

    auto moment() const { return std::tuple(block, epoch, warp, narrow); }
};

// What has been released at one address, in order, and what the releasing threads had seen
// elsewhere.
struct Log {
    struct Link {
        std::size_t position;
        const Log *log;
        std::size_t length;
    };
    std::vector<const Release *> releases;
    std::vector<Link> links;
};

struct Seen {
    const Log *log;
    std::size_t length;  // of the log when it was seen
};

// What a thread has released by fences and seen of others. Never changed, never freed: few threads
// call fences, and the process ends with the launch.
struct Order {
    std::vector<const Release *> fenced;
    std::vector<Seen> seen;
};

inline void see(std::vector<Seen> &seen, const Seen &more) {
    const auto known = std::ranges::find(seen, more.log, &Seen::log);
    if (known == seen.end()) return seen.push_back(more);
    known->length = std::max(known->length, more.length);
}

// What threads know together, after a barrier: of fences, those since the barrier before cover
// others.
inline const Order *united(const Order *one, const Order *other) {
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
    for (const Seen &seen : other->seen) see(both->seen, seen);
    return both;
}

inline const Order *fenced(const Order *before, const Release &release) {
    auto *after = before ? new Order(*before) : new Order;
    std::erase_if(after->fenced, [&](const Release *old) {
        return old->block == release.block && (old->narrow || !release.narrow) &&
               (old->epoch < release.epoch || old->warp == release.warp);
    });
    after->fenced.push_back(new Release(release));
    return after;
}

// A thread with `order` takes part in an atomic at the address of `log`, or, if it does not
// release, a load; returns what it knows then.
inline const Order *exchanged(const Order *order, Log &log, bool releases) {
    if (releases) {
        for (const Release *release : order->fenced) {
            const auto recent = log.releases.end() - std::min<std::size_t>(log.releases.size(), 64);
            if (std::find(recent, log.releases.end(), release) != log.releases.end()) continue;
            log.releases.push_back(release);
            for (const Seen &seen : order->seen) {
                if (seen.log != &log)
                    log.links.push_back({log.releases.size(), seen.log, seen.length});
            }
        }
    }
    if (log.releases.empty()) return order;
    const Seen now{&log, log.releases.size()};
    if (order) {
        for (const Seen &seen : order->seen) {
            if (seen.log == now.log && seen.length == now.length) return order;
        }
    }
    auto *after = order ? new Order(*order) : new Order;
    see(after->seen, now);
    return after;
}

inline bool covers(const Release &release, const Entry &entry, unsigned lane, std::uint32_t block) {
    if (release.block != entry.block || (release.narrow && release.block != block)) return false;
    if (entry.epoch < release.epoch) return true;
    return entry.epoch == release.epoch && entry.warp == release.warp &&
           entry.clock <= release.clocks[lane];
}

// Whether a thread of `block` that has seen a log knows of what a lane did in an entry.
inline bool covers(const Seen &seen, const Entry &entry, unsigned lane, std::uint32_t block,
                   std::vector<Seen> &visited) {
    for (const Seen &before : visited) {
        if (before.log == seen.log && before.length >= seen.length) return false;
    }
    see(visited, seen);
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
