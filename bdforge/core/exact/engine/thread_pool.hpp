// Threads that help to run what is independent. They are made when they are needed first, and wait then, for ever.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace engine {

// Tasks by number, taken in their order by whoever has time.
struct Tasks {
    std::function<void(int)> run;
    int count;
    std::atomic<int> next = 0, done = 0;

    void help() {
        for (int i; (i = next++) < count;) {
            run(i);
            if (++done == count) done.notify_all();
        }
    }
};

class ThreadPool {
  public:
    // Run so many tasks on so many threads, this one among them. It waits for no helper that has not begun a task: where
    // others have the processors, it does them all.
    static void run(int count, int threads, std::function<void(int)> task) {
        const auto tasks = std::make_shared<Tasks>(std::move(task), count);
        if (threads > 1) ThreadPool::of_this_process().call(tasks, threads - 1);
        tasks->help();
        for (int done; (done = tasks->done) < count;) tasks->done.wait(done);
    }

  private:
    std::mutex mutex_;
    std::condition_variable called_;
    std::shared_ptr<Tasks> tasks_;
    int threads_ = 0, wanted_ = 0;

    // A process that was forked has none of its parent's threads. Pools are never destroyed: threads wait in them as the
    // process ends.
    static ThreadPool& of_this_process() {
        static std::mutex making;
        static ThreadPool* pool = nullptr;
        static pid_t process = 0;
        const std::lock_guard held(making);
        if (process != getpid()) pool = new ThreadPool, process = getpid();
        return *pool;
    }

    void call(const std::shared_ptr<Tasks>& tasks, int helpers) {
        const std::lock_guard held(mutex_);
        tasks_ = tasks;
        wanted_ = helpers;
        try {
            for (; threads_ < helpers; ++threads_) std::thread(&ThreadPool::wait, this).detach();
        } catch (const std::system_error&) {  // no more threads
        }
        for (int i = 0; i < helpers; ++i) called_.notify_one();
    }

    [[noreturn]] void wait() {
        for (std::unique_lock held(mutex_);;) {
            called_.wait(held, [&] { return wanted_ > 0; });
            --wanted_;
            const auto tasks = tasks_;
            held.unlock();
            tasks->help();
            held.lock();
        }
    }
};

}  // namespace engine
