// Asks one cache for 16 sizes from 8 threads, 200 times each, and checks that every size was made once.
#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include "bdforge/sequence_cache.hpp"
#include "designs.hpp"

using bdforge::generator::Parameters;

constexpr int threads = 8, rounds = 200, sizes = 16;

static Parameters problem(int index) { return {1 + 37 * index, 64 + 52 * index, 33 + 90 * index}; }

static bool same_everywhere(bdforge::SequenceCache &cache) {
    std::vector<std::vector<const void *>> seen(threads, std::vector<const void *>(sizes));
    bool steady[threads];
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread)
        running.emplace_back([&, thread] {
            steady[thread] = true;
            for (int round = 0; round < rounds; ++round) {
                const int index = (round * 7 + thread * 3) % sizes;
                const void *words = cache.get(problem(index)).get();
                if (seen[thread][index] && seen[thread][index] != words)
                    steady[thread] = false;
                seen[thread][index] = words;
            }
        });
    for (std::thread &thread : running)
        thread.join();
    bool same = true;
    for (int thread = 0; thread < threads; ++thread)
        same = same && steady[thread] && seen[thread] == seen[0];
    return same && std::set<const void *>(seen[0].begin(), seen[0].end()).size() == sizes;
}

static bool refuses(bdforge::SequenceCache &cache) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            cache.get({0, 64, 64});
            return false;
        } catch (const bdforge::generator::SequenceError &) {
        }
    }
    return true;
}

static bool outlives(const bdforge::generator::Design &design) {
    bdforge::SequenceCache::Words words;
    {
        bdforge::SequenceCache cache(design);
        words = cache.get({64, 64, 64, 0, 0, 0});
    }
    return *words == bdforge::Sequencer(design).words({64, 64, 64});
}

int main(int, char **argv) {
    const bdforge::generator::Design design = designs(argv[1])[0];
    bdforge::SequenceCache cache(design);
    const bool same = same_everywhere(cache), each_once = cache.size() == sizes;
    std::printf("same %d each_once %d refuses %d outlives %d\n", same, each_once, refuses(cache), outlives(design));
}
