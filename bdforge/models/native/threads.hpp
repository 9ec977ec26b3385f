#pragma once
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

/// Threads that stay, one for each processor of this process but the caller's. Jobs come one after the other; a caller
/// that finds them busy works alone, and nobody waits for a thread that has not begun.
class Threads {
public:
    using Part = std::function<void(std::size_t)>;

    Threads() {
        cpu_set_t mine;
        const int found = sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
        for (int i = 1; i < found; ++i) std::thread([this] { work(); }).detach(), ++helpers_;
    }

    /// part(0) to part(count - 1), each once, in any order; returns when all are done.
    void run(std::size_t count, const Part& part) {
        std::unique_lock turn(turn_, std::try_to_lock);
        if (!turn || helpers_ == 0 || count < 2) {
            for (std::size_t i = 0; i < count; ++i) part(i);
            return;
        }
        {
            const std::lock_guard lock(state_);
            part_ = &part, count_ = count, next_ = 0;
            job_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        drain(part, count);
        {
            const std::lock_guard lock(state_);
            part_ = nullptr;
        }
        while (inside_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    }

private:
    void drain(const Part& part, std::size_t count) {
        for (std::size_t i = next_++; i < count; i = next_++) part(i);
    }

    void work() {
        for (unsigned seen = 0;;) {
            for (int i = 0; i < patience && job_.load(std::memory_order_acquire) == seen; ++i) pause();
            std::unique_lock lock(state_);
            wake_.wait(lock, [&] { return job_.load(std::memory_order_relaxed) != seen; });
            seen = job_.load(std::memory_order_relaxed);
            if (part_ == nullptr) continue;
            const Part& part = *part_;
            const std::size_t count = count_;
            inside_.fetch_add(1, std::memory_order_relaxed);
            lock.unlock();
            drain(part, count);
            inside_.fetch_sub(1, std::memory_order_release);
        }
    }

    static void pause() {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }

    static constexpr int patience = 2000;  // pauses before a thread sleeps: products of a layer follow each other

    std::mutex turn_, state_;
    std::condition_variable wake_;
    std::atomic<unsigned> job_{0};
    std::atomic<std::size_t> next_{0}, inside_{0};
    std::size_t count_ = 0;
    int helpers_ = 0;
    const Part* part_ = nullptr;
};

std::atomic<Threads*> shared_threads{nullptr};

/// Those of this process, which last as long as it does. A forked one has none of its parent's, and starts its own.
Threads& threads() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { shared_threads = nullptr; });
    (void)registered;
    static std::mutex making;
    if (Threads* const found = shared_threads.load(std::memory_order_acquire)) return *found;
    const std::lock_guard lock(making);
    if (shared_threads.load() == nullptr) shared_threads = new Threads;
    return *shared_threads.load();
}

}  // namespace
