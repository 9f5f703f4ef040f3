// What happens before what, as CUDA promises it: within a thread; at barriers of the block and, for
// the lanes of their mask, of the warp; and from a fence on one side of an atomic, through whoever
// finds the atomic's result, to what that thread does next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory.h"

namespace emulator {

constexpr unsigned lanes = 32;

// What a thread knew to have happened when it called a fence: all of its block before the last
// barrier, and since then its warp up to these clocks.
struct Release {
    std::uint32_t block, epoch;
    std::uint8_t warp;
    bool narrow;  // a fence for its own block only
    std::uint32_t clocks[lanes];
};

// What has been released at one address, in order, and what the releasing threads had seen elsewhere.
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

inline void see(std::vector<Seen> &seen, const Log *log, std::size_t length) {
    for (Seen &each : seen) {
        if (each.log == log) return void(each.length = std::max(each.length, length));
    }
    seen.push_back({log, length});
}

// What threads know together, after a barrier: of fences, those since the barrier before cover others.
inline const Order *united(const Order *one, const Order *other) {
    if (!one || one == other) return other;
    if (!other) return one;
    auto *both = new Order(*one);
    for (const Release *release : other->fenced) {
        bool merged = false;
        for (const Release *&mine : both->fenced) {
            if (mine == release) merged = true;
            if (merged || mine->narrow != release->narrow || mine->warp != release->warp ||
                mine->block != release->block || mine->epoch != release->epoch) {
                continue;
            }
            auto *more = new Release(*mine);
            for (unsigned i = 0; i < lanes; ++i) {
                more->clocks[i] = std::max(more->clocks[i], release->clocks[i]);
            }
            mine = more;
            merged = true;
        }
        if (!merged) both->fenced.push_back(release);
    }
    for (const Seen &each : other->seen) see(both->seen, each.log, each.length);
    return both;
}

inline const Order *fenced(const Order *before, const Release &release) {
    auto *after = before ? new Order(*before) : new Order;
    auto &kept = after->fenced;
    kept.erase(std::remove_if(kept.begin(), kept.end(),
                              [&](const Release *old) {
                                  return old->block == release.block && (old->narrow || !release.narrow) &&
                                         (old->epoch < release.epoch || old->warp == release.warp);
                              }),
               kept.end());
    kept.push_back(new Release(release));
    return after;
}

// A thread with `order` takes part in an atomic at the address of `log`, or, if it does not release,
// a load; returns what it knows then.
inline const Order *exchanged(const Order *order, Log &log, bool releases) {
    if (releases) {
        for (const Release *release : order->fenced) {
            const auto recent = log.releases.size() > 64 ? log.releases.end() - 64 : log.releases.begin();
            if (std::find(recent, log.releases.end(), release) != log.releases.end()) continue;
            log.releases.push_back(release);
            for (const Seen &each : order->seen) {
                if (each.log != &log) log.links.push_back({log.releases.size(), each.log, each.length});
            }
        }
    }
    if (log.releases.empty()) return order;
    if (order) {
        for (const Seen &each : order->seen) {
            if (each.log == &log && each.length == log.releases.size()) return order;
        }
    }
    auto *after = order ? new Order(*order) : new Order;
    see(after->seen, &log, log.releases.size());
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
    for (Seen &each : visited) {
        if (each.log == seen.log && each.length >= seen.length) return false;
    }
    see(visited, seen.log, seen.length);
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
