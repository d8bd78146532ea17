// SPDX-License-Identifier: MIT
// Threads of the host backend, and how the rows of a batch are cut into tasks. What a task computes never depends on
// the number of threads. No arithmetic. Rank 5.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0::on_host {

/// A fixed set of threads that share out numbered tasks. The caller is one of them.
class workers {
  public:
    /// `threads` = 0: as many as the machine has cores.
    explicit workers(int threads) {
        if (threads < 0) throw error("workers: threads must not be negative; give 0 for one per core");
        if (threads > 1024)
            throw error("workers: " + std::to_string(threads) + " threads are too many; give at most 1024");
        if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
        for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { serve(); });
    }
    workers(workers&&) = delete;
    ~workers() {
        {
            const std::lock_guard hold(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        for (std::thread& helper : helpers_) helper.join();
    }

    int threads() const { return static_cast<int>(helpers_.size()) + 1; }

    /// Calls task(0) ... task(tasks - 1), in any order and on any thread, and returns when all have ended. If some
    /// throw, rethrows what the first of them (by number) threw. A task must not call run.
    template <class Task>
    void run(int tasks, Task&& task) {
        if (tasks < 1) return;
        if (tasks == 1 || helpers_.empty()) {
            for (int i = 0; i < tasks; ++i) task(i);
            return;
        }
        {
            const std::lock_guard hold(mutex_);
            task_ = std::ref(task);
            tasks_ = tasks;
            next_ = 0;
            failed_task_ = tasks;
            failure_ = nullptr;
            busy_ = static_cast<int>(helpers_.size());
            ++round_;
        }
        wake_.notify_all();
        work();
        std::unique_lock hold(mutex_);
        done_.wait(hold, [this] { return busy_ == 0; });
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    void work() {
        for (int i = next_++; i < tasks_; i = next_++) {
            try {
                task_(i);
            } catch (...) {
                const std::lock_guard hold(mutex_);
                if (i < failed_task_) failed_task_ = i, failure_ = std::current_exception();
            }
        }
    }

    void serve() {
        long long seen = 0;
        std::unique_lock hold(mutex_);
        for (;;) {
            wake_.wait(hold, [&] { return closing_ || round_ != seen; });
            if (closing_) return;
            seen = round_;
            hold.unlock();
            work();
            hold.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::vector<std::thread> helpers_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::function<void(int)> task_;
    int tasks_ = 0, busy_ = 0, failed_task_ = 0;
    long long round_ = 0;
    bool closing_ = false;
    std::atomic<int> next_ = 0;
    std::exception_ptr failure_;
};

/// Neighbouring live rows.
struct row_range {
    long long first = 0;
    long long count = 0;
    long long end() const { return first + count; }
};

/// The live rows of a batch as few ranges as there can be: one where every row lives.
inline std::vector<row_range> live_ranges(const batch_rows& rows) {
    std::vector<row_range> ranges;
    if (rows.each.live == nullptr && rows.capacity() > 0) ranges.push_back({0, rows.capacity()});
    if (rows.each.live == nullptr) return ranges;
    for (int b = 0; b < rows.batch; ++b) {
        const int live = rows.each.of(b);
        if (live == 0) continue;
        if (!ranges.empty() && ranges.back().end() == rows.first(b))
            ranges.back().count += live;
        else
            ranges.push_back({rows.first(b), live});
    }
    return ranges;
}

/// Live rows cut into about 64 blocks, by the number of rows alone: sums over blocks are the same for all threads.
inline std::vector<row_range> row_blocks(const batch_rows& rows) {
    const std::vector<row_range> ranges = live_ranges(rows);
    long long total = 0;
    for (const row_range& range : ranges) total += range.count;
    const long long size = std::max(1LL, (total + 63) / 64);
    std::vector<row_range> blocks;
    for (const row_range& range : ranges)
        for (long long done = 0; done < range.count; done += size)
            blocks.push_back({range.first + done, std::min(size, range.count - done)});
    return blocks;
}

/// Calls f(row) for every live row.
template <class F>
void for_rows(workers& team, const batch_rows& rows, const F& f) {
    const std::vector<row_range> blocks = row_blocks(rows);
    team.run(static_cast<int>(blocks.size()), [&](int task) {
        const row_range block = blocks[static_cast<std::size_t>(task)];
        for (long long row = block.first; row < block.end(); ++row) f(row);
    });
}

/// Calls f(row, sums) for every live row, where f adds to the `width` numbers of `sums`; then adds all of them to `out`
/// in order of rows. With a null `out` sums is null too.
template <class T, class F>
void for_rows_with_sums(workers& team, const batch_rows& rows, int width, T* out, const F& f) {
    const std::vector<row_range> blocks = row_blocks(rows);
    const std::size_t size = out == nullptr ? 0 : static_cast<std::size_t>(width);
    std::vector<T> sums(blocks.size() * size);
    team.run(static_cast<int>(blocks.size()), [&](int task) {
        const row_range block = blocks[static_cast<std::size_t>(task)];
        T* mine = out == nullptr ? nullptr : sums.data() + static_cast<std::size_t>(task) * size;
        for (long long row = block.first; row < block.end(); ++row) f(row, mine);
    });
    for (std::size_t block = 0; block < blocks.size(); ++block)
        for (std::size_t c = 0; c < size; ++c) out[c] += sums[block * size + c];
}

}  // namespace sdepth::inline v0::on_host
